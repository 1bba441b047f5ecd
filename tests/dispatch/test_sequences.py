"""What the standard calls a sequence of arrays is any list or tuple, subclasses included; so is a
key of an index, and a shape.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import multigrad as mg
from multigrad import func, registry
from multigrad.autograd import forward_ad


class Pair(NamedTuple):
    a: Any
    b: Any


class Row(list[Any]):
    """A list of another class."""


class Sizes(tuple[Any, ...]):
    """As torch.Size."""


SEQUENCES: dict[str, Callable[[Any, Any], Any]] = {
    "namedtuple": namedtuple("Point", "x y"),
    "NamedTuple": Pair,
    "list subclass": lambda a, b: Row([a, b]),
    "tuple subclass": lambda a, b: Sizes((a, b)),
}
A, B = np.asarray([[1.0, 2.0, 3.0]]), np.asarray([[4.0, 5.0, 6.0]])


def run(name: str, joined: Callable[[Any], Any], make: Callable[[Any, Any], Any], xp: Any) -> Any:
    """The derivative, or the value, of the sum of squares of the joined arrays, at each layer."""
    a, b = (xp.asarray(v) for v in (A, B))
    loss = lambda x, y: xp.sum(joined(make(x, y)) ** 2)
    raw_a, raw_b = a.array, b.array
    match name:
        case "raw":
            return loss(raw_a, raw_b)
        case "Tensors":
            a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
            loss(a, b).backward()
            return [a.grad, b.grad]
        case "create_graph":
            a = a.clone().requires_grad_()
            (g,) = mg.autograd.grad(loss(a, b), a, create_graph=True)
            (g,) = mg.autograd.grad(mg.sum(g**3), a)
            return g
        case "func.grad":
            return func.grad(loss, argnums=(0, 1))(raw_a, raw_b)
        case "func.jvp":
            return func.jvp(loss, (raw_a, raw_b), (raw_b, raw_a))
        case "func.vmap":
            return func.vmap(loss)(raw_a, raw_b)
        case "forward_ad":
            with forward_ad.dual_level():
                return forward_ad.unpack_dual(loss(forward_ad.make_dual(a, b), b)).tangent
    raise AssertionError(name)


LAYERS = (
    "raw",
    "Tensors",
    "create_graph",
    "func.grad",
    "func.jvp",
    "func.vmap",
    "forward_ad",
)
BACKENDS = ("numpy", "strict", "jax")


def numbers(x: Any) -> list[Any]:
    return (
        [v for y in x for v in numbers(y)]
        if isinstance(x, (tuple, list))
        else [np.asarray(mg.asarray(x, backend="numpy").array)]
    )


def namespace(backend: str) -> Any:
    if backend == "jax":
        pytest.importorskip("jax")
    return mg.namespace(backend)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_as_a_list(backend: str, layer: str) -> None:
    """Of the functions of the namespace, and of multigrad itself."""
    xp = namespace(backend)
    for joined in (
        xp.stack,
        xp.concat,
        lambda s: mg.stack(s, axis=-1),
        lambda s: mg.concat(s, axis=None),
    ):
        expected = numbers(run(layer, joined, lambda a, b: [a, b], xp))
        for make in SEQUENCES.values():
            for found, value in zip(numbers(run(layer, joined, make, xp)), expected, strict=True):
                np.testing.assert_array_equal(found, value)


def test_a_declared_operation() -> None:
    """With a list in another place, and a rule that gets it."""
    xp = mg.namespace("numpy")
    op = mg.registry.linear(
        "sequences.mix(x, /, arrays: arrays)",
        forward=lambda xp, x, arrays: x + arrays[0] - arrays[1],
        x=lambda xp, g: g,
        arrays=lambda xp, g, needs: [g, -g],
    )
    try:
        a, b = (mg.asarray(v, requires_grad=True) for v in (A, B))
        for make in SEQUENCES.values():
            grads = mg.autograd.grad(mg.sum(xp.sequences.mix(1.0 * a, arrays=make(a, b))), (a, b))
            assert [g.tolist() for g in grads] == [[[2, 2, 2]], [[-1, -1, -1]]]
    finally:
        del mg.registry.OPS[op.name]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda a: (x for x in (a, a)),
        lambda a: {0: a, 1: a},
        lambda a: {0: a}.values(),
        lambda a: {a},
    ],
)
@pytest.mark.parametrize("layer", ["raw", "Tensors", "func.grad", "func.jvp", "func.vmap"])
def test_what_is_no_sequence(layer: str, wrong: Callable[[Any], Any]) -> None:
    with pytest.raises(
        TypeError,
        match=r"stack: expected a list or a tuple of arrays, got "
        r"(generator|dict|dict_values|set)\. Pass list\(arrays\)",
    ):
        run(
            layer,
            mg.stack,
            lambda a, b: wrong(mg.asarray(a) if layer == "raw" else a),
            mg.namespace("numpy"),
        )


def test_the_rows_of_an_array() -> None:
    """An array is the sequence of its rows, as in NumPy."""
    x = mg.asarray(np.arange(6.0).reshape(2, 3), requires_grad=True)
    (g,) = mg.autograd.grad(mg.sum(mg.concat(x) ** 2), x)
    assert g.tolist() == [[0, 2, 4], [6, 8, 10]]
    found = func.grad(lambda x: mg.sum(mg.concat(x) ** 2))(np.arange(6.0).reshape(2, 3))
    assert found.tolist() == [[0, 2, 4], [6, 8, 10]]
    assert mg.stack(np.arange(6.0).reshape(2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]


X = np.arange(12.0).reshape(3, 4)
KEYS: dict[str, Callable[[Callable[..., Any]], tuple[Any, Any]]] = {
    "integers": lambda make: (make(1, 2), (1, 2)),
    "slices": lambda make: (make(slice(1), slice(None, None, 2)), (slice(1), slice(None, None, 2))),
    "slice and list": lambda make: (make(slice(None), [0, 2]), (slice(None), [0, 2])),
    "array and integer": lambda make: (make(np.asarray([0, 2]), 1), ([0, 2], 1)),
}
TUPLES = {name: make for name, make in SEQUENCES.items() if name != "list subclass"}


def keyed(backend: str, key: str, kind: str) -> tuple[Any, Any, Any]:
    """A namespace, a key of that kind with its arrays, and the key as a tuple of Python."""
    xp = namespace(backend)
    if backend == "strict" and key == "slice and list":
        pytest.skip("array_api_strict takes arrays in keys with integers only")
    given, plain = KEYS[key](TUPLES[kind])
    given = TUPLES[kind](*(xp.asarray(k) if isinstance(k, np.ndarray) else k for k in given))
    return xp, given, plain


class TestKeys:
    """A namedtuple as a key is the tuple of its elements."""

    @pytest.mark.parametrize("key", KEYS)
    @pytest.mark.parametrize("backend", BACKENDS, indirect=True)
    @pytest.mark.parametrize("kind", TUPLES)
    def test_reading(self, kind: str, key: str, backend: str) -> None:
        xp, given, plain = keyed(backend, key, kind)
        x = xp.asarray(X)
        expected = np.zeros((3, 4))
        expected[plain] = 1
        for read in (lambda x: x[given], lambda x: xp.getitem(x, given)):
            np.testing.assert_array_equal(numbers(read(x))[0], X[plain])
            np.testing.assert_array_equal(
                numbers(func.grad(lambda x, read=read: xp.sum(read(x)))(x.array))[0], expected
            )
            np.testing.assert_array_equal(
                numbers(func.jvp(read, (x.array,), (x.array,)))[1], X[plain]
            )
            np.testing.assert_array_equal(
                numbers(func.vmap(read)(xp.stack([x, x]).array))[0], np.stack([X[plain]] * 2)
            )

    @pytest.mark.parametrize("key", KEYS)
    @pytest.mark.parametrize("backend", BACKENDS, indirect=True)
    @pytest.mark.parametrize("kind", TUPLES)
    def test_writing(self, kind: str, key: str, backend: str) -> None:
        xp, given, plain = keyed(backend, key, kind)

        def written(x: Any) -> Any:
            y = x * 2.0
            y[given] = 5.0
            return y

        def added(x: Any) -> Any:
            y = x * 2.0
            y[given] += x[given]
            return y

        for f, at, elsewhere in ((written, 0.0, 2.0), (added, 3.0, 2.0)):
            expected = np.full((3, 4), elsewhere)
            expected[plain] = at
            np.testing.assert_array_equal(
                numbers(func.grad(lambda x, f=f: xp.sum(f(x)))(xp.asarray(X).array))[0], expected
            )
            t = xp.asarray(X, copy=True).requires_grad_()
            np.testing.assert_array_equal(numbers(mg.autograd.grad(xp.sum(f(t)), t))[0], expected)
            value = 2 * X
            value[plain] = value[plain] + X[plain] if f is added else 5
            np.testing.assert_array_equal(numbers(f(t.detach()))[0], value)

    def test_the_functions_of_arrays(self) -> None:
        numpy = mg.namespace("numpy")
        key = Pair(1, slice(None))
        assert numpy.setitem(X, key, 0.0)[1, :].tolist() == [0, 0, 0, 0]
        assert numpy._library.xp.getitem(X, Pair(1, 2)).shape == ()


class TestShapesAndAxes:
    @pytest.mark.parametrize(
        "view",
        [
            lambda x, s: mg.reshape(x, s[0]),
            lambda x, s: mg.permute_dims(x, s[1]),
            lambda x, s: mg.expand_dims(mg.reshape(x, s[0]), axis=0),
            lambda x, s: mg.broadcast_to(x, s[2]),
            lambda x, s: mg.flip(x, axis=s[3]),
        ],
    )
    @pytest.mark.parametrize("kind", [Row, Sizes, list])
    def test_a_view_does_not_follow_what_its_owner_does_to_the_list(
        self, kind: Any, view: Any
    ) -> None:
        """The arguments are looked at again when the view is brought up to date, and in the
        backward pass.
        """
        given = [kind(s) for s in ((4, 3), (1, 0), (2, 3, 4), (0,))]
        x = mg.asarray(X, copy=True).requires_grad_()
        y = x * 1.0
        v = view(y, given)
        expected = v.shape
        for s in given:
            if isinstance(s, list):
                s[:] = [1] * len(s)
        y += 1.0
        np.testing.assert_array_equal(
            v.detach().array, view(mg.asarray(X + 1), [(4, 3), (1, 0), (2, 3, 4), (0,)]).array
        )
        assert v.shape == expected
        weights = mg.reshape(mg.arange(float(v.size)), v.shape)
        (g,) = mg.autograd.grad(mg.sum(v * weights), x)
        (h,) = mg.autograd.grad(
            mg.sum(
                view(t := mg.asarray(X, requires_grad=True), [(4, 3), (1, 0), (2, 3, 4), (0,)])
                * weights
            ),
            t,
        )
        assert g.tolist() == h.tolist()

    @pytest.mark.parametrize("kind", [Row, list])
    @pytest.mark.parametrize(
        "transformed",
        [lambda f: func.jvp(f, (X,), (X,))[0], lambda f: func.vmap(f)(np.stack([X, X]))[0]],
    )
    def test_nor_does_a_view_inside_a_transformation(self, transformed: Any, kind: Any) -> None:
        def f(x: Any) -> Any:
            axes = kind([1, 0])
            y = x * 1.0
            v = mg.permute_dims(y, axes)
            axes[:] = [0, 1]
            y += 1.0
            return v * 1.0

        for _ in range(6):  # the endings are written meanwhile
            np.testing.assert_array_equal(np.asarray(transformed(f)), X.T + 1)


class Named(dict[str, Any]):
    """A dictionary of another class."""


class Fixed(tuple[Any, ...]):
    """A tuple that cannot be made of its elements."""

    def __new__(cls) -> Fixed:
        return super().__new__(cls, (1, "a"))


KEPT: dict[str, Callable[[Any, Any], Any]] = {
    "tuple": lambda a, b: (a, b),
    "list": lambda a, b: [a, b],
    **SEQUENCES,
    "dictionary": lambda a, b: {0: a, 1: b},
    "dictionary subclass": lambda a, b: Named({0: a, 1: b}),
    "nested": lambda a, b: Pair(Row([a]), Named(b=b)),
}
TRANSFORMED: dict[str, Callable[[Any], Any]] = {
    "jvp": lambda f: lambda a, b: func.jvp(f, (a, b), (b, a)),
    "jvp of grad": lambda f: lambda a, b: func.jvp(func.grad(f), (a, b), (b, a)),
    "vmap of grad": lambda f: (
        lambda a, b: func.vmap(func.grad(f))(np.stack([a, b]), np.stack([b, a]))
    ),
}


@pytest.mark.parametrize("kind", SEQUENCES)
def test_what_the_observers_see(kind: str) -> None:
    """The shapes of the elements in the profiler; and where a gradient is lost, of which
    argument.
    """
    a, b = (mg.asarray(v, requires_grad=True) for v in (A, B))
    seen = []
    for given in ([a, b], SEQUENCES[kind](a, b)):
        with mg.autograd.profiler.profile(record_shapes=True) as p:
            mg.stack(given)
        seen += [(e.name, e.input_shapes, e.structured_input_shapes) for e in p.function_events]
    assert seen[0] == seen[1]


class TestFunctions:
    @pytest.mark.parametrize("transformed", TRANSFORMED)
    @pytest.mark.parametrize("kept", KEPT)
    def test_what_a_function_keeps_in_a_container(self, kept: str, transformed: str) -> None:
        """On its ctx, with the derivative at every level."""

        class Product(mg.autograd.Function):
            generate_vmap_rule = True

            @staticmethod
            def forward(a: Any, b: Any) -> Any:
                return a * b

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                ctx.kept, ctx.fixed = KEPT[kept](*inputs), Fixed()

            @staticmethod
            def both(ctx: Any) -> Any:
                assert isinstance(ctx.kept, type(KEPT[kept](0, 0))) and type(ctx.fixed) is Fixed
                if kept == "nested":
                    return ctx.kept.a[0], ctx.kept.b["b"]
                return ctx.kept[0], ctx.kept[1]

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                a, b = Product.both(ctx)
                return g * b, g * a

            @staticmethod
            def jvp(ctx: Any, da: Any, db: Any) -> Any:
                a, b = Product.both(ctx)
                return da * b + db * a

        a, b = np.asarray([1.0, 2.0]), np.asarray([3.0, 4.0])
        transform = TRANSFORMED[transformed]
        ours, plain = (
            transform(f)(a, b)
            for f in (
                lambda a, b: mg.sum(Product.apply(a, b) ** 2),
                lambda a, b: mg.sum((a * b) ** 2),
            )
        )
        for found, expected in zip(numbers(ours), numbers(plain), strict=True):
            np.testing.assert_allclose(found, expected)


class TestLongLists:
    """Pullbacks of long lists are the same code for all lengths and all patterns of gradients."""

    @pytest.mark.parametrize("n", [15, 16, 17, 40])
    @pytest.mark.parametrize("join", ["stack", "concat", "broadcast_arrays", "einsum"])
    def test_derivatives(self, backend: str, join: str, n: int) -> None:
        if join == "einsum" and (n > 17 or backend == "strict"):
            pytest.skip("einsum is beyond the standard, and a product of many operands overflows")
        xp = namespace(backend)
        given = [xp.asarray([1.0 + 0.01 * i, 2.0], dtype=xp.float64) for i in range(n)]
        wanted = [i for i in range(n) if i % 3]

        def f(*some: Any) -> Any:
            arrays = list(given)
            for i, x in zip(wanted, some, strict=True):
                arrays[i] = x
            if join == "broadcast_arrays":
                arrays[0] = xp.ones((3, 2), dtype=xp.float64)
                out = sum((x * (i + 1.0) for i, x in enumerate(xp.broadcast_arrays(*arrays))), 0.0)
            elif join == "einsum":
                out = xp.einsum(",".join(["i"] * n) + "->i", *arrays)
            else:
                out = getattr(xp, join)(arrays) ** 2
            return xp.sum(out**2)

        inputs = [given[i] for i in wanted]
        numbers_ = tuple(range(len(wanted)))
        gradients = func.grad(f, argnums=numbers_)(*inputs)
        tangents = [x * 0.0 + 1.0 for x in inputs]
        _, along = func.jvp(f, tuple(inputs), tuple(tangents))
        total = sum(float(xp.sum(g)) for g in gradients)
        np.testing.assert_allclose(total, float(along), rtol=1e-12)
        leaves = [mg.asarray(np.asarray(x)).to_backend(backend).requires_grad_() for x in inputs]
        again = mg.autograd.grad(f(*leaves), leaves, create_graph=True)
        second = mg.autograd.grad(sum(xp.sum(g) for g in again), leaves[0])[0]
        assert second.shape == leaves[0].shape
        for a, b in zip(again, gradients, strict=True):
            np.testing.assert_allclose(np.asarray(a.detach()), np.asarray(b), rtol=1e-12)

    def test_a_narrow_array_and_a_broadcast_one(self) -> None:
        arrays = [mg.asarray(np.ones(2), requires_grad=True) for _ in range(20)]
        narrow = mg.asarray(np.ones(2, np.float32), requires_grad=True)
        mg.sum(mg.concat([*arrays, narrow]) ** 2).backward()
        assert narrow.grad.dtype == np.float32 and np.all(narrow.grad.numpy() == 2.0)
        wide = mg.asarray(np.ones((1, 2)), requires_grad=True)
        outs = mg.broadcast_arrays(*arrays, wide, np.ones((3, 2)))
        mg.sum(outs[-2] * 2.0).backward()
        assert wide.grad.shape == (1, 2) and np.all(wide.grad.numpy() == 6.0)

    def test_what_is_kept_for_each_length(self) -> None:
        leaves = [mg.asarray(np.ones(2), requires_grad=True) for _ in range(400)]

        def lengths(*some: int) -> None:
            for n in some:
                mg.autograd.grad(mg.sum(mg.stack(leaves[:n])), leaves[:n])

        lengths(*range(1, 60), 400)
        tracemalloc.start()
        lengths(*range(200, 400, 4))
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        # a few tuples of that length; code for each array took 600 bytes
        assert size < 50 * 300 * 80

    def test_what_is_kept_for_patterns_of_gradients(self) -> None:
        """Which operands require grad differs from call to call; nothing is kept of the results."""
        random = np.random.default_rng(0)
        given = mg.asarray(np.ones(2), requires_grad=True), mg.asarray(np.ones(2))

        def patterns(some: int) -> None:
            for _ in range(some):
                mg.stack([given[i] for i in random.integers(0, 2, 16)])

        registry.forget_remembered()  # what an earlier run of this test has left
        patterns(20)
        tracemalloc.start()
        patterns(2500)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert size < 16 * 2**20
