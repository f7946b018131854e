#!/usr/bin/env bash
# python-package.sh LIBRARY FOLDER: the package `wellread` in FOLDER, for PYTHONPATH, of the native module that cargo has
# built (…/release/lib_native.so) and the sources here. Takes no time and no space: both are linked. `pip install .` would
# compile everything once more, since maturin chooses features of its own.
set -euo pipefail
library=$(realpath "$1") folder=$2
sources=$(cd "$(dirname "$0")/.." && pwd)/python/wellread
rm -rf "$folder/wellread"
mkdir -p "$folder/wellread"
ln -s "$library" "$folder/wellread/_native.abi3.so"
ln -s "$sources"/*.py "$sources"/*.pyi "$sources"/py.typed "$sources"/_tasks "$sources"/compat "$sources"/ray "$folder/wellread/"
