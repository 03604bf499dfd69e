"""Layers, losses and transforms of the library beside PyTorch's own: values and derivatives, in f64, at random numbers.

usage: against_torch.py EIN   (needs PyTorch; `make test` does not run it)

Each case is a function of PyTorch, the expression that means the same here, and the shapes of its arguments. The loss is the
sum of the result times random weights, so that its derivative by an argument tests every cell.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

TOLERANCE = 1e-9
LETTERS = "abcdefghijkl"


def complex_parts(f):
    return lambda re, im: torch.view_as_real(f(torch.complex(re, im))).movedim(-1, 0)


def lstm(x, w, u, b):
    net = torch.nn.LSTM(x.shape[2], u.shape[1], batch_first=True, dtype=torch.float64)
    flat = {"weight_ih_l0": w.flatten(0, 1), "weight_hh_l0": u.flatten(0, 1), "bias_ih_l0": b.flatten(), "bias_hh_l0": 0 * b.flatten()}
    return torch.func.functional_call(net, flat, (x,))[0]


def gru(x, w, u, b, c):
    net = torch.nn.GRU(x.shape[2], u.shape[1], batch_first=True, dtype=torch.float64)
    flat = {"weight_ih_l0": w.flatten(0, 1), "weight_hh_l0": u.flatten(0, 1), "bias_ih_l0": b.flatten(), "bias_hh_l0": c.flatten()}
    return torch.func.functional_call(net, flat, (x,))[0]


LABELS = torch.tensor([2, 0, 3, 1])
CLASSES = torch.tensor([0.5, 1.0, 2.0, 0.25, 1.5], dtype=torch.float64)
SOME = torch.tensor([2, -100, 3, 1])
# Name, imports, PyTorch, the expression, shapes of the arguments x0, x1, …
CASES = [
    ("conv1d", "std::nn::conv::conv1d", lambda x, k, b: F.conv1d(x, k, b, stride=2, padding=1, dilation=2, groups=2),
     "conv1d[c](x0, x1, x2, stride = 2, padding = 1, dilation = 2, groups = 2)", [(2, 4, 9), (6, 2, 3), (6,)]),
    ("conv2d", "std::nn::conv::conv2d", lambda x, k, b: F.conv2d(x, k, b, stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
     "conv2d[c, d](x0, x1, x2, stride = (2, 1), padding = (1, 2), dilation = (1, 2))", [(2, 3, 5, 6), (4, 3, 3, 2), (4,)]),
    ("conv2d groups", "std::nn::conv::conv2d", lambda x, k: F.conv2d(x, k, groups=3),
     "conv2d[c, d](x0, x1, groups = 3)", [(2, 3, 5, 4), (6, 1, 3, 2)]),
    ("conv3d", "std::nn::conv::conv3d", lambda x, k: F.conv3d(x, k, stride=(1, 2, 1), padding=1, groups=2),
     "conv3d[c, d, e](x0, x1, stride = (1, 2, 1), padding = 1, groups = 2)", [(1, 4, 3, 4, 3), (2, 2, 2, 3, 2)]),
    ("conv_transpose1d", "std::nn::conv::conv_transpose1d",
     lambda x, k, b: F.conv_transpose1d(x, k, b, stride=2, padding=1, output_padding=1, groups=2, dilation=2),
     "conv_transpose1d[c](x0, x1, x2, stride = 2, padding = 1, output_padding = 1, groups = 2, dilation = 2)", [(2, 4, 5), (4, 3, 3), (6,)]),
    ("conv_transpose2d", "std::nn::conv::conv_transpose2d",
     lambda x, k: F.conv_transpose2d(x, k, stride=(2, 3), padding=(1, 0), output_padding=(1, 2)),
     "conv_transpose2d[c, d](x0, x1, stride = (2, 3), padding = (1, 0), output_padding = (1, 2))", [(2, 3, 4, 3), (3, 2, 3, 2)]),
    ("conv_transpose3d", "std::nn::conv::conv_transpose3d", lambda x, k: F.conv_transpose3d(x, k, stride=2, padding=1),
     "conv_transpose3d[c, d, e](x0, x1, stride = 2, padding = 1)", [(1, 2, 2, 3, 2), (2, 2, 3, 2, 3)]),
    ("max_pool2d", "std::nn::pool::maxpool2d", lambda x: F.max_pool2d(x, (3, 2), stride=(2, 2), padding=(1, 0), ceil_mode=True),
     "maxpool2d[c, d](x0, (3, 2), stride = (2, 2), padding = (1, 0), ceil_mode = true)", [(2, 3, 6, 7)]),
    ("max_pool1d", "std::nn::pool::maxpool1d", lambda x: F.max_pool1d(x, 2, dilation=3),
     "maxpool1d[c](x0, 2, dilation = 3)", [(2, 2, 9)]),
    ("avg_pool2d", "std::nn::pool::avgpool2d",
     lambda x: F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
     "avgpool2d[c, d](x0, 3, stride = 2, padding = 1, ceil_mode = true, count_include_pad = false)", [(2, 2, 6, 5)]),
    ("avg_pool2d pad", "std::nn::pool::avgpool2d", lambda x: F.avg_pool2d(x, 2, padding=1, count_include_pad=True),
     "avgpool2d[c, d](x0, 2, padding = 1, count_include_pad = true)", [(2, 2, 6, 5)]),
    ("cross_entropy", "std::loss::cross_entropy",
     lambda z: F.cross_entropy(z, LABELS, weight=CLASSES, label_smoothing=0.2, reduction="none"),
     "cross_entropy[b](x0, labels, weight = classes, label_smoothing = 0.2)", [(4, 5)]),
    ("cross_entropy ignore", "std::loss::cross_entropy", lambda z: F.cross_entropy(z, SOME, ignore_index=-100, reduction="none"),
     "cross_entropy[b](x0, some, ignore_index = -100)", [(4, 5)]),
    ("huber", "std::loss::huber", lambda x, y: F.huber_loss(x, y, delta=0.7, reduction="none"), "huber(x0[a], x1[a], 0.7)", [(6,), (6,)]),
    ("smooth_l1", "std::loss::smooth_l1", lambda x, y: F.smooth_l1_loss(x, y, beta=0.3, reduction="none"),
     "smooth_l1(x0[a], x1[a], 0.3)", [(6,), (6,)]),
    ("layer_norm", "std::nn::layer_norm", lambda x, g, b: F.layer_norm(x, (4,), g, b), "layer_norm[b]({ gamma: x1, beta: x2 }, x0)",
     [(3, 4), (4,), (4,)]),
    ("group_norm", "std::nn::norm::group_norm", lambda x, g, b: F.group_norm(x, 2, g, b), "group_norm[b](x0, x1, x2, 2, 1e-5)",
     [(2, 4, 3), (4,), (4,)]),
    ("lstm", "std::nn::lstm", lstm, "lstm[b]({ w: x1, u: x2, b: x3 }, x0).0", [(2, 3, 2), (4, 3, 2), (4, 3, 3), (4, 3)]),
    ("gru", "std::nn::gru_two_biases", gru, "gru_two_biases[b]({ w: x1, u: x2, b: x3, state_b: x4 }, x0)",
     [(2, 3, 2), (3, 3, 2), (3, 3, 3), (3, 3), (3, 3)]),
    ("linear", "std::nn::linear", F.linear, "linear({ w: x1, b: x2 }, x0)", [(3, 4), (2, 4), (2,)]),
    ("attention", "std::nn::attention::causal_attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
     "causal_attention(x0, x1, x2)", [(2, 4, 3), (2, 4, 3), (2, 4, 5)]),
    *[(f"{name} of {n}", f"std::fft::{name}", complex_parts(getattr(torch.fft, name)),
       f"{{ let f = {name}[a]({{ re: x0, im: x1 }}); [f.re, f.im] }}", [(n,), (n,)]) for name in ("fft", "ifft") for n in (8, 7)],
    ("rfft", "std::fft::rfft", lambda x: torch.view_as_real(torch.fft.rfft(x)).movedim(-1, 0),
     "{ let f = rfft[a](x0); [f.re, f.im] }", [(9,)]),
    ("convolve", "std::fft::convolve", lambda x, k: F.conv1d(x[None, None], k.flip(0)[None, None], padding=len(k) - 1)[0, 0],
     "convolve[a](x0, x1)", [(9,), (4,)]),
    ("svdvals", "std::linalg::svd", lambda a: torch.linalg.svdvals(a), "svd(x0).1", [(4, 3)]),
    ("logdet", "std::linalg::logdet", lambda a: torch.linalg.slogdet(a)[1], "logdet(x0)", [(4, 4)]),
    ("sinc", "std::math::sinc", torch.sinc, "sinc(x0[a], normalized = true)", [(5,)]),
    ("variance", "std::math::variance", lambda x: torch.var(x, dim=1), "variance[b](x0, correction = 1)", [(3, 5)]),
]


def run(ein, name, imports, function, expression, shapes, folder):
    random = np.random.default_rng(sum(map(ord, name)))
    given = [random.standard_normal(s) for s in shapes]
    args = [torch.tensor(v, requires_grad=True) for v in given]
    result = function(*args)
    weights = random.standard_normal(tuple(result.shape))
    (result * torch.tensor(weights)).sum().backward()
    slots = ", ".join(f"o{k}" for k in range(result.dim()))
    at = f"[{slots}]" if slots else ""
    left = "[a]" if "(x0[a]" in expression else at  # a function of one cell
    lines = [f"use {imports};", "let labels[a] = [2, 0, 3, 1];", "let some[a] = [2, -100, 3, 1];",
             "let classes: [f64; 5] = [0.5, 1.0, 2.0, 0.25, 1.5];"]
    lines += [f"let x{i}: [f64; {', '.join(LETTERS[:len(s)])}];" if i == 0 else f"let x{i}: [f64; {', '.join('?' * len(s))}];"
              for i, s in enumerate(shapes)]
    lines += [f"let w: [f64; {', '.join('?' * result.dim())}];" if slots else "let w: f64;", f"let y{left} = {expression};",
              f"let loss = sum[{slots}](w{at} * y{at});" if slots else "let loss = w * y;"]
    lines += [f"let d{i} = @loss / @x{i};" for i in range(len(shapes))]
    lines += [f'save("out.npz", y, {", ".join(f"d{i}" for i in range(len(shapes)))});']
    (folder / "p.ein").write_text("\n".join(lines) + "\n")
    for key, value in [("w", weights)] + [(f"x{i}", v) for i, v in enumerate(given)]:
        np.save(folder / f"{key}.npy", value)
    inputs = [f"--in={key}={key}.npy" for key in ["w"] + [f"x{i}" for i in range(len(shapes))]]
    done = subprocess.run([ein, "run", "p.ein", *inputs], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        return f"status {done.returncode}: {done.stderr.strip()[:600]}"
    out = np.load(folder / "out.npz")
    wanted = {"y": result.detach().numpy(), **{f"d{i}": a.grad.numpy() for i, a in enumerate(args)}}
    for key, want in wanted.items():
        if out[key].shape != want.shape:
            return f"{key} is {out[key].shape}, PyTorch's is {want.shape}"
        apart = np.max(np.abs(out[key] - want) / (1 + np.abs(want)), initial=0)
        if not apart <= TOLERANCE:
            return f"{key} differs by {apart:.2g}"
    return ""


def main():
    ein = str(pathlib.Path(sys.argv[1]).resolve())
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            problem = run(ein, *case, pathlib.Path(folder))
            wrong += bool(problem)
            print(f"{case[0]}: {problem or 'agrees'}")
    print(f"{len(CASES)} functions, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
