"""The checks of a user's function.

Each takes a trial, and raises AssertionError if it fails. pytest must not rewrite these assertions,
because their messages are complete: PYTEST_DONT_REWRITE
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import multigrad as mg

from .batches import _examples
from .compare import assert_gradient, available
from .problem import is_floating
from .scaled_differences import ADVICE, STEPS, chosen, settled, slopes, trouble
from .target import Target
from .tolerance import greatest, narrowest, over, worst
from .trial import (
    Trial,
    backward,
    gradients,
    is_array_of,
    second_gradients,
    tensors,
    to_numpy,
)

EXAMPLES = 3
"""The number of examples in a batch."""

RANDOM = (
    "the function is random, or keeps something between calls. Draw random numbers "
    "outside, and pass them as an argument"
)


MADE = "Where an array is made, say dtype=x.dtype, device=x.device"


def pure(trial: Trial) -> None:
    """Two calls with the same arguments must agree, and change no argument."""
    target, subject = trial.target, trial.subject
    given, constants = (
        tensors(target, subject.arrays),
        [mg.asarray(x) if target.is_raw(x) else x for x in subject.constants(target)],
    )
    fixed = [leaf.name for leaf in subject.leaves if not leaf.differentiated]
    arrays = [
        (name, x)
        for name, x in zip([*trial.names, *fixed], [*given, *constants], strict=True)
        if isinstance(x, mg.Tensor)
    ]
    before = [np.array(target.numpy(x)) for _, x in arrays]
    first = subject.call(target, given, constants)
    for (name, x), old in zip(arrays, before, strict=True):
        now = target.numpy(x)
        assert now.shape == old.shape and np.array_equal(
            now, old, equal_nan=now.dtype.kind in "fc"
        ), (
            f"the function changes its argument {name} in place, from {_told(old)} to "
            f"{_told(now)}. What requires grad may not be written: let it work on a copy, "
            "xp.asarray(x, copy=True)"
        )
    again = trial.outputs
    assert [name for name, _ in first] == [name for name, _ in again], (
        f"two calls with the same arguments give different structures: {RANDOM}"
    )
    for (name, _), y, z in zip(
        first, to_numpy(target, again), to_numpy(target, first), strict=True
    ):
        assert np.shape(y) == np.shape(z), (
            f"two calls with the same arguments disagree, {name} has shapes {np.shape(z)} and "
            f"{np.shape(y)}: {RANDOM}"
        )
        if isinstance(z, (np.ndarray, np.generic)):
            trial.tolerance.assert_near(
                y,
                z,
                f"two calls with the same arguments disagree, {name}",
                narrowest([z], trial.precision),
                beside=f" as before: {RANDOM}",
            )


def values(trial: Trial) -> None:
    """Structure, shapes, dtypes and values must be NumPy's, and all arrays the backend's."""
    target, expected = trial.target, trial.reference.outputs
    assert any(is_floating(y) or isinstance(y, np.ndarray) for _, y in expected), (
        "the function returns no array, but "
        f"{', '.join(type(y).__name__ for _, y in expected) or 'nothing'}. What has left as a "
        "Python number has no derivative: return the array, also one without axes"
    )
    names, known = [name for name, _ in trial.outputs], [name for name, _ in expected]
    assert names == known, (
        f"the result has {', '.join(names) or 'no leaves'}, on numpy "
        f"{', '.join(known) or 'no leaves'}"
    )
    for (name, y), (_, wide), dtype in zip(
        trial.outputs, expected, trial.reference.dtypes, strict=True
    ):
        if dtype is None:
            assert not is_array_of(target, y), (
                f"{name} is an array, on numpy a {type(wide).__name__}"
            )
            _assert_object(trial, y, wide, name)
            continue
        raw = y.array if isinstance(y, mg.Tensor) else y
        assert target.is_raw(raw), (
            f"{name} is {_article(raw)}, no array of {target.name!r}: the function has left the "
            "library of its arguments. Make arrays by xp = x.__array_namespace__(), and call "
            "the functions of xp"
        )
        dtype_name = target.dtype_name(raw.dtype)
        assert dtype_name == available(target, dtype.name), (
            f"{name} has dtype {dtype_name}, on numpy {dtype.name}. {MADE}"
        )
        assert trial.precision == "float64" or dtype_name not in ("float64", "complex128"), (
            f"{name} has dtype {dtype_name}, though every argument is in single precision. {MADE}; "
            "or pass dtypes='float64', if the function widens on purpose"
        )
        if target.device is not None:
            place = target.kernel("device")(target.xp, raw)
            assert place == target.device, f"{name} is on {place}, not on {target.device}. {MADE}"
        actual = target.numpy(raw)
        assert actual.shape == wide.shape, f"{name} has shape {actual.shape}, on numpy {wide.shape}"
        trial.tolerance.assert_near(
            actual,
            wide,
            name,
            narrowest([actual, *trial.subject.arrays], trial.precision),
            beside=" as on numpy in float64",
            scale=trial.reference.cancelled,
        )


def gradient(trial: Trial) -> None:
    """Each gradient must have its argument's library, dtype, shape and device, and NumPy's values.

    The values are those of NumPy in float64.
    """
    target = trial.target

    def attributes(grads: Sequence[Any], leaves: Sequence[Any]) -> None:
        for name, g, x in zip(trial.names, grads, leaves, strict=True):
            assert_gradient(target, g.array, x.array, f"the gradient of {name}")

    trial.gradients = gradients(
        trial.subject, target, trial.subject.arrays, trial.reference.cotangents, attributes
    )
    for name, g, expected in zip(
        trial.names, trial.gradients, trial.reference.gradients, strict=True
    ):
        what, beside = f"the gradient of {name}", " as on numpy in float64"
        trial.assert_near(g, expected, what, beside, scale=trial.scale)


def finite_differences(trial: Trial) -> None:
    """Compare the gradients with finite differences, element by element."""
    reference = trial.reference
    for name, y in reference.outputs if trial.names else ():
        if is_floating(y) and not np.all(np.isfinite(y)):
            at = worst(~np.isfinite(y))
            raise AssertionError(
                f"{name}{_index(at)} is {y[at].item()!r} at these arguments, where there are no "
                f"differences.{ADVICE}"
            )
    for k, (name, g) in enumerate(zip(trial.names, trial.gradients, strict=True)):
        limits = (
            trial.tolerance.limits(g, trial.digits, differences=True, scale=trial.scale)
            + reference.noise
        )
        excess = {at: _excess(trial, k, at, limits[at]) for at in chosen(g)}
        at = max(excess, key=excess.__getitem__, default=())
        if excess.get(at, 0) > 1:
            element = reference.partial(k)
            why = trouble(element.function, element.leaves, element.direction(at), 0, ())
            raise AssertionError(
                f"the gradient of {name}{_index(at)} is {g[at].item()!r}, but finite "
                "differences give "
                f"{reference.element(k, at).item()!r}.{why}{'' if why else lost(trial)}"
            )


def _excess(trial: Trial, which: int, at: tuple[int, ...], limit: Any) -> float:
    """Return the error of a gradient's element in units of its limit, with the best step."""
    element, first, actual = (
        trial.reference.partial(which),
        trial.reference.element(which, at),
        trial.gradients[which][at],
    )
    best = first
    if over(actual, first, limit) > 1:
        best = settled(partial(element.at, at), element.steps(at), first, actual, limit)
    return float(over(actual, best, limit))


def lost(trial: Trial) -> str:
    """Return the lines on which the function loses gradients, for an error message."""
    with mg.autograd.detect_breaks() as report:
        trial.subject.call(trial.target, tensors(trial.target, trial.subject.arrays, True))
    return "".join(f"\n  a gradient is lost at {place}" for place in report)


def _along(
    trial: Trial,
    results: Sequence[Any],
    expected: Sequence[Any],
    names: Sequence[str],
    function: Any,
    factor: float = 1.0,
) -> None:
    """Compare with the differences of a function along the tangents.

    `expected` are the differences with the first step.
    """
    arrays, tangents = trial.reference.wide.arrays, trial.reference.tangents

    def estimate(step: float, j: int) -> Any:
        return slopes(function, arrays, tangents, step)[j]

    for j, (what, y, first) in enumerate(zip(names, results, expected, strict=True)):
        assert y.shape == first.shape, f"{what} has shape {y.shape}, expected {first.shape}"
        limits = (
            trial.tolerance.limits(
                y, trial.digits, differences=True, scale=trial.scale, factor=factor
            )
            + factor * trial.reference.noise
        )
        best = settled(partial(estimate, j=j), STEPS, first, y, limits)
        try:
            trial.assert_near(y, best, what, " by finite differences", limits=limits)
        except AssertionError as error:
            why = trouble(function, arrays, tangents, j, worst(over(y, best, limits)))
            raise AssertionError(f"{error}.{why}") from None


def jvp(trial: Trial) -> None:
    """Compare the tangents of forward mode with differences, and with the gradients as adjoint.

    Each must have the dtype and shape of its output.
    """
    target, reference = trial.target, trial.reference
    if not trial.names or not reference.smooth:
        return
    outs, moved = mg.func.jvp(
        trial.function(),
        tuple(trial.raws(trial.subject.arrays)),
        tuple(trial.cast(reference.tangents)),
    )
    names = [f"the tangent of {name}" for name, y in reference.outputs if is_floating(y)]
    for what, m, y in zip(names, moved, outs, strict=True):
        assert target.is_raw(m), f"{what} is of {type(m).__name__}"
        assert m.dtype == y.dtype, (
            f"{what} has dtype {m.dtype}, but that of the result is {y.dtype}"
        )
    tangents = [target.numpy(m) for m in moved]
    for what, m, y in zip(names, tangents, map(target.numpy, outs), strict=True):
        assert m.shape == y.shape, (
            f"{what} has shape {m.shape}, but that of the result is {y.shape}"
        )
    if trial.with_differences:
        _along(trial, tangents, reference.slopes, names, reference.results)
    products = [
        np.real(np.conj(a) * b)
        for a, b in zip(
            [*reference.cotangents, *trial.gradients], [*tangents, *reference.tangents], strict=True
        )
    ]
    sums = [float(np.sum(p)) for p in products]
    left, right = sum(sums[: len(tangents)]), sum(sums[len(tangents) :])
    size = sum(float(np.sum(np.abs(p))) for p in products)
    what = "forward mode is not the adjoint of the gradients: Re<g, jvp(t)>"
    scale = max(size, reference.cancelled)
    trial.assert_near(left, right, what, " = Re<vjp(g), t>", scale=scale, factor=10)


def second(trial: Trial) -> None:
    """Compare second derivatives with NumPy's, and with differences of NumPy's gradients.

    They are computed by reverse mode twice, and by forward mode over reverse mode.
    """
    target, reference, subject = trial.target, trial.reference, trial.subject
    if not trial.names or not reference.smooth:
        return
    twice = second_gradients(
        subject, target, subject.arrays, reference.cotangents, reference.tangents
    )
    mixed = mg.func.jvp(
        trial.pullback(), tuple(trial.raws(subject.arrays)), tuple(trial.cast(reference.tangents))
    )[1]
    scale = max(trial.scale, greatest(reference.second))
    for mode, seconds in (
        ("reverse mode twice", twice),
        ("forward over reverse mode", [target.numpy(s) for s in mixed]),
    ):
        names = [f"the second derivative of {name}, {mode}" for name in trial.names]
        for what, s, x, expected in zip(
            names, seconds, subject.arrays, reference.second, strict=True
        ):
            assert s.dtype == x.dtype, (
                f"{what}, has dtype {s.dtype}, but that of the argument is {x.dtype}"
            )
            beside = " as on numpy in float64"
            trial.assert_near(s, expected, what, beside, factor=10, scale=scale)
        if trial.with_differences:
            _along(trial, seconds, reference.bends, names, reference.first, 10)


def vmap(trial: Trial) -> None:
    """Compare the results and gradients of vmap with those of a loop.

    The differentiated arguments are batched.
    """
    if not trial.names:
        return
    batches = [_examples(x, EXAMPLES, "") for x in trial.subject.arrays]
    results = [
        name for name, y in trial.reference.outputs if isinstance(y, (np.ndarray, np.generic))
    ]
    _assert_looped(trial, trial.function(smooth=False), batches, results)
    if trial.reference.smooth:
        _assert_looped(
            trial, trial.pullback(), batches, [f"the gradient of {name}" for name in trial.names]
        )


def _assert_looped(
    trial: Trial, function: Callable[..., Any], batches: Sequence[Any], names: Sequence[str]
) -> None:
    target = trial.target
    results = mg.func.vmap(function)(*trial.raws(batches))
    expected = [function(*trial.raws([b[k] for b in batches])) for k in range(EXAMPLES)]
    for j, (what, y) in enumerate(zip(names, results, strict=True)):
        rows = np.stack([target.numpy(e[j]) for e in expected])
        assert y.dtype == expected[0][j].dtype, (
            f"{what} of a batch has dtype {y.dtype}, that of one example {expected[0][j].dtype}"
        )
        scale = greatest([rows])
        trial.assert_near(target.numpy(y), rows, f"{what} of a batch", " as in a loop", scale=scale)


def jit(trial: Trial) -> None:
    """Compare compiled values and gradients with uncompiled ones, if the backend has a compiler."""
    for label, enter in trial.target.backend.variants.items():
        with enter() as compiler:
            if callable(compiler):
                _assert_compiled(trial, label, compiler)


def _assert_compiled(trial: Trial, label: str, compiler: Callable[..., Any]) -> None:
    target, subject, reference = trial.target, trial.subject, trial.reference
    constants = subject.constants(target)  # they are known during tracing

    def compute(arrays: Sequence[Any]) -> Any:
        leaves = [mg.asarray(x, requires_grad=True) for x in arrays]
        outputs = subject.call(target, leaves, constants)
        grads = (
            backward(outputs, target, leaves, reference.cotangents)
            if leaves and reference.smooth
            else []
        )
        return [getattr(y, "array", y) for _, y in outputs if is_array_of(target, y)], [
            g.array for g in grads
        ]

    outs, grads = compiler(compute)(trial.raws(subject.arrays))
    plain = [(name, target.numpy(y)) for name, y in trial.outputs if is_array_of(target, y)]
    for (name, y), z in zip(plain, outs, strict=True):
        what, scale = f"under {label}, {name}", greatest([y])
        trial.assert_near(target.numpy(z), y, what, " without", scale=scale)
    for name, g, z in zip(trial.names if grads else (), trial.gradients, grads, strict=bool(grads)):
        what = f"under {label}, the gradient of {name}"
        trial.assert_near(target.numpy(z), g, what, " without", scale=trial.scale)


def variants(trial: Trial) -> None:
    """Check values and gradients on the backend's other devices, and under its flags.

    Flags may take away what the function needs: an error under them is no failure. Variants with
    other integers are left out, since NumPy has no results to compare with.
    """
    for label, enter in trial.target.backend.variants.items():
        with enter() as device:
            if callable(device):  # a compiler, which `jit` tries
                continue
            target = Target(trial.target.name, device, trial.target.single)
            if _comparable(trial, target):
                _assert_variant(trial, target, label)


def _comparable(trial: Trial, target: Target) -> bool:
    """Return whether a variant differs from the default, but not in its integers.

    Each is tried in its widest precision.
    """
    usual = trial.target
    if target.has_long != usual.has_long or target.has_double != (trial.precision == "float64"):
        return False
    if trial.subject.complex and not target._makes("complex64", np.complex64):
        return False
    default = (usual.has_double, usual.backend.lacks().keys())
    return (
        target.device is not None or (target.has_double, target.backend.lacks().keys()) != default
    )


def _assert_variant(trial: Trial, target: Target, label: str) -> None:
    varied = replace(trial, target=target, with_differences=False)
    try:
        values(varied)
        gradient(varied)
    except AssertionError as error:
        raise AssertionError(f"on the variant {label!r}: {error}") from error
    except Exception as error:
        if target.device is not None:
            raise AssertionError(
                f"on the variant {label!r}, {type(error).__name__}: {error}. {MADE}"
            ) from error


CHECKS: dict[str, Callable[[Trial], None]] = {
    "pure": pure,
    "values": values,
    "gradient": gradient,
    "differences": finite_differences,
    "jvp": jvp,
    "second": second,
    "vmap": vmap,
    "jit": jit,
    "variants": variants,
}
"""The checks by name, in the order in which they run."""


# ----- words -----


def _index(at: tuple[int, ...]) -> str:
    return str(list(at)) if at else ""


def _told(x: Any) -> str:
    text = np.array2string(x, threshold=6, separator=", ").replace("\n", "")
    return text if len(text) < 80 else f"{text[:77]}..."


def _assert_object(trial: Trial, y: Any, expected: Any, name: str) -> None:
    """Compare a value that is not an array; numbers agree within the tolerance."""
    if isinstance(expected, (bool, int, float, complex)) and isinstance(
        y, (bool, int, float, complex)
    ):
        trial.tolerance.assert_near(y, expected, name, trial.precision, beside=" as on numpy")
    else:
        assert type(y) is type(expected) and (y == expected) is not False, (
            f"{name} is {y!r}, on numpy {expected!r}"
        )


def _article(x: Any) -> str:
    return f"a {type(x).__module__}.{type(x).__name__}".replace("builtins.", "")
