#!/usr/bin/env bash
# newest-packages.sh FOLDER PACKAGE…: a virtual environment with the newest releases of these packages, refreshed on each call.
# It names a package that another one holds back: then an older release of it was tried.
set -euo pipefail
folder=$1
shift
failed() {
    echo "error: $1 (hint: is there a network, and does pip reach its package index from here?)" >&2
    exit 1
}
# One that was interrupted while it was made is made again.
if [[ ! -x $folder/bin/uv ]]; then
    echo "making the Python environment $folder" >&2
    rm -rf "$folder"
    mkdir -p "$(dirname "$folder")"
    python3 -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet uv || failed "cannot install uv"
fi
# Without this, what uv was told a while ago counts as newest.
"$folder/bin/uv" pip install --quiet --refresh --upgrade --python "$folder/bin/python" "$@" ||
    failed "cannot get the newest releases of $*"
outdated=$("$folder/bin/uv" pip list --quiet --outdated --python "$folder/bin/python") ||
    failed "cannot ask for the newest releases of $*"
for package in "$@"; do
    awk -v name="$package" '$1 == name { print "note: " name " " $2 " is tried, not " $3 ": another package holds it back" }' \
        <<<"$outdated" >&2
done
