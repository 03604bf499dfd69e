import numpy as np

PARTS = "p$, "


def both(z):
    return np.stack([z.real, z.imag])


def stacked(call):
    """The two parts of a complex result as one array."""
    return f"{{ let f = {call}; [f.re, f.im] }}"


def make(File):
    t = File("complex_numbers", "Complex numbers as records: what NumPy gives for the same numbers.",
             ["std::complex::{cabs, cabs2, cadd, carg, cdiv, cexp, clog, cmul, conj, csqrt, csub, polar}"])
    draw = lambda *shape: t.draw(*shape, away=[0.0])
    a, b, c, d = draw(4), draw(4), draw(4), draw(4)
    z, w = a + 1j * b, c + 1j * d
    pairs = {"a": (a, "k$"), "b": (b, "k$"), "c": (c, "k$"), "d": (d, "k$")}
    one = {"a": (a, "k$"), "b": (b, "k$")}
    left, right = "{ re: a$, im: b$ }", "{ re: c$, im: d$ }"
    for name, f in (("cmul", z * w), ("cdiv", z / w), ("cadd", z + w), ("csub", z - w)):
        t.case(pairs, stacked(f"{name}({left}, {right})"), PARTS + "k$", both(f))
    for name, f in (("conj", z.conj()), ("cexp", np.exp(z)), ("clog", np.log(z)), ("csqrt", np.sqrt(z))):
        t.case(one, stacked(f"{name}({left})"), PARTS + "k$", both(f))
    for name, f in (("cabs", abs(z)), ("cabs2", abs(z) ** 2), ("carg", np.angle(z))):
        t.case(one, f"{name}({left})", "k$", f)
    t.case(one, stacked("polar(a$, b$)"), PARTS + "k$", both(a * np.exp(1j * b)))
    t.write()

    t = File("fft_values", "Fourier transforms: what NumPy gives for the same numbers.", ["std::fft::{fft, ifft, fft2, ifft2}"], some=1)
    for n, name, call in ((8, "fft", np.fft.fft), (6, "fft", np.fft.fft), (1, "fft", np.fft.fft), (7, "ifft", np.fft.ifft)):
        x, y = t.draw(n), t.draw(n)
        t.case({"u": (x, "t$"), "v": (y, "t$")}, stacked(f"{name}[t$]({{ re: u$, im: v$ }})"), PARTS + "t$",
               both(call(x + 1j * y)))
    x, y = t.draw(2, 5, 2), t.draw(2, 5, 2)
    for norm in ("ortho", "forward"):
        t.case({"u": (x, "b$, t$, c$"), "v": (y, "b$, t$, c$")}, stacked(f'fft[t$]({{ re: u$, im: v$ }}, norm = "{norm}")'),
               PARTS + "b$, t$, c$", both(np.fft.fft(x + 1j * y, axis=1, norm=norm)))
    x, y = t.draw(2, 3), t.draw(2, 3)
    for name, call in (("fft2", np.fft.fft2), ("ifft2", np.fft.ifft2)):
        t.case({"u": (x, "h$, q$"), "v": (y, "h$, q$")}, stacked(f"{name}[h$, q$]({{ re: u$, im: v$ }})"),
               PARTS + "h$, q$", both(call(x + 1j * y)))
    t.write()

    t = File("fft_real", "Transforms of real numbers: what NumPy gives for the same numbers.",
             ["std::fft::{rfft, irfft}"], some=1)
    for n in (5, 6):
        x = t.draw(n)
        t.case({"u": (x, "t$")}, stacked("rfft[t$](u$)"), PARTS + "k$", both(np.fft.rfft(x)))
        m = n // 2 + 1
        x, y = t.draw(m), t.draw(m)
        t.case({"u": (x, "t$"), "v": (y, "t$")}, f"irfft[t$]({{ re: u$, im: v$ }}, {n})", "k$", np.fft.irfft(x + 1j * y, n))
    t.write()

    t = File("fft_convolve", "Convolution by transforms: what NumPy gives for the same numbers.", ["std::fft::convolve"], some=1)
    for n, m, mode in ((5, 3, "full"), (4, 3, "same"), (6, 2, "valid")):
        x, k = t.draw(n), t.draw(m)
        t.case({"u": (x, "t$"), "k": (k, "k$")}, f'convolve[t$](u$, k$, mode = "{mode}")', "q$", np.convolve(x, k, mode))
    x, k = t.draw(2, 3, 2), t.draw(2)
    t.case({"u": (x, "b$, t$, c$"), "k": (k, "k$")}, "convolve[t$](u$, k$)", "b$, q$, c$",
           np.apply_along_axis(lambda row: np.convolve(row, k), 1, x))
    t.write()
