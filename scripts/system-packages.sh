#!/usr/bin/env bash
# system-packages.sh [light|tests]: installs what the build needs and is missing, all of it, without the storage engines, or
# with what only tests use.
# Rust is only looked for, Debian packages are installed when root.
set -euo pipefail

if ! command -v cargo >/dev/null; then
    echo "wellread needs Rust 1.95 or newer (cargo): see https://rustup.rs or your distribution's packages." >&2
    exit 1
fi
have=$(rustc --version | sed -E 's/rustc ([0-9]+)\.([0-9]+).*/\1 \2/')
read -r major minor <<<"$have"
if ((major == 1 && minor < 95)); then
    echo "wellread needs Rust 1.95 or newer; this is $(rustc --version). Try: rustup update stable" >&2
    exit 1
fi

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
# Snappy inside Blosc, which OME-Zarr's chunks can have, is C++.
command -v c++ >/dev/null || missing+=(g++)
if [[ ${1:-} != light ]]; then
    # Lance's metadata are protocol buffers, Vortex binds C by libclang.
    command -v protoc >/dev/null || missing+=(protobuf-compiler libprotobuf-dev)
    # libclang-cpp is another library, which some images have alone.
    ldconfig -p 2>/dev/null | grep -qE 'libclang(-[0-9.]+)?\.so' ||
        compgen -G '/usr/lib/llvm-*/lib/libclang.so*' >/dev/null ||
        compgen -G '/usr/lib/llvm-*/lib/libclang-[0-9]*.so*' >/dev/null || missing+=(libclang-dev)
fi
command -v python3 >/dev/null || missing+=(python3)
# Debian splits venv off Python; a Python from elsewhere brings its own.
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
# With it, programs that are no Python load DuckDB's library from the Python package.
if [[ ${1:-} == tests ]] && ! python3 - 2>/dev/null <<'PYTHON'; then
import ctypes, os, sysconfig
of = sysconfig.get_config_var
name = f"libpython{of('py_version_short')}.so.1.0"
for path in (os.path.join(of("LIBDIR") or "", of("INSTSONAME") or name), os.path.join(of("LIBDIR") or "", name), name):
    try:
        ctypes.CDLL(path)
    except OSError:
        continue
    break
else:
    raise SystemExit(1)
PYTHON
    version=$(python3 -c 'import sysconfig; print(sysconfig.get_config_var("py_version_short"))' 2>/dev/null || true)
    missing+=("libpython${version:-3-dev}")
fi
# The leak check of the Python module, which is left out where valgrind is not to be had.
if [[ ${1:-} == tests && $(id -u) == 0 ]] && ! command -v valgrind >/dev/null && command -v apt-get >/dev/null; then
    missing+=(valgrind)
fi
if ((${#missing[@]} == 0)); then
    exit 0
fi
if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    echo "installing ${missing[*]}" >&2
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
    echo "wellread needs these packages: ${missing[*]}" >&2
    echo "Install them, for example: sudo apt-get install ${missing[*]}" >&2
    exit 1
fi
