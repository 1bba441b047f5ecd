"""The backend of array-api-strict: namespace, array type, and devices and flags to test on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import array_api_strict as xp

import multigrad as mg

FLAGS: dict[str, dict[str, Any]] = {
    "no_data_dependent_shapes": {"data_dependent_shapes": False},
    "no_boolean_indexing": {"boolean_indexing": False},
    "no_extensions": {"enabled_extensions": ()},
}

INT64 = (
    "array_api_strict 2.6 returns int64 from argsort, argmax and similar functions, also on its "
    "device without int64"
)
DLPACK = "array_api_strict 2.6 makes the result of from_dlpack on its default device"
EXTENSIONS = "no extensions"
# Flags take away these capabilities, and the library does not report that. It does report
# data-dependent shapes.
MISSING = {
    "fft.*/*@no_extensions": EXTENSIONS,
    **{
        f"{name}/*@no_extensions": EXTENSIONS
        for name in (
            "diagonal",
            "trace",
            "singular_factor",
            *(
                f"linalg.{name}"
                for name in (
                    "cholesky",
                    "det",
                    "diagonal",
                    "eig*",
                    "inv",
                    "matrix_norm",
                    "matrix_power",
                    "matrix_rank",
                    "pinv",
                    "qr",
                    "slogdet",
                    "solve",
                    "svd*",
                    "trace",
                    "vector_norm",
                )
            ),
        )
    },
    "take/*/indices-of-two-axes": "indices of one axis only",
    "linspace/*/of-matrices": "linspace of numbers only",
    **dict.fromkeys(("var/*/complex", "std/*/complex"), "var and std of real arrays only"),
}
EXEMPTIONS = {
    **{
        f"{name}@no_x64": INT64
        for name in (
            "argmax/forward/all",
            "argmin/forward/all",
            "argsort/forward/last-axis",
            "count_nonzero/forward/all",
            "nonzero/forward/integers",
            "scatter_add/vjp/vector",
            "searchsorted/forward/left",
            "sort/vjp/last-axis",
            "take/vjp/axis",
            "take_along_axis/vjp/last",
            "unique_*/vjp/real",
            "nanarg*/forward/all",
            "median/vjp/even",
            "nanmedian/vjp/all",
            "*quantile/vjp/all",
            "*percentile/vjp/all",
            "places_of/forward/rows",
            "order_statistics/vjp/vector",
            "interp/vjp/inside-and-outside",
            "sliding_window_view/vjp/vector",
        )
    },
    **{
        f"{name}/vjp/rows@no_*64": "NumPy's result is float64, which the device does not have"
        for name in ("cov", "corrcoef")
    },
    "linalg.matrix_rank/forward/full@no_x64": INT64,
    **{
        f"from_dlpack/forward/real@{device}": DLPACK
        for device in ("device1", "device2", "no_float64", "no_x64")
    },
    "fft.*fftfreq/forward/*@device2": "array_api_strict 2.6 returns float64, also where the "
    "default is float32",
    "clip/kink/bounds-crossed": "array_api_strict refuses a lower bound above the upper one, "
    "which the standard leaves open",
    "isin/*/inverted": "array_api_strict 2.6 ignores invert=True",
}


def make() -> mg.Backend:
    """Make the backend of array_api_strict arrays, without kernels: multigrad's defaults run."""
    default, *others = xp.__array_namespace_info__().devices()
    # The repr of a device is array_api_strict.Device('no_x64').
    devices = {str(device).split("'")[1]: device for device in others}
    return mg.Backend(
        "strict",
        xp,
        (type(xp.asarray(0, device=default)),),
        capabilities=mg.Capabilities(defers=False, strict=True, missing=MISSING),
        functions={"astype": astype, "linspace": linspace},
        variants=_variants(devices),
        exemptions=EXEMPTIONS,
    )


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Without a device the result stays on the device of `x`.

    array_api_strict takes None for its default device.
    """
    return xp.astype(x, dtype, copy=copy, device=x.device if device is None else device)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Any:
    """Convert 0-d arrays to Python numbers, with their device and dtype for the result.

    The standard accepts only Python numbers.
    """
    arrays = [x for x in (start, stop) if hasattr(x, "dtype")]
    if arrays:
        device = arrays[0].device if device is None else device
        dtype = (
            xp.result_type(*arrays, *(x for x in (start, stop) if not hasattr(x, "dtype")))
            if dtype is None
            else dtype
        )
        start, stop = (
            x
            if not hasattr(x, "dtype")
            else complex(x)
            if xp.isdtype(x.dtype, "complex floating")
            else float(x)
            for x in (start, stop)
        )
    return xp.linspace(start, stop, num, dtype=dtype, device=device, endpoint=endpoint)


def _variants(devices: dict[str, Any]) -> dict[str, Callable[[], AbstractContextManager[Any]]]:
    on_device: dict[str, Any] = {
        name: partial(_on_device, device) for name, device in devices.items()
    }
    return on_device | {name: partial(_with_flags, flags) for name, flags in FLAGS.items()}


@contextmanager
def _on_device(device: Any) -> Iterator[Any]:
    yield device


@contextmanager
def _with_flags(flags: dict[str, Any]) -> Iterator[None]:
    with xp.ArrayAPIStrictFlags(**flags):
        yield None
