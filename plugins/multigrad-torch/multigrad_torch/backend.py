"""The backend: PyTorch through array-api-compat, mended where it departs from the standard, with
kernels that know its memory.
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
    "digamma",
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
"""What of torch.special is as exact as what multigrad-special has for every library.

In float64 ndtr is 0 below -8.3, gammaln loses digits near 1 and 2, gammainc and gammaincc lose some
and are no nan at nan, and polygamma takes one order for all elements."""


FOURIER = ("fft", "fftn", "hfft", "ifft", "ifftn", "ihfft", "irfft", "irfftn", "rfft", "rfftn")


class Namespace:
    """The names of array_api_compat.torch, with those functions of torch.special alone that are
    exact.
    """

    special = SimpleNamespace(**{name: getattr(torch.special, name) for name in SPECIAL})
    __name__ = xp.__name__

    def __getattr__(self, name: str) -> Any:
        return getattr(xp, name)


def make() -> mg.Backend:
    """The backend of PyTorch's tensors, on the CPU and on every CUDA device that there is."""
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
    """A function of two arrays of any dtypes and shapes.

    PyTorch takes no account of arrays without axes, or takes one dtype only.

    floating  of integers and booleans, the result is of the default floating dtype
    """

    def promoted(x1: Any, x2: Any, /) -> Any:
        dtype, device = xp.result_type(x1, x2), (x1 if hasattr(x1, "device") else x2).device
        if floating and not (dtype.is_floating_point or dtype.is_complex):
            dtype = torch.get_default_dtype()
        return function(*(torch.as_tensor(x, dtype=dtype, device=device) for x in (x1, x2)))

    return promoted


def _of_none(transform: Callable[..., Any]) -> Callable[..., Any]:
    """A Fourier transform that takes stacks of no rows, too.

    PyTorch knows the shape of the result, but MKL refuses to compute it.
    """

    def function(x: Any, /, **kwargs: Any) -> Any:
        return (
            transform(x, **kwargs)
            if x.numel()
            else torch.empty_like(transform(x.to("meta"), **kwargs), device=x.device)
        )

    return function


# ----- Indexing: steps may be negative, and an array of any integer dtype is one of indices -----


def getitem(x: Any, key: Any, /) -> Any:
    """`x[key]`. With a negative step it is a copy."""
    key, axes = _usual(key, x.shape)
    return (x.flip(axes) if axes else x)[key]


def setitem(x: Any, key: Any, value: Any, /) -> Any:
    """A copy of `x` in which `value` stands at `key`."""
    key, axes = _usual(key, x.shape)
    result = x.flip(axes) if axes else x.clone()
    result[key] = value
    return result.flip(axes) if axes else result


def unindex(values: Any, /, key: Any, shape: tuple[int, ...]) -> Any:
    """Zeros of that shape with `values` added at `key`."""
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
    """Zeros of n rows, with each of `values` added to the row that its index names.

    Narrow dtypes are added up in float32.
    """
    wide = values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
    result = wide.new_zeros((n, *values.shape[1:]))
    indices = indices.to(torch.int64)
    return result.index_add_(0, torch.where(indices < 0, indices + n, indices), wide).to(
        values.dtype
    )


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """Of indices of any number of axes; PyTorch takes a vector of them."""
    found = xp.take(x, indices.to(torch.int64).reshape(-1), axis=axis)
    axis = (axis or 0) % x.ndim
    return (
        found
        if indices.ndim == 1
        else found.reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    )


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    return xp.take_along_axis(x, indices.to(torch.int64), axis=axis)


def _usual(key: Any, shape: Any) -> tuple[tuple[Any, ...], list[int]]:
    """The key as PyTorch takes it, and the axes to reverse first, so that all steps are
    positive.
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
            k = k.to(torch.int64)  # PyTorch takes uint8 for a mask, and refuses narrow integers
        usual.append(k)
        axis += _width(k)
    return tuple(usual), axes


def _width(k: Any) -> int:
    """Over how many axes an entry of a key goes."""
    if k is None or k is Ellipsis or isinstance(k, bool):
        return 0
    return int(k.ndim) if isinstance(k, torch.Tensor) and k.dtype == torch.bool else 1


# ----- Results on memory of their own, where PyTorch returns the argument or shows a part of it
# -----


def positive(x: Any, /) -> Any:
    return x.clone()


def conj(x: Any, /) -> Any:
    return torch.conj_physical(x) if x.is_complex() else x.clone()


def meshgrid(*arrays: Any, indexing: str = "xy") -> Any:
    return tuple(
        x.clone(memory_format=torch.contiguous_format)
        for x in torch.meshgrid(*arrays, indexing=indexing)
    )


# ----- What PyTorch lacks -----


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
    """Arrays without axes as bounds give their dtype and their device."""
    arrays = [x for x in (start, stop) if isinstance(x, torch.Tensor)]
    if arrays:
        device = arrays[0].device if device is None else device
        dtype = (
            xp.result_type(*arrays, *(x for x in (start, stop) if not isinstance(x, torch.Tensor)))
            if dtype is None
            else dtype
        )
        start, stop = (x.item() if isinstance(x, torch.Tensor) else x for x in (start, stop))
    return xp.linspace(start, stop, num, dtype=dtype, device=device, endpoint=endpoint)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Of bounds that are arrays, also those without axes count for the dtype."""
    dtype = xp.result_type(x, *(b for b in (min, max) if isinstance(b, torch.Tensor)))
    return xp.clip(*(b.to(dtype) if isinstance(b, torch.Tensor) else b for b in (x, min, max)))


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The root of the variance, in which array-api-compat lets the correction be a fraction.

    That of complex numbers is real.
    """
    if x.dtype in (torch.float16, torch.bfloat16):
        return std(x.float(), axis=axis, correction=correction, keepdims=keepdims).to(x.dtype)
    return torch.sqrt(xp.var(x, axis=axis, correction=correction, keepdims=keepdims))


def unique_all(x: Any, /) -> Any:
    """Complex numbers are sorted by their real part, then by the imaginary one; each nan is a value
    of its own.
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
    """Refuse a tensor that PyTorch differentiates itself, and layouts in which few of its functions
    work.
    """
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
    """A copy of `g`, laid out and placed as `like`: what else holds the memory of a tensor cannot
    be known from Python.
    """
    if like is None or g.shape != like.shape:
        return g.clone(memory_format=torch.contiguous_format)
    return torch.empty_like(like, dtype=g.dtype).copy_(g)


def place_like(xp: Any, g: Any, like: Any) -> Any:
    return g if like is None else g.to(like.device)


def constant(xp: Any, value: Any, dtype: Any, device: Any) -> Any:
    """Filled on its device, for which the host does not wait; where that is not known on the CPU,
    whose numbers without axes meet every device.
    """
    return torch.full((), value, dtype=dtype, device="cpu" if device is None else device)


def is_c_contiguous(xp: Any, x: Any) -> bool:
    return bool(x.is_contiguous())


def shares_memory(xp: Any, x: Any, y: Any) -> bool:
    """Whether both lie in one memory, and show it alike: of PyTorch's lazy conjugates only one of
    the two does.
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
    """`value` where it does not lie in the memory of `x`, else a copy: PyTorch refuses to write
    from one part of a memory to another.
    """
    here = (
        isinstance(value, torch.Tensor)
        and x.untyped_storage().data_ptr() == value.untyped_storage().data_ptr()
    )
    return value.clone() if here else value


def devices(xp: Any) -> tuple[Any, ...]:
    """Those that hold values: "meta" holds none."""
    return torch.device("cpu"), *(torch.device("cuda", i) for i in range(torch.cuda.device_count()))


def synchronize(xp: Any, x: Any) -> None:
    if x.is_cuda:
        torch.cuda.synchronize(x.device)


def accelerator(xp: Any, x: Any) -> str | None:
    """PyTorch calls the GPUs of ROCm "cuda" as well."""
    kind = torch.get_default_device().type if x is None else x.device.type
    return None if kind == "cpu" else "rocm" if kind == "cuda" and torch.version.hip else str(kind)


def mark(xp: Any, x: Any) -> Any:
    """An event on the stream that computes on the device of `x`, and that device."""
    if not x.is_cuda:
        return None
    event = torch.cuda.Event(enable_timing=True)
    event.record(torch.cuda.current_stream(x.device))
    return event, x.device


def elapsed(xp: Any, start: Any, end: Any) -> float:
    """The time between two events, which PyTorch has in milliseconds; none where an array went from
    one device to another.
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
    """PyTorch's own lazy conjugates and negatives are not; a copy is."""
    return not (x.is_conj() or x.is_neg())


def to_numpy(xp: Any, x: Any, copy: bool | None = None) -> Any:
    """On the memory of `x` where it is the host's."""
    if copy is False and (x.device.type != "cpu" or not exportable(xp, x)):
        raise ValueError(
            "to_numpy(copy=False): a tensor on "
            f"{x.device}{'' if exportable(xp, x) else ', a lazy conjugate,'} cannot become one "
            "of NumPy without a copy. Leave out copy=False."
        )
    return x.cpu().resolve_conj().resolve_neg().numpy()


def from_numpy(xp: Any, x: Any) -> Any:
    """On the memory of `x` where PyTorch can use it: it must be writable, and not run backwards."""
    usable = x.flags.writeable and all(stride >= 0 for stride in x.strides)
    return torch.from_numpy(x if usable else x.copy())


# ----- Devices, for the conformance suite -----


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
