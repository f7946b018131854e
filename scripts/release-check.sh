#!/usr/bin/env bash
# release-check.sh [--tag vVERSION] [--verify] [--only CHECK]: what has to hold before a release, a line for each check. Python
# and cargo are enough; cargo-deny, actionlint, yamllint, shellcheck, hadolint, ruby, twine and readelf are used where they are
# installed.
set -euo pipefail
exec python3 "$(dirname "$0")/release.py" check "$@"
