"""Layers and transformations of a stranger's, written with public names alone."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import multigrad as mg
from multigrad import extend, func
from multigrad.errors import GradientError, LeakError, MissingRuleError, MixedBackendsError

X, W = np.array([0.4, -1.3, 2.0]), np.array([1.1, 0.7, -0.2])
OPERATIONS = [
    "multiply",
    "add",
    "multiply",
    "subtract",
    "sin",
    "getitem",
    "getitem",
    "concat",
    "multiply",
    "greater",
    "multiply",
    "where",
    "pow",
    "sum",
]
log: list[str] = []


class Logged(extend.Layer):
    """An array that notes the operations on it."""

    __slots__ = ()

    @classmethod
    def apply_function(cls, name, inside, args, transform):
        log.append(name)
        return inside(lambda x: cls.wrap(x, transform))

    @classmethod
    def apply(cls, op, args, transform):
        log.append(op.name)
        outs = extend.carry_out(op, transform.unwrap(args))
        wrapped = [
            cls.wrap(x, transform) if extend.is_array(x) else x
            for x in (outs if op.outputs != () else (outs,))
        ]
        return tuple(wrapped) if op.outputs != () else wrapped[0]


def logged(function, *args):
    log.clear()
    transform = extend.Transform("logged")
    return transform.call(
        lambda: transform.unwrap(function(*(Logged.wrap(x, transform) for x in args)))
    )


def applied(apply, function, x):
    """What a function gives for an array of a class with this `apply`."""
    body = {"__slots__": (), **({"apply": classmethod(apply)} if apply else {})}
    layer, transform = type("Mine", (extend.Layer,), body), extend.Transform("mine")
    return transform.call(lambda: transform.unwrap(function(layer.wrap(x, transform))))


class Moving(extend.Layer):
    """Forward mode once more: an array with its tangent."""

    __slots__ = ("tangent",)
    derivative = ("tangent",)

    @classmethod
    def apply(cls, op, args, transform):
        inner = transform.unwrap(args)
        tangents = transform.map(lambda x: x.tangent, args, other=lambda x: None)
        outs = extend.carry_out(op, inner)
        moved = extend.jvp(op, inner, tangents, outs)
        if op.outputs == ():
            return cls.wrap(outs, transform, tangent=moved) if extend.is_array(outs) else outs
        return tuple(cls.wrap(x, transform, tangent=t) for x, t in zip(outs, moved, strict=True))


def moving(function, x, tangent):
    """The tangent of `function` along one of its argument."""
    transform = extend.Transform("moving")

    def run():
        out = transform.layer_of(function(Moving.wrap(x, transform, tangent=tangent)))
        return transform.unwrap(0 * x) if out is None or out.tangent is None else out.tangent

    return transform.call(run)


class Step:
    """One operation on a tape.

    Layers are copied and written, so what is to be known again by its identity is a part of them.
    """

    def __init__(self, parents=(), pull=None):
        self.parents, self.pull = parents, pull

    def order(self, seen):
        """The steps that this one comes from, and it."""
        if self not in seen:
            for step in self.parents:
                step.order(seen)
            seen[self] = None
        return list(seen)


class Taped(extend.Layer):
    """Reverse mode once more: an array with its place on a tape."""

    __slots__ = ("step",)
    derivative = ("step",)

    @classmethod
    def apply(cls, op, args, transform):
        inner = transform.unwrap(args)
        outs = extend.carry_out(op, inner)
        if op.kind == "nondifferentiable":
            return cls.wrap(outs, transform)
        assert op.outputs == ()
        steps = flat(transform.map(lambda x: x.step, args, other=lambda x: None))
        wanted = transform.map(lambda x: x.step is not None, args, other=lambda x: False)

        def pull(g):
            grads = flat(extend.vjp(op, inner, outs, g, wanted))
            return [g for g, step in zip(grads, steps, strict=True) if step is not None]

        return cls.wrap(
            outs, transform, step=Step([step for step in steps if step is not None], pull)
        )


def flat(x):
    return [z for y in x for z in (flat(y) if isinstance(y, tuple) else [y])]


def taped(function, x):
    """The gradient of a scalar function."""
    transform = extend.Transform("taped")

    def run():
        leaf = Step()
        out = transform.layer_of(function(Taped.wrap(x, transform, step=leaf)))
        if out is None or out.step is None:
            return 0 * x
        grads = {leaf: 0 * x, out.step: transform.unwrap(mg.ones_like(out.array))}
        for step in reversed(out.step.order({})):
            for parent, g in zip(
                step.parents, step.pull(grads.pop(step)) if step.pull else (), strict=True
            ):
                if g is not None:
                    grads[parent] = grads[parent] + g if parent in grads else g
        return transform.unwrap(grads[leaf])

    return transform.call(run)


def program(x, w):
    y = x * w + 1.5 - w * 2
    y = mg.sin(y) @ mg.stack([x, w])[:, 0] if x.ndim == 2 else mg.sin(y) * mg.concat([x[1:], x[:1]])
    return mg.sum(mg.where(y > 0, y, 0.1 * y) ** 2)


LOSSES = {
    "program": lambda x: program(x, W),
    "reductions": lambda x: mg.max(x) * mg.sum(x, keepdims=True)[0] + mg.linalg.vector_norm(x),
    "arranged": lambda x: mg.sum(mg.reshape(mg.stack([x, 2 * x]), (3, 2)).T @ x),
    "scalars": lambda x: mg.sum(mg.maximum(x, 0.3) ** 3 + 2.0**x),
}


def values(x):
    while extend.level_of(x):
        x = x.array
    return np.asarray(x)


TRANSFORMS = {
    "grad": func.grad,
    "jvp": lambda f: lambda x, w: func.jvp(lambda u: f(u, w), (x,), (W,))[1],
    "jvp of grad": lambda f: lambda x, w: func.jvp(func.grad(lambda u: f(u, w)), (x,), (W,))[1],
    "grad of grad": lambda f: lambda x, w: func.grad(lambda u: mg.sum(func.grad(f)(u, w) ** 2))(x),
    "vmap of grad": lambda f: (
        lambda x, w: func.vmap(func.grad(f), in_axes=(0, None))(mg.stack([x, w]), w)
    ),
    "hessian": func.hessian,
    "jacrev of jacfwd": lambda f: func.jacrev(func.jacfwd(f)),
    "grad of checkpoint": lambda f: func.grad(func.checkpoint(f)),
}


class TestLogged:
    def test_sees_every_operation_once_and_gives_raw_arrays(self):
        for _ in range(3):
            out = logged(program, X, W)
            assert isinstance(out, np.generic | np.ndarray) and log == OPERATIONS
        np.testing.assert_allclose(out, values(program(mg.asarray(X), mg.asarray(W))))

    @pytest.mark.parametrize("beside", ["raw", "Tensor", "float64"])
    def test_beside_other_operands(self, beside):
        w = {"raw": W, "Tensor": mg.asarray(W), "float64": np.float64(0.7)}[beside]
        for function in (
            lambda x: x * w,
            lambda x: w * x,
            lambda x: mg.where(x > 0, x, w),
            lambda x: mg.clip(x, -1.0, w),
        ):
            out = logged(function, X)
            assert log and type(out) is np.ndarray
            np.testing.assert_allclose(out, values(function(mg.asarray(X))))

    @pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
    def test_transformations_inside(self, transform):
        function = transform(program)
        expected = values(function(X, W))
        for _ in range(2):
            np.testing.assert_allclose(values(logged(function, X, W)), expected)
            assert log

    def test_transformations_outside(self):
        def inner(x):
            return logged(program, x, W)

        np.testing.assert_allclose(func.grad(inner)(X), func.grad(program)(X, W))
        rows = np.stack([X, W])
        np.testing.assert_allclose(
            func.vmap(inner)(rows), [values(program(mg.asarray(r), W)) for r in rows]
        )
        np.testing.assert_allclose(
            func.vmap(func.grad(inner))(rows), [func.grad(program)(r, W) for r in rows]
        )
        np.testing.assert_allclose(func.jvp(inner, (X,), (W,))[1], func.grad(program)(X, W) @ W)

    def test_in_itself(self):
        np.testing.assert_allclose(
            logged(lambda x: logged(program, x, W), X), values(program(mg.asarray(X), W))
        )
        # at both levels, but for w * 2
        assert log == [name for i, name in enumerate(OPERATIONS) for _ in range(1 if i == 2 else 2)]

    def test_several_outputs_have_their_names(self):
        def function(x):
            q, r = out = mg.linalg.qr(x)
            assert out.Q is q and out.R is r and isinstance(q, Logged)
            a, b = mg.unstack(x, axis=0)
            return q @ r + mg.stack([a, b])

        a = np.array([[1.0, 2.0], [3.0, 5.0]])
        np.testing.assert_allclose(logged(function, a), 2 * a)

    def test_what_it_is(self):
        def function(x):
            assert (x.shape, x.ndim, x.size, x.dtype) == ((3,), 1, 3, np.float64)
            assert x.__array_namespace__() is mg.namespace("numpy")
            assert x.tolist() == X.tolist() and float(x[0]) == 0.4 and bool(x[0] > 0)
            assert repr(x) == f"Logged({X!r})"
            assert x.array is X and isinstance(x, extend.Layer) and x.transform.name == "logged"
            assert (
                extend.level_of(x)
                == x.transform.level
                > extend.level_of(mg.asarray(X) if x is None else X)
            )
            with pytest.raises(GradientError, match="belongs to the transformation 'logged'"):
                x.numpy()
            return x

        logged(function, X)


class TestBesideTheRest:
    @pytest.mark.parametrize(
        "along", [lambda f: moving(f, X, W), lambda f: taped(f, X)], ids=["moving", "taped"]
    )
    def test_a_rule_of_the_user_is_not_passed_over(self, along):
        """A layer with a derivative takes that of the rule or none: it raised for a Function, and
        differentiated the text of the others.
        """

        def fun(x):
            return mg.sum(x * x)

        first, second = func.custom_vjp(fun), func.custom_jvp(fun)
        first.defvjp(lambda x: (fun(x), x), lambda x, g: (100 * g * mg.ones_like(x),))
        second.defjvp(lambda primals, tangents: (fun(*primals), 100 * mg.sum(tangents[0])))
        for function in (first, second):
            with pytest.raises(
                NotImplementedError, match="let the class write the classmethod apply_function"
            ):
                along(function)
            # without a derivative, what it computes is seen
            assert logged(function, X) == fun(mg.asarray(X)).array

    def test_under_a_compiler(self):
        jax = pytest.importorskip("jax")
        found = jax.jit(lambda x: logged(func.grad(program), x, jax.numpy.asarray(W)))(
            jax.numpy.asarray(X)
        )
        np.testing.assert_allclose(np.asarray(found), func.grad(program)(X, W), rtol=2e-6)

    def test_levels_of_forward_ad(self):
        fwd = mg.autograd.forward_ad
        with fwd.dual_level():
            out = logged(program, fwd.make_dual(mg.asarray(X), mg.asarray(W)), mg.asarray(W))
            np.testing.assert_allclose(
                fwd.unpack_dual(out).tangent.array, func.grad(program)(X, W) @ W
            )

    def test_hooks_for_saved_arrays_get_raw_ones(self):
        seen = []

        def pack(t):
            seen.append(type(t.array))
            return t.array

        def hooked(x):
            def loss(x):
                with mg.autograd.graph.saved_tensors_hooks(pack, mg.asarray):
                    return program(x, W)

            return func.grad(loss)(x)

        expected = func.grad(program)(X, W)
        np.testing.assert_allclose(values(logged(hooked, X)), expected)
        np.testing.assert_allclose(
            values(moving(hooked, X, W)),
            func.jvp(lambda x: func.grad(program)(x, W), (X,), (W,))[1],
        )
        assert seen and set(seen) <= {np.ndarray, np.float64}

    def test_an_error_in_apply_is_the_users(self):
        def apply(cls, op, args, transform):
            raise ZeroDivisionError(op.name)

        with pytest.raises(ZeroDivisionError, match="cos"):
            applied(apply, mg.cos, X)
        assert type(mg.cos(X)) is mg.Tensor


class TestInPlace:
    def test_a_write_through_a_view_is_seen_by_the_base(self):
        def function(x):
            y = x * 1.0
            row, other = y[:2], y[1:]
            row *= 10.0
            other[0] = 7.0
            y += 1.0
            assert row.tolist() == [5.0, 8.0] and other.tolist() == [8.0, 3.0]
            return y

        np.testing.assert_allclose(logged(function, X), [5.0, 8.0, 3.0])
        assert "copy_slices" in log

    def test_what_it_was_made_of_keeps_its_values(self):
        x = X.copy()

        def function(y):
            y[0] = 100.0
            return y

        np.testing.assert_allclose(logged(function, x), [100.0, -1.3, 2.0])
        np.testing.assert_array_equal(x, X)

    def test_a_view_of_what_was_written_since_is_returned_as_it_is_then(self):
        def function(x):
            y = x * 1.0
            view = y[:2]
            y *= 2.0
            return view

        np.testing.assert_allclose(logged(function, X), [0.8, -2.6])

    def test_an_argument_that_apply_returns_is_not_its_own_view(self):
        class Lazy(Logged):
            __slots__ = ()

            @classmethod
            def apply(cls, op, args, transform):
                return args[0] if op.name == "positive" else super().apply(op, args, transform)

        transform = extend.Transform("lazy")

        def run():
            x = Lazy.wrap(X, transform)
            y = +x
            y *= 2.0
            return transform.unwrap(x), transform.unwrap(y)

        x, y = transform.call(run)
        np.testing.assert_allclose(x, X)
        np.testing.assert_allclose(y, 2 * X)

    def test_tangents_follow(self):
        def function(x):
            y = x * x
            y[1:] *= x[:2]
            y[0] = 3.0
            return mg.sum(y**2)

        np.testing.assert_allclose(moving(function, X, W), func.jvp(function, (X,), (W,))[1])

    def test_detach_drops_what_carries_a_derivative(self):
        assert not np.any(moving(lambda x: x.detach() * 2, X, W))
        np.testing.assert_allclose(moving(lambda x: x.detach() * x, X, W), X * W)


class TestRules:
    """Derivatives of one's own making agree with multigrad's, at first and second order, in every
    nesting.
    """

    @pytest.mark.parametrize("name", LOSSES)
    def test_nested(self, name):
        f = LOSSES[name]
        expected = func.jvp(func.grad(f), (X,), (W,))[1]
        for mine in (
            moving(func.grad(f), X, W),
            moving(lambda x: taped(f, x), X, W),
            func.jvp(lambda x: taped(f, x), (X,), (W,))[1],
            func.grad(lambda x: moving(f, x, W))(X),
            taped(lambda x: moving(f, x, W), X),
            taped(lambda x: func.jvp(f, (x,), (W,))[1], X),
        ):
            np.testing.assert_allclose(values(mine), expected)

    def test_several_outputs(self):
        def function(x):
            q, r = mg.linalg.qr(x)
            return mg.sum(q * 2.0) + mg.sum(r**2) + mg.sum(mg.sin(mg.unstack(x)[1]))

        a, t = np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([[0.3, -1.0], [0.7, 0.1]])
        np.testing.assert_allclose(moving(function, a, t), func.jvp(function, (a,), (t,))[1])
        op = mg.registry.OPS["linalg.qr"]
        outs = extend.carry_out(op, (a, "reduced"))
        (g, none) = extend.vjp(op, (a, "reduced"), outs, (None, np.ones((2, 2))))
        np.testing.assert_allclose(g, func.grad(lambda x: mg.sum(mg.linalg.qr(x).R))(a))
        assert none is None

    def test_what_does_not_move(self):
        floor, sin, argmax = (mg.registry.OPS[n] for n in ("floor", "sin", "argmax"))
        assert extend.jvp(sin, (X,), (None,), np.sin(X)) is None
        assert extend.jvp(argmax, (X, None, False), (X, None, None), np.argmax(X)) is None
        assert not np.any(extend.vjp(floor, (X,), np.floor(X), W)[0])
        assert extend.vjp(argmax, (X, None, False), np.argmax(X), None) == (None, None, None)
        assert extend.vjp(sin, (X,), np.sin(X), W, (False,)) == (None,)

    def test_a_missing_rule(self):
        op = mg.registry.elementwise("stranger.f(x, y, /)", x=1.0, forward=lambda xp, x, y: x + y)
        try:
            assert extend.jvp(op, (X, W), (X, None), X + W) is not None
            for rule in (
                lambda: extend.jvp(op, (X, W), (None, X), X + W),
                lambda: extend.vjp(op, (X, W), X + W, X),
            ):
                with pytest.raises(MissingRuleError, match="'y'"):
                    rule()
            assert extend.vjp(op, (X, W), X + W, X, (True, False))[1] is None
        finally:
            mg.registry.OPS.pop("stranger.f")


class Double(mg.autograd.Function):
    """Two outputs, and a derivative that is not theirs, to be known by."""

    generate_vmap_rule = True

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return 2 * x, x * y

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return 100 * g + h * y, h * x


@func.custom_jvp
def tenfold(x):
    return mg.sin(x)


@tenfold.defjvp
def _(primals, tangents):
    return tenfold(primals[0]), 10 * tangents[0]


class Square(mg.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, n):
        return x * x, x * n

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])
        ctx.n = inputs[1]

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return 2 * x * g + ctx.n * h, None

    @staticmethod
    def jvp(ctx, t, _):
        (x,) = ctx.saved_tensors
        return 2 * x * t, ctx.n * t


@func.custom_vjp
def cube(x):
    return x**3


cube.defvjp(lambda x: (cube(x), mg.sin(x) * 0 + x), lambda x, g: (3 * g * x**2,))


@func.custom_jvp
def exp(x):
    return mg.exp(x)


exp.defjvp(lambda primals, tangents: (exp(*primals), exp(*primals) * tangents[0]))


def own_derivatives(x, w):
    square, double = Square.apply(mg.sin(x), 3)
    return mg.sum(square * w + double * cube(x) - exp(w) * x)


def with_function(x):
    a, b = Double.apply(x, x * W)
    return mg.sum(a * a + mg.sin(b))


class TestFunctions:
    def test_is_applied_once_at_this_level(self):
        out = logged(with_function, X)
        assert log == ["multiply", "Double", "multiply", "sin", "add", "sum"]
        np.testing.assert_allclose(out, values(with_function(mg.asarray(X))))

    def test_transformations_inside_and_outside(self):
        expected = func.grad(with_function)(X)
        np.testing.assert_allclose(values(logged(func.grad(with_function), X)), expected)
        assert "Double" in log
        np.testing.assert_allclose(func.grad(lambda x: logged(with_function, x))(X), expected)
        rows = np.stack([X, W])
        np.testing.assert_allclose(
            func.vmap(func.grad(lambda x: logged(with_function, x)))(rows),
            [func.grad(with_function)(r) for r in rows],
        )
        np.testing.assert_allclose(
            values(logged(func.vmap(func.grad(with_function)), rows)),
            [func.grad(with_function)(r) for r in rows],
        )
        x = mg.asarray(X, requires_grad=True)
        logged(with_function, x).backward()
        np.testing.assert_allclose(x.grad.array, expected)

    @pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
    def test_rules_of_every_kind_in_transformations_inside(self, transform):
        def same(x, w):
            return mg.sum(mg.sin(x) ** 2 * w + mg.sin(x) * 3 * x**3 - mg.exp(w) * x)

        expected = values(transform(same)(X, W))
        np.testing.assert_allclose(values(transform(own_derivatives)(X, W)), expected)
        np.testing.assert_allclose(values(logged(transform(own_derivatives), X, W)), expected)
        assert {"VmappedSquare", "Square"} & set(log)

    def test_one_array_twice(self):
        def twice(x):
            return mg.sum(Double.apply(x, x)[1])

        np.testing.assert_allclose(func.grad(lambda x: logged(twice, x))(X), 2 * X)
        np.testing.assert_allclose(values(logged(func.grad(twice), X)), 2 * X)

    def test_rules_of_decorated_functions(self):
        np.testing.assert_allclose(
            values(logged(lambda x: func.jvp(tenfold, (x,), (W,))[1], X)), 10 * W
        )
        np.testing.assert_allclose(func.jvp(lambda x: logged(tenfold, x), (X,), (W,))[1], 10 * W)
        assert log == ["tenfold"]

    def test_a_class_that_says_nothing_about_them_refuses(self):
        transform = extend.Transform("moving")
        with pytest.raises(
            NotImplementedError,
            match=r"multigrad cannot apply Double, which has a derivative of its own, under "
            r"Moving yet: let the class write the classmethod apply_function\(cls, name, "
            r"inside, args, transform\)",
        ):
            transform.call(lambda: Double.apply(Moving.wrap(X, transform), X))


class TestRefusals:
    def test_a_layer_that_outlives_its_transformation(self):
        kept = []
        logged(lambda x: kept.append(x) or x, X)
        for use in (
            lambda: kept[0] + 1,
            lambda: kept[0].array,
            lambda: kept[0].transform.unwrap(kept[0]),
            lambda: repr(kept[0]),
        ):
            with pytest.raises(LeakError, match="'logged' was used after it had finished"):
                use()
        assert kept[0].transform.finished

    def test_a_transformation_that_is_ended_by_hand(self):
        transform = extend.Transform("by hand")
        x = Logged.wrap(X, transform)
        assert transform.unwrap(x + 1).tolist() == (X + 1).tolist()
        transform.finish()
        with pytest.raises(LeakError, match="'by hand'"):
            x + 1
        with pytest.raises(
            LeakError,
            match="Logged.wrap: the transformation 'by hand' has finished; begin another one",
        ):
            Logged.wrap(X, transform)

    @pytest.mark.parametrize(
        ("apply", "message"),
        [
            (values, "Mine.apply returned ndarray for sin: return layers of the transformation, "),
            (
                lambda x: None,
                "Mine.apply returned NoneType for sin: .* transformation, made by Mine",
            ),
            (lambda x: Logged.wrap(X, extend.Transform("another")), "returned Logged for sin"),
        ],
        ids=["unwrapped", "nothing", "none of mine"],
    )
    def test_what_apply_may_not_return(self, apply, message):
        with pytest.raises(TypeError, match=message):
            applied(lambda cls, op, args, transform: apply(args[0]), mg.sin, X)

    def test_several_outputs_are_several(self):
        with pytest.raises(
            TypeError,
            match=r"Mine.apply returned Mine for linalg.qr, which has several outputs: return a "
            r"tuple of 2",
        ):
            applied(lambda cls, op, args, transform: args[0], mg.linalg.qr, np.eye(2))

    def test_several_outputs_are_wrapped_one_by_one(self):
        def apply(cls, op, args, transform):
            return cls.wrap(extend.carry_out(op, transform.unwrap(args)), transform)

        with pytest.raises(
            TypeError,
            match=r"Mine.wrap: expected one array, got \w+. Where op.outputs is not \(\), .* "
            r"wrap each of them",
        ):
            applied(apply, mg.linalg.qr, np.eye(2))

    def test_a_class_without_apply(self):
        with pytest.raises(
            NotImplementedError,
            match=r"Mine must have a classmethod apply\(cls, op, args, transform\)",
        ):
            applied(None, mg.negative, X)

    def test_a_class_that_does_not_say_what_it_has(self):
        with pytest.raises(TypeError, match=r"Loose must declare __slots__"):

            class Loose(extend.Layer):
                pass

        for name in ("array", "shape", "_array", "__private"):
            with pytest.raises(
                TypeError, match=r"Taken.__slots__ names \w*, which layers already have"
            ):
                type("Taken", (extend.Layer,), {"__slots__": ("fine", name)})

        with pytest.raises(
            TypeError, match=r"Wrong.derivative names slope, which __slots__ does not"
        ):

            class Wrong(extend.Layer):
                __slots__ = ("tangent",)
                derivative = ("slope",)

    def test_what_cannot_be_wrapped(self):
        transform = extend.Transform("t")
        with pytest.raises(TypeError, match="Wrap lists and scalars with multigrad.asarray"):
            Logged.wrap([1.0], transform)
        with pytest.raises(TypeError, match=r"expected an extend.Transform, got str"):
            Logged.wrap(X, "t")
        with pytest.raises(TypeError, match="Moving.wrap: __slots__ does not declare slope"):
            Moving.wrap(X, extend.Transform("u"), slope=X)
        Logged.wrap(X, transform)
        with pytest.raises(
            TypeError,
            match="the transformation 't' has layers of class Logged: begin another one for Moving",
        ):
            Moving.wrap(X, transform)
        with pytest.raises(TypeError, match="is made by the transformation that it belongs to"):
            Logged(X)

    def test_an_array_of_a_transformation_that_began_later(self):
        outer = extend.Transform("outer")
        Logged.wrap(X, outer)

        def run(x):
            with pytest.raises(
                GradientError,
                match="an array of the transformation 'grad' cannot become the value of a layer "
                "of 'outer'",
            ):
                Logged.wrap(x, outer)
            return mg.sum(x)

        outer.call(func.grad(run), X)

    def test_arguments_of_an_operation(self):
        add = mg.registry.OPS["add"]
        with pytest.raises(
            TypeError,
            match=r"add: expected the values of all 2 parameters of add\(x1, x2, /\), got 1",
        ):
            extend.carry_out(add, (X,))
        with pytest.raises(
            TypeError, match="add: none of the arguments is an array of a known library"
        ):
            extend.carry_out(add, (1.0, 2.0))
        strict = pytest.importorskip("array_api_strict")
        with pytest.raises(MixedBackendsError):
            extend.carry_out(add, (X, strict.asarray([1.0, 2.0, 3.0])))


class TestCarryOut:
    def test_raw_arrays_give_raw_arrays(self):
        ops = mg.registry.OPS
        assert type(extend.carry_out(ops["add"], (X, 1.0))) is np.ndarray
        assert type(extend.carry_out(ops["add"], (mg.asarray(X), W))) is np.ndarray
        assert extend.carry_out(ops["astype"], (X, "float32", True, None)).dtype == np.float32
        assert type(extend.carry_out(ops["concat"], ([X, mg.asarray(W)], 0))) is np.ndarray
        x = mg.asarray(X, requires_grad=True)
        assert extend.carry_out(ops["multiply"], (x, W)).requires_grad

    def test_constants_made_in_apply_belong_to_no_transformation(self):
        def apply(cls, op, args, transform):
            x = extend.carry_out(op, transform.unwrap(args))
            return cls.wrap(x + mg.ones(x.shape), transform)

        out = applied(apply, mg.sin, X)
        assert type(out) is np.ndarray
        np.testing.assert_allclose(out, np.sin(X) + 1)

    def test_constants_made_by_the_function_are_its_own(self):
        out = logged(lambda x: mg.zeros(3) + mg.arange(3.0) * x, X)
        np.testing.assert_allclose(values(out), np.arange(3.0) * X)
        assert type(logged(lambda x: mg.zeros(3), X)) is np.ndarray

    def test_levels(self):
        first, second = extend.Transform("first"), extend.Transform("second")
        y = Logged.wrap(Logged.wrap(mg.asarray(X), first), second)
        assert 1 < first.level < second.level == extend.level_of(y)
        assert [extend.level_of(x) for x in (X, 1.0, "x", y.array)] == [0, 0, 0, first.level]
        assert extend.innermost(y) is X and extend.innermost(X) is X
        assert [extend.is_array(x) for x in (X, y, 1.0, [1.0])] == [True, True, False, False]


class Noting(extend.Observer):
    """What is told of: the kinds and names of events, in order."""

    def __init__(self, *events):
        self.events = frozenset(events)
        self.seen = []

    def begin(self, call):
        self.seen.append(call.name)
        return len(self.seen)

    def end(self, token, call):
        self.seen.append((self.seen[token - 1], type(call.result).__name__))

    def recorded(self, node, operands, result):
        self.seen.append(node.name())


class TestObservers:
    def test_operations_on_layers_of_ones_own(self):
        with Noting("operation") as noted:
            logged(lambda x: mg.sum(x * W), X)
        assert [name for name in noted.seen if isinstance(name, str)] == ["multiply", "sum"]

    def test_events_that_there_are_not(self):
        with (
            pytest.raises(
                ValueError,
                match="Noting.events names ops, sums; the events are conversion, function, ",
            ),
            Noting("ops", "sums", "node"),
        ):
            raise AssertionError
        for events in ("operation", ("operation",), ["operation"], frozenset()):
            noting = Noting()
            noting.events = events
            with (
                pytest.raises(
                    TypeError,
                    match=r"Noting.events must be a set of names of events, such as "
                    r"frozenset\({'operation'}\), not ",
                ),
                noting,
            ):
                raise AssertionError
        mg.sin(X)


PUBLIC = {"multigrad", "multigrad.extend", "multigrad.errors", "multigrad.func"}


def test_this_file_uses_public_names_alone():
    tree = ast.parse(Path(__file__).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module]
        else:
            assert not (
                isinstance(node, ast.Attribute)
                and node.attr.startswith("_")
                and not node.attr.endswith("__")
            ), node.attr
            continue
        assert all(name in PUBLIC or not name.startswith("multigrad") for name in names), names
