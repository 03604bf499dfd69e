#!/bin/sh
# Installs what the compiler needs, from Debian 12 packages. Does nothing when all of it is there. `setup.sh tests`
# installs what the tests need as well; other arguments are further packages.
set -eu

# libedit edits the lines of `ein repl`, which opens it where it is there. zlib reads .npz files; it and zstd are wanted by LLVM's static libraries, whose package does not pull them in.
packages="
  build-essential g++ cmake ninja-build lld-19
  llvm-19-dev zlib1g-dev libzstd-dev
  libfmt-dev libcli11-dev nlohmann-json3-dev libedit2
"
# clang builds the fuzzers (libFuzzer); OpenBLAS has the LAPACK that matrices are factored with where it is installed.
tests="
  openmpi-bin libgtest-dev clang-19 libclang-rt-19-dev clang-format clang-tidy-19
  python3 python3-numpy python3-venv python3-dev pkgconf git ca-certificates libopenblas0-pthread
"
if [ "${1:-}" = tests ]; then
  shift
  packages="$packages $tests"
fi

missing=""
for package in $packages "$@"; do
  state=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  case "$state" in
    ii*) ;;
    *) missing="$missing $package" ;;
  esac
done
[ -z "$missing" ] && exit 0

echo "setup: installing$missing"
if [ "$(id -u)" = 0 ]; then
  as_root=""
elif command -v sudo >/dev/null; then
  as_root="sudo"
else
  echo "setup: neither root nor sudo; as root run: apt-get install$missing" >&2
  exit 1
fi
$as_root apt-get update -qq
# shellcheck disable=SC2086  # the lists are words
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
