"""Section 7 of the page: threads, signals, processes, pickling, programs that are kept."""

import concurrent.futures
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import LAYER, run_python

import einlang

F32 = np.float32
# About a second a million steps.
SLOW = "let x: f32; let n: i64; let y[0] = x; let y[t in 1..n] = cos(y[t - 1]) + sin(y[t - 1]); let last = y[n - 1];"
PRODUCT = "let a: [f32; i, k]; let b: [f32; k, j]; let c[i, j] = sum[k](a[i, k] * b[k, j]);"


def test_many_threads(rng):
    """Two programs, sixteen threads, errors among the calls: every value is right."""
    p = einlang.compile(PRODUCT)
    pick = einlang.compile("let x: [f32; i]; let k: i64; let y = x[k];")

    def work(seed):
        own = np.random.default_rng(seed)
        wrong = 0
        for k in range(400):
            a, b = own.normal(size=(3, 4)).astype(F32), own.normal(size=(4, 2)).astype(F32)
            np.testing.assert_allclose(p(a=a, b=b).c.numpy(), a @ b, rtol=1e-4, atol=1e-5)
            x = np.arange(5, dtype=F32)
            try:
                assert float(pick(x=x, k=k % 7).y) == k % 7
            except einlang.CallError as error:
                assert f"no cell at [{k % 7}]" in str(error) and k % 7 >= 5
                wrong += 1
        return wrong

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert set(pool.map(work, range(16))) == {sum(1 for k in range(400) if k % 7 >= 5)}


def test_threads_share_large_calls(rng):
    """Calls that use the pool, from several threads at once."""
    p = einlang.compile(PRODUCT)
    a, b = rng.normal(size=(200, 300)).astype(F32), rng.normal(size=(300, 250)).astype(F32)
    expected = a @ b

    def work(_):
        for _ in range(10):
            np.testing.assert_allclose(p(a=a, b=b).c.numpy(), expected, rtol=1e-3, atol=1e-3)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_the_gil_is_released():
    p = einlang.compile(SLOW)
    p(x=0.5, n=100_000)  # the next call knows that it takes long
    seen = []
    done = threading.Event()

    def count():
        while not done.is_set():
            seen.append(time.monotonic())
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    begin = time.monotonic()
    p(x=0.5, n=10_000_000)
    end = time.monotonic()
    done.set()
    counter.join()
    during = [t for t in seen if begin < t < end]
    assert end - begin > 0.05 and len(during) > (end - begin) * 100


@pytest.mark.parametrize("call", ["p(x=0.5, n=3_000_000_000)", "p.run(x=0.5, n=3_000_000_000)"])
def test_ctrl_c(call):
    code = (f"import einlang, time\np = einlang.compile({SLOW!r}, outputs=['last'])\nprint('ready', flush=True)\n"
            f"begin = time.monotonic()\ntry:\n    {call}\nexcept KeyboardInterrupt:\n"
            "    print('interrupted', time.monotonic() - begin, flush=True)\n"
            "print(float(p(x=0.0, n=1).last))")
    here = os.path.dirname(os.path.dirname(einlang.__file__))
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "PYTHONPATH": here})
    assert child.stdout.readline() == "ready\n"
    time.sleep(1.0)
    asked = time.monotonic()
    child.send_signal(signal.SIGINT)
    word, after = child.stdout.readline().split()
    assert word == "interrupted" and time.monotonic() - asked < 1.0, after
    assert child.stdout.readline() == "0.0\n"
    assert child.wait(timeout=30) == 0


def in_child(body, seconds=60):
    """Runs `body` in a forked process; it must end well, and in time."""
    process = multiprocessing.get_context("fork").Process(target=body)
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        pytest.fail("the child hangs")
    assert process.exitcode == 0


def test_fork(rng):
    p = einlang.compile(PRODUCT)
    a, b = rng.normal(size=(200, 300)).astype(F32), rng.normal(size=(300, 250)).astype(F32)
    expected = a @ b

    def child():
        np.testing.assert_allclose(p(a=a, b=b).c.numpy(), expected, rtol=1e-3, atol=1e-3)
        q = einlang.compile("let x: [f32; i]; let y[i] = x[i] + 3.0;")
        assert q(x=[1.0]).y.numpy() == 4

    child()  # the pool runs in the parent
    in_child(child)
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            p(a=a, b=b)

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for _ in range(10):
            in_child(child)
    finally:
        stop.set()
        for t in threads:
            t.join()


def test_ctrl_c_works_in_a_forked_process():
    code = (f"import einlang, os, signal, sys, threading, time\np = einlang.compile({SLOW!r}, outputs=['last'])\n"
            "p(x=0.5, n=1000)\npid = os.fork()\nif pid == 0:\n"
            "    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
            "    try:\n        p(x=0.5, n=3_000_000_000)\n    except KeyboardInterrupt:\n        os._exit(7)\n"
            "    os._exit(1)\n_, status = os.waitpid(pid, 0)\nprint(os.waitstatus_to_exitcode(status))")
    assert run_python(code) == "7\n"


def test_runs_from_many_threads():
    p = einlang.compile("let x: [f32; i]; let s = sum[i](x[i] * x[i]);")

    def work(k):
        for _ in range(5):
            assert float(p.run(x=np.full(3, k, F32)).s) == 3 * k * k
            assert "s: f32" in p.facts()
        return True

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


def double(program, x):
    return float(program(x=x).y)


def test_spawn():
    p = einlang.compile("let x: f32; let y = 2.0 * x;")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(double, [p, p], [1.0, 2.0])) == [2.0, 4.0]


def test_programs_pickle(tmp_path, data):
    again = pickle.loads(pickle.dumps(einlang.compile(LAYER)))
    assert float(again(**data).loss) == float(einlang.compile(LAYER)(**data).loss)
    gradient = pickle.loads(pickle.dumps(einlang.compile(LAYER).grad("loss", "W")))
    assert gradient(**data).grads.W.shape == (2, 3)
    # The modules travel along.
    (tmp_path / "half.ein").write_text("pub fn half(x: f32) -> f32 { x / 2.0 }\n")
    (tmp_path / "main.ein").write_text("use half::half;\nlet x: [f32; i];\nlet y[i] = half(x[i]);\n")
    packed = pickle.dumps(einlang.compile(tmp_path / "main.ein"))
    for file in list(tmp_path.iterdir()):
        file.unlink()
    from einlang.program import _programs

    _programs.clear()
    moved = pickle.loads(packed)
    assert moved(x=[3.0]).y.numpy() == 1.5
    assert moved.vjp("y", "x")(x=[3.0], y_bar=[1.0]).x_bar.numpy() == 0.5


def test_programs_are_kept(tmp_path):
    assert einlang.compile(LAYER) is einlang.compile(LAYER)
    assert einlang.compile(LAYER) is not einlang.compile(LAYER, opt_level=1)
    p = einlang.compile(LAYER)
    assert p.grad("loss", "W") is p.grad("loss", ["W"])
    module = tmp_path / "half.ein"
    module.write_text("pub fn half(x: f32) -> f32 { x / 2.0 }\n")
    path = tmp_path / "main.ein"
    path.write_text("use half::half;\nlet x: f32;\nlet y = half(x);\n")
    first = einlang.compile(path)
    assert einlang.compile(path) is first
    module.write_text("pub fn half(x: f32) -> f32 { x / 4.0 }\n")
    os.utime(module, ns=(1, 1))
    assert float(einlang.compile(path)(x=4.0).y) == 1
    np.save(tmp_path / "w.npy", np.array([1, 2], F32))
    loads = f'let w = load("{tmp_path}/w.npy") as [f32; i]; let s = sum[i](w[i]);'
    assert float(einlang.compile(loads)().s) == 3
    np.save(tmp_path / "w.npy", np.array([5, 2], F32))
    os.utime(tmp_path / "w.npy", ns=(1, 1))
    assert float(einlang.compile(loads)().s) == 7


def test_sixty_four_are_kept():
    from einlang.program import _programs

    first = einlang.compile("let x: f32; let y = x + 0.5;", opt_level=0)
    for k in range(64):
        einlang.compile(f"let x: f32; let y = x + {k}.25;", opt_level=0)
    assert len(_programs) == 64
    assert einlang.compile("let x: f32; let y = x + 0.5;", opt_level=0) is not first


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_calls_leave_nothing(data):
    p = einlang.compile(LAYER)
    x, W = data["x"], data["W"]
    references = sys.getrefcount(x), sys.getrefcount(p)

    def work(count):
        for _ in range(count):
            r = p(x=x, W=W)
            r.z
            float(r.loss)
            p.call({"x": x, "W": W}, out={"z": np.empty((4, 2), F32)})
            try:
                p(x=x)
            except einlang.InputError:
                pass

    work(2000)
    before = resident()
    work(20_000)
    assert resident() - before < 1_000_000
    del work
    gc.collect()
    assert (sys.getrefcount(x), sys.getrefcount(p)) == references


def test_wrong_programs_are_forgotten():
    """Each kept 37 kB once, because nothing destroyed an object whose `__init__` had failed."""

    def resident():
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def some(count):
        for _ in range(count):
            with pytest.raises(einlang.CompileError):
                einlang.compile("let x: [f32; i]; let y[i] = x[i] + unknown;")

    some(100)
    before = resident()
    some(300)
    assert resident() - before < 3_000_000


def test_nothing_is_said_at_exit():
    """A program that somebody still holds when the process ends, as notebooks do, is no reason for a page of warnings."""
    code = ("import ctypes, einlang\np = einlang.compile('let x: f32; let y = x;')\nr = p(x=2.0)\n"
            "ctypes.pythonapi.Py_IncRef(ctypes.py_object(p))\nctypes.pythonapi.Py_IncRef(ctypes.py_object(r))")
    here = os.path.dirname(os.path.dirname(einlang.__file__))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": here})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_imports_are_light():
    """`import einlang` and a call load nothing that a program may not want, and no module that is slow to load."""
    heavy = {"xarray", "pandas", "ml_dtypes", "torch", "jax", "IPython", "asyncio", "email", "http", "inspect", "subprocess",
             "unittest", "multiprocessing"}
    found = run_python("import numpy, sys; before = set(sys.modules)\n"
                       "import einlang; float(einlang.compile('let x: f32; let y = x;')(x=2.0).y)\n"
                       "print(*{name.split('.')[0] for name in set(sys.modules) - before})")
    assert "einlang" in found.split() and not heavy & set(found.split()), heavy & set(found.split())
