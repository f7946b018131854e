#!/usr/bin/env bash
# python-env.sh FOLDER REQUIREMENTS: a virtual environment with these packages, made again when they change.
set -euo pipefail
folder=$1 requirements=$2
stamp="$folder/.made-from"
if [[ -f $stamp ]] && cmp -s "$requirements" "$stamp"; then
    exit 0
fi
echo "making the Python environment $folder" >&2
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet uv
"$folder/bin/uv" pip install --quiet --python "$folder/bin/python" --requirements "$requirements"
cp "$requirements" "$stamp"
