"""multigrad: torch.autograd for every Python array library. Importing it imports none of them.

    import multigrad as mg

    x = mg.asarray([1.0, 2.0, 3.0], requires_grad=True)  # or an array of NumPy, JAX, CuPy, ...
    y = mg.sum(mg.sin(x) * x**2)              # the Array API standard, and more of NumPy's
    y.backward()                              # accumulates into the .grad of leaves
    x.register_hook(lambda g: 2.0 * g).remove()  # what a backward pass does with a gradient
    x.grad, x.grad.array, x.detach().numpy()  # a Tensor, the raw array in it, a NumPy array
    xp = x.__array_namespace__()              # the differentiable namespace of its library
    (g,) = mg.autograd.grad(mg.sum(xp.exp(x)), x)  # gradients without touching .grad
    with mg.no_grad(): x -= 0.1 * g           # not recorded; also @mg.no_grad() before a function

    def loss(w, a): return mg.sum((w * a - 1.0) ** 2)  # raw arrays in, raw arrays out
    w, a = mg.ones(3).array, mg.ones(3).array
    mg.func.value_and_grad(loss)(w, a)        # func.grad, vjp, jvp, linearize; argnums= chooses
    mg.func.hessian(loss)(w, a)               # jacrev, jacfwd, jacobian; hvp for products
    mg.func.vmap(mg.func.grad(loss), (None, 0))(w, mg.eye(3).array)  # a gradient per example
    mg.func.compile(mg.func.grad(loss))(w, a) # recorded once, replayed; also scan, cond, checkpoint

    mg.zeros((2, 3), requires_grad=True)      # of the default backend: mg.use_backend("jax")
    mg.namespace("numpy"), mg.backends()      # a backend's namespace; which backends there are
    mg.autograd.gradcheck(loss, (mg.asarray(w, requires_grad=True), a))  # finite differences
    mg.autograd.graph.print_graph(mg.sum(x * x))  # what was recorded; draw() makes a picture
    with mg.autograd.profiler.profile() as p: loss(x, a)  # where the time goes
    with mg.autograd.detect_anomaly(): loss(x, a)         # where a nan comes from

A Tensor follows the Array API standard, so array-agnostic code runs on it unchanged. An operation
that cannot be differentiated correctly raises. Your own derivatives: mg.autograd.Function,
mg.func.custom_vjp. Your own operations: mg.registry. Libraries: mg.Backend. Layers: mg.extend. On
the command line: python -m multigrad ops, backends, profile, new. In notebooks: with
mg.profile_page("run.html"). help(mg.sum) describes an operation. mg.typing has types to annotate.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from . import autograd, errors, func, registry
from . import protocols as _protocols  # noqa: F401  the import gives array objects the protocols
from .backends.spec import Backend, BackendSpec, Capabilities
from .clients import register_clients
from .core import element as _element
from .core.foreign_names import FUNCTIONS as _FUNCTIONS
from .core.foreign_names import hint as _hint
from .core.grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from .core.tensor import Tensor, _tensor_from_pickle  # noqa: F401  pickles name the function
from .core.tensor import element_of as _element_of
from .dispatch.creation import asarray, default_library, tensor, use_backend
from .namespace import Namespace as _Namespace
from .plugins.hooks import hookimpl
from .provided import provide
from .tracebacks import entry as _entry
from .tracebacks import fold as _fold

if TYPE_CHECKING:
    from . import extend, typing
    from .plugins.listing import BackendInfo
    from .tools.report.block import profile_page
    from .typing import Namespace as NamespaceProtocol
    from .typing.functions import *  # noqa: F403

__version__ = "0.1.0"

__all__ = [
    "Backend",
    "BackendSpec",
    "Capabilities",
    "Tensor",
    "asarray",
    "autograd",
    "backends",
    "enable_grad",
    "errors",
    "extend",
    "func",
    "hookimpl",
    "inference_mode",
    "is_grad_enabled",
    "namespace",
    "no_grad",
    "profile_page",
    "register_clients",
    "registry",
    "set_grad_enabled",
    "tensor",
    "typing",
    "use_backend",
]
if TYPE_CHECKING:
    # Pyright takes the names that the module of an installed package imports for private
    # unless they are in `__all__`.
    import multigrad.typing.functions as _functions

    __all__ += _functions.__all__


@_entry
def namespace(backend: Any) -> NamespaceProtocol:
    """Return the differentiable Array API namespace of a backend.

    backend  the name of a backend, one of its arrays, or a Tensor

    Raises BackendError if the backend is unknown or cannot be used, and TypeError if the argument
    is not an array of a known library.
    """
    library = (
        _element.library_named(backend)
        if isinstance(backend, str)
        else _element_of(backend).library
    )
    bound: NamespaceProtocol = library.bound
    return bound


@_entry
def backends(probe: bool = False) -> list[BackendInfo]:
    """List the known backends with their state or error.

    Without `probe`, no array library is imported. With it, each backend is tried, and its devices
    and dtypes are filled in. Each entry has the attributes name, distribution, version, state and
    error.
    """
    from .plugins.listing import listing

    return listing(probe)


class _Dispatcher:
    """`multigrad.<prefix>`: the functions of an extension, which dispatch on their arguments."""

    def __init__(self, prefix: str) -> None:
        self.__name__ = f"multigrad.{prefix}"
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return _kept_in(vars(self), name, f"{self._prefix}.{name}")
        except AttributeError as error:
            _fold(error)  # MULTIGRAD_TRACEBACK=full shows the frames inside
            raise

    def __dir__(self) -> list[str]:
        """The names that users call."""
        return [
            name
            for name in dir(getattr(default_library().bound, self._prefix))
            if not name.startswith("_")
        ]

    def __repr__(self) -> str:
        return f"<namespace {self.__name__!r}>"


def _kept_in(place: dict[str, Any], key: str, name: str) -> Any:
    """The function of that name.

    A function that is the same for every default backend is also stored in `place`.
    """
    registry.fill()
    op = registry.OPS.get(name)
    function, keep = _lookup(name)
    if keep:
        with registry.keeping:
            _kept.setdefault(name, {})[id(place), key] = place
            # another thread, or a signal handler, may have replaced it meanwhile
            now = registry.OPS[name] if name in registry.OPS else None  # noqa: SIM401 - see `keeping`
            if now is op and key not in place:
                place[key] = function
    return function


def _lookup(name: str) -> tuple[Any, bool]:
    """The function of that name, and whether it is the same for every default backend.

    Only a function that is the same for every default backend can be stored.
    """
    from .dispatch.functions import function_of

    op = registry.OPS.get(name)
    if op is not None and op.arrays and op.chapter not in ("creation", "data_type"):
        return function_of(op), True
    member: Any = default_library().bound
    for part in name.split("."):
        member = getattr(member, part)
    if isinstance(member, _Namespace):
        return _Dispatcher(name), True
    return member, op is not None and bool(op.arrays) and member is function_of(op)


_kept: dict[str, dict[tuple[int, str], dict[str, Any]]] = {}
"""For each operation or prefix, the dictionaries that may store its function, by id and key.

A dictionary belongs to this module or to a dispatcher.
"""


def _forget(op: Any) -> None:
    """Remove the function of an earlier declaration from every dictionary that stores it.

    With the last operation of a prefix, the prefix is removed too.
    """
    prefix = op.name.rpartition(".")[0]
    with registry.keeping:
        for name in (op.name,) if not prefix or registry.is_prefix(prefix) else (op.name, prefix):
            for (_, key), place in list(_kept.get(name, {}).items()):
                place.pop(key, None)


registry.on_declaration(_forget)


def _is_ours(name: str) -> bool:
    """Whether the attribute of that name is not an operation; a module may not be imported yet."""
    stored = name in _kept or registry.is_declared(name)
    return not stored and (name in globals() or find_spec(f"{__name__}.{name}") is not None)


provide(registry, is_ours=_is_ours)


def _attribute(name: str) -> Any:
    """Any function of the Array API standard.

    A function of arrays dispatches on its arguments. A creation function uses the default backend.
    A function that is the same for every default backend is stored in the module, so that `mg.sum`
    costs as much as `xp.sum`.
    """
    if name.startswith("_"):
        raise _missing(name)
    if name in ("extend", "typing"):  # imported on first use
        return import_module(f"multigrad.{name}")
    if name == "profile_page":
        globals()[name] = import_module("multigrad.tools.report.block").profile_page
        return globals()[name]
    try:
        return _kept_in(globals(), name, name)
    except AttributeError:
        raise _missing(name) from None


if not TYPE_CHECKING:  # type checkers know every name from typing/functions.pyi
    __getattr__ = _attribute


def _missing(name: str) -> AttributeError:
    return AttributeError(
        f"module 'multigrad' has no attribute {name!r}{_hint(_FUNCTIONS, name)}",
        name=name,
        obj=sys.modules[__name__],
    )


def __dir__() -> list[str]:
    """The names that users call: those of this module, and all operations without an underscore."""
    names = {name for name in dir(default_library().bound) if not name.startswith("_")}
    return sorted({*__all__, *names, "__version__", "__doc__", "__all__"})
