"""`--mesh` and `--shard`: values on several ranks, as threads and over MPI, `ein plan`, what is refused, and failures. Usage: test_ranks.py EIN"""

import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_cli  # noqa: E402
from tensor_files import Files  # noqa: E402

ROUTES = (["--backend", "ref"], ["-O0"], ["--threads", "1"])


class Ranks(Files):
    def saved(self, name, value):
        numpy.save(self.path(name + ".npy"), value)
        return self.path(name + ".npy")

    def values(self, code, names, *args):
        done = self.check(["-c", code, "--show", names, "--format", "json", *args], 0)
        return {k: numpy.array(v["data"], "f8") for k, v in json.loads(done.stdout.splitlines()[-1]).items()}

    def same_on_ranks(self, code, names, meshes, rules, expected, atol=1e-5, inputs=()):
        for mesh in meshes:
            for route in ROUTES:
                with self.subTest(mesh=mesh, rules=rules, route=route):
                    found = self.values(code, names, "--mesh", mesh, "--shard", rules, *route, *inputs)
                    for name, value in expected.items():
                        numpy.testing.assert_allclose(found[name], value, atol=atol, err_msg=name)

    def test_product(self):
        a, b = numpy.random.default_rng(1).normal(size=(7, 5)), numpy.random.default_rng(2).normal(size=(5, 3))
        inputs = []
        for name, value in (("A", a), ("B", b)):
            inputs += ["--in", f"{name}={self.saved(name, value.astype('f4'))}"]
        code = ("let A: [f32; i, k]; let B: [f32; k, j]; let C[i, j] = sum[k](A[i, k] * B[k, j]);"
                "let loss = sum[i, j](C[i, j] ** 2.0); let dA = @loss / @A; let dB = @loss / @B;")
        c = a @ b
        expected = {"C": c, "loss": (c ** 2).sum(), "dA": 2 * c @ b.T, "dB": 2 * a.T @ c}
        for rules in ("i: x", "k: x", "j: x", "i: x, k: x", "i: x, j: y", "i: x+y", "k: y, j: x", "A.k: x", "B.k: x, C.j: x"):
            self.same_on_ranks(code, "C,loss,dA,dB", ("x=2,y=2", "x=8,y=1"), rules, expected, 1e-3, inputs)

    def test_heat(self):
        u, g = numpy.sin(numpy.arange(11) * 0.7), numpy.eye(11)
        for _ in range(5):
            padded = numpy.concatenate([[0], u, [0]])
            u = u + 0.1 * (padded[:-2] + padded[2:] - 2 * u)
        step = numpy.eye(11) * 0.8 + 0.1 * (numpy.eye(11, k=1) + numpy.eye(11, k=-1))
        g = numpy.linalg.matrix_power(step, 5).sum(axis=0)
        code = ("let first[x in 0..11] = sin(x as f32 * 0.7); let u[0, x in 0..11] = first[x];"
                "let u[t in 1..6, x in 0..11] = u[t - 1, x] + 0.1 * ((u[t - 1, x - 1] where x > 0) + "
                "(u[t - 1, x + 1] where x < 10) - 2.0 * u[t - 1, x]);"
                "let last[x] = u[5, x]; let total = sum[x](last[x]); let g = @total / @first;")
        self.same_on_ranks(code, "last,g", ("a=1", "a=3", "a=8"), "x: a", {"last": u, "g": g})

    def test_exact(self):
        # What is not added has the bits of one process.
        code = ("let x[i in 0..29] = if i % 10 == 3 { 2.5 } else { uniform(7, i) };"
                "let top = max[i](x[i]); let at = argmax[i](x[i]); let low = argmin[i](x[i]);"
                "let some = any[i](x[i] > 2.0); let every = all[i](x[i] > 0.0);"
                "let far[i in 0..29] = x[(i * 7) % 29]; let first = x[0];"
                "let wide[i in 2..27] = x[i - 2] - x[i + 2]; let wide[i in 0..2] = 0.0; let wide[i in 27..29] = 1.0;")
        names = "top,at,low,some,every,far,first,wide"
        one = self.values(code, names)
        self.assertEqual(one["at"], 3)
        for mesh in ("a=2", "a=3", "a=6", "a=40"):
            for route in ROUTES:
                many = self.values(code, names, "--mesh", mesh, "--shard", "i: a", *route)
                for name, value in one.items():
                    numpy.testing.assert_array_equal(many[name], value, f"{name} {mesh} {route}")

    def test_training(self):
        x = numpy.random.default_rng(3).normal(size=(13, 4)).astype("f4")
        y = (x @ numpy.arange(4)).astype("f4")
        inputs = ["--in", f"X={self.saved('X', x)}", "--in", f"y={self.saved('y', y)}"]
        code = ("let X: [f32; batch, d]; let y: [f32; batch]; let w[0, d in 0..extent(X, d)]: f32 = 0.1;"
                "let loss[s in 0..30] = mean[batch]((sum[d](X[batch, d] * w[s, d]) - y[batch]) ** 2.0);"
                "let w[s in 1..31, d] = w[s - 1, d] - 0.05 * @loss[s - 1] / @w[s - 1, d];"
                "let last[d] = w[30, d];")
        w, losses = numpy.full(4, 0.1), []
        for _ in range(30):
            off = x @ w - y
            losses.append((off ** 2).mean())
            w = w - 0.05 * 2 * x.T @ off / 13
        expected = {"last": w, "loss": losses}
        for rules in ("batch: a", "d: a", "batch: a, d: b", "batch: a+b"):
            self.same_on_ranks(code, "last,loss", ("a=3,b=2",), rules, expected, 1e-4, inputs)

    def test_same_bits_again(self):
        code = "let x[i in 0..1000] = uniform(1, i); let s = sum[i](x[i]); let p[j in 0..5] = sum[i](x[i] * (j as f32));"
        args = ("--mesh", "a=7", "--shard", "i: a")
        first = self.values(code, "s,p", *args, "--threads", "1")
        for threads in ("2", "3"):
            again = self.values(code, "s,p", *args, "--threads", threads)
            numpy.testing.assert_array_equal(again["s"], first["s"])
            numpy.testing.assert_array_equal(again["p"], first["p"])

    def test_effects_happen_once(self):
        code = "let x[i in 0..6] = i as f32; print(x); assert(sum[i](x[i]) == 15.0); save(\"x.npy\", x);"
        done = self.check(["-c", code, "--mesh", "a=4", "--shard", "i: a"], 0)
        self.assertEqual(done.stdout, "[i: 6] [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]\n")
        numpy.testing.assert_array_equal(numpy.load(self.path("x.npy")), numpy.arange(6))

    def test_refused(self):
        steps = "let x[0, i in 0..4] = 1.0; let x[t in 1..5, i] = 0.5 * x[t - 1, i]; print(x);"
        for code, args, status, words in (
            (steps, ["--mesh", "a=2", "--shard", "t: a"], 3, ["E0902", "`x`", "along `t`", "`i`", "`x.t: none`"]),
            (steps, ["--mesh", "a=2", "--shard", "ii: a"], 3, ["E0903", "`ii`", "`i`", "`t`"]),
            (steps, ["--mesh", "a=2", "--shard", "y.i: a"], 3, ["E0903", "`y`"]),
            (steps, ["--mesh", "a=2", "--shard", "i: b"], 3, ["E0901", "no axis `b`"]),
            (steps, ["--mesh", "a=0"], 3, ["E0901", "at least 1"]),
            (steps, ["--mesh", "a"], 3, ["E0901", "`a`"]),
            (steps, ["--mesh", "a=2,a=3"], 3, ["E0901", "twice"]),
            (steps, ["--mesh", "a=2", "--shard", "i"], 3, ["E0901", "`i`"]),
            (steps, ["--shard", "i: a"], 2, ["--mesh"]),
            (steps, ["--mesh", "a=2", "--trap", "nan"], 3, ["E0904", "--trap"]),
            ("let x[i in 0..4] = 1.0; print(sum[i](dbg(x[i])));", ["--mesh", "a=2"], 3, ["E0904", "dbg"]),
        ):
            done = self.check(["-c", code, *args], status)
            for word in words:
                self.assertIn(word, done.stderr)

    def test_failures_once(self):
        # Several ranks meet the failure; what is said is what one process says.
        bounds = "let x[i in 0..8] = 1.0; let at[i in 0..8] = if i >= 3 { i + 5 } else { i }; let y[i] = x[at[i]]; print(y);"
        division = "let d[i in 0..9] = i % 4 - 2; let q[i] = 7 / d[i]; print(q);"
        for code in (bounds, division, "let x[i in 0..8] = 1.0; assert(sum[i](x[i]) < 3.0, \"too much\");"):
            one = self.check(["-c", code], 3).stderr
            for mesh in ("a=2", "a=4"):
                for route in ROUTES:
                    many = self.check(["-c", code, "--mesh", mesh, "--shard", "i: a", *route], 3).stderr
                    self.assertEqual(many, one)

    def test_plan(self):
        code = ("let X: [f32; batch, d]; let w: [f32; d]; let y[batch] = sum[d](X[batch, d] * w[d]);"
                "let loss = sum[batch](y[batch] ** 2.0); let g = @loss / @w; print(loss, g);")
        extents = ["--set", "batch=1000", "--set", "d=3000"]
        done = self.check(["plan", "-c", code, "--mesh", "a=4", "--shard", "batch: a", "--format", "json", *extents], 0)
        plan = json.loads(done.stdout)
        moves = {(m["value"], m["move"]): m for m in plan["moves"]}
        self.assertEqual(set(moves), {("loss", "all-reduce"), ("g", "all-reduce")})
        self.assertEqual(moves["loss", "all-reduce"]["bytes"], 3 * 4)  # to everyone
        self.assertEqual(moves["g", "all-reduce"]["bytes"], 2 * 3 * 750 * 4)  # slices there, results back
        self.assertEqual(plan["bytes"], 12 + 18000)
        table = self.check(["plan", "-c", code, "--mesh", "a=4", "--shard", "batch: a", *extents], 0).stdout
        self.assertRegex(table, r"(?m)^g .* all-reduce +a +1 +18 kB ")
        self.assertRegex(table, r"(?m)^total: compute .*, moved 18 kB, exposed .*; efficiency \d")
        sweep = self.check(["plan", "-c", code, "--mesh", "a=4", "--shard", "batch: a", "--sweep", "a=1..8", *extents], 0).stdout
        self.assertEqual([line.split(":")[0] for line in sweep.splitlines()], ["a = 1", "a = 2", "a = 4", "a = 8"])
        for args, words in ((extents, "--mesh"), (["--mesh", "a=4", "--set", "d=3"], "`batch`"),
                            (["--mesh", "a=4", *extents, "--network", "5"], "5us,12GB/s"),
                            (["--mesh", "a=4", *extents, "--sweep", "b=1..2"], "--sweep")):
            self.assertIn(words, self.check(["plan", "-c", code, *args], 2).stderr)


class Processes(Files):
    """The same over MPI: mpirun starts the ranks."""

    def mpirun(self, *parts, cwd=None):
        words = ["mpirun", "--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
        for k, (ranks, args) in enumerate(parts):
            words += [":"] * (k > 0) + ["-n", str(ranks), os.path.abspath(test_cli.EIN), *args]
        return subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=self.folder.name)

    TRAINING = ("let X[batch in 0..13, d in 0..4] = uniform(1, batch, d) - 0.5; let y[batch in 0..13] = X[batch, 1];"
                "let w[0, d in 0..4]: f32 = 0.1;"
                "let loss[s in 0..20] = sum[batch]((sum[d](X[batch, d] * w[s, d]) - y[batch]) ** 2.0);"
                "let w[s in 1..21, d] = w[s - 1, d] - 0.1 * @loss[s - 1] / @w[s - 1, d];"
                "print(loss); print(argmax[batch](y[batch])); save(\"w.npy\", w);")

    def test_like_threads(self):
        for mesh, rules in (("a=3", "batch: a"), ("a=2,b=2", "batch: a, d: b")):
            ranks = 3 if mesh == "a=3" else 4
            args = ["run", "-c", self.TRAINING, "--mesh", mesh, "--shard", rules, "--threads", "1"]
            threads = self.check(args, 0).stdout
            weights = numpy.load(self.path("w.npy"))
            os.remove(self.path("w.npy"))
            done = self.mpirun((ranks, args))
            self.assertEqual((done.returncode, done.stdout), (0, threads), done.stderr)
            numpy.testing.assert_array_equal(numpy.load(self.path("w.npy")), weights)

    def test_a_mesh_of_another_size(self):
        done = self.mpirun((2, ["run", "-c", self.TRAINING, "--mesh", "a=3", "--shard", "batch: a"]))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("E0901", done.stderr)
        self.assertIn("the mesh has 3 ranks, but mpirun started 2", done.stderr)

    def test_ranks_that_differ(self):
        one = ["run", "-c", "let x[i in 0..4] = 1.0; print(sum[i](x[i]));", "--mesh", "a=2", "--shard", "i: a"]
        other = ["run", "-c", "let x[i in 0..5] = 1.0; print(sum[i](x[i]));", "--mesh", "a=2", "--shard", "i: a"]
        done = self.mpirun((1, one), (1, other))
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertIn("E0908", done.stderr)
        self.assertIn("rank 1", done.stderr)

    def test_one_rank_fails(self):
        code = "let x[i in 0..9] = 7 / (i - 7); let s = sum[i](x[i]); print(s);"
        args = ["run", "-c", code, "--mesh", "a=3", "--shard", "i: a"]
        done = self.mpirun((3, args))
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("E0806"), 1, done.stderr)

    def test_a_rank_is_killed(self):
        code = ("let x[0, i in 0..64] = 1.0; let x[t in 1..100000000, i] = 0.5 * x[t - 1, i] + 0.001 * "
                "sum[k in 0..64](x[t - 1, k]); let last[i] = x[99999999, i]; print(last);")
        words = ["mpirun", "--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "-n", "2",
                 os.path.abspath(test_cli.EIN), "run", "-c", code, "--mesh", "a=2", "--shard", "i: a", "--threads", "1"]
        run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder.name)
        try:
            deadline, ranks = time.monotonic() + 40, []
            while len(ranks) < 2 and time.monotonic() < deadline:
                time.sleep(0.2)
                ranks = [int(p) for p in subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True,
                                                        text=True).stdout.split()]
            self.assertEqual(len(ranks), 2)
            time.sleep(2)
            os.kill(max(ranks), 9)
            begin = time.monotonic()
            _, said = run.communicate(timeout=30)
            self.assertLess(time.monotonic() - begin, 5)
            self.assertNotEqual(run.returncode, 0)
            self.assertRegex(said, "rank 1")
        finally:
            run.kill()
            run.wait()


if __name__ == "__main__":
    test_cli.EIN = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
