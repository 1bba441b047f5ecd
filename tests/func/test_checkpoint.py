"""checkpoint over Tensors: what it keeps, when it runs again, what may change meanwhile; on every
backend.
"""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from checkpoint_programs import Counted, X, body, leaf, total
from conftest import values
from forward_programs import close

import multigrad as mg
from multigrad import func
from multigrad.autograd import Function, graph
from multigrad.errors import GradientError
from multigrad.func import checkpoint


class TestTensors:
    def test_nothing_is_kept(self, xp):
        made = []

        def f(x):
            y = xp.sin(x * 2)
            made.append(weakref.ref(y))
            return xp.exp(y) * y

        x = leaf(xp)
        z = checkpoint(f)(x)
        assert z.grad_fn.name() == "MultiplyBackward"
        assert made[0]() is None
        close(
            mg.autograd.grad(xp.sum(z), x)[0],
            2
            * np.cos(2 * np.array(X))
            * np.exp(np.sin(2 * np.array(X)))
            * (1 + np.sin(2 * np.array(X))),
        )

    def test_one_more_run_for_each_pass(self, xp):
        f = Counted(body(xp))
        x = leaf(xp)
        y = xp.sum(checkpoint(f)(x))
        assert f.begun == 1
        first = mg.autograd.grad(y, x, retain_graph=True)[0]
        assert f.begun == 2
        second = mg.autograd.grad(y, x, retain_graph=True)[0]
        assert f.begun == 3
        y.backward()
        assert f.begun == 4
        assert np.array_equal(values(first), values(second)) and np.array_equal(
            values(first), values(x.grad)
        )
        with pytest.raises(GradientError, match="backward through the graph a second time"):
            y.backward()

    def test_the_second_run_ends_early(self, xp):
        f = Counted(lambda x: xp.sin(x) + 1)
        x = leaf(xp)
        xp.sum(checkpoint(f)(x)).backward()
        assert (f.begun, f.ended) == (2, 1)
        close(x.grad, np.cos(X))

    def test_what_asks_for_nothing_runs_once(self, xp):
        f = Counted(lambda x: x + x)
        x = leaf(xp)
        xp.sum(checkpoint(f)(x)).backward()
        assert f.begun == 1
        close(x.grad, [2, 2])

    def test_structures_and_keywords(self, xp):
        def f(p, *, scale, other=None, name="?"):
            assert other is None and name == "a"
            return {"out": [p["w"] * scale, xp.exp(p["b"][0])], "name": name}

        w, b, s = leaf(xp), leaf(xp, [2.0, 3.0]), leaf(xp, 2.0)
        out = checkpoint(f)({"w": w, "b": (b, 3)}, scale=s, name="a")
        assert out["name"] == "a"
        grads = mg.autograd.grad(xp.sum(out["out"][0] + out["out"][1]), [w, b, s])
        close(grads[0], [2, 2])
        close(grads[1], np.exp([2, 3]))
        close(grads[2], sum(X))

    def test_transformations_inside_of_the_function(self, xp):
        inner = Counted(lambda x: xp.sum(xp.exp(x) * x))
        f = lambda x: func.grad(inner)(x) * xp.sin(x)
        x = leaf(xp)
        (expected,) = mg.autograd.grad(xp.sum(f(x)), x)
        inner.begun = 0
        (found,) = mg.autograd.grad(xp.sum(checkpoint(f)(x)), x)
        close(found, values(expected))
        assert inner.begun == 2  # what the inner transformation saves is not put away

    def test_a_part_of_the_graph(self, xp):
        """Of a graph that is kept, passes to different places take what they need."""
        x, w = leaf(xp), leaf(xp, [2.0, 3.0])
        y = xp.sum(checkpoint(lambda x, w: xp.exp(x) * xp.sin(w))(x, w))
        for _ in range(2):
            close(mg.autograd.grad(y, w, retain_graph=True)[0], np.exp(X) * np.cos([2, 3]))
            close(mg.autograd.grad(y, x, retain_graph=True)[0], np.exp(X) * np.sin([2, 3]))

    def test_a_pass_in_a_hook(self, xp):
        seen = []

        def hook(g):
            if not seen:
                seen.append(None)
                seen[0] = values(mg.autograd.grad(y, x, retain_graph=True)[0])

        def f(x):
            z = xp.sin(x)
            z.register_hook(hook)
            return xp.exp(z) * z

        x = leaf(xp)
        y = xp.sum(checkpoint(f)(x))
        (g,) = mg.autograd.grad(y, x, retain_graph=True)
        close(g, np.cos(X) * np.exp(np.sin(X)) * (1 + np.sin(X)))
        close(seen[0], values(g))

    def test_several_outputs_of_one_operation(self, xp):
        m = leaf(xp, [[2.0, 1.0], [1.0, 3.0]])
        f = lambda m: xp.linalg.eigh(m)[0] * xp.linalg.qr(m)[1]
        (expected,) = mg.autograd.grad(xp.sum(f(m)), m)
        close(mg.autograd.grad(xp.sum(checkpoint(f)(m)), m)[0], values(expected))

    def test_what_a_node_saved_can_be_looked_at(self, xp):
        log = []

        def f(x):
            y = xp.sin(x * 2)
            log.append(1)
            return xp.exp(y)

        y = checkpoint(f)(leaf(xp))
        sin = y.grad_fn.next_functions[0][0]
        for _ in range(2):
            close(sin._saved_x, 2 * np.array(X))
            assert log == [1]  # the second run has ended before
        close(y.grad_fn._saved_ans, values(y))

    def test_an_argument_that_is_not_used_keeps_no_graph(self, xp):
        x = leaf(xp)
        a = xp.sin(x)
        y = checkpoint(lambda a, b: xp.exp(b))(a, x)
        node = weakref.ref(a.grad_fn)
        del a
        assert node() is None
        close(mg.autograd.grad(xp.sum(y), x)[0], np.exp(X))

    def test_made_in_a_pass_it_does_not_keep_it(self, xp):
        gc.collect()  # the errors of other tests keep theirs
        made, x = [], leaf(xp)

        def hook(g):
            with mg.enable_grad():
                made.append(xp.sum(checkpoint(xp.exp)(x)))

        y = xp.sin(x)
        y.register_hook(hook)
        xp.sum(y).backward()
        assert not [
            o
            for o in gc.get_objects()
            if type(o).__name__ == "Pass" and type(o).__module__.startswith("multigrad.")
        ]
        close(mg.autograd.grad(made[0], x)[0], np.exp(X))

    def test_hooks_on_tensors_inside(self, xp):
        log = []

        def f(x):
            y = xp.sin(x)
            y.register_hook(lambda g: log.append(values(g)) or g * 2)
            return xp.exp(y)

        x = leaf(xp)
        xp.sum(checkpoint(f)(x)).backward()
        assert len(log) == 1
        close(log[0], np.exp(np.sin(X)))
        close(x.grad, 2 * np.cos(X) * np.exp(np.sin(X)))

    def test_a_function_of_the_users(self, xp):
        class Cube(Function):
            @staticmethod
            def forward(ctx, x):
                y = x * x
                ctx.save_for_backward(x, y)
                return y * x

            @staticmethod
            def backward(ctx, g):
                x, y = ctx.saved_tensors
                assert y is not None
                return 3 * g * x * x

        f = Counted(lambda x: xp.exp(Cube.apply(xp.sin(x))))
        x = leaf(xp)
        plain = total(lambda x: xp.exp(xp.sin(x) ** 3), xp)
        kept = total(checkpoint(f), xp)
        (d,) = mg.autograd.grad(kept(x), x, create_graph=True)
        assert f.begun == 2
        (e,) = mg.autograd.grad(plain(x), x, create_graph=True)
        np.testing.assert_allclose(values(d), values(e), rtol=1e-12)
        np.testing.assert_allclose(
            values(mg.autograd.grad(xp.sum(d), x)[0]),
            values(mg.autograd.grad(xp.sum(e), x)[0]),
            rtol=1e-12,
        )


class TestModes:
    def test_where_nothing_is_recorded(self, xp):
        f = Counted(lambda x: xp.sin(x))
        with mg.no_grad(), graph.disable_saved_tensors_hooks("no hooks here"):
            y = checkpoint(f)(leaf(xp))
        assert f.begun == 1 and not y.requires_grad
        assert not checkpoint(f)(leaf(xp).detach()).requires_grad

    def test_where_hooks_are_forbidden(self, xp):
        with (
            graph.disable_saved_tensors_hooks("no hooks here"),
            pytest.raises(RuntimeError, match="no hooks here"),
        ):
            checkpoint(xp.sin)(leaf(xp))

    def test_the_mode_is_that_of_the_first_run(self, xp):
        modes = []

        def f(x):
            modes.append(mg.is_grad_enabled())
            with mg.no_grad():
                y = xp.exp(x)
            return xp.sin(y * x)

        x = leaf(xp)
        y = xp.sum(checkpoint(f)(x))
        with mg.no_grad():
            (g,) = mg.autograd.grad(y, x)
        assert modes == [True, True]
        close(g, np.cos(np.exp(X) * X) * np.exp(X))

    def test_what_it_refuses(self, xp):
        for policy in (3, "sin"):
            with pytest.raises(
                TypeError, match="policy must be a function of a name or a collection of names"
            ):
                checkpoint(xp.sin, policy=policy)
        with pytest.raises(TypeError, match=r"call it as checkpoint\(function\)\(\*args\)"):
            checkpoint(leaf(xp))


class TestPolicy:
    @pytest.mark.parametrize(
        ("policy", "runs"),
        [
            (None, 2),
            (["exp"], 2),
            ({"sin", "exp", "multiply", "tanh"}, 1),
            (lambda name: name != "sin", 2),
        ],
    )
    def test_what_is_kept_is_not_computed_again(self, xp, policy, runs):
        f = Counted(lambda x: xp.tanh(xp.sin(x) * xp.exp(x)))
        x = leaf(xp)
        y = xp.sum(checkpoint(f, policy=policy)(x))
        y.backward()
        assert f.begun == runs
        u, du = np.sin(X) * np.exp(X), np.exp(X) * (np.sin(X) + np.cos(X))
        close(x.grad, du / np.cosh(u) ** 2)

    def test_it_sees_the_names_of_operations_and_functions(self, xp):
        class Double(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g * 2 + 0 * ctx.saved_tensors[0]

        names = []
        f = Counted(lambda x: Double.apply(xp.exp(x)))
        for keep, runs in ((False, 2), (True, 1)):
            names.clear()
            f.begun = 0
            x = leaf(xp)
            xp.sum(checkpoint(f, policy=lambda name: names.append(name) or keep)(x)).backward()  # noqa: B023
            assert f.begun == runs
            assert set(names) == {"exp", "Double"}
            close(x.grad, 2 * np.exp(X))
        names.clear()
        checkpoint(lambda x: checkpoint(xp.exp)(x * 2), policy=names.append)(leaf(xp))
        assert names == ["multiply"]  # the argument of a checkpoint is no matter of a policy

    def test_what_is_kept_is_checked_for_changes(self, xp):
        def f(x):
            y = x * 2
            z = xp.sin(y)
            y += 1
            return z

        y = xp.sum(checkpoint(f, policy=["sin"])(leaf(xp)))
        with pytest.raises(GradientError, match="modified by an inplace operation"):
            y.backward()

    def test_inside_of_another_checkpoint(self, xp):
        f = Counted(lambda x: xp.sin(xp.exp(x)))
        x = leaf(xp)
        y = xp.sum(checkpoint(lambda x: checkpoint(f, policy=lambda name: True)(x * 2))(x))
        y.backward()
        assert f.begun == 2
        close(x.grad, np.cos(np.exp(2 * np.array(X))) * np.exp(2 * np.array(X)) * 2)


class TestChanges:
    """What changes between the runs is noticed, or does not matter."""

    @pytest.mark.parametrize(
        "what", ["argument", "constant argument", "inside", "captured", "captured and derived"]
    )
    def test_in_place(self, xp, what):
        x, c, w = leaf(xp), leaf(xp, [1.0, 1.0]).detach(), leaf(xp)

        def f(a, *, c):
            if what == "inside":
                c += 1
            return xp.sin(a * c) * (
                xp.reshape(w, (1, 2)) + 1 if what == "captured and derived" else w
            )

        a = x * 1
        y = xp.sum(checkpoint(f)(a, c=c))
        with mg.no_grad():
            if what == "argument":
                a += 1
            elif what == "constant argument":
                c += 1
            elif what.startswith("captured"):
                w += 1
        kind = "used in" if what.startswith("captured") else "an argument of"
        with pytest.raises(
            GradientError,
            match=f"modified by an inplace operation: .*is {kind} a checkpoint, is at version "
            "1; expected version 0",
        ):
            mg.autograd.grad(y, x)

    def test_an_argument_that_nothing_saves_may_change(self, xp):
        x = leaf(xp)
        a = x * 1
        y = checkpoint(lambda a: a + a)(a)
        a *= 5
        close(mg.autograd.grad(xp.sum(y), x)[0], [2, 2])

    def test_in_place_inside(self, xp):
        def f(x):
            y = x * 2
            y *= y
            v = y[:1]
            v *= 3
            return y * xp.sin(y)

        x = leaf(xp)
        y = 4 * np.array(X) ** 2 * [3, 1]
        for wrapped in (f, checkpoint(f)):
            (found,) = mg.autograd.grad(xp.sum(checkpoint(wrapped)(x)), x)
            close(found, (np.sin(y) + y * np.cos(y)) * 8 * np.array(X) * [3, 1])

    def test_a_saved_array_that_is_written_inside(self, xp, backend):
        """Where arrays cannot be written, it is what it was."""

        def f(x, last):
            y = x * 1.5
            z = xp.sin(y)
            y += 1
            return z * y if last else z

        x = leaf(xp)
        y = 1.5 * np.array(X)
        if backend == "jax":
            close(
                mg.autograd.grad(xp.sum(checkpoint(f)(x, True)), x)[0],
                1.5 * (np.cos(y) * (y + 1) + np.sin(y)),
            )
        else:
            with pytest.raises(
                GradientError, match="modified by an inplace operation: .*is saved in a checkpoint"
            ):
                mg.autograd.grad(xp.sum(checkpoint(f)(x, True)), x)
        # nobody asks for more than y as it was
        close(mg.autograd.grad(xp.sum(checkpoint(f)(x, False)), x)[0], 1.5 * np.cos(y))

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            (
                lambda xp, x: xp.sin(x),
                "the function saved a different number of arrays when it ran again: 1, of 4 in "
                "its first run",
            ),
            (
                lambda xp, x: xp.exp(x) * xp.sin(x),
                r"array 0 was of dtype .*float64 and shape \[2\], saved by sin, and is now .* "
                r"saved by exp",
            ),
            (
                lambda xp, x: xp.sin(xp.stack([x, x])),
                r"array 0 was of .*shape \[2\], saved by sin, and is now .*shape \[2, 2\], "
                r"saved by sin",
            ),
            (
                lambda xp, x: xp.sin(xp.astype(x, xp.float32)),
                r"array 0 was of dtype .*float64 .* and is now of dtype .*float32",
            ),
        ],
    )
    def test_another_function(self, xp, other, message):
        first = [True]

        def f(x):
            return xp.sin(x) * xp.exp(x) if first.pop() else other(xp, x)

        x = leaf(xp)
        y = xp.sum(checkpoint(f)(x))
        first.append(False)
        with pytest.raises(GradientError, match=message):
            y.backward()
        first.append(True)
        close(mg.autograd.grad(y, x)[0], np.exp(X) * (np.sin(X) + np.cos(X)))  # nothing was lost

    def test_an_error_in_the_second_run_arrives(self, xp):
        f = Counted(lambda x: xp.sin(x) if f.begun == 1 else 1 / 0)
        y = xp.sum(checkpoint(f)(leaf(xp)))
        with pytest.raises(ZeroDivisionError):
            y.backward()

    def test_who_catches_everything(self, xp):
        caught = []

        def f(x):
            try:
                return xp.sin(xp.exp(x))
            except BaseException as error:
                caught.append(type(error).__name__)
                return xp.sin(xp.exp(xp.sin(x)))

        x = leaf(xp)
        y = xp.sum(checkpoint(f)(x))
        y.backward()
        assert caught == ["_Enough"]
        close(x.grad, np.cos(np.exp(X)) * np.exp(X))
