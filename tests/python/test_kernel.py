"""The Jupyter kernel, as a notebook and a front end use it: cells, pictures, completion, inspection, the button that stops."""

import asyncio
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

import nbformat
import numpy
import pytest
from nbclient import NotebookClient

import einlang
from einlang._native import Session
from einlang.kernel import parts_of

PLOT = 'use std::plot::{plot};\nlet y[i in 0..5] = (i as f32) ** 2.0;\nplot("y.svg", y);'
HERE = pathlib.Path(einlang.__file__).parent.parent


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernel")
    made = {"PYTHONPATH": str(HERE), "EINLANG_CACHE": "off", "IPYTHONDIR": str(folder / "ipython"),
            "JUPYTER_RUNTIME_DIR": str(folder / "runtime"), "JUPYTER_PATH": str(folder / "share" / "jupyter")}
    before = {name: os.environ.get(name) for name in made}
    os.environ.update(made)  # nbclient looks for kernels in this process
    subprocess.run([sys.executable, "-m", "einlang.kernel", "install", "--prefix", str(folder)], check=True)
    yield dict(os.environ)
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


def client(cells, folder):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    return NotebookClient(notebook, timeout=60, kernel_name="einlang", allow_errors=True, resources={"metadata": {"path": str(folder)}})


def run(cells, folder, environment):
    made = client(cells, folder)
    made.execute(env=environment)
    return [cell.outputs for cell in made.nb.cells]


def text(outputs, name="stdout"):
    return "".join(o["text"] for o in outputs if o["output_type"] == "stream" and o["name"] == name)


def test_cells(tmp_path, environment):
    outputs = run(["let x = [1.0, 2.0]", "let y[i] = x[i] * 2.0;\nlet s = sum[i](y[i])\n:grad s x\nprint(\"{s}\")", "y[1] + 1.0",
                   "let z = y[0] + nothing", "s", "let x = [3.0]", ":undo\ns"], tmp_path, environment)
    assert text(outputs[0]) == "x: f32 [2] = [1.0, 2.0]\n"
    assert text(outputs[1]) == "y: f32 [i: 2] = [2.0, 4.0]\ns: f32 = 6.0\nlet d_s_d_x[i in 0..2] = 2.0;\n6.0\n"
    assert text(outputs[2]) == "5.0\n"
    [wrong] = outputs[3]
    assert (wrong["output_type"], wrong["ename"]) == ("error", "CompileError")
    assert "unknown name `nothing`" in wrong["evalue"] and "In[4]:1:16" in "\n".join(wrong["traceback"])
    assert text(outputs[4]) == "6.0\n"
    assert text(outputs[5]) == "x: f32 [1] = [3.0]\ny: f32 [i: 1] = [6.0]  (computed again)\ns: f32 = 6.0  (computed again)\n"
    assert text(outputs[6]) == "as before: x\n6.0\n"


def test_pictures(tmp_path, environment):
    [outputs] = run([PLOT], tmp_path, environment)
    [picture] = [o for o in outputs if o["output_type"] == "display_data"]
    assert picture["data"]["image/svg+xml"].startswith("<svg")
    assert not list(tmp_path.glob("*.svg"))


def test_warnings_and_failures(tmp_path, environment):
    outputs = run(["let x = [1.0, 2.0]\nlet y[i] = x[i]", "let x = 1.0", "let at = [5]\nlet a = [1.0]\nlet b = a[at[0]]", ":nothing"],
                  tmp_path, environment)
    assert "`y` does not fit any more" in text(outputs[1], "stderr")
    assert [o["ename"] for o in outputs[2] + outputs[3] if o["output_type"] == "error"] == ["RunError", "UsageError"]


def test_stopping(tmp_path, environment):
    slow = "let y[0] = 0.5;\nlet y[t in 1..3000000000] = cos(y[t - 1]) + sin(y[t - 1]);\nprint(y[2999999999])"
    made = client(["let a = 1.0", slow, "a"], tmp_path)
    ended = {}

    def press():
        time.sleep(3)
        ended["pressed"] = time.monotonic()
        asyncio.run(made.km.interrupt_kernel())

    with made.setup_kernel(env=environment):
        made.execute_cell(made.nb.cells[0], 0)
        presser = threading.Thread(target=press)
        presser.start()
        made.execute_cell(made.nb.cells[1], 1)
        ended["over"] = time.monotonic()
        presser.join()
        made.execute_cell(made.nb.cells[2], 2)
    assert made.nb.cells[1].outputs[-1]["ename"] == "KeyboardInterrupt"
    assert ended["over"] - ended["pressed"] < 5
    assert text(made.nb.cells[2].outputs) == "1.0\n"


def ask(made, method, **content):
    """What a front end asks while somebody writes."""
    async def answer():
        number = getattr(made.kc, method)(**content)
        while True:
            reply = await made.kc.get_shell_msg(timeout=30)
            if reply["parent_header"].get("msg_id") == number:
                return reply["content"]
    return asyncio.get_event_loop().run_until_complete(answer())


def test_front_end(tmp_path, environment):
    made = client(["let temperature = [1.0, 2.0]"], tmp_path)
    with made.setup_kernel(env=environment):
        made.execute_cell(made.nb.cells[0], 0)
        asyncio.set_event_loop(asyncio.new_event_loop())
        # Places are characters, not bytes.
        line = 'print("日本語"); let t = temp'
        reply = ask(made, "complete", code=line, cursor_pos=len(line))
        assert "temperature" in reply["matches"] and line[reply["cursor_start"]:] == "temp"
        assert ask(made, "complete", code=":gra", cursor_pos=4)["matches"] == [":grad "]
        reply = ask(made, "inspect", code="temperature[0]", cursor_pos=3)
        assert reply["found"] and "let temperature: f32 [2]" in reply["data"]["text/plain"]
        assert not ask(made, "inspect", code="1.0", cursor_pos=1)["found"]
        assert ask(made, "is_complete", code="let y = sum[i](")["status"] == "incomplete"
        assert ask(made, "is_complete", code="let y = 1.0")["status"] == "complete"


def test_parts():
    assert parts_of("let x = 1.0\n:grad x x\n\nprint(x)") == ["let x = 1.0", ":grad x x", "\n\n\nprint(x)"]
    assert parts_of(":help") == [":help"] and parts_of("\n\n") == []


def test_session():
    """The session below the kernel: values, and an exception of what the text is given to."""
    session = Session(cache=False)
    said = []
    assert session.enter("let x = [1.0, 2.0]", "<a>", lambda text, error: said.append(text))[0] == 0
    assert list(numpy.asarray(session.value("x"))) == [1.0, 2.0] and not said
    with pytest.raises(KeyError, match="no value `y`"):
        session.value("y")
    status, reply = session.enter("let x = y", "<b>", lambda text, error: None)
    assert status == 1 and "unknown name `y`" in json.loads(reply)["problems"]

    def refuse(text, error):
        raise RuntimeError("no room")

    with pytest.raises(RuntimeError, match="no room"):
        session.enter("print(x)", "<c>", refuse)
    assert Session.reads("let x = (") == 1 and Session.reads("// x") == 0
