#!/bin/sh
# Tries a wheel where there is nothing but Python: a new Debian 12 in a folder, without compiler, LLVM or network. Installs
# the wheel with pip there, runs programs in Python, the doctests of the package, and `ein`. Needs root and debootstrap.
#   tools/wheel_root.sh WHEEL [PROGRAM.py …]
# Without programs: three of examples/python. EIN_ROOT keeps the Debian root for the next time (about 280 MB);
# otherwise it is removed. EIN_PIP is the pip that downloads what the wheel and the programs need.
set -eu

fail() {
  echo "wheel_root: $*" >&2
  exit 1
}

here=$(cd "$(dirname "$0")/.." && pwd)
wheel=${1:?usage: wheel_root.sh WHEEL [PROGRAM.py …]}
shift
[ -f "$wheel" ] || fail "no file $wheel: make wheel writes build/wheels/einlang-….whl"
[ $# -gt 0 ] || set -- "$here/examples/python/regression.py" "$here/examples/python/climate.py" "$here/examples/python/loader.py"
for program in "$@"; do
  [ -f "$program" ] || fail "no file $program"
done
[ "$(id -u)" = 0 ] || fail "chroot needs root"
command -v debootstrap >/dev/null || fail "no debootstrap: apt-get install debootstrap"
pip=${EIN_PIP:-$here/build/environment/bin/pip}
command -v "$pip" >/dev/null || fail "no $pip: make wheel, or say in EIN_PIP which pip downloads"

# In a namespace of its own, so that what is mounted below is gone afterwards, however this ends.
if [ -z "${EIN_UNSHARED:-}" ]; then
  EIN_UNSHARED=1 exec unshare --mount --propagation private "$0" "$wheel" "$@"
fi
work=$(mktemp -d)
root=${EIN_ROOT:-$work/root}
trap 'rm -rf "$work"' EXIT
if [ ! -e "$root/usr/bin/python3" ]; then
  debootstrap --variant=minbase --include=python3,python3-venv bookworm "$root" >"$work/debootstrap.log" 2>&1 ||
    fail "debootstrap failed: $(tail -3 "$work/debootstrap.log")"
fi
# The loader finds the library beside `ein` by /proc/self/exe.
mount -t proc proc "$root/proc"
trap 'umount "$root/proc" && rm -rf --one-file-system "$work"' EXIT
for tool in cc gcc g++ clang ld as opt llc; do
  [ -z "$(chroot "$root" /bin/sh -c "command -v $tool")" ] || fail "$tool is in $root, which should have Python alone"
done

# Everything that pip may take is in one folder; the root needs no network.
rm -rf "$root/srv/wheel" "$root/srv/try"
mkdir -p "$root/srv/wheel" "$root/srv/try"
cp "$wheel" "$root/srv/wheel"
"$pip" download --quiet --only-binary :all: --python-version 3.11 --dest "$root/srv/wheel" "$wheel" xarray
cp "$@" "$root/srv/try"
cp "$here/examples/linear_regression.ein" "$root/srv/try"
cat >"$root/srv/try/doctests.py" <<'PYTHON'
import doctest, importlib, pkgutil

import einlang

tried = 0
for found in pkgutil.iter_modules(einlang.__path__, "einlang."):
    if found.name in ("einlang.torch", "einlang.jax", "einlang.kernel", "einlang.magic"):
        continue  # these need packages that are not here
    results = doctest.testmod(importlib.import_module(found.name))
    tried += results.attempted
    assert not results.failed, found.name
results = doctest.testmod(einlang)
tried += results.attempted
assert not results.failed and tried > 0
print(tried, "doctests passed with", einlang.__version__, "of", einlang.__file__)
PYTHON

inside() {
  echo "\$ $*"
  chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 sh -ec "cd /srv/try; $*"
}

inside "python3 -m venv /srv/try/env"
inside "env/bin/pip install --quiet --no-index --find-links /srv/wheel einlang xarray"
inside "env/bin/pip list --format freeze"
inside "du -sm env/lib/python3.11/site-packages/einlang"
inside "env/bin/python doctests.py"
for program in "$@"; do
  inside "env/bin/python $(basename "$program")"
done
inside "env/bin/ein --version"
inside "env/bin/ein run -c 'print(2 + 3);' | grep -x 5"
inside "env/bin/ein run linear_regression.ein"
inside "env/bin/ein grad -c 'let x: [f32; i]; let s = sum[i](x[i] * x[i]);' --of s --wrt x"
# What needs a C compiler says so.
inside "! env/bin/ein build -c 'let x: f32; let y = x;' -o a.so"
echo "wheel_root: $(basename "$wheel"), $(du -k "$wheel" | cut -f1) kB, works in a Debian that has only Python"
