#!/usr/bin/env bash
# mdbook.sh FOLDER: prints the path of an mdbook; one that is missing is compiled into FOLDER (some minutes).
# Without optimisation and without its web server: the site is small, and compiling is what takes the time.
set -euo pipefail
folder=$1 version=0.5.4
if command -v mdbook >/dev/null; then
    command -v mdbook
    exit 0
fi
if [[ ! -x $folder/bin/mdbook ]]; then
    echo "making mdbook $version in $folder" >&2
    # Without what `make test` sets for this workspace: clippy as the compiler, and make's counting of jobs.
    env -u RUSTC_WORKSPACE_WRAPPER -u CLIPPY_ARGS -u MAKEFLAGS -u MFLAGS \
        CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR="$folder/target" cargo install --quiet --locked --debug \
        --no-default-features --features search --root "$folder" --version "$version" mdbook >&2
    rm -rf "$folder/target"
fi
echo "$folder/bin/mdbook"
