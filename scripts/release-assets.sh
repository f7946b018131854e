#!/usr/bin/env bash
# release-assets.sh DIST SBOM OUT: writes the downloads of a release on GitHub to the folder OUT. They are
# the program from each wheel of the command in DIST, packed with the licences, also of others' crates. The bill of
# materials SBOM and SHA256SUMS lie beside it.
set -euo pipefail
dist=$(realpath "$1") sbom=$(realpath "$2") out=$3
repository=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$out"
out=$(realpath "$out")
version=$(python3 "$repository/scripts/release.py" version)
# Wheels write the version of a pre-release in another way.
written=$(python3 "$repository/scripts/release.py" version --python)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

shopt -s nullglob
wheels=("$dist"/wellread_cli-"$written"-*.whl)
if ((${#wheels[@]} == 0)); then
    echo "no wheel of the command, version $version, in $dist" >&2
    exit 1
fi
for wheel in "${wheels[@]}"; do
    # …-py3-none-manylinux_2_28_x86_64.whl
    platform=$(basename "$wheel" .whl)
    platform=${platform##*-}
    case $platform in
    *x86_64) target=x86_64-unknown-linux-gnu ;;
    *aarch64) target=aarch64-unknown-linux-gnu ;;
    *) echo "a wheel of an unknown platform: $wheel" >&2 && exit 1 ;;
    esac
    name="wellread-$version-$target"
    mkdir "$work/$name"
    python3 -m zipfile -e "$wheel" "$work/wheel"
    install -m 755 "$work/wheel/wellread_cli-$written.data/scripts/wellread" "$work/$name/wellread"
    cp "$work/wheel/wellread_cli-$written.dist-info/licenses/THIRD-PARTY.txt" "$work/$name/"
    rm -rf "$work/wheel"
    cp "$repository"/{LICENSE-MIT,LICENSE-APACHE,CHANGELOG.md} "$work/$name/"
    cp "$repository/crates/wellread-cli/README.md" "$work/$name/"
    tar --create --gzip --owner=0 --group=0 --numeric-owner --sort=name --file "$out/$name.tar.gz" --directory "$work" "$name"
done
cp "$sbom" "$out/wellread-$version.cdx.json"
cd "$out"
sha256sum -- *.tar.gz *.json >SHA256SUMS
cat SHA256SUMS
