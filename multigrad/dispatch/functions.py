"""The functions of operations, generated from one template.

Each has the signature of the standard. It reads the gate, computes the key of the call, and calls
the runner of the key (runners.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from keyword import iskeyword
from types import FunctionType
from typing import Any

from .. import observe
from ..core.level import Layer
from ..core.tensor import Tensor, View, lifted
from ..errors import nearest
from ..observe import gate
from ..provided import provide, wanted
from ..registry import OPS, Op, keeping
from ..tracebacks import shown
from . import checking, generated, runners, signature, writer
from .explaining import failed
from .general import arrays_of, composed, general, operate, resolve_composite
from .generated import tuple_text
from .settings import AXIS, LENGTHS, kinds
from .signature import is_keyed, key_lines

_functions: dict[Op, Callable[..., Any]] = {}


def function_of(op: Op) -> Callable[..., Any]:
    """The differentiable function of an operation, one for all backends."""
    compiled = _functions.get(op)
    if compiled is None:
        compiled = make_function(op)
        with keeping:
            # another thread may have replaced it in the meantime
            if op.name in OPS and OPS[op.name] is op:
                compiled = _functions.setdefault(op, compiled)
    return compiled


def forget(op: Op) -> None:
    """Drop the function of a former declaration."""
    with keeping:
        for declared in [other for other in list(_functions) if other.name == op.name]:
            _functions.pop(declared, None)


def make_function(
    op: Op,
    name: str = "",
    reflected: bool = False,
    method: bool = False,
    operator: bool = False,
    key_is_plain: bool = False,
) -> Callable[..., Any]:
    """Write the function of an operation.

    Its local variables begin with an underscore, which parameters must not.

    method        for a class of array objects: all parameters but the array may be passed by name,
                  as in NumPy's `x.astype(dtype=float)`
    reflected     with its two arguments exchanged, for `__radd__` and the like
    operator      for Python's operators: returns NotImplemented for an operand that is not an
                  array, so that the operand's own method is called
    key_is_plain  the key consists of integers and slices
    """
    name = name or op.name.rpartition(".")[2]
    called = f"{name}_" if iskeyword(name) else name
    lines = [*_function_lines(op, called, reflected, method, key_is_plain)]
    if checking.CHECKED:
        lines += [f"def _generated({', '.join(op.roles)}):", _GATE, *_carried_out(op, key_is_plain)]
    text = "\n".join(lines)
    scope: dict[str, Any] = {
        "_Tensor": Tensor,
        "_View": View,
        "_op": op,
        "_general": operate if operator else general,
        "_gate": gate.get,
        "_arrays_of": arrays_of,
        "_observed": observe.operation,
        "_order": _order(op, reflected),
        "_as_numpy": as_numpy,
        "_unexpected": _unexpected,
        "_failed": failed,
        "_checked": checking.checked,
        "__tracebackhide__": shown,
    }
    scope |= {
        f"_default_{p.name}": p.default
        for p in op.signature.parameters.values()
        if p.default is not p.empty
    }
    if op.kind == "composite":
        scope |= {
            "_Layer": Layer,
            "_table": OPS,
            "_form": resolve_composite(op),
            "_composed": composed,
            "_lifted": lifted,
        }
        # a form hands tuples on to operations, which test their elements
        scope |= {
            f"_types_of_{n}": kind.types | ({tuple} if kind in (AXIS, LENGTHS) else set())
            for n, kind in kinds(op).items()
        }
    if is_keyed(op):
        table = runners.table_of(op, key_is_plain)
        scope |= signature.names | {"_find": table.found.get, "_missed": table.missed}
    generated.run(text, f"multigrad {op.name}", scope)
    function: Any = scope.pop(called)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = generated.documentation(op)
    function.__module__ = "multigrad"
    if not reflected and not operator:
        own = op.signature
        if method:  # settings also by position, but no keywords that exist only for errors
            own = inspect.signature(function)
            own = own.replace(parameters=[p for n, p in own.parameters.items() if n != "_more"])
        function.__signature__ = own
    scope["_told"] = True
    scope["_inner"] = FunctionType(
        function.__code__, scope | {"_told": False}, function.__name__, function.__defaults__
    )
    scope["_inner"].__kwdefaults__ = function.__kwdefaults__
    result: Callable[..., Any] = function
    return result


def inner_function(op: Op) -> Callable[..., Any]:
    """The function of an operation for the next inner values.

    It does not notify observers, since they were notified at the call.
    """
    inner: Callable[..., Any] = function_of(op).__globals__["_inner"]
    return inner


provide(writer, inner_function=inner_function)


def _order(op: Op, reflected: bool) -> tuple[str, ...]:
    """The names of the positional parameters for observers."""
    names = list(op.roles)
    return (names[1], names[0], *names[2:]) if reflected else tuple(names)


def _function_lines(
    op: Op, name: str, reflected: bool, method: bool, key_is_plain: bool
) -> Iterator[str]:
    yield f"def {name}({parameters_text(op, reflected, method)}):"
    yield "    try:"
    yield from (f"    {line}" for line in _body_lines(op, reflected, key_is_plain))
    yield "    except Exception as _error:"
    yield (
        f"        _explained = _failed(_error, _op, {tuple_text(op.roles)})  "
        "# MULTIGRAD_TRACEBACK=full shows the frames inside"
    )
    yield "        if _explained is not None:"
    yield "            raise _explained from _error"
    yield "        raise"


def _body_lines(op: Op, reflected: bool, key_is_plain: bool) -> Iterator[str]:
    yield from _wider_lines(op)
    yield _GATE
    yield "    if _mode is not True and _told and _mode.operations:"
    yield f"        return _observed(_mode, _op, _order, _inner, {_arguments(op, reflected)})"
    # from here on all sequences are tuples or lists
    for p in op.signature.parameters.values():
        if op.roles[p.name] == "arrays" and p.kind is not p.VAR_POSITIONAL:
            yield f"    if type({p.name}) is not tuple and type({p.name}) is not list:"
            yield f"        {p.name} = _arrays_of(_op, {p.name!r}, {p.name})"
    if "key" in op.roles and not key_is_plain:
        yield "    if type(key) is not tuple and isinstance(key, tuple):"
        yield "        key = tuple(key)"
    if checking.CHECKED:
        yield f"    return _checked(_op, _generated, _general, {tuple_text(op.roles)})"
    else:
        yield from _carried_out(op, key_is_plain)


_GATE = "    _mode = _gate()"


def _carried_out(op: Op, key_is_plain: bool) -> Iterator[str]:
    """The lines after observers were notified, and after the gate was read."""
    if op.kind == "composite":
        yield from _composite_lines(op)
        return
    if not is_keyed(op):
        yield f"    return _general(_op, {tuple_text(op.roles)})"
        return
    yield from key_lines(op, key_is_plain)
    yield "    _runner = _find(_key)"
    yield "    if _runner is not None:"
    yield f"        return _runner(_mode, {', '.join(op.roles)})"
    yield f"    return _missed(_key, _general, {tuple_text(op.roles)})"


def _composite_lines(op: Op) -> Iterator[str]:
    """The body of a composite, which runs its form in the namespace of its first array.

    This applies while the declaration is that of the table, and if settings have their usual types.
    The form gets no raw arrays beside layers, because the operators of some libraries do not defer.
    """
    first = next((name for name, role in op.roles.items() if role == "array"), None)
    if first is not None and "arrays" not in op.roles.values():
        parameters = op.signature.parameters
        tests = [f"isinstance({first}, _Layer)", f"_table.get({op.name!r}) is _op"]
        tests += [f"type({n}) in _types_of_{n}" for n in kinds(op)]
        tests += [
            f"{n} is not None"
            for n, role in op.roles.items()
            if role == "array" and n != first and parameters[n].default is not None
        ]
        yield f"    if {' and '.join(tests)}:"
        arguments = [
            name
            if role == "plain" or name == first
            else f"{name} if {name} is None or isinstance({name}, _Layer) else _lifted({name})"
            for name, role in op.roles.items()
        ]
        yield f"        _result = _form({', '.join([f'{first}._elem.library.bound', *arguments])})"
        yield "        return _result if isinstance(_result, _Layer) else _composed(_op, _result)"
    yield f"    return _general(_op, {tuple_text(op.roles)})"


def parameters_text(op: Op, reflected: bool, method: bool) -> str:
    """The parameters of a function of an operation, as its source has them."""
    parameters = list(op.signature.parameters.values())
    if reflected:
        parameters[:2] = parameters[1::-1]
    # the keyword-only ones that are accepted by position, too: those of the declaration, or else
    # the axis, if it comes first
    free: tuple[str, ...] = ()
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        first = next((p.name for p in parameters if p.kind is p.KEYWORD_ONLY), "")
        free = op.about.positional or (("axis",) if first == "axis" else ())

    def with_text(p: inspect.Parameter) -> inspect.Parameter:
        by_name = method and p.kind is p.POSITIONAL_ONLY and p is not parameters[0]
        default = "None" if p.name in op.about.omissible else f"_default_{p.name}"
        return inspect.Parameter(
            p.name,
            p.POSITIONAL_OR_KEYWORD if by_name or p.name in free else p.kind,
            default=_Text(default) if default == "None" or p.default is not p.empty else p.empty,
        )

    def place(p: inspect.Parameter) -> tuple[int, int]:
        return p.kind, free.index(p.name) if p.name in free else -1

    more = [inspect.Parameter("_more", inspect.Parameter.VAR_KEYWORD)] * _takes_more(op)
    return str(inspect.Signature([*sorted(map(with_text, parameters), key=place), *more]))[1:-1]


class _Text(str):
    """A text that a signature shows without quotation marks."""

    __slots__ = ()
    __repr__ = str.__str__


def _arguments(op: Op, reflected: bool) -> str:
    """The arguments of a function, as the text `args, kwargs`."""
    parameters = op.signature.parameters
    by_name = [n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    positional = [
        f"*{n}" if parameters[n].kind is inspect.Parameter.VAR_POSITIONAL else n
        for n in _order(op, reflected)
        if n not in by_name
    ]
    return f"{tuple_text(positional)}, {{{', '.join(f'{n!r}: {n}' for n in by_name)}}}"


# ----- Arguments that NumPy's functions take beyond the standard -----


@wanted
def as_numpy(op: Op, arguments: dict[str, Any], more: dict[str, Any]) -> Any:
    """Carry out NumPy's function of the same name, with its arguments and keywords.

    Provided by protocols/.
    """


def _takes_more(op: Op) -> bool:
    """Whether the generated function of an operation accepts any keyword.

    It then carries out calls with NumPy's keywords, and its error for a misspelt keyword suggests
    the correct name. If a setting is positional-only, Python's own error is better: for
    `astype(x, dtype=d)`, the error of such a function would say that dtype is missing.
    """
    parameters = op.signature.parameters
    named = any(p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters.values())
    fixed = any(
        p.kind is p.POSITIONAL_ONLY and op.roles[n] == "plain" for n, p in parameters.items()
    )
    return op.about.numpy_keywords or (op.public and named and not fixed)


def _unexpected(op: Op, more: dict[str, Any]) -> TypeError:
    """The error for unknown keywords of an operation: Python's words, and a suggested name."""
    name = next(iter(more))
    parameters = op.signature.parameters.items()
    near = nearest(name, [n for n, p in parameters if p.kind is not p.POSITIONAL_ONLY])
    return TypeError(
        f"{op.name}() got an unexpected keyword argument "
        f"{name!r}.{near or f' It takes {op.name}{op.signature}'}"
    )


def _wider_lines(op: Op) -> Iterator[str]:
    """The text that detects a call of NumPy's function, or with unknown keywords.

    Examples are `std(x, ddof=1)`, `any(x, out=None)`, `where(c)`, `take(x, [0, 2])`. Such a call
    means NumPy's function, which the protocols carry out. A `strict` backend has the standard's
    functions only.
    """
    tests = ["_more"] * op.about.numpy_keywords
    tests += [f"{n} is None" for n in op.about.omissible]
    tests += [f"isinstance({n}, (int, list, tuple))" for n in op.about.listable]
    if tests:
        arguments = ", ".join(f"{n!r}: {n}" for n in op.roles)
        yield f"    if {' or '.join(tests)}:"
        yield (
            f"        return _as_numpy(_op, {{{arguments}}}, "
            f"{'_more' if op.about.numpy_keywords else '{}'})"
        )
    if not op.about.numpy_keywords and _takes_more(op):
        yield "    if _more:"
        yield "        raise _unexpected(_op, _more)"
