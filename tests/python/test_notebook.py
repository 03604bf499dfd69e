"""docs/python.ipynb runs, and shows what it says: values, a picture, a coloured error, explanations as HTML."""

import os
import pathlib
import signal
import threading
import time

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

import einlang

PATH = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.ipynb"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("notebook")


def environment(folder):
    return {**os.environ, "PYTHONPATH": str(pathlib.Path(einlang.__file__).parent.parent), "EINLANG_CACHE": "off",
            "IPYTHONDIR": str(folder / "ipython"), "JUPYTER_RUNTIME_DIR": str(folder / "runtime")}


@pytest.fixture(scope="module")
def ran(folder):
    """The notebook after a run, in a folder of its own."""
    notebook = nbformat.read(PATH, as_version=4)
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment(folder))
    return notebook


SLOW = """let x: f32;
let y[0] = x;
let y[t in 1..3000000000] = cos(y[t - 1]) + sin(y[t - 1]);
let last = y[2999999999];"""


@pytest.mark.parametrize("slow", [f"p = einlang.compile({SLOW!r}, outputs=['last'])\nprint('ready', flush=True)\np(x=0.5)",
                                  f"%%ein --in x=0.5 --out last\n{SLOW}"])
def test_ctrl_c(folder, slow):
    """The button that stops a cell, pressed in a run of minutes: the cell ends within a second, and the next one runs. The button
    sends a signal to the kernel; here that is done without its manager, whose loop belongs to another thread. A kernel that has
    not begun with the cell yet ignores the signal, so it is sent again until the cell has ended."""
    cells = [nbformat.v4.new_code_cell("%load_ext einlang\nimport einlang"), nbformat.v4.new_code_cell(slow),
             nbformat.v4.new_code_cell("print(float(einlang.compile('let a: f32; let b = 2.0 * a;')(a=4.0).b))")]
    client = NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=120, kernel_name="python3", allow_errors=True,
                            resources={"metadata": {"path": str(folder)}})
    ended = {}

    over = threading.Event()

    def press():
        for _ in range(5):
            if over.wait(4):
                return
            ended["pressed"] = time.monotonic()
            os.kill(client.km.provisioner.pid, signal.SIGINT)

    with client.setup_kernel(env=environment(folder)):
        client.execute_cell(cells[0], 0)
        button = threading.Thread(target=press)
        button.start()
        client.execute_cell(cells[1], 1)
        ended["cell"] = time.monotonic()
        over.set()
        button.join()
        client.execute_cell(cells[2], 2)
    [error] = [out for out in cells[1].outputs if out["output_type"] == "error"]
    assert error["ename"] == "KeyboardInterrupt" and 0 < ended["cell"] - ended["pressed"] < 1
    assert printed(cells[2]) == "8.0\n"


def cell(notebook, beginning):
    found = [c for c in notebook.cells if c.cell_type == "code" and beginning in c.source]
    assert len(found) == 1, f"{len(found)} cells with {beginning!r}"
    return found[0]


def data(cell, kind):
    return [out["data"][kind] for out in cell.outputs if kind in out.get("data", {})]


def printed(cell):
    return "".join(out["text"] for out in cell.outputs if out["output_type"] == "stream" and out["name"] == "stdout")


def test_kept_without_outputs():
    notebook = nbformat.read(PATH, as_version=4)
    nbformat.validate(notebook)
    assert all(c.outputs == [] and c.execution_count is None for c in notebook.cells if c.cell_type == "code")


def test_only_the_mistake_fails(ran):
    failed = [c for c in ran.cells if c.cell_type == "code" and any(out["output_type"] == "error" for out in c.outputs)]
    assert failed == [cell(ran, "let spread")]
    warned = [out for c in ran.cells if c.cell_type == "code" for out in c.outputs if out.get("name") == "stderr"]
    assert warned == []


def test_values(ran):
    rng = np.random.default_rng(1)
    time = np.arange(8)
    count = 100 * np.exp(-0.5 * time) + rng.normal(size=8)
    model = 80 * np.exp(-0.3 * time)
    assert printed(cell(ran, "--in time")) == f"loss {np.mean((model - count) ** 2):.2f}\n"
    [gradients] = [data(c, "text/plain")[0] for c in ran.cells if c.source == "grads"]
    by_rate = np.mean(2 * (model - count) * -time * model)
    found = dict(line.split(" = ") for line in gradients.splitlines())
    assert float(found["rate"]) == pytest.approx(by_rate, rel=1e-4)
    assert "<table>" in data(next(c for c in ran.cells if c.source == "model"), "text/html")[0]


def test_the_fit(ran):
    from math import exp

    fit = cell(ran, "adam_start")
    rng = np.random.default_rng(1)
    count = [100 * exp(-0.5 * t) + noise for t, noise in zip(range(8), rng.normal(size=8))]
    # Least squares over a grid: brute force, nothing shared.
    rates = np.linspace(0.4, 0.6, 2001)
    shapes = np.exp(-np.outer(rates, np.arange(8)))
    starts = shapes @ count / (shapes ** 2).sum(axis=1)
    best = ((starts[:, None] * shapes - count) ** 2).mean(axis=1).argmin()
    words = printed(fit).replace(",", "").split()
    assert float(words[1]) == pytest.approx(starts[best], abs=0.2)
    assert float(words[3]) == pytest.approx(rates[best], abs=0.002)


def test_the_picture_is_inline(ran, folder):
    [picture] = data(cell(ran, "adam_start"), "image/svg+xml")
    assert picture.lstrip().startswith("<svg") and "mean squared error" in picture
    assert not list(folder.glob("*.svg"))


def test_the_error_is_coloured_and_points_into_the_cell(ran):
    wrong = cell(ran, "let spread")
    [out] = wrong.outputs
    said = "\n".join(out["traceback"])
    assert "\x1b[" in said and "error" in said
    assert f"In[{wrong.execution_count}]:2" in said.replace("\x1b[0m", "")
    assert "interactiveshell" not in said and "einlang/" not in said


def test_explanations_are_html(ran):
    [page] = data(cell(ran, "fit.explain"), "text/html")
    assert "<iframe" in page and "rate" in page
    [source] = data(cell(ran, ".source"), "text/html")
    assert "<pre>" in source and "d_loss_d_rate" in source
