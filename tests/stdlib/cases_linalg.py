import numpy as np
import scipy.linalg as sl


def signed(v):
    """Columns with a positive largest cell."""
    top = np.take_along_axis(v, np.abs(v).argmax(-2)[..., None, :], -2)
    return v * np.where(top < 0, -1, 1)


def make(File):
    def spd(t, n, *batch):
        a = t.draw(*batch, n, n)
        return np.round(a @ np.swapaxes(a, -1, -2) + n * np.eye(n), 3)

    t = File("linalg_cholesky", "`cholesky` and `solve_positive`, of one cell, alone, and of a batch.",
             ["std::linalg::{cholesky, solve_positive}"])
    for batch, n in (((), 1), ((), 4), ((2,), 3)):
        names = "b$, i$, j$" if batch else "i$, j$"
        a = spd(t, n, *batch)
        # Only the lower triangle is read: its mirror image gives the rest.
        t.case({"a": (a, names)}, "cholesky(a$)", names, np.linalg.cholesky(a))
    a, b = spd(t, 3), t.draw(3, 2)
    low = np.tril(a) + np.tril(a, -1).T
    t.case({"a": (low, "i$, j$"), "r": (b, "i$, k$")}, "solve_positive(a$, r$)", "i$, k$", np.linalg.solve(low, b))
    t.write()

    t = File("linalg_triangles", "Triangles: a vector, several right sides, a batch.", ["std::linalg::{solve_lower, solve_upper}"])
    for batch, n, rhs in (((), 3, ()), ((), 3, (2,)), ((2,), 2, ())):
        a = np.round(t.draw(*batch, n, n) + 2 * np.eye(n), 3)
        b = t.draw(*batch, n, *rhs)
        names = ("b$, " if batch else "") + "i$, j$"
        out = ("b$, " if batch else "") + "i$" + (", k$" if rhs else "")
        for f, part in (("lower", np.tril), ("upper", np.triu)):
            full = part(a)
            x = np.linalg.solve(full, b if rhs else b[..., None])
            t.case({"a": (full, names), "r": (b, out)}, f"solve_{f}(a$, r$)", out, x if rhs else x[..., 0])
    t.write()

    t = File("linalg_solve", "`solve`, `inverse`, `det`, `logdet`: a zero pivot, several right sides, a batch.",
             ["std::linalg::{det, inverse, logdet, solve}"], some=2)
    for batch, n, rhs in (((), 2, ()), ((), 4, (2,)), ((2,), 3, ())):
        a = t.draw(*batch, n, n) + 0.0
        a[..., 0, 0] = 0.0
        a[..., 1, 0] += 1.5
        a = np.round(a, 3)
        b = t.draw(*batch, n, *rhs)
        front = "b$, " if batch else ""
        names, out = front + "i$, j$", front + "i$" + (", k$" if rhs else "")
        x = np.linalg.solve(a, b if rhs else b[..., None])
        t.case({"a": (a, names), "r": (b, out)}, "solve(a$, r$)", out, x if rhs else x[..., 0])
        t.case({"a": (a, names)}, "inverse(a$)", names, np.linalg.inv(a))
        t.case({"a": (a, names)}, "det(a$)", front.rstrip(", "), np.linalg.det(a))
        t.case({"a": (a, names)}, "logdet(a$)", front.rstrip(", "), np.linalg.slogdet(a)[1])
    t.write()

    t = File("linalg_lu", "`lu` with pivots, against SciPy.", ["std::linalg::lu"], some=2)
    for n in (1, 3, 5):
        a = t.draw(n, n)
        p, l, u = sl.lu(a)
        t.case({"a": (a, "i$, j$")}, "lu(a$).1", "i$, j$", l)
        t.case({"a": (a, "i$, j$")}, "lu(a$).2", "i$, j$", u)
        t.case({"a": (a, "i$, j$")}, "lu(a$).0 as [f64; i$]", "i$", p.argmax(0), derivative=False, f32=False)
    t.write()

    t = File("linalg_qr", "`qr` of square and tall matrices and of a batch; least squares.", ["std::linalg::{least_squares, qr}"], some=2)
    for batch, m, n in (((), 3, 3), ((), 4, 2), ((2,), 3, 2)):
        a = t.draw(*batch, m, n)
        q, r = np.linalg.qr(a)
        s = np.sign(np.diagonal(r, axis1=-2, axis2=-1))
        front = "b$, " if batch else ""
        t.case({"a": (a, front + "i$, j$")}, "qr(a$).0", front + "i$, j$", q * s[..., None, :])
        t.case({"a": (a, front + "i$, j$")}, "qr(a$).1", front + "p$, j$", r * s[..., :, None])
    a, b = t.draw(5, 2), t.draw(5)
    t.case({"a": (a, "i$, j$"), "r": (b, "i$")}, "least_squares(a$, r$)", "j$", np.linalg.lstsq(a, b, rcond=None)[0])
    t.write()

    t = File("linalg_eigh", "Eigenvalues and eigenvectors of the symmetric part, of even and odd sizes and of a batch.",
             ["std::linalg::{eigenvalues, eigenvectors}"], slope=2e-3, single=1e-4, some=1)
    for batch, n in (((), 2), ((), 3), ((2,), 4)):
        a = np.round(t.draw(*batch, n, n) + 2 * np.diag(np.arange(n)), 3)
        w, v = np.linalg.eigh((a + np.swapaxes(a, -1, -2)) / 2)
        front = "b$, " if batch else ""
        t.case({"a": (a, front + "i$, j$")}, "eigenvalues(a$)", front + "i$", w, f32=n == 2)
        t.case({"a": (a, front + "i$, j$")}, "eigenvectors(a$)", front + "i$, j$", signed(v), f32=n == 3)
    t.write()

    t = File("linalg_svd", "Singular values and vectors, of square and tall matrices and of a batch.",
             ["std::linalg::{right_vectors, singular_values, svd}"], slope=2e-3, single=1e-4, some=1)
    for batch, m, n in (((), 2, 2), ((), 4, 3), ((2,), 3, 2)):
        a = np.round(t.draw(*batch, m, n) + 2 * np.eye(m, n) * (1 + np.arange(n)), 3)
        u, s, vt = np.linalg.svd(a, full_matrices=False)
        v = np.swapaxes(vt, -1, -2)
        flip = signed(v) * v
        u = u * np.sign(flip.sum(-2))[..., None, :]
        front = "b$, " if batch else ""
        t.case({"a": (a, front + "i$, j$")}, "singular_values(a$)", front + "j$", s, f32=n == 3)
        if n == 3:
            t.case({"a": (a, front + "i$, j$")}, "svd(a$, transposed = true).2", front + "p$, j$", np.swapaxes(signed(v), -1, -2), f32=False)
        else:
            t.case({"a": (a, front + "i$, j$")}, "right_vectors(a$)", front + "p$, j$", signed(v), f32=m == 2)
        t.case({"a": (a, front + "i$, j$")}, "svd(a$).0", front + "i$, j$", u, f32=m == 2)
    t.write()

    t = File("linalg_small", "Traces and lengths.", ["std::linalg::{frobenius, norm, trace}"])
    for n in (1, 2, 4):
        a = t.draw(2, n, n)
        t.case({"a": (a, "b$, i$, j$")}, "trace(a$)", "b$", np.trace(a, axis1=1, axis2=2))
        t.case({"a": (a, "b$, i$, j$")}, "frobenius(a$)", "b$", np.sqrt((a * a).sum((1, 2))))
        t.case({"a": (a, "b$, i$, j$")}, "norm[i$](a$)", "b$, j$", np.sqrt((a * a).sum(1)))
    t.write()
