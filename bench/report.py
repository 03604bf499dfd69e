"""What was measured, for people: a table as text, and a chart of ratios as SVG."""

import math
import xml.sax.saxutils

FRAMEWORKS = ("numpy", "torch", "torch.compile", "jax", "numba", "warp")
LIBRARIES = ("numpy", "torch", "onednn")  # for products of matrices: OpenBLAS, MKL and oneDNN called directly
BY_HAND = ("c", "c.fast")


def duration(seconds):
    if seconds is None or math.isnan(seconds):
        return "–"
    for unit, scale in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def megabytes(held):
    return "–" if math.isnan(held) else f"{held * 1e-6:.3g} MB"


def best(entries, kinds):
    found = [e for e in entries if e.kind in kinds and e.runs]
    return min(found, key=lambda e: e.seconds, default=None)


def least_held(entries, kinds):
    return min((e.memory for e in entries if e.kind in kinds and e.runs and not math.isnan(e.memory)), default=math.nan)


def number(x):
    return None if x is None or math.isnan(x) or math.isinf(x) else x


class Table:
    def __init__(self, threads, machine, note, quick):
        self.threads, self.machine, self.rows, self.quick = threads, machine, [], quick
        print(f"\n{threads} thread{'s' if threads > 1 else ''}{'; ' + note if note else ''}")
        if machine:
            print(f"this machine: {machine['flops_f32'] / 1e9:.0f} GFLOP/s f32, {machine['flops_f64'] / 1e9:.0f} GFLOP/s f64, "
                  f"stream {machine['stream_bytes'] / 1e9:.1f} GB/s (one thread)")
        print(f"{'case':<22} {'ours':>9} {'compile':>9} {'best peer':>22} {'ratio':>7} {'by hand':>9} {'ratio':>7} {'memory':>9} {'peer':>9}  agreement")

    def add(self, case, entries, trouble):
        ours = entries[0]
        rivals = LIBRARIES if case.row == "gemm" else FRAMEWORKS
        rival, hand = best(entries, rivals), best(entries, BY_HAND)
        ratio = rival.seconds / ours.seconds if rival and ours.runs else math.nan
        hand_ratio = hand.seconds / ours.seconds if hand and ours.runs else math.nan
        gaps = [e.deviation for e in entries[1:] if not math.isnan(e.deviation)]
        said = [f"{max(gaps):.0e} of {case.tolerance:.0e}"] if gaps else []
        if not math.isnan(ours.deviation):
            said.append(f"differences {ours.deviation:.0e}")
        for before in (e for e in entries if e.kind == "before"):
            said.append(f"before: {duration(before.seconds)}, {before.seconds / ours.seconds:.2f}×" if before.runs and ours.runs
                        else f"before: {before.problem}")
        agreement = "; ".join(trouble or said) or "alone"
        show = lambda r: "–" if math.isnan(r) else f"{r:.2f}×"
        peer = f"{rival.kind} {duration(rival.seconds)}" if rival else "–"
        print(f"{case.name:<22} {duration(ours.seconds):>9} {duration(ours.compile):>9} {peer:>22} {show(ratio):>7} "
              f"{duration(hand.seconds) if hand else '–':>9} {show(hand_ratio):>7} "
              f"{megabytes(ours.memory):>9} {megabytes(least_held(entries, rivals)):>9}  {agreement}", flush=True)
        self.rows.append((case, entries, trouble, ratio, hand_ratio))

    def summary(self):
        ratios = [r for *_, r, _ in self.rows if not math.isnan(r)]
        if not ratios or self.quick:  # of small sizes they say nothing
            return ""
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        wins = sum(r >= 1 for r in ratios)
        return (f"{self.threads} thread{'s' if self.threads > 1 else ''}: geometric mean of the ratios {mean:.2f}×; "
                f"at least as fast in {wins} of {len(ratios)} cases (a ratio above 1: ours is faster)")

    def json(self):
        cases = {}
        for case, entries, trouble, ratio, hand_ratio in self.rows:
            cases[case.name] = {
                "ratio": number(ratio), "ratio_by_hand": number(hand_ratio), "tolerance": case.tolerance, "trouble": trouble,
                "implementations": {
                    e.kind: {"seconds": number(e.seconds), "runs": e.runs, "compile": number(e.compile),
                             "memory": number(e.memory), "problem": e.problem, "deviation": number(e.deviation)} for e in entries}}
        return {"machine": self.machine, "cases": cases}


def profile(kernels, most=5):
    """Where our time went: one line for each of the slowest families."""
    total = sum(k["seconds"] for k in kernels) or 1
    lines = []
    for k in sorted(kernels, key=lambda k: -k["seconds"])[:most]:
        name = ", ".join(k["families"])
        name = (name if len(name) <= 40 else name[:39] + "…") + (" (steps)" if k["steps"] else "")
        lines.append(f"    {name:<50} {duration(k['seconds']):>9} {100 * k['seconds'] / total:5.1f} %  "
                     f"{100 * k['of_peak']:6.1f} % of peak  {100 * k['of_stream']:6.1f} % of stream")
    return "\n".join(lines)


def start_text(start):
    """A value is seconds, or says why there are none."""
    return "start: " + ", ".join(f"{k} {v if isinstance(v, str) else duration(v)}" for k, v in start.items())


def svg(out):
    """A bar per case and thread count: the best peer's time over ours, on a logarithmic axis around 1."""
    bars = [(f"{name}{'' if len(out['threads']) == 1 else f' · {threads}'}", case["ratio"], case["ratio_by_hand"])
            for threads, table in out["threads"].items() for name, case in table["cases"].items()]
    bars = [b for b in bars if b[1] is not None or b[2] is not None]
    values = [v for _, *both in bars for v in both if v]
    span = max([1.0] + [abs(math.log10(v)) for v in values])
    left, width, height, top = 190, 520, 18, 46
    place = lambda v: left + width * (math.log10(v) + span) / (2 * span)
    bottom = top + height * len(bars)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 70}" height="{bottom + 14}" '
             'font-family="sans-serif" font-size="11">',
             '<style>text{fill:#333}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>',
             f'<text x="{left}" y="16" font-size="13">time of the best peer over ours (right of 1: ours is faster); '
             'a dot: C by hand</text>']
    for power in range(-math.ceil(span), math.ceil(span) + 1):
        if abs(power) <= span:
            x = place(10.0**power)
            parts.append(f'<line x1="{x:.1f}" y1="{top - 8}" x2="{x:.1f}" y2="{bottom}" stroke="#999" '
                         f'stroke-width="{1.5 if power == 0 else 0.5}"/>')
            parts.append(f'<text x="{x:.1f}" y="{top - 12}" text-anchor="middle">{10.0**power:g}×</text>')
    for i, (name, ratio, hand) in enumerate(bars):
        y = top + height * i
        parts.append(f'<text x="{left - 6}" y="{y + 12}" text-anchor="end">{xml.sax.saxutils.escape(name)}</text>')
        if ratio is not None:
            a, b = sorted((place(1), place(ratio)))
            colour = "#2a8f5b" if ratio >= 1 else "#c0504d"
            parts.append(f'<rect x="{a:.1f}" y="{y + 2}" width="{max(1, b - a):.1f}" height="{height - 5}" fill="{colour}"/>')
            parts.append(f'<text x="{left + width + 8}" y="{y + 12}">{ratio:.2f}×</text>')
        if hand is not None:
            parts.append(f'<circle cx="{place(hand):.1f}" cy="{y + height / 2}" r="4" fill="#3b6fb6" stroke="white"/>')
    return "\n".join(parts + ["</svg>"]) + "\n"
