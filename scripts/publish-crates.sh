#!/usr/bin/env bash
# publish-crates.sh: publishes every crate of the workspace, each after those that it needs. May be started again after a
# failure: what is published already is left alone. The token comes from CARGO_REGISTRY_TOKEN or from `cargo login`.
# It compiles nothing: `scripts/release-check.sh --verify` does that beforehand.
set -euo pipefail
cd "$(dirname "$0")/.."

# crates.io takes few new crates in a row, then one every ten minutes.
pause=${PUBLISH_PAUSE:-610} tries=${PUBLISH_TRIES:-5}

order=$(python3 scripts/release.py order)
for crate in $order; do
    for ((try = 1; ; try++)); do
        if said=$(cargo publish --locked --no-verify --package "$crate" 2>&1); then
            echo "published $crate"
            break
        elif [[ $said == *"already exists"* ]]; then
            echo "$crate is published already"
            break
        elif [[ $said == *"429"* || $said == *"Too Many Requests"* ]] && ((try < tries)); then
            echo "$crate has to wait: the next try is in $pause seconds"
            sleep "$pause"
        else
            echo "$said" >&2
            exit 1
        fi
    done
done
