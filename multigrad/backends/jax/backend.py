"""JAX: eager, under `jax.jit` and `jax.vmap`, and on sharded arrays.

The namespace is JAX's own, corrected where it differs from the standard or would lead to a wrong
gradient:

- An out-of-bounds index raises if it is a Python integer or a NumPy array. If it is a JAX array,
  reading gives nan (JAX would read the last element) and writing does nothing, so that each is the
  other's adjoint.
- A NumPy array is copied immediately. JAX copies it later, or shares its memory permanently if it
  is aligned, so that a change of the source would reach the "immutable" array.
- Creating an array on the default device leaves it uncommitted, so that JAX can move it to its
  operands. JAX would commit it to that device, and a constant in a rule could not be combined with
  a sharded array.
- A Python scalar becomes an array with a fixed dtype, not a weakly typed one.

float64 exists only if the user has set `jax_enable_x64`; this module does not change that.
"""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Callable
from functools import cache, lru_cache, wraps
from operator import attrgetter
from typing import Any, NoReturn

from ...errors import GradientError
from ...registry import OPS
from .. import own as own_arrays
from ..kernels import SEVERAL, kernels_of, over_several, without_leading
from ..raw import RawNamespace, form
from ..spec import Backend, Capabilities

jax: Any
jnp: Any
np: Any
_backend: Backend


def make() -> Backend:
    """Make the backend of JAX arrays and tracers, and register Tensors as a pytree."""
    global jax, jnp, np, _backend
    import jax
    import jax.numpy as jnp
    import numpy as np

    created = "arange", "empty", "eye", "linspace", "ones", "zeros", "fft.fftfreq", "fft.rfftfreq"
    alike = "empty_like", "full_like", "ones_like", "zeros_like"
    _backend = Backend(
        "jax",
        jnp,
        (jax.Array,),
        # for eager arrays; JAX itself reports the capabilities under jit
        capabilities=Capabilities(
            mutable=False,
            data_dependent=True,
            missing={"fft.*fftn/*/repeated-axis*": "no axis is transformed twice"},
        ),
        functions={name: _left_free(attrgetter(name)(jnp)) for name in (*created, *alike)}
        | {f"fft.{name}": over_several(getattr(jnp.fft, name)) for name in SEVERAL}
        | {
            "asarray": asarray,
            "broadcast_arrays": lambda *arrays: tuple(jnp.broadcast_arrays(*arrays)),
            "can_cast": lambda from_, to, /: jnp.can_cast(
                from_.dtype if isinstance(from_, jax.Array) else from_, to
            ),
            "clip": form("clip", jnp),
            "cumulative_prod": cumulative_prod,
            "expand_dims": expand_dims,
            "from_dlpack": from_dlpack,
            "full": full,
            "getitem": getitem,
            "isdtype": lru_cache(maxsize=1024)(jnp.isdtype),
            "meshgrid": lambda *arrays, indexing="xy": tuple(
                jnp.meshgrid(*arrays, indexing=indexing)
            ),
            "permute_dims": permute_dims,
            "pow": power,
            "scatter_add": scatter_add,
            "searchsorted": searchsorted,
            "setitem": setitem,
            "sum": add_up,
            "unindex": unindex,
        },
        kernels=kernels_of(globals()),
        variants={
            "x64": lambda: jax.enable_x64(True),
            "x32": lambda: jax.enable_x64(False),
            "jit": lambda: contextlib.nullcontext(jax.jit),
        },
        exemptions=dict.fromkeys(
            ("nonzero/forward/integers@jit", "unique_*/vjp/real@jit"),
            "under jax.jit no shape may depend on values",
        ),
    )
    _register_pytree()
    return _backend


def is_traced(x: Any) -> bool:
    return isinstance(x, jax.core.Tracer)


# ----- Creation -----


def _default_device() -> Any:
    chosen = jax.config.jax_default_device
    return jax.local_devices()[0] if chosen is None or isinstance(chosen, str) else chosen


def _left_free(create: Callable[..., Any]) -> Callable[..., Any]:
    """Make `create` return uncommitted arrays if the given device is the default device."""

    @wraps(create)
    def function(*args: Any, device: Any = None, **kwargs: Any) -> Any:
        if device is None or device == _default_device():
            return create(*args, **kwargs)
        return create(*args, device=device, **kwargs)

    return function


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    """Convert `obj` to an array; a NumPy array or a buffer is always copied."""
    if isinstance(obj, (np.ndarray, np.generic, memoryview, bytearray)) or hasattr(
        obj, "__array_interface__"
    ):
        if copy is False:
            raise ValueError(
                "asarray: JAX arrays are immutable, so they cannot share the memory of a NumPy "
                "array. Leave out copy=False, or call from_dlpack."
            )
        obj, copy = np.array(obj), None
    elif dtype is None and type(obj) in (bool, int, float, complex):
        dtype = type(obj)
    if device is not None and not isinstance(obj, jax.Array) and device == _default_device():
        device = None
    return jnp.asarray(obj, dtype=dtype, device=device, copy=copy)


@_left_free
def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    if dtype is None and type(fill_value) in (bool, int, float, complex):
        dtype = type(fill_value)
    return jnp.full(shape, fill_value, dtype=dtype, device=device)


@_left_free
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An array on the memory of `x`, or a copy.

    It is a copy if `copy` is true (jax.numpy ignores it), or if JAX cannot use the memory.
    """
    if copy:
        # for memory that NumPy cannot read
        with contextlib.suppress(BufferError, RuntimeError, TypeError, ValueError):
            return asarray(x if isinstance(x, np.ndarray) else np.from_dlpack(x), device=device)
    try:
        result = jnp.from_dlpack(x, device=device, copy=copy)
    except (BufferError, RuntimeError, TypeError, ValueError):
        # JAX refuses memory that is read-only or has gaps.
        if copy is False or not isinstance(x, np.ndarray):
            raise
        return asarray(x, device=device)
    if copy:
        result = jax.block_until_ready(jnp.array(result, copy=True))
    return result


# ----- Functions that differ from the standard -----


def expand_dims(x: Any, /, axis: Any) -> Any:
    axes = axis if isinstance(axis, tuple) else (axis,)
    ndim = x.ndim + len(axes)
    if not all(-ndim <= a < ndim for a in axes):  # JAX raises a ValueError
        raise IndexError(f"axis {axis} is out of bounds for an array of {ndim} dimensions")
    return jnp.expand_dims(x, axis)


def permute_dims(x: Any, /, axes: Any) -> Any:
    return jnp.permute_dims(x, tuple(a + x.ndim if a < 0 else a for a in axes))


def power(x1: Any, x2: Any, /) -> Any:
    """JAX treats a 0-d integer exponent as a plain parameter, whose dtype does not count."""
    if isinstance(x2, jax.Array) and not x2.ndim and jnp.isdtype(x2.dtype, "integral"):
        x1 = jnp.asarray(x1, dtype=jnp.result_type(x1, x2))
    return jnp.pow(x1, x2)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    wide = _wide(x.dtype)
    if wide is not None and dtype in (None, x.dtype):  # as JAX's sums
        return jnp.cumulative_prod(
            x.astype(wide), axis=axis, include_initial=include_initial
        ).astype(x.dtype)
    if dtype is None and jnp.isdtype(x.dtype, "integral"):
        # the dtype of the sum: small integers become the default integer
        dtype = jnp.cumulative_sum(jnp.zeros(0, x.dtype)).dtype
    return jnp.cumulative_prod(x, axis=axis, dtype=dtype, include_initial=include_initial)


def add_up(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum. JAX adds narrow dtypes in float32, except if the caller passes their dtype."""
    return jnp.sum(
        x,
        axis=axis,
        dtype=None if dtype == x.dtype and _wide(dtype) is not None else dtype,
        keepdims=keepdims,
    )


@lru_cache(maxsize=256)
def _wide(dtype: Any) -> Any:
    """The dtype in which to sum `dtype`: float32 for narrow dtypes, None for itself."""
    return (
        jnp.float32 if jnp.issubdtype(dtype, jnp.floating) and jnp.finfo(dtype).bits < 32 else None
    )


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    return jnp.searchsorted(x1, x2, side=side, sorter=sorter).astype(int)


# ----- Indexing -----


def getitem(x: Any, key: Any, /) -> Any:
    """`x[key]`; an out-of-bounds index raises if it is known, else it gives nan."""
    entries = key if isinstance(key, tuple) else (key,)
    _check_bounds(entries, x.shape)
    if any(isinstance(k, jax.Array) and jnp.issubdtype(k.dtype, jnp.integer) for k in entries):
        return x.at[key].get(mode="fill")
    return x[key]


def setitem(x: Any, key: Any, value: Any, /) -> Any:
    entries = key if isinstance(key, tuple) else (key,)
    _check_bounds(entries, x.shape)
    if hasattr(value, "dtype") and value.dtype != x.dtype:
        value = value.astype(x.dtype)
    if _has_traced_mask(entries):
        return OPS["setitem"].forward(RawNamespace(_backend), x, key, value)
    try:
        return x.at[key].set(value)
    except ValueError:  # JAX does not drop leading axes of length 1
        fitting = without_leading(value, x[key].ndim)
        if fitting is None:
            raise
        return x.at[key].set(fitting)


def unindex(values: Any, /, key: Any, shape: tuple[int, ...]) -> Any:
    if _has_traced_mask(key if isinstance(key, tuple) else (key,)):
        return OPS["unindex"].forward(RawNamespace(_backend), values, key, shape)
    return _added(values, key, shape)


def _added(values: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Zeros with `values` added at `key`, which may repeat.

    JAX would add narrow dtypes without widening: in bfloat16, 256 + 1 is 256.
    """
    dtype = values.dtype
    wide = _wide(dtype)
    if wide is None:
        return jnp.zeros(shape, dtype).at[key].add(values)
    return jnp.zeros(shape, wide).at[key].add(values.astype(wide)).astype(dtype)


def scatter_add(values: Any, indices: Any, /, n: int) -> Any:
    """Add rows by index. See `ops/kernels.py`; out-of-bounds indices are dropped."""
    return _added(values, indices, (n, *values.shape[1:]))


def _has_traced_mask(entries: tuple[Any, ...]) -> bool:
    """Whether there is a mask whose true elements cannot be counted, because it is traced."""
    return any(is_traced(k) and _is_mask(k) for k in entries)


def _check_bounds(entries: tuple[Any, ...], shape: tuple[int, ...]) -> None:
    """Raise IndexError for an out-of-bounds index that is known on the host."""
    axis = 0
    for i, k in enumerate(entries):
        if k is Ellipsis:
            axis = len(shape) - sum(_width(rest) for rest in entries[i + 1 :])
            continue
        ends: tuple[Any, ...] = ()
        if type(k) is int:
            ends = (k,)
        elif type(k) is np.ndarray and k.dtype.kind in "iu" and k.size:
            ends = k.min(), k.max()
        for end in ends if axis < len(shape) else ():
            n = shape[axis]
            if not -n <= end < n:
                raise IndexError(f"index {end} is out of bounds for axis {axis} with size {n}")
        axis += _width(k)


def _is_mask(entry: Any) -> bool:
    return getattr(getattr(entry, "dtype", None), "kind", None) == "b"


def _width(entry: Any) -> int:
    """The number of axes that an entry of a key covers."""
    if entry is None or isinstance(entry, bool):
        return 0
    return entry.ndim if _is_mask(entry) else 1


# ----- Kernels -----


def device(xp: Any, x: Any) -> Any:
    """The placement of `x`: a device, or a sharding that puts a whole copy on each of its devices.

    It is None under a trace. The functions that create arrays accept it, for any shape. (The
    sharding of `x` itself fits its shape only.)
    """
    if is_traced(x):
        return None
    sharding = getattr(x, "sharding", None)
    if isinstance(sharding, jax.sharding.NamedSharding) and sharding.num_devices > 1:
        return jax.sharding.NamedSharding(sharding.mesh, jax.sharding.PartitionSpec())
    return None if sharding is None or sharding.num_devices > 1 else next(iter(sharding.device_set))


def devices(xp: Any) -> tuple[Any, ...]:
    """All devices; jax.numpy lists None and only the first device."""
    return tuple(jax.devices())


def place_like(xp: Any, g: Any, like: Any) -> Any:
    """`g` with the sharding of `like`.

    Under a trace the compiler decides. An array that was never placed imposes no sharding.
    """
    if is_traced(g) or is_traced(like) or not isinstance(like, jax.Array):
        return g
    if g.sharding == like.sharding or g.shape != like.shape or not like.committed:
        return g
    return jax.device_put(g, like.sharding)


def take_ownership(xp: Any, g: Any, like: Any) -> Any:
    """`g` itself, placed as `like`: it cannot change.

    A Tensor that requires grad must not hold a tracer, since it may outlive the trace.
    """
    if is_traced(g) and isinstance(like, jax.Array) and not is_traced(like):
        raise GradientError(
            "under a JAX transformation, this would write a tracer into the .grad of a Tensor "
            "from outside it, or into that Tensor itself, which requires grad. Pass it as an "
            "argument of the transformed function, or use the results of multigrad.autograd.grad, "
            "and write nothing in place."
        )
    return place_like(xp, g, like)


_constants: dict[Any, Any] = {}


def constant(xp: Any, value: Any, dtype: Any, device: Any) -> Any:
    """`value` as a 0-d array, cached unless it is a tracer."""
    key = (repr(value), type(value), dtype, device)
    out = _constants.get(key)
    if out is None:
        out = asarray(value, dtype=dtype, device=device)
        if out.dtype == dtype and not is_traced(out):
            if len(_constants) >= 1024:
                _constants.clear()
            _constants[key] = out
    return out


def from_numpy(xp: Any, x: Any) -> Any:
    return asarray(x)


def to_numpy(xp: Any, x: Any, copy: bool | None = None) -> Any:
    return np.asarray(x, copy=copy)


def write(xp: Any, x: Any, value: Any) -> Any:
    """Return `value`, placed as `x`, to replace it: arrays cannot change.

    A tracer must not replace an array from outside its trace. While JAX compiles, every new array
    is a tracer, so a concrete array is from outside. Other transformations, such as grad and vmap,
    make tracers only of their arguments, so the origin is unknown; JAX raises when a tracer is used
    after its trace.
    """
    if is_traced(value) and not is_traced(x) and is_traced(jnp.zeros(())):
        raise GradientError(
            "this write in place, while JAX compiles, would put a tracer into a Tensor with an "
            "array from outside. Write into a Tensor that is made inside, for example by clone(), "
            "or pass that Tensor as an argument and return it."
        )
    return place_like(xp, value, x)


def compile(xp: Any, program: Any, *, arena: int) -> Callable[..., Any]:
    from .program import compiled  # imported here: only programs that compile need it

    return compiled(xp, program, arena=arena)


def eagerly(xp: Any, x: Any, compute: Callable[[], Any]) -> Any:
    """Compute from a known array; inside a trace the result is a concrete array too."""
    if is_traced(x):
        return compute()
    with jax.ensure_compile_time_eval():
        return compute()


def fresh(xp: Any, x: Any) -> Any:
    return jax.lax.optimization_barrier(x) if is_traced(x) else x


def concrete_bool(xp: Any, x: Any) -> bool | None:
    return None if is_traced(x) else bool(x)


def control(xp: Any, arrays: Any) -> Any:
    """The loops of jax.lax if an array is a tracer, or if JAX compiles."""
    return jax.lax if any(map(is_traced, arrays)) or is_traced(jnp.zeros(())) else None


def synchronize(xp: Any, x: Any) -> None:
    jax.block_until_ready(x)


_PLATFORMS = {"cpu": None, "gpu": "cuda"}


def accelerator(xp: Any, x: Any) -> str | None:
    """The platform of the devices of `x`.

    JAX calls the GPUs of CUDA "gpu", those of ROCm "rocm".
    """
    if is_traced(x):
        return None
    platform = next(iter(x.devices())).platform if hasattr(x, "devices") else jax.default_backend()
    return _PLATFORMS.get(platform, platform)


def mark(xp: Any, x: Any) -> Any:
    """Wait for `x` and read the host's clock: JAX has no device events."""
    if is_traced(x):
        return None
    jax.block_until_ready(x)
    return time.perf_counter_ns()


def elapsed(xp: Any, start: Any, end: Any) -> float:
    return float(end - start) / 1000


def annotation(xp: Any, name: str) -> Any:
    return jax.profiler.TraceAnnotation(name)


def storage(xp: Any, x: Any) -> tuple[Any, int]:
    """The buffers of `x`; a traced array has no memory."""
    return x, 0 if is_traced(x) else int(x.nbytes)


# ----- Tensors as pytrees -----


@cache
def _register_pytree() -> None:
    """Register Tensors as pytrees.

    A leaf Tensor has one child, its array, and no other data, so that `jit` retraces only for
    shapes and dtypes.
    """
    for kind in (*own_arrays.tensor_classes(), *own_arrays.stand_ins()):
        jax.tree_util.register_pytree_node(
            kind,
            lambda t: ((own_arrays.opened(t, "a JAX transformation"),), None),
            lambda _, children: own_arrays.closed(children[0], "jax"),
        )
    # the module in which JAX caches checks of arguments; newer versions may lack it
    for kind in own_arrays.tensor_classes():
        getattr(importlib.import_module("jax._src.core"), "pytype_aval_mappings", {})[kind] = (
            _no_jax_type
        )


def _no_jax_type(t: Any) -> NoReturn:
    raise TypeError(
        "a Tensor is not a JAX type. Functions of multigrad return Tensors, also for JAX arrays: "
        "return y.array from a function that jax.grad differentiates, or use multigrad.func.grad, "
        "which takes and returns JAX arrays."
    )
