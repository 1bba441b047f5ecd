"""The engine's kernels that a backend overrides, each against the default that uses only the
standard.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from multigrad import Backend
from multigrad.extend import KERNELS

from .compare import assert_close
from .target import Target

X = np.asarray([[0.5, -1.0, 2.0], [1.5, 0.0, -2.5]])


VALUES = (X, X.T, X[:, ::-2], X[0, 0], X[:0], X > 0, X.astype(np.int8), X * 1j)


def take_ownership(target: Target) -> None:
    """Equal values, in memory that nobody else can write to."""
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


def place_like(target: Target) -> None:
    g = target.raw(X)
    result = target.kernel("place_like")(target.xp, g, target.raw(X))
    assert_close(target.numpy(result), X, "place_like")
    assert target.kernel("device")(target.xp, result) == target.kernel("device")(target.xp, g)


def constant(target: Target) -> None:
    for value in (0.0, -0.0, 2, True, 1, 1.0, -1.5, float("inf")):
        for name in ("float32", "float64" if target.has_double else "float32"):
            dtype = getattr(target.xp, name)
            found = target.kernel("constant")(target.xp, value, dtype, target.own_device())
            expected = KERNELS["constant"](target.xp, value, dtype, target.own_device())
            assert found.dtype == expected.dtype == dtype and tuple(found.shape) == ()
            assert np.array_equal(
                np.signbit(target.numpy(found)), np.signbit(target.numpy(expected))
            )
            assert_close(target.numpy(found), target.numpy(expected), f"constant {value!r}")


def device(target: Target) -> None:
    """It is what makes a constant meet the array."""
    x = target.raw(X)
    found = target.kernel("device")(target.xp, x)
    ones = target.xp.ones((3,), dtype=x.dtype, device=found)
    assert_close(target.numpy(x + ones), X + 1, "an array made on the device that was told")


def devices(target: Target) -> None:
    found = target.kernel("devices")(target.backend.namespace)
    assert isinstance(found, tuple) and found, f"devices gave {found!r}"


def exportable(target: Target) -> None:
    """Memory that runs backwards is not said to be for everybody."""
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
                # memory that NumPy cannot look at
                continue
            assert min(strides) > 0, f"strides {strides}, yet exportable"


def to_numpy(target: Target) -> None:
    """Arrays of NumPy itself, of the same dtype, as the default makes them."""
    for value in _values(target):
        x = target.raw(value)
        for found in (target.kernel("to_numpy")(target.xp, x), KERNELS["to_numpy"](target.xp, x)):
            assert type(found) is np.ndarray, (
                f"to_numpy gave {type(found).__name__}, no array of NumPy"
            )
            got, expected = (found.shape, found.dtype), (value.shape, value.dtype)
            assert got == expected, f"to_numpy gave {got} for {expected}"
            assert_close(found, value, "to_numpy")


def from_numpy(target: Target) -> None:
    """Arrays of the library, of the dtype of that name, as the default makes them."""
    for value in _values(target):
        for found in (
            target.kernel("from_numpy")(target.xp, value.copy()),
            KERNELS["from_numpy"](target.xp, value.copy()),
        ):
            assert target.is_raw(found), (
                f"from_numpy gave {type(found).__name__}, no array of the library"
            )
            got, expected = (
                (tuple(found.shape), target.dtype_name(found.dtype)),
                (value.shape, value.dtype.name),
            )
            assert got == expected, f"from_numpy gave {got} for {expected}"
            assert_close(target.numpy(found), value, "from_numpy")


def _values(target: Target) -> list[Any]:
    return [
        target.cast(np.asarray(v))
        for v in VALUES
        if v.dtype.kind != "c" or "complex" not in target.backend.lacks()
    ]


def write(target: Target) -> None:
    """What comes back has the new values; where arrays are mutable, it is the same array."""
    x = target.raw(X)
    result = target.kernel("write")(target.xp, x, target.raw(2 * X))
    assert_close(target.numpy(result), 2 * X, "write")
    assert result.dtype == x.dtype
    if target.capabilities.mutable:
        assert_close(target.numpy(x), 2 * X, "the array itself was not written to")


def storage(target: Target) -> None:
    """All on one memory have one holder, with the bytes of it; where a shape is all there is to
    tell, as many as the default says.
    """
    x = target.raw(X)
    find = target.kernel("storage")
    holder, nbytes = find(target.xp, x)
    assert nbytes >= KERNELS["storage"](target.xp, x)[1] == X.size * (8 if target.has_double else 4)
    assert find(target.xp, x)[0] is holder, "the holder of one memory is not one object"
    weakref.ref(holder)


def mark(target: Target) -> None:
    """Time goes on; None where there is no telling."""
    kernel, x = target.kernel, target.raw(X)
    moments = [kernel("mark")(target.xp, x) for _ in range(2)]
    if None not in moments:
        assert kernel("elapsed")(target.xp, *moments) >= 0


def annotation(target: Target) -> None:
    found = target.kernel("annotation")(target.xp, "conformance")
    if found is not None:
        with found:
            target.raw(X) + 1


def concrete_bool(target: Target) -> None:
    for value in (True, False):
        found = target.kernel("concrete_bool")(target.xp, target.raw(np.asarray(value)))
        if found is None:
            raise LookupError(
                "the kernel `concrete_bool` does not know. If arrays are plans of what is to be "
                "computed, say so: Backend(capabilities=Capabilities(lazy=True))"
            )
        assert found is value, f"the truth of {value} is {found}"


def synchronize(target: Target) -> None:
    target.kernel("synchronize")(target.xp, target.raw(X))


def function(target: Target) -> None:
    """The function that comes back gives the operation's what it is given, and returns what that
    does.
    """
    given = target.raw(X), target.raw(2 * X)
    seen: list[Any] = []

    def add(x1: Any, x2: Any, /) -> Any:
        seen.append((x1, x2))
        return x1 + x2

    found = target.kernel("function")(target.xp, "add", add)(*given)
    assert all(a is b for a, b in zip(seen[-1], given, strict=True)), (
        "the function of add was given something else than it was called with"
    )
    assert_close(target.numpy(found), 3 * X, "what the function of an operation computes")


def rule(target: Target) -> None:
    """The rule that comes back gives the rule itself what it is given, and returns what that does,
    one gradient or several.
    """
    given = target.raw(X), target.raw(2 * X), (2, 3)
    seen: list[Any] = []

    def vjp(xp: Any, g: Any, *saved: Any) -> Any:
        seen.append((xp, g, *saved))
        return g * saved[0] if len(saved) > 1 else (g, None)

    for name, saved in (("multiply", given[1:]), ("linalg.eigh", given[1:2])):
        made = target.kernel("rule")(target.xp, name, vjp)
        for _ in range(2):  # it may find out more when it first runs
            found = made(target.xp, given[0], *saved)
            assert len(seen[-1]) == 2 + len(saved) and all(
                a is b for a, b in zip(seen[-1], (target.xp, given[0], *saved), strict=True)
            ), f"the rule of {name} was given something else than it was called with"
            if name == "multiply":
                assert_close(target.numpy(found), 2 * X * X, "the gradient of a rule")
            else:
                assert isinstance(found, tuple) and found[0] is given[0] and found[1] is None, (
                    f"of (gradient, None), {found!r} came back"
                )


def admit(target: Target) -> None:
    """The library's ordinary arrays are admitted."""
    for value in _values(target):
        target.kernel("admit")(target.xp, target.raw(value))


def eagerly(target: Target) -> None:
    x = target.raw(X)
    found = target.kernel("eagerly")(target.xp, x, lambda: x + x)
    assert target.is_raw(found), f"at_once gave {type(found).__name__}, no array of the library"
    assert_close(target.numpy(found), 2 * X, "eagerly")


def fresh(target: Target) -> None:
    x = target.raw(X)
    found = target.kernel("fresh")(target.xp, x)
    assert target.is_raw(found) and found.dtype == x.dtype, f"afresh gave {type(found).__name__}"
    assert_close(target.numpy(found), X, "fresh")


def assign(target: Target) -> None:
    """Written where the key says, into the memory of the array."""
    if not target.capabilities.mutable:
        return
    for key in ((0, ...), (slice(None), 1), (slice(1, 2), slice(None, None, 2)), ...):
        x, expected = target.raw(X), target.cast(X).copy()
        value = target.cast(np.asarray(7.0 + 0 * expected[key]))
        expected[key] = value
        target.kernel("assign")(target.xp, x, key, target.raw(value))
        assert_close(target.numpy(x), expected, f"after x[{key}] was assigned to")


def order(target: Target) -> None:
    """What is told of the memory is so, where NumPy can look at it."""
    for x, strides in _with_strides(target):
        found = target.kernel("order")(target.xp, x)
        assert found in ("C", "F", None), f"order gave {found!r}"
        assert found is None or (strides[-1] <= strides[-2]) == (found == "C"), (
            f"strides {strides}, yet order {found!r}"
        )


def is_c_contiguous(target: Target) -> None:
    for x, strides in _with_strides(target):
        size = target.numpy(x).itemsize
        assert not target.kernel("is_c_contiguous")(target.xp, x) or strides == (
            size * x.shape[1],
            size,
        ), f"strides {strides}, yet dense"


def shares_memory(target: Target) -> None:
    """Only what lies in the memory of another is said to."""
    x = target.raw(X)
    assert not target.kernel("shares_memory")(target.xp, x + 1, x) and not target.kernel(
        "shares_memory"
    )(target.xp, target.raw(X), x), "shared with a new array"


def _with_strides(target: Target) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Arrays by rows and by columns, and with gaps, with the strides that they have, where these
    can be seen.
    """
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
    found = target.kernel("accelerator")(target.xp, target.raw(X))
    assert found is None or isinstance(found, str), f"accelerator gave {found!r}"


BACKWARDS = (slice(None, None, -1), ...), (..., slice(None, None, -1))

CHECKS: dict[str, Callable[[Target], None]] = {
    f.__name__: f
    for f in (
        take_ownership,
        place_like,
        constant,
        device,
        devices,
        exportable,
        from_numpy,
        function,
        to_numpy,
        concrete_bool,
        write,
        synchronize,
        storage,
        mark,
        annotation,
        rule,
        admit,
        eagerly,
        fresh,
        assign,
        order,
        is_c_contiguous,
        shares_memory,
        accelerator,
    )
}


def needs(kernel: str) -> frozenset[str]:
    """The capability that the check of a kernel is about."""
    return frozenset({"concrete_bool"} if kernel == "concrete_bool" else ())


def checks_of(backend: Backend) -> Iterator[tuple[str, Any]]:
    """The check of each kernel: defaults, too, have to work on this library."""
    yield from ((name, CHECKS[name]) for name in KERNELS if name in CHECKS)
