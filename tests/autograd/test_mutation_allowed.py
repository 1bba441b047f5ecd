"""allow_mutation_on_saved_tensors: a write makes the copies, of what the graph has saved of its
memory in the context, and of nothing else.
"""

from __future__ import annotations

import contextvars
import threading
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad import func
from multigrad.autograd import Function, forward_ad, graph
from multigrad.errors import GradientError
from multigrad.memory import old_values

X = np.array([0.5, 1.25, 2.0])
CHANGED = "modified by an inplace operation"
allowed = graph.allow_mutation_on_saved_tensors


def leaf(xp: Any, x: Any = X) -> Any:
    return xp.asarray(x.copy(), requires_grad=True)


def keeper() -> old_values.OldValues:
    (found,) = [o for o in mg.observe.watching() if isinstance(o, old_values.OldValues)]
    return found


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(values(found), expected, rtol=1e-12)


def test_the_error_names_the_context(xp: Any) -> None:
    x = leaf(xp)
    a = x * 1.0
    b = a * a
    a *= 2.0
    with pytest.raises(
        GradientError,
        match=r"Hint: enable anomaly .* To let the graph keep the values that it saved, write "
        r"within mg\.autograd\.graph\.allow_mutation_on_saved_tensors\(\)\.$",
    ):
        xp.sum(b).backward()


# ----- When copies are made -----


def test_saving_keeps_the_array_itself_and_a_write_one_copy_of_it() -> None:
    x = leaf(mg)
    with allowed():
        a = x * 1.0
        b, c = a * a, mg.exp(a) * a
        d = mg.sin(a[1:])
        memory = a.array
        assert b.grad_fn._saved_x1.array is memory and b.grad_fn._saved_x2.array is memory
        a += 1.0
        assert a.array is memory
        kept = b.grad_fn._saved_x1.array
        assert (
            kept is not memory
            and b.grad_fn._saved_x2.array is kept
            and c.grad_fn._saved_x2.array is kept
        )
        close(kept, X)
        close(d.grad_fn._saved_x, X[1:])
        assert not np.shares_memory(d.grad_fn._saved_x.array, memory)
        a += 1.0  # nothing has saved it since
        assert b.grad_fn._saved_x1.array is kept
        e = a * a
        a += 1.0
        assert b.grad_fn._saved_x1.array is kept and e.grad_fn._saved_x1.array is not memory
    mg.sum(b + c + e).backward(retain_graph=True)
    close(x.grad, 2 * X + np.exp(X) * (1 + X) + 2 * (X + 2))


def test_immutable_arrays_are_not_copied() -> None:
    pytest.importorskip("jax")
    xp = mg.namespace("jax")
    x = leaf(xp)
    with allowed():
        a = x * 1.0
        b = a * a
        before = a.array
        a += 1.0
        assert b.grad_fn._saved_x1.array is before
        xp.sum(b).backward()
    close(x.grad, 2 * X)


def test_what_is_written_elsewhere_copies_nothing() -> None:
    x = leaf(mg)
    with allowed():
        a, other = x * 1.0, mg.asarray(X.copy())
        b = a * a
        other += 1.0
        other[0] = 5.0
        assert b.grad_fn._saved_x1.array is a.array


def test_graphs_that_are_gone_are_forgotten() -> None:
    x = leaf(mg)
    with allowed():
        k = keeper()
        w = mg.asarray(X.copy())
        for _ in range(5):
            for _ in range(old_values.FEW):
                mg.sum(x * w)
            mg.asarray(X.copy()).add_(1.0)
            assert (
                len(k.fresh) <= old_values.FEW + 1
                and sum(map(len, k.of.values())) <= 2 * old_values.FEW + 1
            )
        held = [x * w for _ in range(3 * old_values.FEW)]
        w += 1.0
        assert all(h.grad_fn._saved_x2.array is held[0].grad_fn._saved_x2.array for h in held)
    mg.sum(held[-1]).backward()
    close(x.grad, X)


def test_arrays_of_graphs_that_are_gone_are_forgotten() -> None:
    x = leaf(mg)
    with allowed():
        k = keeper()
        for _ in range(5):
            w = mg.asarray(X.copy())
            held = [x * w, *[x * mg.asarray(X.copy()) for _ in range(old_values.FEW)]]
            w += 1.0
            assert len(held) - 1 <= len(k.of) <= 2 * old_values.FEW


# ----- What a write may be -----


def test_several_outputs_and_lists() -> None:
    a0 = np.array([[2.0, 0.5], [0.5, 1.0]])
    x = leaf(mg, a0)

    def f(write: bool) -> Any:
        w, v = mg.linalg.eigh(x * 1.0)
        parts = [x[0] * 2.0, x[1] * 3.0]
        y = mg.sum(mg.stack(parts)) + mg.sum(w * w) + mg.sum(mg.abs(v))
        if write:
            v += 1.0
            w *= 0.0
            parts[0] += 1.0
        return mg.autograd.grad(y, x)[0]

    expected = f(False)
    with allowed():
        close(f(True), values(expected))


def test_an_index_array_in_a_key() -> None:
    """The cells of the key are all that the node tracks. The first call is not like later ones."""
    for _ in range(3):
        x = mg.asarray(np.arange(6.0).reshape(2, 3), requires_grad=True)
        rows, columns = mg.asarray(np.array([0, 1])), mg.asarray(np.array([0, 1]))
        with graph.allow_mutation_on_saved_tensors():
            y = mg.sum(x[0, columns]) + mg.sum(x[rows, columns])
            columns += 1
            (g,) = mg.autograd.grad(y, x)
        np.testing.assert_array_equal(values(g), [[2.0, 1.0, 0.0], [0.0, 1.0, 0.0]])


def test_the_gradient_of_a_leaf_that_a_pass_adds_to() -> None:
    x = leaf(mg)
    with allowed():
        mg.sum(x * x).backward()
        w = leaf(mg)
        y = mg.sum(w * x.grad)
        mg.sum(x * x).backward()
        close(x.grad, 4 * X)
        v = leaf(mg)
        v.grad = mg.zeros(6)[::2]  # a part of something else
        z = mg.sum(w * v.grad)
        mg.sum(v).backward()
        (y + z).backward()
    close(w.grad, 2 * X)


def test_functions_of_the_user(xp: Any) -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * x
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * 2.0 * x + 0.0 * y

    x = leaf(xp)
    with allowed():
        a = x * 1.0
        y = Square.apply(a)
        z = y * 1.0
        a *= 5.0
        y += 1.0
        xp.sum(z).backward(retain_graph=True)
    xp.sum(z).backward()
    close(x.grad, 4 * X)
    a = x * 1.0
    y = Square.apply(a)
    a *= 5.0
    with pytest.raises(GradientError, match=CHANGED):
        xp.sum(y).backward()


# ----- Levels -----


def written(xp: Any, x: Any) -> Any:
    """sum(x**3 + x), by writes into what was saved."""
    a = x * 1.0
    b = a * a
    a *= 0.0
    a += x
    c = b * a
    a += c
    return xp.sum(a)


def test_transformations(xp: Any) -> None:
    raw = xp.asarray(X).array
    with allowed():
        close(func.grad(lambda t: written(xp, t))(raw), 3 * X**2 + 1)
        close(func.grad(lambda t: xp.sum(func.grad(lambda s: written(xp, s))(t)))(raw), 6 * X)
        close(
            func.grad(lambda t: func.jvp(lambda s: written(xp, s), (t,), (xp.ones(3),))[1])(raw),
            6 * X,
        )
        close(func.jvp(func.grad(lambda s: written(xp, s)), (raw,), (xp.ones(3).array,))[1], 6 * X)
        close(
            func.vmap(func.grad(lambda s: written(xp, s)))(xp.stack([raw, raw])),
            np.stack([3 * X**2 + 1] * 2),
        )
        with forward_ad.dual_level():
            d = forward_ad.make_dual(xp.asarray(X), xp.ones(3))
            close(forward_ad.unpack_dual(written(xp, d)).tangent, np.sum(3 * X**2 + 1))


def test_an_array_of_an_outer_transformation(xp: Any) -> None:
    def f(x: Any) -> Any:
        y = x * 1.0

        def g(z: Any) -> Any:
            w = z * y  # y is a constant here
            return xp.sum(w * w)

        def h(z: Any) -> Any:
            nonlocal y
            r = g(z)
            y *= 2.0
            return r

        return xp.sum(func.grad(h)(x))

    raw = xp.asarray(X).array
    with allowed():
        close(func.grad(f)(raw), 6 * X**2)


def test_second_derivatives(xp: Any) -> None:
    x = leaf(xp)
    with allowed():
        y = written(xp, x)
        (g,) = mg.autograd.grad(y, x, create_graph=True)
        h = g * g
        with mg.no_grad():
            g *= 0.0
        (s,) = mg.autograd.grad(xp.sum(h), x)
    close(s, 2 * (3 * X**2 + 1) * 6 * X)


# ----- Contexts -----


def test_the_pass_may_come_later_but_a_write_may_not(xp: Any) -> None:
    x = leaf(xp)
    with allowed():
        a = x * 1.0
        b, c = a * a, xp.exp(a)
        a *= 2.0
        d = a * a
    (g,) = mg.autograd.grad(xp.sum(b + c), x, retain_graph=True)
    close(g, 2 * X + np.exp(X))
    a *= 2.0
    close(mg.autograd.grad(xp.sum(b), x)[0], 2 * X)
    with pytest.raises(GradientError, match=CHANGED):
        xp.sum(d).backward()


def test_what_was_saved_before_is_not_kept() -> None:
    x = leaf(mg)
    a = x * 1.0
    b = a * a
    with allowed():
        a *= 2.0
    with pytest.raises(GradientError, match=CHANGED):
        mg.sum(b).backward()


def test_an_exception_ends_it() -> None:
    x = leaf(mg)
    with pytest.raises(KeyError), allowed():
        a = x * 1.0
        b = a * a
        with pytest.raises(GradientError, match="a leaf Variable that requires grad"):
            x += 1.0
        with pytest.raises(RuntimeError, match="broadcast"):
            a += mg.ones((2, 3))
        a += 1.0
        raise KeyError
    mg.sum(b).backward()
    close(x.grad, 2 * X)
    c = a * a
    a += 1.0
    with pytest.raises(GradientError, match=CHANGED):
        mg.sum(c).backward()
    with (
        allowed(),
        pytest.raises(
            RuntimeError, match="allow_mutation_on_saved_tensors contexts cannot be nested"
        ),
        allowed(),
    ):
        pass
    with (
        graph.disable_saved_tensors_hooks("none here"),
        pytest.raises(RuntimeError, match="none here"),
        allowed(),
    ):
        pass
    with (
        allowed(),
        pytest.raises(RuntimeError, match="nor here"),
        graph.disable_saved_tensors_hooks("nor here"),
    ):
        pass
    with allowed():
        pass


def test_a_thread_in_the_same_context_shares_it_and_another_does_not() -> None:
    x = leaf(mg)
    for shared in (True, False):
        with allowed():
            a = x * 1.0
            b = a * a
            context = contextvars.copy_context() if shared else contextvars.Context()
            thread = threading.Thread(target=context.run, args=(a.add_, 1.0))
            thread.start()
            thread.join()
        if shared:
            close(mg.autograd.grad(mg.sum(b), x)[0], 2 * X)
        else:
            with pytest.raises(GradientError, match=CHANGED):
                mg.sum(b).backward()


def test_many_threads_of_one_context() -> None:
    """They record, and write each its own memory, while others look through what was saved."""
    x = leaf(mg)
    failures: list[Exception] = []

    def work() -> None:
        try:
            for i in range(300):
                a = x * (1.0 + i)
                b = a * a
                a += 1.0
                np.testing.assert_allclose(
                    values(mg.autograd.grad(mg.sum(b), x)[0]), 2 * X * (1.0 + i) ** 2, rtol=1e-12
                )
        except Exception as error:
            failures.append(error)

    with allowed():
        threads = [
            threading.Thread(target=contextvars.copy_context().run, args=(work,)) for _ in range(4)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not failures


def test_hooks_further_in_and_further_out(xp: Any) -> None:
    log: list[Any] = []
    pack, unpack = (lambda t: log.append(t.shape) or values(t).copy()), (lambda k: xp.asarray(k))
    x = leaf(xp)
    with graph.saved_tensors_hooks(pack, unpack), allowed():
        a = x * 1.0
        b = a * a
        a += 1.0
        assert not log  # the innermost has them
        xp.sum(b).backward()
    close(x.grad, 2 * X)
    x.grad = None
    with allowed(), graph.saved_tensors_hooks(pack, unpack):
        a = x * 1.0
        b = a * a
        a += 1.0
        assert len(log) == 2
        xp.sum(b).backward()
    close(x.grad, 2 * X)


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_beside_observers(xp: Any) -> None:
    x = leaf(xp)
    with mg.autograd.detect_anomaly(), allowed(), mg.autograd.profiler.profile():
        xp.sum(xp.exp(written(xp, x))).backward()
    close(x.grad, np.exp(np.sum(X**3 + X)) * (3 * X**2 + 1))


def test_arguments_of_a_checkpoint(xp: Any) -> None:
    x = leaf(xp)
    with allowed():
        a = x * 1.0
        y = func.checkpoint(lambda t: xp.sum(xp.sin(t) * t))(a)
        a *= 2.0
        y.backward()
    close(x.grad, np.sin(X) + X * np.cos(X))

    def inner(t: Any) -> Any:
        b = t * 1.0
        z = func.checkpoint(lambda s: xp.sum(xp.sin(s) * s))(b)
        b *= 2.0
        return z

    with allowed():
        close(func.grad(inner)(xp.asarray(X).array), np.sin(X) + X * np.cos(X))
        close(
            func.grad(lambda s: xp.sum(func.grad(inner)(s)))(xp.asarray(X).array),
            2 * np.cos(X) - X * np.sin(X),
        )


def test_a_checkpoint_keeps_no_arrays_of_its_own_that_could_be_copied() -> None:
    x = leaf(mg)
    with allowed():
        y = func.checkpoint(lambda t: written(mg, t))(x)
        with pytest.raises(
            GradientError, match=r"is saved in a checkpoint, .*check_nan=False\)\.$"
        ):
            y.backward()


def test_inside_of_a_checkpoint(xp: Any) -> None:
    def f(t: Any) -> Any:
        with allowed():
            return written(xp, t)

    x = leaf(xp)
    func.checkpoint(f)(x).backward()
    close(x.grad, 3 * X**2 + 1)


def test_hooks_on_one_saved_array(xp: Any) -> None:
    x = leaf(xp)
    with allowed():
        a, c = x * 1.0, x * 2.0
        b = a * c
        b.grad_fn._raw_saved_x1.register_hooks(lambda t: t.detach().clone(), lambda t: t)
        c += 1.0
        a += 1.0
        xp.sum(b).backward()
    close(x.grad, 4 * X)


def test_a_write_outside_of_the_context_is_an_error_also_if_one_inside_follows() -> None:
    """What the one outside has destroyed cannot be kept."""
    w, a = mg.asarray(X, requires_grad=True), mg.asarray(X + 1.0)

    def write() -> None:
        a[...] = 7.0

    with allowed():
        y = w * a
        contextvars.Context().run(write)
        a[...] = 5.0
    with pytest.raises(GradientError, match="modified by an inplace operation"):
        mg.sum(y).backward()


def test_the_contexts_are_decorators():
    @allowed()
    def f() -> Any:
        x = mg.asarray(X, requires_grad=True)
        y = x * 1.0
        z = y * y
        y += 1.0
        return x, z

    for _ in range(2):
        x, z = f()
        mg.sum(z).backward()
        close(x.grad, 2 * X)
    assert graph.disable_saved_tensors_hooks("none here")(lambda: 3)() == 3
