"""docs/autodiff/*.md: the book's gradients, each with its source, what `ein grad` derives, and the
formula, and two whole programs. The programs are those of tests/grad and bench/programs.
Usage: autodiff_pages.py ROOT EIN [--update]

Without --update: every page is what would be written now."""

import pathlib
import re
import subprocess
import sys

# page → title and entries: (heading, sentence, test, of, wrt, the formula of the book)
PAGES = {
    "products": ("Matrix products", [
        ("Matrix product", "The gradient is summed over the coordinates that the operand does not have: `j` for `A`, `i` for `B`.",
         "seed_000_matmul_pullback", "loss", "A,B", "dA[i, k] = sum[j](dC[i, j] * B[k, j]), dB[k, j] = sum[i](dC[i, j] * A[i, k])"),
        ("Batched, by a pack", "Both operands have the coordinates of the pack, so these are not summed.",
         "seed_001_batched_by_a_pack", "loss", "A,B", "dA[..batch, i, k] = sum[j](dC[..batch, i, j] * B[..batch, k, j])"),
        ("Attention, the values", "Each value is read by every query of its head.",
         "seed_000_attention_values", "loss", "V", "d_V[head, seq_k, d] = sum[seq_q](d_attn_out[head, seq_q, d] * weights[head, seq_q, seq_k])"),
    ]),
    "broadcasts": ("Broadcasts and layers", [
        ("Bias along the features", "The bias is repeated along `b`, so its gradient is summed over `b`.",
         "seed_003_feature_bias", "loss", "bias", "dbias[f] = sum[b](dy[b, f])"),
        ("Bias along the batch", "Here the other coordinate is summed.",
         "seed_003_batch_bias", "loss", "bias", "dbias[b] = sum[f](dy[b, f])"),
        ("Scalar bias", "A scalar has no coordinate, so all of them are summed.",
         "seed_003_scalar_bias", "loss", "b", "db = sum[i](dy[i])"),
        ("Linear layer", "The forward sum removes `in`; the gradient of the weight has it again.",
         "seed_000_linear_layer", "loss", "W,bias", "dW[out, in] = sum[b](dz[b, out] * x[b, in]), dbias[out] = sum[b](dz[b, out])"),
        ("Parameters shared by the batch", "Three operands have three different sums.",
         "seed_003_shared_parameter_layer", "loss", "bias,W,x",
         "dbias[out] = sum[b](G[b, out]), dW[out, in] = sum[b](G[b, out] * x[b, in]), dx[b, in] = sum[out](G[b, out] * W[out, in])"),
        ("Permuted coordinates", "The names say where each cell went; nothing is summed.",
         "seed_000_permute", "loss", "x", "dx[batch, feature] = dy[feature, batch]"),
    ]),
    "convolution": ("Convolution", [
        ("Weight and input", "The input is read at `oh + kh`; seen from the input, `oh` is `ih - kh`.",
         "seed_000_convolution", "loss", "weight,input",
         "dW[oc, ic, kh, kw] = sum[b, oh, ow](dConv[b, oc, oh, ow] * input[b, ic, oh + kh, ow + kw])"),
    ]),
    "normalisation": ("Normalisation and masks", [
        ("LayerNorm", "The gradients of `beta` and `gamma` are summed along the coordinates they are repeated along. `x` is read three times, and the three contributions are added.",
         "seed_000_layer_norm", "loss", "x,gamma,beta",
         "d_beta[feature] = sum[..b](d_out[..b, feature]), d_gamma[feature] = sum[..b](d_out[..b, feature] * normalised[..b, feature])"),
        ("Masked softmax", "A mask works in both directions: masked cells neither get nor pass a gradient.",
         "seed_000_masked_softmax", "loss", "logits", "d[b, j] = p[b, j] * (dp[b, j] - sum[k](dp[b, k] * p[b, k])) where valid[b, j]"),
        ("Sum of the positive cells", "The derivative treats the mask as constant, and is masked too.",
         "seed_000_where_gates_both_directions", "pos_sum", "data", "d[i] = 1 where data[i] > 0"),
        ("Sum above a threshold", "The threshold only decides which cells take part; it gets no gradient.",
         "seed_000_threshold_sum", "loss", "logits", "d[b, class] = d_top[b] where logits[b, class] > threshold[b]"),
    ]),
    "recurrences": ("Recurrences", [
        ("An accumulator", "Time is a coordinate like any other: the derivative at `t` comes from `t + 1`.",
         "seed_000_accumulator", "loss", "x,h", "dh[t] = d_direct[t] + dh[t + 1]"),
        ("With parameters", "A parameter is repeated along time, so its gradient is summed over the steps.",
         "seed_000_recurrence_with_parameters", "loss", "W,b,x",
         "dW = sum[t in 1..T](dh[t] * h[t - 1]), db = sum[t in 1..T](dh[t]), dx = dh[0]"),
        ("A recurrent network", "State, weights, bias and input in one backward pass.",
         "seed_000_rnn_with_sums", "loss", "W_h,W_x,W_y,b,x",
         "dW_h[k, hidden] = sum[t](dpre[t, hidden] * h[t - 1, k]), db[hidden] = sum[t](dpre[t, hidden])"),
    ]),
    "selection": ("Gathers, winners and products", [
        ("Pairwise gather", "Data chooses the cell; a cell that is chosen more than once gets the sum.",
         "seed_000_pairwise_gather", "loss", "matrix", "d[i, j] = sum[k](dg[k]) where idx[k] == i, col_idx[k] == j"),
        ("Outer gather", "The same for every pair of rows and columns.",
         "seed_000_outer_gather", "loss", "matrix", "d[r, c] = sum[i, j](dg[i, j]) where idx[i] == r, col_idx[j] == c"),
        ("Maximum and minimum", "Only the winner gets a gradient.",
         "max_and_min", "loss", "A", "d[i, j] = dm[i] where j == argmax[j](A[i, j])"),
        ("Product", "The product of all other factors: those before times those after, which is exact even if a factor is zero.",
         "seed_000_product", "result", "data", "d[i] = prod[k](data[k] where k != i)"),
    ]),
}

# the page of whole programs: (heading, what to see in it, program)
PROGRAMS = ("Whole programs", [
    ("A long short-term memory", """The four gates are one array `y_a` with a coordinate `g`; `y_c` is the cell state and `y_s` the hidden state, each with one step more
than there are inputs. The gradient runs back in time: `d_loss_d_y_s` adds up what comes from the next step's gates and from the loss,
`d_loss_d_y_c` what comes from the next cell state and from the hidden state, and `d_loss_d_y_a` is the textbook's line for each gate, with
`sigmoid(a) * sigmoid(-a)` for the slope of `sigmoid`. The gradients of the weights sum those of the gates over steps and batch.""", "lstm"),
    ("Runge and Kutta's method", """The Lorenz equations, stepped by `rk4`. The gradient goes through each step backwards: the slope `k4` gets its share of the gradient of
the next state; `y4`, the point where `k4` was taken, gets the transposed Jacobian times that; `k3` gets its share, and what `y4` passes
on; and so on back to the previous state. The gradients of the parameters are summed over all steps and stages.""", "ode"),
])


def primal(text):
    """The program without its requests and what is computed from them, and without effects."""
    lines = [l for l in text.splitlines() if not l.lstrip().startswith("//")]
    lines = [l for l in lines if not re.match(r"(print|assert)\(", l)]
    gone = set()
    while True:
        def dropped(line):
            m = re.match(r"let (\w+)", line)
            read = set(re.findall(r"\w+", line.split("=", 1)[1])) if m and "=" in line else set()
            return m and ("@" in line or read & gone)
        found = {re.match(r"let (\w+)", l)[1] for l in lines if dropped(l)}
        lines = [l for l in lines if not dropped(l)]
        if not found - gone:
            return "\n".join(lines) + "\n"
        gone |= found


def grad(ein, program, *args):
    done = subprocess.run([ein, "grad", "-", *args], input=program, capture_output=True, text=True, timeout=60)
    if done.returncode != 0 or done.stderr:
        sys.exit(f"ein grad: {done.stderr}\n{program}")
    return done.stdout.splitlines()


def statements(lines):
    """Each with its comments and the lines it was laid out over."""
    out, comments = [], []
    for line in lines:
        if line.startswith("//"):
            comments.append(line)
        elif re.match(r"(let|fn|#\[|\w+\()", line):
            out.append([*comments, line])
            comments = []
        else:
            out[-1].append(line)
    return ["\n".join(s) for s in out]


def program_page(root, ein, title, entries):
    out = [f"# {title}", "", "Written by `tests/meta/autodiff_pages.py`; the programs are those of `bench/programs`.", ""]
    for heading, text, name in entries:
        program = (root / f"bench/programs/{name}.ein").read_text()
        out += [f"## {heading}", "", text, "", "```ein", program.rstrip(), "```", "", "`ein grad` prints:", "", "```text",
                *grad(ein, program), "```", ""]
    return "\n".join(out).rstrip() + "\n"


def page(root, ein, title, entries):
    out = [f"# {title}", "", "Generated by `tests/meta/autodiff_pages.py` from the programs in `tests/grad`.", ""]
    for heading, sentence, test, of, wrt, formula in entries:
        program = primal((root / "tests/grad" / f"{test}.ein").read_text())
        known = set(statements(grad(ein, program)))
        derived = [s for s in statements(grad(ein, program, "--of", of, "--wrt", wrt)) if s not in known]
        by_hand = re.sub(r", (?=d\w*(\[[^\]]*\])? =)", "\n", formula).splitlines()
        out += [f"## {heading}", "", sentence, "", "```ein", program.rstrip(), "```", "",
                f"`ein grad --of {of} --wrt {wrt}` adds:", "", "```text", *derived, "```", "",
                "By hand:", "", "```text", *by_hand, "```", ""]
    return "\n".join(out).rstrip() + "\n"


def main(root, ein, update):
    folder, wrong = root / "docs/autodiff", 0
    pages = {name: page(root, ein, title, entries) for name, (title, entries) in PAGES.items()}
    pages["programs"] = program_page(root, ein, *PROGRAMS)
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if path.exists() and path.read_text() == text:
            continue
        if update:
            folder.mkdir(exist_ok=True)
            path.write_text(text)
        else:
            print(f"{path} is not what `ein grad` derives now; run autodiff_pages.py with --update")
            wrong += 1
    print(f"{len(pages)} pages, {wrong} stale")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2], "--update" in sys.argv))
