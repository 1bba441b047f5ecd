"""Checks of the kernels that a backend overrides, each compared with its default.

The defaults use only functions of the standard.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from multigrad.extend import KERNELS

from .compare import assert_close
from .target import Target

X = np.asarray([[0.5, -1.0, 2.0], [1.5, 0.0, -2.5]])


VALUES = (X, X.T, X[:, ::-2], X[0, 0], X[:0], X > 0, X.astype(np.int8), X * 1j)


def take_ownership(target: Target) -> None:
    """The result has equal values, in memory that no other array can write to."""
    for like in (target.raw(X), target.xp.permute_dims(target.raw(X.T), (1, 0)), None):
        g = target.xp.broadcast_to(target.raw(X[:1]), (2, 3))
        held = g
        result = target.kernel("take_ownership")(target.xp, g, like)
        assert_close(
            target.numpy(result),
            target.numpy(KERNELS["take_ownership"](target.xp, held, like)),
            "take_ownership",
        )
        assert result.dtype == g.dtype
        if target.capabilities.mutable:
            result[...] = 7.0
            assert_close(
                target.numpy(held),
                np.broadcast_to(X[:1], (2, 3)),
                "what was given is shared with what came back",
            )


class _Holder:
    """An object that holds an array, as a Tensor does."""

    def __init__(self, array: Any) -> None:
        self.array = array


def unshared(target: Target) -> None:
    """It never says so of memory that something else uses, be it through a view."""
    xp, kernel = target.xp, target.kernel("unshared")
    root = _Holder(xp.asarray(target.raw(X), copy=True))
    row = _Holder(root.array[1, ...])
    assert isinstance(kernel(xp, [row.array, root.array]), bool)
    uses: tuple[Callable[[Any], Any], ...] = (
        lambda x: x,
        lambda x: x[0, ...],
        lambda x: xp.permute_dims(x, (1, 0)),
        lambda x: xp.reshape(x, (-1,)),
    )
    for number, use in enumerate(uses):
        held = use(root.array)
        for known in ([root.array], [row.array, root.array]):
            said = kernel(xp, known)
            known.clear()
            assert not said, f"unshared: use {number} of the memory was not seen"
        del held
    held = row.array
    assert not kernel(xp, [row.array, root.array]), "unshared: another use of a view was not seen"
    del held


def place_like(target: Target) -> None:
    g = target.raw(X)
    result = target.kernel("place_like")(target.xp, g, target.raw(X))
    assert_close(target.numpy(result), X, "place_like")
    assert target.kernel("device")(target.xp, result) == target.kernel("device")(target.xp, g)


def constant(target: Target) -> None:
    for value in (0.0, -0.0, 2, True, 1, 1.0, -1.5, float("inf")):
        for name in ("float32", "float64" if target.has_double else "float32"):
            dtype = getattr(target.xp, name)
            result = target.kernel("constant")(target.xp, value, dtype, target.own_device())
            expected = KERNELS["constant"](target.xp, value, dtype, target.own_device())
            assert result.dtype == expected.dtype == dtype and tuple(result.shape) == ()
            assert np.array_equal(
                np.signbit(target.numpy(result)), np.signbit(target.numpy(expected))
            )
            assert_close(target.numpy(result), target.numpy(expected), f"constant {value!r}")


def device(target: Target) -> None:
    """A constant made on the reported device can be combined with the array."""
    x = target.raw(X)
    reported = target.kernel("device")(target.xp, x)
    ones = target.xp.ones((3,), dtype=x.dtype, device=reported)
    assert_close(target.numpy(x + ones), X + 1, "an array made on the device that was told")


def devices(target: Target) -> None:
    reported = target.kernel("devices")(target.backend.namespace)
    assert isinstance(reported, tuple) and reported, f"devices gave {reported!r}"


def exportable(target: Target) -> None:
    """An array whose memory runs backwards must not be reported as exportable."""
    forwards = target.raw(X)
    backwards = (
        ()
        if "negative_steps" in target.backend.lacks()
        else tuple(target.xp.getitem(forwards, key) for key in BACKWARDS)
    )
    for x in (forwards, *backwards):
        if target.kernel("exportable")(target.xp, x):
            try:
                strides = np.from_dlpack(x).strides
            except (BufferError, RuntimeError, TypeError, AttributeError):
                # NumPy cannot inspect this memory
                continue
            assert min(strides) > 0, f"strides {strides}, yet exportable"


def to_numpy(target: Target) -> None:
    """The results are NumPy arrays of the same dtype, equal to those of the default."""
    for value in _values(target):
        x = target.raw(value)
        for kernel in (target.kernel("to_numpy"), KERNELS["to_numpy"]):
            result = kernel(target.xp, x)
            assert type(result) is np.ndarray, (
                f"to_numpy gave {type(result).__name__}, no array of NumPy"
            )
            got, expected = (result.shape, result.dtype), (value.shape, value.dtype)
            assert got == expected, f"to_numpy gave {got} for {expected}"
            assert_close(result, value, "to_numpy")


def from_numpy(target: Target) -> None:
    """The results are arrays of the library with the named dtype, equal to those of the default."""
    for value in _values(target):
        for kernel in (target.kernel("from_numpy"), KERNELS["from_numpy"]):
            result = kernel(target.xp, value.copy())
            assert target.is_raw(result), (
                f"from_numpy gave {type(result).__name__}, no array of the library"
            )
            got = tuple(result.shape), target.dtype_name(result.dtype)
            expected = value.shape, value.dtype.name
            assert got == expected, f"from_numpy gave {got} for {expected}"
            assert_close(target.numpy(result), value, "from_numpy")


def _values(target: Target) -> list[Any]:
    return [
        target.cast(np.asarray(v))
        for v in VALUES
        if v.dtype.kind != "c" or "complex" not in target.backend.lacks()
    ]


def write(target: Target) -> None:
    """The result has the new values; if arrays are mutable, it is the same array."""
    x = target.raw(X)
    result = target.kernel("write")(target.xp, x, target.raw(2 * X))
    assert_close(target.numpy(result), 2 * X, "write")
    assert result.dtype == x.dtype
    if target.capabilities.mutable:
        assert_close(target.numpy(x), 2 * X, "the array itself was not written to")


def storage(target: Target) -> None:
    """Arrays on one memory must have one holder, with the bytes of that memory.

    If only the shape is known, the bytes are those of the default.
    """
    x = target.raw(X)
    find = target.kernel("storage")
    holder, nbytes = find(target.xp, x)
    assert nbytes >= KERNELS["storage"](target.xp, x)[1] == X.size * (8 if target.has_double else 4)
    assert find(target.xp, x)[0] is holder, "the holder of one memory is not one object"
    weakref.ref(holder)


def mark(target: Target) -> None:
    """The elapsed time must be positive, or None if the library cannot measure it."""
    kernel, x = target.kernel, target.raw(X)
    moments = [kernel("mark")(target.xp, x) for _ in range(2)]
    if None not in moments:
        assert kernel("elapsed")(target.xp, *moments) >= 0


def annotation(target: Target) -> None:
    context = target.kernel("annotation")(target.xp, "conformance")
    if context is not None:
        with context:
            target.raw(X) + 1


def concrete_bool(target: Target) -> None:
    for value in (True, False):
        truth = target.kernel("concrete_bool")(target.xp, target.raw(np.asarray(value)))
        if truth is None:
            raise LookupError(
                "the kernel `concrete_bool` does not know. If the arrays are lazy, declare it: "
                "Backend(capabilities=Capabilities(lazy=True))"
            )
        assert truth is value, f"the truth of {value} is {truth}"


def synchronize(target: Target) -> None:
    target.kernel("synchronize")(target.xp, target.raw(X))


def function(target: Target) -> None:
    """The returned function must pass its arguments to the operation's, and return its result."""
    given = target.raw(X), target.raw(2 * X)
    seen: list[Any] = []

    def add(x1: Any, x2: Any, /) -> Any:
        seen.append((x1, x2))
        return x1 + x2

    result = target.kernel("function")(target.xp, "add", add)(*given)
    assert all(a is b for a, b in zip(seen[-1], given, strict=True)), (
        "the function of add was called with other arguments"
    )
    assert_close(target.numpy(result), 3 * X, "what the function of an operation computes")


def rule(target: Target) -> None:
    """The returned rule must pass its arguments to the original, and return its result.

    The result is one gradient or several.
    """
    given = target.raw(X), target.raw(2 * X), (2, 3)
    seen: list[Any] = []

    def vjp(xp: Any, g: Any, *saved: Any) -> Any:
        seen.append((xp, g, *saved))
        return g * saved[0] if len(saved) > 1 else (g, None)

    for name, saved in (("multiply", given[1:]), ("linalg.eigh", given[1:2])):
        made = target.kernel("rule")(target.xp, name, vjp)
        for _ in range(2):  # the first call may specialize the rule
            result = made(target.xp, given[0], *saved)
            assert len(seen[-1]) == 2 + len(saved) and all(
                a is b for a, b in zip(seen[-1], (target.xp, given[0], *saved), strict=True)
            ), f"the rule of {name} was given something else than it was called with"
            if name == "multiply":
                assert_close(target.numpy(result), 2 * X * X, "the gradient of a rule")
            else:
                assert isinstance(result, tuple) and result[0] is given[0] and result[1] is None, (
                    f"of (gradient, None), {result!r} came back"
                )


def admit(target: Target) -> None:
    """The kernel must admit the library's ordinary arrays."""
    for value in _values(target):
        target.kernel("admit")(target.xp, target.raw(value))


def eagerly(target: Target) -> None:
    x = target.raw(X)
    result = target.kernel("eagerly")(target.xp, x, lambda: x + x)
    assert target.is_raw(result), f"eagerly gave {type(result).__name__}, no array of the library"
    assert_close(target.numpy(result), 2 * X, "eagerly")


def fresh(target: Target) -> None:
    x = target.raw(X)
    result = target.kernel("fresh")(target.xp, x)
    assert target.is_raw(result) and result.dtype == x.dtype, f"fresh gave {type(result).__name__}"
    assert_close(target.numpy(result), X, "fresh")


def assign(target: Target) -> None:
    """An assignment must write where the key says, into the memory of the array."""
    if not target.capabilities.mutable:
        return
    for key in ((0, ...), (slice(None), 1), (slice(1, 2), slice(None, None, 2)), ...):
        x, expected = target.raw(X), target.cast(X).copy()
        value = target.cast(np.asarray(7.0 + 0 * expected[key]))
        expected[key] = value
        target.kernel("assign")(target.xp, x, key, target.raw(value))
        assert_close(target.numpy(x), expected, f"after x[{key}] was assigned to")


def order(target: Target) -> None:
    """The reported memory order must be correct, where NumPy can inspect it."""
    for x, strides in _with_strides(target):
        reported = target.kernel("order")(target.xp, x)
        assert reported in ("C", "F", None), f"order gave {reported!r}"
        assert reported is None or (strides[-1] <= strides[-2]) == (reported == "C"), (
            f"strides {strides}, yet order {reported!r}"
        )


def is_c_contiguous(target: Target) -> None:
    for x, strides in _with_strides(target):
        size = target.numpy(x).itemsize
        assert not target.kernel("is_c_contiguous")(target.xp, x) or strides == (
            size * x.shape[1],
            size,
        ), f"strides {strides}, yet C-contiguous"


def shares_memory(target: Target) -> None:
    """Only arrays in the memory of another array may be reported as sharing it."""
    x, kernel = target.raw(X), target.kernel("shares_memory")
    for new in (x + 1, target.raw(X)):
        assert not kernel(target.xp, new, x), "shared with a new array"


def _with_strides(target: Target) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Yield arrays by rows, by columns and with gaps, with their strides where visible."""
    x = target.raw(X)
    for y in (
        x,
        target.xp.permute_dims(x, (1, 0)),
        target.xp.getitem(x, (slice(None), slice(None, None, 2))),
    ):
        try:
            yield y, np.from_dlpack(y).strides
        except (BufferError, RuntimeError, TypeError, AttributeError):
            continue


def accelerator(target: Target) -> None:
    reported = target.kernel("accelerator")(target.xp, target.raw(X))
    assert reported is None or isinstance(reported, str), f"accelerator gave {reported!r}"


BACKWARDS = (slice(None, None, -1), ...), (..., slice(None, None, -1))

CHECKS: dict[str, Callable[[Target], None]] = {
    name: globals()[name] for name in KERNELS if name in globals()
}
"""The check of each kernel: the function above that has its name.

The defaults, too, must work on a library.
"""


def needs(kernel: str) -> frozenset[str]:
    """Return the capability that the check of a kernel needs."""
    return frozenset({"truth"} if kernel == "concrete_bool" else ())
