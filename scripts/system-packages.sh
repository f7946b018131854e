#!/usr/bin/env bash
# system-packages.sh [light|engines|tests]: installs what is missing. Each mode has what those before it have:
#   light    the build without the storage engines: a C and a C++ compiler
#   engines  the build with them: protoc and libclang
#   (none)   what uses Python: Python with venv
#   tests    what only tests use: libpython and valgrind, where they are to be had
# Rust is only looked for, Debian packages are installed when root.
set -euo pipefail
mode=${1:-python}
case $mode in
light | engines | python | tests) ;;
*) echo "system-packages.sh [light|engines|tests], not $mode" >&2 && exit 2 ;;
esac

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
if [[ $mode != light ]]; then
    # Lance's metadata are protocol buffers, Vortex binds C by libclang.
    command -v protoc >/dev/null || missing+=(protobuf-compiler libprotobuf-dev)
    # libclang-cpp is another library, which some images have alone.
    ldconfig -p 2>/dev/null | grep -qE 'libclang(-[0-9.]+)?\.so' ||
        compgen -G '/usr/lib/llvm-*/lib/libclang.so*' >/dev/null ||
        compgen -G '/usr/lib/llvm-*/lib/libclang-[0-9]*.so*' >/dev/null || missing+=(libclang-dev)
fi
if [[ $mode == python || $mode == tests ]]; then
    command -v python3 >/dev/null || missing+=(python3)
    # Debian splits venv off Python; a Python from elsewhere brings its own.
    python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
fi

can_install() {
    [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null
}
install_all() {
    echo "installing $*" >&2
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}
if ((${#missing[@]} > 0)); then
    if ! can_install; then
        echo "wellread needs these packages: ${missing[*]}" >&2
        echo "Install them, for example: sudo apt-get install ${missing[*]}" >&2
        exit 1
    fi
    install_all "${missing[@]}"
fi
if [[ $mode != tests ]]; then
    exit 0
fi

# Some tests use these. Where they are not to be had, the tests say so themselves.
# With libpython, programs that are no Python load DuckDB's library from the Python package.
if ! python3 - 2>/dev/null <<'PYTHON'; then
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
    version=$(python3 -c 'import sysconfig; print(sysconfig.get_config_var("py_version_short"))')
    # Debian has that of its own Python alone.
    if ! can_install || ! install_all "libpython$version"; then
        echo "no libpython$version here (for example: sudo apt-get install libpython$version; a Python from elsewhere has to" \
            "be one with a shared library): programs cannot load DuckDB's library from the package duckdb" >&2
    fi
fi
# The leak check of the Python module.
if ! command -v valgrind >/dev/null; then
    if ! can_install || ! install_all valgrind; then
        echo "no valgrind here (for example: sudo apt-get install valgrind): the check for leaks is left out" >&2
    fi
fi
# A web server, from which sets are read.
if ! command -v nginx >/dev/null && [[ ! -x /usr/sbin/nginx ]]; then
    if ! can_install || ! install_all nginx-light; then
        echo "no nginx here (for example: sudo apt-get install nginx-light): reading from a web server of that kind is left out" >&2
    fi
fi
