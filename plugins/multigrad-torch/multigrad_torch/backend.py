"""The backend of PyTorch, through array-api-compat.

Functions that differ from the standard are corrected, and kernels use PyTorch's memory model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from math import prod
from types import SimpleNamespace
from typing import Any

import array_api_compat.torch as xp
import torch

import multigrad as mg

from .exemptions import EXEMPTIONS

SPECIAL = (
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log_ndtr",
    "logit",
    "ndtri",
    "sinc",
    "xlog1py",
    "xlogy",
)
"""The functions of torch.special that are as exact as those of multigrad-special.

In float64, torch's ndtr is 0 below -8.3, its gammaln loses digits near 1 and 2, its gammainc and
gammaincc lose some and do not propagate nan. Its polygamma takes one order for all elements, and
its digamma no complex numbers.
"""


FOURIER = ("fft", "fftn", "hfft", "ifft", "ifftn", "ihfft", "irfft", "irfftn", "rfft", "rfftn")


class Namespace:
    """The names of array_api_compat.torch, with only the exact functions of torch.special."""

    special = SimpleNamespace(**{name: getattr(torch.special, name) for name in SPECIAL})
    __name__ = xp.__name__

    def __getattr__(self, name: str) -> Any:
        return getattr(xp, name)


def make() -> mg.Backend:
    """Make the backend of PyTorch tensors, on the CPU and on every CUDA device."""
    functions: tuple[Callable[..., Any], ...] = (
        getitem,
        setitem,
        unindex,
        scatter_add,
        take,
        take_along_axis,
        positive,
        conj,
        meshgrid,
        linspace,
        clip,
        std,
        unique_all,
        unique_counts,
        unique_inverse,
        unique_values,
    )
    kernels: tuple[Callable[..., Any], ...] = (
        admit,
        take_ownership,
        place_like,
        constant,
        is_c_contiguous,
        shares_memory,
        write,
        assign,
        devices,
        synchronize,
        accelerator,
        mark,
        elapsed,
        annotation,
        storage,
        exportable,
        to_numpy,
        from_numpy,
    )
    return mg.Backend(
        "torch",
        Namespace(),
        (torch.Tensor,),
        # whose means and products leave out elements that derivative rules count
        refused_types=(torch.masked.MaskedTensor,),
        functions={f.__name__: f for f in functions}
        | {
            **{name: _promoting(getattr(torch, name)) for name in ("fmax", "fmin", "fmod")},
            **{
                name: _promoting(getattr(torch, name), floating=True)
                for name in ("heaviside", "logaddexp2")
            },
            **{
                f"special.{name}": _promoting(getattr(torch.special, name), floating=True)
                for name in ("xlog1py", "xlogy")
            },
            **{f"fft.{name}": _of_none(getattr(xp.fft, name)) for name in FOURIER},
        },
        kernels={f.__name__: f for f in kernels},
        variants=_variants(),
        capabilities=mg.Capabilities(
            missing={"fft.*fftn/*/repeated-axis*": "no axis is transformed twice"}
        ),
        exemptions=EXEMPTIONS,
    )


def _promoting(function: Callable[..., Any], floating: bool = False) -> Callable[..., Any]:
    """Wrap a function of two arrays to promote any dtypes and shapes.

    PyTorch ignores the dtype of 0-d arrays, or takes one dtype only.

    floating  for integers and booleans, the result has the default floating dtype
              of the library
    """

    def promoted(x1: Any, x2: Any, /) -> Any:
        dtype, device = xp.result_type(x1, x2), (x1 if hasattr(x1, "device") else x2).device
        if floating and not (dtype.is_floating_point or dtype.is_complex):
            dtype = torch.get_default_dtype()
        return function(*(torch.as_tensor(x, dtype=dtype, device=device) for x in (x1, x2)))

    return promoted


def _of_none(transform: Callable[..., Any]) -> Callable[..., Any]:
    """A Fourier transform that also accepts empty stacks.

    PyTorch knows the shape of the result, but MKL refuses to compute it.
    """

    def function(x: Any, /, **kwargs: Any) -> Any:
        return (
            transform(x, **kwargs)
            if x.numel()
            else torch.empty_like(transform(x.to("meta"), **kwargs), device=x.device)
        )

    return function


# ----- indexing: steps may be negative, and indices may have any integer dtype -----


def getitem(x: Any, key: Any, /) -> Any:
    """`x[key]`. With a negative step it is a copy."""
    key, axes = _usual(key, x.shape)
    return (x.flip(axes) if axes else x)[key]


def setitem(x: Any, key: Any, value: Any, /) -> Any:
    """A copy of `x` with `value` at `key`."""
    key, axes = _usual(key, x.shape)
    result = x.flip(axes) if axes else x.clone()
    result[key] = value
    return result.flip(axes) if axes else result


def unindex(values: Any, /, key: Any, shape: tuple[int, ...]) -> Any:
    """Zeros of the given shape with `values` added at `key`."""
    key, axes = _usual(key, shape)
    # no element is selected twice
    if all(
        not isinstance(k, (torch.Tensor, list)) or getattr(k, "dtype", None) == torch.bool
        for k in key
    ):
        result = values.new_zeros(shape)
        result[key] = values
    else:
        places = torch.arange(prod(shape), device=values.device).reshape(shape)[key]
        result = scatter_add(values.reshape(-1), places.reshape(-1), prod(shape)).reshape(shape)
    return result.flip(axes) if axes else result


def scatter_add(values: Any, indices: Any, /, n: int) -> Any:
    """Zeros of n rows, with each row of `values` added to the row of its index.

    Narrow dtypes are added in float32.
    """
    wide = values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
    result = wide.new_zeros((n, *values.shape[1:]))
    indices = indices.to(torch.int64)
    return result.index_add_(0, torch.where(indices < 0, indices + n, indices), wide).to(
        values.dtype
    )


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """Take with indices of any number of axes; PyTorch takes a vector of indices."""
    rows = xp.take(x, indices.to(torch.int64).reshape(-1), axis=axis)
    axis = (axis or 0) % x.ndim
    return (
        rows
        if indices.ndim == 1
        else rows.reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    )


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    return xp.take_along_axis(x, indices.to(torch.int64), axis=axis)


def _usual(key: Any, shape: Any) -> tuple[tuple[Any, ...], list[int]]:
    """Convert a key to one that PyTorch accepts, and to the axes to reverse first.

    After the reversal all steps are positive.
    """
    entries, axes, axis = key if isinstance(key, tuple) else (key,), [], 0
    usual: list[Any] = []
    for i, k in enumerate(entries):
        if k is Ellipsis:
            axis = len(shape) - sum(map(_width, entries[i + 1 :]))
        elif isinstance(k, slice) and k.step is not None and k.step < 0:
            n = shape[axis]
            start, stop, step = k.indices(n)
            k = slice(n - 1 - start, n - 1 - stop, -step)
            axes.append(axis)
        elif isinstance(k, torch.Tensor) and k.dtype != torch.bool:
            k = k.to(torch.int64)  # PyTorch treats uint8 as a mask, and refuses narrow integers
        usual.append(k)
        axis += _width(k)
    return tuple(usual), axes


def _width(k: Any) -> int:
    """The number of axes that an entry of a key covers."""
    if k is None or k is Ellipsis or isinstance(k, bool):
        return 0
    return int(k.ndim) if isinstance(k, torch.Tensor) and k.dtype == torch.bool else 1


# ----- copies, where PyTorch returns the argument or a view of it -----


def positive(x: Any, /) -> Any:
    return x.clone()


def conj(x: Any, /) -> Any:
    return torch.conj_physical(x) if x.is_complex() else x.clone()


def meshgrid(*arrays: Any, indexing: str = "xy") -> Any:
    return tuple(
        x.clone(memory_format=torch.contiguous_format)
        for x in torch.meshgrid(*arrays, indexing=indexing)
    )


# ----- functions that PyTorch lacks -----


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
    """The bounds may be arrays of any shapes; they determine the dtype and the device."""
    arrays = [x for x in (start, stop) if isinstance(x, torch.Tensor)]
    if arrays:
        device = arrays[0].device if device is None else device
        dtype = (
            xp.result_type(*arrays, *(x for x in (start, stop) if not isinstance(x, torch.Tensor)))
            if dtype is None
            else dtype
        )
        ndim = max(x.ndim for x in arrays)
        if ndim:
            steps = max(num - 1 if endpoint else num, 1)
            way = torch.arange(num, dtype=torch.float64, device=device) / steps
            way = way.reshape((num,) + (1,) * ndim)
            return (start * (1 - way) + stop * way).to(dtype)
        start, stop = (x.item() if isinstance(x, torch.Tensor) else x for x in (start, stop))
    return xp.linspace(start, stop, num, dtype=dtype, device=device, endpoint=endpoint)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """PyTorch promotes where the standard keeps the dtype of x, or leaves the answer open."""
    if x.is_floating_point() and all(
        b is None or type(b) is float or getattr(b, "dtype", None) == x.dtype for b in (min, max)
    ):
        return xp.clip(x, min, max)
    return mg.registry.OPS["clip"].forward["*"](xp, x, min, max)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The root of the variance; array-api-compat's var accepts a fractional correction.

    For complex numbers it is real.
    """
    if x.dtype in (torch.float16, torch.bfloat16):
        return std(x.float(), axis=axis, correction=correction, keepdims=keepdims).to(x.dtype)
    return torch.sqrt(xp.var(x, axis=axis, correction=correction, keepdims=keepdims))


def unique_all(x: Any, /) -> Any:
    """Sort complex numbers by their real part, then by the imaginary part.

    Each nan is a distinct value.
    """
    flat = x.reshape(-1)
    order = (
        torch.argsort(flat.imag, stable=True)
        if x.is_complex()
        else torch.argsort(flat, stable=True)
    )
    if x.is_complex():
        order = order[torch.argsort(flat.real[order], stable=True)]
    ordered = flat[order]
    first = torch.ones(flat.shape, dtype=torch.bool, device=x.device)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = first.nonzero().reshape(-1)
    inverse = torch.empty_like(order)
    inverse[order] = first.cumsum(0) - 1
    counts = torch.diff(starts, append=starts.new_tensor([flat.numel()]))
    return ordered[starts], order[starts], inverse.reshape(x.shape), counts


def unique_counts(x: Any, /) -> Any:
    values, _, _, counts = unique_all(x)
    return values, counts


def unique_inverse(x: Any, /) -> Any:
    values, _, inverse, _ = unique_all(x)
    return values, inverse


def unique_values(x: Any, /) -> Any:
    return unique_all(x)[0]


# ----- Kernels -----


def admit(xp: Any, x: Any) -> None:
    """Raise for a tensor that requires grad in PyTorch, and for layouts with few functions."""
    if x.requires_grad:
        raise mg.errors.GradientError(
            "backend 'torch': this torch.Tensor requires grad, so PyTorch would record what "
            "multigrad computes of it, a second graph beside multigrad's. Pass t.detach(), and "
            "multigrad.asarray(t.detach(), requires_grad=True) where multigrad is to "
            "differentiate."
        )
    if x.layout is not torch.strided or x.is_nested or x.is_quantized:
        kind = (
            "nested" if x.is_nested else "quantized" if x.is_quantized else f"of layout {x.layout}"
        )
        plain = (
            "t.dequantize()"
            if x.is_quantized
            else "t.to_padded_tensor(0.0)"
            if x.is_nested
            else "t.to_dense()"
        )
        raise mg.errors.BackendError(
            f"backend 'torch': a torch.Tensor that is {kind} does not follow the Array API "
            f"standard. Convert it to a plain one first: {plain}."
        )


def take_ownership(xp: Any, g: Any, like: Any) -> Any:
    """A copy of `g`, laid out and placed as `like`.

    Python cannot determine which other objects share the memory of a tensor.
    """
    if like is None or g.shape != like.shape:
        return g.clone(memory_format=torch.contiguous_format)
    return torch.empty_like(like, dtype=g.dtype).copy_(g)


def place_like(xp: Any, g: Any, like: Any) -> Any:
    return g if like is None else g.to(like.device)


def constant(xp: Any, value: Any, dtype: Any, device: Any) -> Any:
    """A 0-d array filled on its device, without waiting on the host.

    If the device is unknown, it is the CPU, whose 0-d arrays combine with arrays of every device.
    """
    return torch.full((), value, dtype=dtype, device="cpu" if device is None else device)


def is_c_contiguous(xp: Any, x: Any) -> bool:
    return bool(x.is_contiguous())


def shares_memory(xp: Any, x: Any, y: Any) -> bool:
    """Whether both share memory and read it in the same way.

    One of them may be a lazy conjugate of the other.
    """
    one, other = ((a.untyped_storage().data_ptr(), a.is_conj(), a.is_neg()) for a in (x, y))
    return one == other


def write(xp: Any, x: Any, value: Any) -> Any:
    return x.copy_(_apart(value, x))


def assign(xp: Any, x: Any, key: Any, value: Any) -> None:
    key, axes = _usual(key, x.shape)
    if axes:
        raise ValueError("PyTorch has no negative steps")
    x[key] = _apart(value, x)


def _apart(value: Any, x: Any) -> Any:
    """`value`, or a copy of it if it shares memory with `x`.

    PyTorch refuses to write from one part of a memory to another.
    """
    here = (
        isinstance(value, torch.Tensor)
        and x.untyped_storage().data_ptr() == value.untyped_storage().data_ptr()
    )
    return value.clone() if here else value


def devices(xp: Any) -> tuple[Any, ...]:
    """The devices that hold values; "meta" holds none."""
    return torch.device("cpu"), *(torch.device("cuda", i) for i in range(torch.cuda.device_count()))


def synchronize(xp: Any, x: Any) -> None:
    if x.is_cuda:
        torch.cuda.synchronize(x.device)


def accelerator(xp: Any, x: Any) -> str | None:
    """The kind of device; PyTorch calls the GPUs of ROCm "cuda" as well."""
    kind = torch.get_default_device().type if x is None else x.device.type
    return None if kind == "cpu" else "rocm" if kind == "cuda" and torch.version.hip else str(kind)


def mark(xp: Any, x: Any) -> Any:
    """A recorded event on the current stream of the device of `x`, and that device."""
    if not x.is_cuda:
        return None
    event = torch.cuda.Event(enable_timing=True)
    event.record(torch.cuda.current_stream(x.device))
    return event, x.device


def elapsed(xp: Any, start: Any, end: Any) -> float:
    """The microseconds between two events, or None if the array moved to another device.

    PyTorch measures milliseconds.
    """
    (first, device), (last, other) = start, end
    last.synchronize()
    return float(first.elapsed_time(last)) * 1000 if device == other else 0.0


def annotation(xp: Any, name: str) -> Any:
    return torch.profiler.record_function(name)


def storage(xp: Any, x: Any) -> tuple[Any, int]:
    memory = x.untyped_storage()
    return memory, int(memory.nbytes())


def exportable(xp: Any, x: Any) -> bool:
    """Whether `x` can be exported: lazy conjugates and negatives cannot, but their copies can."""
    return not (x.is_conj() or x.is_neg())


def to_numpy(xp: Any, x: Any, copy: bool | None = None) -> Any:
    """Share the memory of `x` if it is host memory."""
    if copy is False and (x.device.type != "cpu" or not exportable(xp, x)):
        raise ValueError(
            "to_numpy(copy=False): a tensor on "
            f"{x.device}{('' if exportable(xp, x) else ', a lazy conjugate,')} cannot become a "
            "NumPy array without a copy. Leave out copy=False."
        )
    return x.cpu().resolve_conj().resolve_neg().numpy()


def from_numpy(xp: Any, x: Any) -> Any:
    """Share the memory of `x` if PyTorch can use it: writable and without negative strides."""
    usable = x.flags.writeable and all(stride >= 0 for stride in x.strides)
    return torch.from_numpy(x if usable else x.copy())


# ----- devices for the conformance suite -----


def _variants() -> dict[str, Callable[[], AbstractContextManager[Any]]]:
    return {
        f"cuda{device.index}": partial(_on, device)
        for device in devices(xp)
        if device.type == "cuda"
    }


@contextmanager
def _on(device: Any) -> Iterator[Any]:
    with torch.cuda.device(device):
        yield device
