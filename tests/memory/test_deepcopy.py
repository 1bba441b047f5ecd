"""copy.deepcopy: leaves, results, views and what holds them; on every layer. What pickle takes."""

from __future__ import annotations

import copy
import pickle
import pickletools
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from conftest import values
from forward_programs import close
from leaves import check, leaf

import multigrad as mg
from multigrad import func
from multigrad.autograd import forward_ad
from multigrad.errors import GradientError, LeakError

X = np.asarray([1.0, 2.0, 3.0, 4.0])


@dataclass
class Model:
    parts: dict[str, Any]
    best: list[Any]


class TestLeaves:
    def test_value_flag_and_gradient(self, xp: Any) -> None:
        x = leaf(xp, X)
        xp.sum(x * x).backward()
        c = copy.deepcopy(x)
        assert (
            c.is_leaf
            and c.requires_grad
            and c is not x
            and c.grad is not x.grad
            and c._version == 0
        )
        check(c.grad, 2 * X)
        with mg.no_grad():
            c *= 10.0
            c.grad *= 10.0
            assert copy.deepcopy(x).requires_grad
        check(x, X)
        check(x.grad, 2 * X)
        assert not copy.deepcopy(x.detach()).requires_grad
        for data in (
            X[:0],
            np.asarray(3.0),
            np.asarray([1, 2]),
            np.asarray([True]),
            X.reshape(2, 2).T,
            np.asarray([1 + 2j]),
        ):
            t = xp.asarray(data)
            check(copy.deepcopy(t), data)
            assert copy.deepcopy(t).dtype == t.dtype

    @pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
    def test_the_gradient_may_have_a_history(self, xp: Any) -> None:
        x = leaf(xp, X)
        xp.sum(x**3).backward(create_graph=True)
        c = copy.deepcopy(x)
        assert c.grad.requires_grad
        (g,) = mg.autograd.grad(xp.sum(c.grad), x)
        check(g, 6 * X)

    def test_identities_are_kept(self, xp: Any) -> None:
        x = leaf(xp, X)
        x.grad = xp.ones_like(x)
        a, b, g = copy.deepcopy([x, x, x.grad])
        assert a is b and a.grad is g


class TestResults:
    def test_a_result_is_cloned_with_its_history(self, xp: Any) -> None:
        x = leaf(xp, X)
        y = x * x
        c = copy.deepcopy(y)
        assert not c.is_leaf and c.requires_grad and c.grad_fn is not y.grad_fn
        check(c, X * X)
        with mg.no_grad():
            c += 1.0
        check(y, X * X)
        xp.sum(c * xp.asarray(X)).backward(create_graph=True)
        check(x.grad, 2 * X * X)
        (g,) = mg.autograd.grad(xp.sum(x.grad * x.grad), x)
        check(g, 8 * X**3)
        with mg.no_grad():
            assert not copy.deepcopy(y).requires_grad

    def test_a_view_of_a_leaf_alone_leads_to_that_leaf(self, xp: Any) -> None:
        w = leaf(xp, X)
        for v in (w[1:3], xp.reshape(w, (2, 2))[0, :]):
            w.grad = None
            c = copy.deepcopy(v)
            xp.sum(c * c).backward()
            check(w.grad, 2 * X * (w.grad.array != 0))
            assert int(np.count_nonzero(values(w.grad))) == 2
        with mg.no_grad():
            c = copy.deepcopy(w[1:])
            assert not c.requires_grad
            c += 1.0
        check(w, X)


class TestSharing:
    def test_views_of_constants(self, xp: Any) -> None:
        def views(x: Any) -> list[Any]:
            m = xp.reshape(x, (2, 2))
            return [
                x,
                x[1:],
                m,
                m.mT[0, :],
                x.detach()[::2],
                xp.unstack(m)[1],
                xp.flip(x),
                xp.broadcast_to(x[0:1], (1, 1)),
                next(iter(m)),
            ]

        count = len(views(xp.asarray(X.copy())))
        for order in (
            range(count),
            reversed(range(count)),
            [3, 0, 5, 1, 8, 2, 7, 4, 6],
            [3, 1],
            [6, 2, 5],
        ):
            order = list(order)
            x = xp.asarray(X.copy())
            originals = views(x)
            copied = copy.deepcopy([originals[i] for i in order])
            expected = views(xp.asarray(X.copy()))
            for step, i in enumerate(order):
                copied[step] *= step + 2.0
                expected[i] *= step + 2.0
                for t, j in zip(copied, order, strict=True):
                    check(t, values(expected[j]))
            check(x, X)
            assert x._version == 0 and all(t._version == len(order) for t in copied)

    def test_parts_of_complex_arrays(self, xp: Any) -> None:
        z = xp.asarray(X + 1j)
        im, c = copy.deepcopy([z.imag, z])
        im += 1.0
        check(c, X + 2j)
        check(z, X + 1j)

    def test_views_of_results(self, xp: Any) -> None:
        for order in permutations(("y", "v", "d")):
            x = leaf(xp, X)
            y = x * 2.0
            held = {"y": y, "v": y[:2], "d": y.detach()[1:]}
            c = copy.deepcopy({name: held[name] for name in order})
            c["v"] *= xp.asarray(X[:2])  # recorded
            check(c["y"], [2, 8, 6, 8])
            check(c["d"], [8, 6, 8])
            check(y, 2 * X)
            assert not c["d"].requires_grad
            xp.sum(c["y"] ** 2 + xp.sum(c["v"])).backward()
            check(x.grad, [2 * 2 * 2 + 8, 2 * 8 * 4 + 16, 2 * 6 * 2, 2 * 8 * 2])
            with mg.no_grad():
                c["d"] *= 0.0
            check(c["y"], [2, 0, 0, 0])

    def test_views_of_a_leaf_belong_to_its_copy(self, xp: Any) -> None:
        for order in permutations(("w", "v", "u")):
            w = leaf(xp, X)
            m = xp.reshape(w, (2, 2))
            held = {"w": w, "v": m[0, :], "u": w[1:]}
            model = copy.deepcopy(Model({name: held[name] for name in order}, [held["v"]]))
            c = model.parts
            assert (
                model.best[0] is c["v"]
                and c["w"].is_leaf
                and c["w"].requires_grad
                and not c["v"].is_leaf
            )
            with mg.no_grad():
                c["w"] *= 2.0
                c["u"] += 1.0
            check(c["v"], [2, 5])
            xp.sum(c["v"] ** 2).backward()
            xp.sum(c["u"] ** 2).backward()
            check(c["w"].grad, [4, 20, 14, 18])
            assert w.grad is None
            check(w, X)
            with pytest.raises(GradientError, match="a view of a leaf Variable that requires grad"):
                c["v"] += 1.0

    def test_a_view_that_is_a_leaf_itself(self, xp: Any) -> None:
        for order in permutations((0, 1, 2)):
            y = xp.asarray(X.copy())
            w = y[1:].requires_grad_()
            held = [y, w, w[:2]]
            c = dict(zip(order, copy.deepcopy([held[i] for i in order]), strict=True))
            assert (
                c[1].is_leaf and c[1].requires_grad and not c[0].requires_grad and not c[2].is_leaf
            )
            xp.sum(c[2] ** 2).backward()
            check(c[1].grad, [4, 6, 0])
            with mg.no_grad():
                c[0] += 1.0
            check(c[2], [3, 4])

    def test_what_writes_to_views_are_allowed(self, xp: Any) -> None:
        y = leaf(xp, X) * 1.0
        with mg.no_grad():
            v = y[1:]
        u = xp.unstack(y)[0]
        for held, message in (
            (v, "A view was created in no_grad mode"),
            (u, "a function that returns multiple views"),
        ):
            c, _ = copy.deepcopy([held, y])
            with pytest.raises(GradientError, match=message):
                c *= xp.ones(c.shape, dtype=xp.float64, requires_grad=True)

    def test_views_that_are_older_than_a_write(self, xp: Any) -> None:
        x = leaf(xp, X)
        y = x * 1.0
        v, u = y[1:], y[:2]
        y *= 3.0
        c = copy.deepcopy([v, u])
        check(c[0], 3 * X[1:])
        c[0][0] = 0.0
        check(c[1], [3, 0])
        xp.sum(c[1] * xp.asarray([1.0, 5.0], dtype=xp.float64)).backward()
        check(x.grad, [3, 0, 0, 0])

    def test_a_long_chain(self, xp: Any) -> None:
        v = base = xp.asarray(np.zeros(2100 if "jax" not in xp.__name__ else 50))
        for _ in range(base.shape[0] - 2):
            v = v[1:]
        c, b = copy.deepcopy((v, base))
        c += 1.0
        assert float(b[-1]) == 1.0 and float(base[-1]) == 0.0

    def test_data_and_raw_arrays(self) -> None:
        for order in permutations(("x", "data", "raw", "y")):
            raw = X.copy()
            x = mg.asarray(raw)
            y = mg.asarray(X.copy(), requires_grad=True) * 1.0
            held = {"x": x, "data": x.data, "raw": raw, "y": y, "ydata": y.data}
            c = copy.deepcopy({name: held[name] for name in (*order, "ydata")})
            c["data"] += 1.0
            check(c["x"], X + 1)
            check(c["raw"], X + 1)
            check(raw, X)
            c["ydata"] += 1.0
            check(c["y"], X + 1)
            assert c["y"].requires_grad

    def test_data_of_immutable_arrays(self) -> None:
        pytest.importorskip("jax")
        x = mg.namespace("jax").asarray(X.copy())
        for held in ([x, x.data], [x.data, x][::-1]):
            a, d = copy.deepcopy(held)
            d += 1.0
            check(a, X + 1)
            check(x, X)


class TestLayers:
    def test_what_is_differentiated_by_is_cloned(self, xp: Any) -> None:
        def f(x: Any) -> Any:
            first, row, again = copy.deepcopy([x * 1.0, x, x])
            assert row is again
            row = row * 1.0
            kept, v, y = copy.deepcopy({"kept": row, "v": row[1:], "y": row}).values()
            assert kept is y
            v *= first[1:]  # x^2, but for the first element, x
            return xp.sum(y * copy.deepcopy(x)) + xp.sum(copy.deepcopy(x[:1]))

        exact = np.asarray([2 * X[0] + 1, *(3 * X[1:] ** 2)])
        x, v = xp.asarray(X.copy()).array, xp.asarray(np.cos(X)).array
        check(func.grad(f)(x), exact)
        check(func.jvp(f, (x,), (v,))[1], np.sum(exact * np.cos(X)))
        check(func.vmap(func.grad(f))(xp.stack([x, x]).array), np.stack([exact, exact]))
        check(func.jvp(func.grad(f), (x,), (v,))[1], np.asarray([2, *(6 * X[1:])]) * np.cos(X))
        check(
            func.grad(lambda rows: xp.sum(func.vmap(f)(rows)))(xp.stack([x, x]).array),
            np.stack([exact, exact]),
        )
        check(x, X)

    def test_leaves_inside_of_a_transformation(self, xp: Any) -> None:
        def f(x: Any) -> Any:
            with mg.no_grad():
                w = x * 2.0
            w.requires_grad_()
            c = copy.deepcopy(w)
            assert c.is_leaf and c.requires_grad
            (g,) = mg.autograd.grad(xp.sum(c**3), c)
            assert w.grad is None and copy.deepcopy((x * 2.0).detach().requires_grad_()).is_leaf
            return xp.sum(g * x)

        check(func.grad(f)(xp.asarray(X.copy()).array), 3 * (2 * X) ** 2)

    def test_duals_and_batches(self, xp: Any) -> None:
        with forward_ad.dual_level():
            d = forward_ad.make_dual(xp.asarray(X.copy()), xp.asarray(np.cos(X)))
            v, c, gone = copy.deepcopy([d[1:], d, d.detach()])
            v *= 2.0
            primal, tangent = forward_ad.unpack_dual(c)
            check(primal, [1, 4, 6, 8])
            check(tangent, np.cos(X) * [1, 2, 2, 2])
            check(forward_ad.unpack_dual(gone).primal, [1, 4, 6, 8])
            assert forward_ad.unpack_dual(gone).tangent is None
            check(forward_ad.unpack_dual(d).primal, X)
        leaked = []
        func.vmap(lambda x: leaked.append(x) or x)(xp.asarray(X.copy()).array)
        with pytest.raises(LeakError, match="was used after it had finished"):
            copy.deepcopy(leaked[0])


class TestPickle:
    def test_leaves_only(self, xp: Any) -> None:
        x = leaf(xp, X)
        x.grad = xp.ones_like(x)
        p = pickle.loads(pickle.dumps(x))
        assert p.requires_grad and p.grad is None
        check(p, X)
        with pytest.raises(RuntimeError, match="only leaf Tensors can be pickled"):
            pickle.dumps(x * 2)
        with pytest.raises(RuntimeError, match=r"only leaf Tensors can be copied by copy.copy\(\)"):
            copy.copy(x * 2)

    def test_a_pickle_names_no_module_that_may_move(self) -> None:
        written = pickle.dumps(mg.asarray(np.asarray(X), requires_grad=True))
        names = [a for _, a, _ in pickletools.genops(written) if isinstance(a, str)]
        assert [n for n in names if "multigrad" in n or "tensor" in n] == [
            "multigrad",
            "_tensor_from_pickle",
        ]


class TestCopies:
    @pytest.mark.parametrize("way", [copy.copy, lambda a: pickle.loads(pickle.dumps(a))])
    def test_a_copy_by_other_ways_than_operations_is_refused(self, way):
        x = np.array([1.0, 2.0, 3.0])
        with pytest.raises(
            RuntimeError,
            match=r"'grad' differentiates can be neither copied by copy.copy\(\) nor pickled; "
            r"clone",
        ):
            func.grad(lambda a: mg.sum(way(a) * a))(x)
        close(func.grad(lambda a: mg.sum(way(mg.ones(3)) * a))(x), [1, 1, 1])
        close(func.grad(lambda a: mg.sum(a.clone() * a))(x), 2 * x)
        for transform in (lambda f: func.jvp(f, (x,), (x,)), lambda f: func.vmap(f)(x)):
            with pytest.raises(
                RuntimeError,
                match=r"so it can be neither copied by copy.copy\(\) nor pickled; clone",
            ):
                transform(way)
