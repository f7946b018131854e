#!/usr/bin/env bash
# browser.sh: sees to it that there is a Chromium, in which the tests open reports. Where none can be had it says so and
# those tests are skipped.
set -euo pipefail
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if command -v "$name" >/dev/null; then
        exit 0
    fi
done
if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    echo "installing chromium" >&2
    if apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; then
        exit 0
    fi
fi
echo "no Chromium here (for example: sudo apt-get install chromium): the tests that open reports in a browser are skipped" >&2
