#!/usr/bin/env bash
# python-env.sh FOLDER REQUIREMENTS: a virtual environment with these packages, made again when they change.
set -euo pipefail
folder=$1 requirements=$2
stamp="$folder/.made-from" compiled="$folder/.compiled"
if [[ ! -f $stamp ]] || ! cmp -s "$requirements" "$stamp"; then
    echo "making the Python environment $folder" >&2
    rm -rf "$folder"
    mkdir -p "$(dirname "$folder")"
    python3 -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet uv
    "$folder/bin/uv" pip install --quiet --python "$folder/bin/python" --requirements "$requirements"
    cp "$requirements" "$stamp"
fi
# uv leaves sources as they are, and where PYTHONDONTWRITEBYTECODE is set, every process would compile them anew: 8 s for torch, 28 s
# for Lightning. Packages' own tests are left out, which nobody imports. Templates among the sources are no Python; compileall says
# so and goes on.
if [[ ! -f $compiled ]]; then
    "$folder/bin/python" -m compileall -q -j 0 -x '/tests/' "$folder/lib" > /dev/null 2>&1 || true
    touch "$compiled"
fi
