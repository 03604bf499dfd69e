"""Random numbers, permutations and shuffles against an implementation of their own, written from the paper and the
documentation: Philox 2×64 with ten rounds (Salmon et al., SC11), keyed by the seed, counted by the address; several
addresses chain; `uniform` is the upper 24 bits; a permutation is the order of such numbers, equal ones in the order of
their addresses. Usage: test_random.py EIN"""

import json
import math
import os
import pathlib
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_cli  # noqa: E402
from tensor_files import Files  # noqa: E402

WORD = 1 << 64


def philox_block(key, left, right):
    """Both words of a block."""
    for _ in range(10):
        high, low = divmod(left * 0xD2B74407B1CE6E93, WORD)
        left, right = high ^ key ^ right, low
        key = (key + 0x9E3779B97F4A7C15) % WORD
    return left, right


def philox(key, address):
    return philox_block(key % WORD, address % WORD, 0)[0]


def uniform(seed, *addresses):
    bits = seed
    for address in addresses or (0,):
        bits = philox(bits, address)
    return (bits >> 40) / 2**24


def normal(seed, *addresses):
    bits = seed
    for address in addresses or (0,):
        bits = philox(bits, address)
    unit = lambda b: ((b >> 11) + 0.5) / 2**53
    return math.sqrt(-2 * math.log(unit(bits))) * math.cos(2 * math.pi * unit(philox(bits, 1)))


def permutation(n, seed):
    return sorted(range(n), key=lambda i: (uniform(seed, i), i))


class Random(Files):
    def values(self, code, backend="native"):
        """Every value that is named v…, as nested lists."""
        names = ",".join(sorted({w.split("[")[0].rstrip(":") for w in code.split() if w.startswith("v")}))
        done = self.check(["-c", code, "--show", names, "--format", "json", "--backend", backend], 0)
        return {k: v["data"] for k, v in json.loads(done.stdout.splitlines()[-1]).items()}

    def test_the_implementation_here_gives_the_published_answers(self):
        # The known answers of Random123 for philox2x64 with ten rounds: zeros, ones, digits of pi.
        ones = WORD - 1
        self.assertEqual(philox_block(0, 0, 0), (0xca00a0459843d731, 0x66c24222c9a845b5))
        self.assertEqual(philox_block(ones, ones, ones), (0x65b021d60cd8310f, 0x4d02f3222f86df20))
        self.assertEqual(philox_block(0xa4093822299f31d0, 0x243f6a8885a308d3, 0x13198a2e03707344),
                         (0x0a5e742c2997341c, 0xb0f883d38000de5d))

    def test_uniform_and_normal(self):
        code = ("let v0[i in 0..40] = uniform(7, i); let v1[i in 0..5, j in 0..6] = uniform(-3, i, j - 2);"
                "let v2[i in 0..40] = normal(11, i); let v3 = uniform(5);")
        for backend in ("native", "ref"):
            got = self.values(code, backend)
            self.assertEqual(single(got["v0"]), [uniform(7, i) for i in range(40)])
            self.assertEqual(single(got["v1"]), [uniform(-3, i, j - 2) for i in range(5) for j in range(6)])
            self.assertEqual(single(got["v3"]), [uniform(5)])
            for x, i in zip(flat(got["v2"]), range(40)):
                self.assertAlmostEqual(x, normal(11, i), delta=2e-6 * max(1.0, abs(x)))

    def test_permutation(self):
        for seed in (0, 1, 9, -4, 123456):
            for n in (1, 2, 7, 50):
                code = f"use std::random::*; let v = permutation({n}, {seed});"
                want = permutation(n, seed)
                self.assertEqual(sorted(want), list(range(n)))
                for backend in ("native", "ref"):
                    self.assertEqual(flat(self.values(code, backend)["v"]), want, (n, seed, backend))
        # Another seed, another order; nearly every pair of seeds differs for fifty cells.
        orders = {tuple(permutation(50, seed)) for seed in range(40)}
        self.assertEqual(len(orders), 40)

    def test_shuffle(self):
        for seed in (1, 2, 77):
            code = ("use std::random::*; let x[a in 0..3, k in 0..8, b in 0..2] = 100 * a + 10 * k + b;"
                    f"let v0 = shuffle[k](x, {seed}); let v1 = shuffle[b](x, {seed}); let v2 = shuffle[a](x, {seed});")
            x = [[[100 * a + 10 * k + b for b in range(2)] for k in range(8)] for a in range(3)]
            along = [permutation(n, seed) for n in (3, 8, 2)]
            for backend in ("native", "ref"):
                got = self.values(code, backend)
                self.assertEqual(flat(got["v0"]), flat([[row[k] for k in along[1]] for row in x]), (seed, backend))
                self.assertEqual(flat(got["v1"]), flat([[[c[b] for b in along[2]] for c in row] for row in x]))
                self.assertEqual(flat(got["v2"]), flat([x[a] for a in along[0]]))

    def test_the_derivative_of_a_shuffle_goes_back(self):
        code = ("use std::random::*; let x[k in 0..9] = 0.5; let y = shuffle[k](x, 3);"
                "let loss = sum[k](y[k] * (k as f32)); let v = @loss / @x;")
        order = permutation(9, 3)
        want = [0.0] * 9
        for place, source in enumerate(order):
            want[source] = float(place)
        for backend in ("native", "ref"):
            self.assertEqual(flat(self.values(code, backend)["v"]), want)


def single(cells):
    """The f32 numbers that were written with as many digits as they need."""
    return [struct.unpack("f", struct.pack("f", x))[0] for x in flat(cells)]


def flat(cells):
    return [x for c in cells for x in flat(c)] if isinstance(cells, list) else [cells]


if __name__ == "__main__":
    test_cli.EIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
