"""The repr of arrays, and the table that notebooks show."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from ..errors import GradientError, LeakError
from .element import Library, library_of
from .level import Layer


def value(x: Any, library: Library | None = None) -> str:
    """The repr of a value; of a 0-d array its number, and its dtype if that is no default."""
    if isinstance(x, Layer):
        return repr(x)
    library = library_of(x) if library is None else library
    if library is None or getattr(x, "shape", None) != () or library.backend.capabilities.lazy:
        return repr(x)
    number = _number(str(x)) or _number(_item(x, library))
    if not number:
        return repr(x)
    return number if _is_default(library, x.dtype) else f"{number}, dtype={dtype_name(x.dtype)}"


def _number(text: str) -> str:
    """The text of a number, or ""."""
    if text in ("True", "False"):
        return text
    try:
        complex(text)
    except ValueError:  # a text of the library, as tensor(6.) or dask.array<...>
        return ""
    return text


def _item(x: Any, library: Library) -> str:
    """The only element as Python shows it; "" if it has no value yet, as in a tracer."""
    try:
        return str(library.element(x.dtype).scalar(x))  # type: ignore[misc]
    except Exception:  # libraries raise various errors if there is no value
        return ""


def _is_default(library: Library, dtype: Any) -> bool:
    try:
        return dtype in (
            library.xp.bool,
            *library.backend.namespace.__array_namespace_info__().default_dtypes().values(),
        )
    except (AttributeError, TypeError):  # a library without inspection
        return dtype_name(dtype) in ("bool", "int64", "float64", "complex128")


def dtype_name(dtype: Any) -> str:
    """The name of a dtype in the standard."""
    return str(getattr(dtype, "name", None) or str(dtype).rpartition(".")[2])


def text(t: Any) -> str:
    """The repr of a Tensor: its value, its backend, its place in the graph.

    A Tensor inside nested transformations is shown once, with its own place.
    """
    place = history(t)  # `history` brings views up to date
    backend = "" if t._elem.library.name == "numpy" else f"backend='{t._elem.library.name}'"
    return (
        f"Tensor({', '.join(filter(None, (value(_inside(t), t._elem.library), backend, place)))})"
    )


def _levels(t: Any) -> Iterator[Any]:
    """The Tensors of a nested value, from the outermost to the innermost."""
    while isinstance(t, Layer) and hasattr(type(t), "grad_fn"):
        yield t
        t = t._array


def _inside(t: Any) -> Any:
    *_, last = _levels(t)
    return last._array


def history(t: Any) -> str:
    """The place of a Tensor in the graph, at the highest level at which it has one."""
    for x in _levels(t):
        try:
            x._check()
            node = x.grad_fn
        except LeakError:
            return "leaked"
        except GradientError:
            return "grad_fn=<Invalid>"
        if node is not None:
            return f"grad_fn=<{node.name()}>"
        if x._history is not None:
            return "requires_grad=True"
    return ""


def html(t: Any) -> str:
    """The HTML for notebooks: a line on the Tensor, above the library's view of the values."""
    library = t._elem.library
    place = history(t)
    facts = [f"shape {tuple(t.shape)}", dtype_name(t.dtype), library.name, place]
    head = " &middot; ".join(escape(fact) for fact in facts if fact)
    inner = _inside(t)
    own = getattr(inner, "_repr_html_", None)
    body = (
        own()
        if callable(own) and not isinstance(inner, Layer)
        else f'<pre style="margin:2px 0 0">{escape(value(inner, library))}</pre>'
    )
    return (
        f'<div class="multigrad-tensor"><span style="font:600 12px sans-serif">Tensor</span> '
        f'<span style="font:12px sans-serif;opacity:.7">{head}</span>{body}</div>'
    )
