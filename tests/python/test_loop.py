"""Section 8 of the page: a loop in Python."""

import threading

import ml_dtypes
import numpy as np
import pytest

import einlang

F32 = np.float32
STEP = """
let W: [f32; in];
let m: [f32; in];
let x: [f32; n, in];
let y: [f32; n];
let loss = mean[n]((sum[in](x[n, in] * W[in]) - y[n]) ** 2.0);
let g = @loss / @W;
let m_next[in] = 0.9 * m[in] + g[in];
let W_next[in] = W[in] - 0.05 * m_next[in];
"""


def by_hand(W, m, batches):
    losses = []
    for x, y in batches:
        error = x @ W - y
        losses.append(np.mean(error**2))
        m = 0.9 * m + 2 * x.T @ error / len(y)
        W = W - 0.05 * m
    return W, m, losses


@pytest.fixture
def batches(rng):
    truth = np.array([1, -2, 3])
    xs = [rng.normal(size=(8, 3)) for _ in range(40)]
    return [(x.astype(F32), (x @ truth).astype(F32)) for x in xs]


@pytest.fixture
def loop():
    made = einlang.compile(STEP).loop(state={"W": "W_next", "m": "m_next"})
    made.state(W=np.zeros(3, F32), m=np.zeros(3, F32))
    return made


def test_training(loop, batches):
    losses = [float(loop(x=x, y=y).loss) for x, y in batches]
    W, m, expected = by_hand(np.zeros(3), np.zeros(3), batches)
    np.testing.assert_allclose(losses, expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(loop.state()["W"].numpy(), W, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(loop.state()["m"].numpy(), m, rtol=1e-2, atol=1e-3)


def test_what_a_step_gives(loop, batches):
    out = loop(x=batches[0][0], y=batches[0][1])
    assert list(out) == ["loss", "g"]  # the state is not among it: its memory is used again
    with pytest.raises(AttributeError):
        out.W_next
    kept = loop.state()["W"]
    before = kept.numpy().copy()
    for x, y in batches[:5]:
        loop(x=x, y=y)
    np.testing.assert_array_equal(kept.numpy(), before)


def test_buffers_change_places(loop, batches):
    """The same two addresses, again and again: seen through an output that is the state's own input."""
    x, y = batches[0]
    first = loop._program.copies
    for _ in range(10):
        loop(x=x, y=y)
    assert loop._program.copies == first


def test_resumes_bit_for_bit(loop, batches, tmp_path):
    for x, y in batches[:10]:
        loop(x=x, y=y)
    loop.save(tmp_path / "step.npz")
    whole = [float(loop(x=x, y=y).loss) for x, y in batches[10:20]]
    again = einlang.compile(STEP).loop(state={"W": "W_next", "m": "m_next"})
    again.load(tmp_path / "step.npz")
    assert [float(again(x=x, y=y).loss) for x, y in batches[10:20]] == whole
    assert sorted(np.load(tmp_path / "step.npz").files) == ["W", "m"]
    np.savez(tmp_path / "other.npz", V=np.zeros(3, F32))
    with pytest.raises(einlang.InputError, match="holds `V`, but the state is `W`, `m`"):
        again.load(tmp_path / "other.npz")


def test_bfloat16_resumes(tmp_path):
    p = einlang.compile("let s: [bf16; i]; let s_next[i] = s[i] + s[i];")
    loop = p.loop({"s": "s_next"})
    loop.state(s=np.array([1.5, 2], ml_dtypes.bfloat16))
    loop()
    loop.save(tmp_path / "s.npz")
    again = p.loop({"s": "s_next"})
    again.load(tmp_path / "s.npz")
    again()
    assert again.state()["s"].numpy().tolist() == [6, 8]


def test_records():
    p = einlang.compile("type S = { a: [f32; i], b: f32 };\nlet s: S;\nlet x: f32;\n"
                        "let next = { a: 2.0 * s.a, b: s.b + x };")
    loop = p.loop(state={"s": "next"})
    loop.state(s={"a": np.ones(2, F32), "b": 1.0})
    for _ in range(3):
        loop(x=0.5)
    assert loop.state()["s.a"].numpy().tolist() == [8, 8] and float(loop.state()["s.b"]) == 2.5


def test_a_step_that_fails_leaves_the_state():
    p = einlang.compile("let s: [f32; i]; let k: i64; let pick = s[k]; let s_next[i] = s[i] + pick;")
    loop = p.loop({"s": "s_next"})
    loop.state(s=np.array([1, 2], F32))
    loop(k=0)
    with pytest.raises(einlang.CallError):
        loop(k=7)
    assert loop.state()["s"].numpy().tolist() == [2, 3]


@pytest.mark.parametrize("source, state, message", [
    ("let s: f32; let t = s as f64;", {"s": "t"}, "`s` is f32 .* is f64"),
    ("let s: [f32; i]; let t[j in 0..3] = 1.0;", {"s": "t"}, "has \\('j',\\)"),
    ("let s: [f32; 2]; let t = [1.0, 2.0, 3.0];", {"s": "t"}, "has the extents \\(3,\\)"),
    ("let s: f32; let t = s;", {"q": "t"}, "the program has no input `q`"),
    ("let s: f32; let t = s;", {"s": "q"}, "the program has no value `q` to follow the input `s`")])
def test_pairs_are_compared(source, state, message):
    with pytest.raises(einlang.InputError, match=message):
        einlang.compile(source).loop(state)


def test_wrong_steps(loop, batches):
    x, y = batches[0]
    with pytest.raises(einlang.InputError, match="no value yet: call loop.state\\(W=…\\) first"):
        einlang.compile(STEP).loop(state={"W": "W_next", "m": "m_next"})(x=x, y=y)
    with pytest.raises(einlang.InputError, match="the inputs `y` are missing: a step takes `x`, `y`"):
        loop(x=x)
    with pytest.raises(einlang.InputError, match="no input `W`"):
        loop(x=x, y=y, W=np.zeros(3, F32))
    with pytest.raises(einlang.InputError, match="holds f32, but the array given holds float64"):
        loop(x=x.astype(np.float64), y=y)
    with pytest.raises(einlang.InputError, match="E0802|E0805"):
        loop(x=np.ones((8, 4), F32), y=y)


def test_extents_that_change_are_refused():
    p = einlang.compile("let s: [f32; i]; let s_next[k in 0..extent(s, 0) + 1] = 1.0;")
    with pytest.raises(einlang.InputError):
        loop = p.loop({"s": "s_next"})
        loop.state(s=np.ones(2, F32))
        loop()


def test_one_step_at_a_time():
    p = einlang.compile("let s: f32; let n: i64; let y[0] = s; let y[t in 1..n] = cos(y[t - 1]); let s_next = y[n - 1];")
    loop = p.loop({"s": "s_next"})
    loop.state(s=1.0)
    loop(n=100_000)
    worker = threading.Thread(target=lambda: loop(n=30_000_000))
    worker.start()
    seen = 0
    while worker.is_alive():
        try:
            loop(n=2)
        except RuntimeError as error:
            assert "another thread is in a step" in str(error)
            seen += 1
    worker.join()
    assert seen > 0
