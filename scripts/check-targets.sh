#!/usr/bin/env bash
# check-targets.sh [TARGET…]: whether the command compiles for other systems, by `cargo check`; without targets, for those that
# rustup has (`rustup target add aarch64-apple-darwin`), this machine's own left out.
#
# Nothing is linked, so that no C compiler of these systems is needed: one that makes empty files stands in for it. For
# x86_64-pc-windows-msvc it cannot: build scripts ask for Microsoft's own tools. x86_64-pc-windows-gnu compiles the same Rust.
set -euo pipefail
cd "$(dirname "$0")/.."
own=$(rustc -vV | sed -n 's/^host: //p')
if [ $# -eq 0 ]; then
    mapfile -t targets < <(rustup target list --installed | grep -v -e "^$own\$" -e '-msvc$')
else
    targets=("$@")
fi
if [ ${#targets[@]} -eq 0 ]; then
    echo "rustup has no other target: rustup target add aarch64-apple-darwin x86_64-pc-windows-gnu" >&2
    exit 1
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/cc" <<'STAND_IN'
#!/bin/sh
# It makes empty files: objects after -o, and archives.
before=
for word in "$@"; do
    if [ "$before" = -o ]; then : > "$word"; fi
    case "$word" in *.a) : > "$word" ;; esac
    before=$word
done
STAND_IN
chmod +x "$folder/cc"

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}-check"
for target in "${targets[@]}"; do
    name=${target//-/_}
    export "CC_$name=$folder/cc" "CXX_$name=$folder/cc" "AR_$name=$folder/cc"
    echo "wellread for $target"
    cargo check --quiet --locked --target "$target" -p wellread-cli
done
