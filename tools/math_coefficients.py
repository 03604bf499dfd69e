"""Computes the coefficients of src/codegen/math_coefficients.h: `python3 tools/math_coefficients.py`.

Each table is the interpolation of a function at the Chebyshev nodes of its interval, in 90 digits,
rounded at the end; that is within a small factor of the best polynomial (or quotient) of its degree.
The second column printed is the worst error over the interval, relative to the value that the
caller adds it to (a power of two). Needs mpmath."""

import sys

from mpmath import mp, mpf

mp.dps = 90


def nodes(lo, hi, count):
    for k in range(count):
        yield (lo + hi) / 2 + (hi - lo) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * count))


def polynomial(f, lo, hi, degree):
    at = list(nodes(lo, hi, degree + 1))
    return list(mp.lu_solve(mp.matrix([[x**k for k in range(degree + 1)] for x in at]),
                            mp.matrix([f(x) for x in at])))


def quotient(f, lo, hi, top, bottom, falling):
    """P and Q with Q(0) = 1 and P - f·Q = 0 at the nodes; `falling` puts more of them at `lo`."""
    if falling:
        at = [1 / u for u in nodes(1 / hi, 1 / lo, top + bottom + 1)]
    else:
        at = list(nodes(lo, hi, top + bottom + 1))
    rows = [[x**k for k in range(top + 1)] + [-f(x) * x**k for k in range(1, bottom + 1)] for x in at]
    c = list(mp.lu_solve(mp.matrix(rows), mp.matrix([f(x) for x in at])))
    return c[:top + 1], [mpf(1)] + c[top + 1:]


def value(c, x):
    total = mpf(0)
    for k in reversed(c):
        total = total * x + k
    return total


def rounded(c, single):
    return [mpf(float(mp.mpf(x))) if not single else round_single(x) for x in c]


def round_single(x):
    import struct
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def worst(error, lo, hi):
    e = max(abs(error(lo + (hi - lo) * mpf(k) / 400)) for k in range(401))
    return float(mp.log(e, 2)) if e else -999.0


def table(name, c, single, comment):
    digits = 10 if single else 18
    print(f"// {comment}")
    print(f"inline constexpr double {name}[] = {{")
    line = "   "
    for x in c:
        item = f" {mp.nstr(x, digits, min_fixed=0, max_fixed=0)},"
        if len(line) + len(item) > 98:
            print(line)
            line = "   "
        line += item
    print(line[:-1] + "};")


def emit(name, f, lo, hi, degree, single, weight, comment):
    """`weight(x)` turns an error of the polynomial into a relative one of the result."""
    lo, hi = mpf(lo), mpf(hi)
    c = rounded(polynomial(f, lo, hi, degree), single)
    bits = worst(lambda x: (value(c, x) - f(x)) * weight(x), lo, hi)
    table(name, c, single, f"{comment}: 2^{bits:.1f}")


def emit_quotient(name, f, lo, hi, top, bottom, single, weight, comment, falling=False):
    lo, hi = mpf(lo), mpf(hi)
    p, q = quotient(f, lo, hi, top, bottom, falling)
    p, q = rounded(p, single), rounded(q, single)
    bits = worst(lambda x: (value(p, x) / value(q, x) - f(x)) * weight(x), lo, hi)
    table(name + "Top", p, single, f"{comment}: 2^{bits:.1f}")
    table(name + "Bottom", q, single, "its denominator")


def split(name, x, bits):
    """x as a sum of doubles of so many bits each, the last one full."""
    rest = mpf(x)
    parts = []
    for b in bits:
        e = mp.floor(mp.log(abs(rest), 2)) + 1
        scale = mpf(2)**(b - e)
        part = mp.nint(rest * scale) / scale if b == 53 else mp.floor(rest * scale) / scale
        parts.append(part)
        rest -= part
    print(f"inline constexpr double {name}[] = {{" +
          ", ".join(mp.nstr(p, 20, min_fixed=0, max_fixed=0) for p in parts) + "};")


def eps(x):
    """Away from 0, where the quotients below are 0/0; 90 digits leave enough of them there."""
    return mpf("1e-20") if abs(x) < mpf("1e-20") else x


def main():
    half = mp.log(2) / 2 * mpf("1.002")
    e = lambda x: (mp.exp(eps(x)) - 1 - eps(x)) / eps(x)**2
    print("// Written by tools/math_coefficients.py. Lowest power first; each comment ends with the"
          " worst\n// error of the approximation, relative to the result.\n#pragma once\n\n"
          "namespace ein::codegen {\n")
    we = lambda x: x**2 / mp.exp(x)
    emit("kExpSingle", e, -half, half, 4, True, we, "exp(r) = 1 + r + r²·Q(r), |r| <= log(2)/2")
    emit("kExpMiddle", e, -half, half, 6, False, lambda x: abs(x), "the same, for singles by way of doubles")
    emit("kExp", e, -half, half, 10, False, lambda x: abs(x), "the same")

    lo, hi = mp.sqrt(mpf(1) / 2) - 1, mp.sqrt(2) - 1
    l = lambda x: (mp.log(1 + eps(x)) - eps(x) + eps(x)**2 / 2) / eps(x)**3
    emit("kLogSingle", l, lo * mpf("1.001"), hi * mpf("1.001"), 8, True,
         lambda x: x**3 / mp.log(1 + x) if x else 0, "log(1 + f) = f - f²/2 + f³·Q(f)")
    z1 = (hi / (2 + hi))**2 * mpf("1.003")
    at = lambda z: (mp.log((1 + mp.sqrt(z)) / (1 - mp.sqrt(z))) - 2 * mp.sqrt(z)) / mp.sqrt(z)**3
    a = lambda z: at(z if z > mpf("1e-20") else mpf("1e-20"))
    emit("kLogMiddle", a, 0, z1, 3, False, lambda z: z / 2,
         "log((1 + s)/(1 - s)) = 2·s + s³·Q(s²), for singles by way of doubles")
    emit("kLog", a, 0, z1, 6, False, lambda z: z / 2, "the same")
    a2 = lambda z: (a(z) - mpf(2) / 3) / (z if z > mpf("1e-20") else mpf("1e-20"))
    emit("kLogTail", a2, 0, z1, 7, False, lambda z: z**2 / 2, "2·s + 2/3·s³ + s⁵·Q(s²), for pow")

    zq = (mp.pi / 4 * mpf("1.001"))**2
    tiny = mpf("1e-20")
    sn = lambda z: (mp.sin(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z)**3
    cs = lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2
    s = lambda z: sn(max(z, tiny))
    c = lambda z: cs(max(z, tiny))
    emit("kSinMiddle", s, 0, zq, 3, False, lambda z: z, "sin(r) = r + r³·Q(r²), for singles by way of doubles")
    emit("kSin", s, 0, zq, 5, False, lambda z: z, "the same, |r| <= pi/4")
    emit("kCosMiddle", c, 0, zq, 3, False, lambda z: z**2, "cos(r) = 1 - r²/2 + r⁴·Q(r²), likewise")
    emit("kCos", c, 0, zq, 6, False, lambda z: z**2, "the same")

    th = lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z
    t = lambda z: th(max(z, tiny))
    emit("kTanhSingle", t, 0, mpf("0.63")**2, 5, True, lambda z: z, "tanh(x) = x + x³·Q(x²), |x| < 0.625")
    emit_quotient("kTanh", t, 0, mpf("0.63")**2, 3, 3, False, lambda z: z, "tanh(x) = x + x³·P(x²)/Q(x²), |x| < 0.625")

    er = lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1
    g = lambda z: er(max(z, tiny))
    emit("kErfSingle", g, 0, mpf("0.93")**2, 7, True, lambda z: 1, "erf(x) = x + x·Q(x²), |x| < 0.92")
    # -log(erfc(x)) = x·Q(x): only as exact as what is left of 1 - erfc(x) needs.
    big = lambda x: -mp.log(mp.erfc(x)) / x
    emit("kErfcSingle", big, mpf("0.9"), mpf("4.0"), 8, True, lambda x: x * mp.erfc(x),
         "erfc(x) = exp(-x·Q(x)), 0.92 <= x < 4, relative to erf")
    emit_quotient("kErf", g, 0, mpf("0.86")**2, 5, 6, False, lambda z: 1, "erf(x) = x + x·P(x²)/Q(x²), |x| < 0.85")
    w = lambda x: mp.exp(x * x) * mp.erfc(x)
    emit_quotient("kErfc", w, mpf("0.84"), mpf("6.0"), 8, 8, False, lambda x: mp.erfc(x) / w(x),
                  "erfc(x) = exp(-x²)·P(x)/Q(x), 0.85 <= x < 6, relative to erf", True)
    an = lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z
    aa = lambda z: an(max(z, tiny))
    emit_quotient("kAtanMiddle", aa, 0, 1, 3, 4, False, lambda z: z, "atan(x) = x + x³·P(x²)/Q(x²), |x| <= 1, for singles")

    print("\n// log(2) and pi/2 in parts: multiples of all but the last are exact for the integers that\n"
          "// range reduction meets.")
    split("kLog2Single", mp.log(2), [12, 24])
    split("kLog2", mp.log(2), [32, 53])
    split("kLog2Long", mp.log(2), [42, 53])
    split("kHalfPi", mp.pi / 2, [37, 37, 53])
    split("kHalfPiSingle", mp.pi / 2, [31, 53])
    print("\n}  // namespace ein::codegen")


main()
