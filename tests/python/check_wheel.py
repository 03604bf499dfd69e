"""A wheel, as somebody gets it who has Python and nothing else: installed into a new virtual environment, used from Python
and from the command line, with an empty search path for programs. Usage: check_wheel.py WHEEL"""

import pathlib
import subprocess
import sys
import tempfile
import venv

MOST_BYTES, MOST_INSTALLED = 25_000_000, 80_000_000
USE = """
import einlang, numpy as np
p = einlang.compile("let x: [f32; i]; let y[i] = x[i] * x[i]; let s = sum[i](y[i]);")
x = np.arange(4, dtype=np.float32)
assert float(p(x=x).s) == 14
np.testing.assert_array_equal(p.grad("s", "x")(x=x).grads.x.numpy(), 2 * x)
print(einlang.__version__, einlang.__file__)
"""
ALLOWED = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "linux-vdso.so.1", "libeinlang.so.0", "libdl.so.2", "libpthread.so.0",
           "librt.so.1", "libgcc_s.so.1"}


def needed(file):
    found = subprocess.run(["readelf", "-d", str(file)], capture_output=True, text=True, check=True).stdout
    return {line.split("[")[1].rstrip("]") for line in found.splitlines() if "(NEEDED)" in line}


def newest_glibc(file):
    found = subprocess.run(["objdump", "-T", str(file)], capture_output=True, text=True, check=True).stdout
    versions = [tuple(map(int, word.strip("()").split("_")[1].split("."))) for word in found.split()
                if word.strip("()").startswith("GLIBC_2")]
    return max(versions)


def main(wheel):
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size / 1e6:.1f} MB")
    assert size <= MOST_BYTES, f"the wheel may have {MOST_BYTES / 1e6} MB"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        venv.create(folder / "env", with_pip=True)
        python = folder / "env/bin/python"
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)], check=True)
        bare = {"PATH": str(folder / "env/bin"), "HOME": name, "EINLANG_CACHE": "off"}  # no compiler, no LLVM
        done = subprocess.run([str(python), "-c", USE], env=bare, cwd=name, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        package = pathlib.Path(done.stdout.split()[-1]).parent
        assert folder in package.parents, package
        installed = sum(f.stat().st_size for f in package.rglob("*") if f.is_file())
        print(f"installed: {installed / 1e6:.1f} MB")
        assert installed <= MOST_INSTALLED
        for file in [*package.glob("*.so*"), package / "bin/ein"]:
            assert needed(file) <= ALLOWED, (file.name, needed(file))
            assert newest_glibc(file) <= (2, 34), (file.name, newest_glibc(file))
        ein = folder / "env/bin/ein"

        def run(*args):
            return subprocess.run([str(ein), *args], env=bare, cwd=name, capture_output=True, text=True, timeout=120)

        assert run("run", "-c", "print(2 + 3);").stdout == "5\n"
        assert "d_s_d_x" in run("grad", "-c", "let x: [f32; i]; let s = sum[i](x[i] * x[i]);", "--of", "s", "--wrt", "x").stdout
        wrong = run("check", "-c", "let a = b;")
        assert wrong.returncode == 1 and "E0201" in wrong.stderr
        helped = run("--help").stdout
        for verb in ("run", "check", "grad", "explain", "audit", "gradcheck", "build", "fmt", "fix", "test", "bench", "doc", "new"):
            assert verb in helped
        built = run("build", "-c", "let x: f32; let y = x;", "-o", "a.so")
        assert built.returncode != 0 and "compiler" in built.stderr, built
    print("fine")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
