"""Calls of public functions with bad arguments, written as Python source.

The names of this module are those that the source of a call uses: after `from misuse import *` in
the folder of the tests, the line that a failure prints runs as it is.
"""

from __future__ import annotations

import ast
import collections
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from function_programs import Square

import multigrad as mg
from multigrad import func


class Planned(Exception):
    """What the objects below raise: the caller's own error, which passes through."""


def raising(*names: str) -> Any:
    """An object whose methods of these names raise Planned."""

    def fail(*_: Any, **__: Any) -> Any:
        raise Planned

    return type("Raising", (), dict.fromkeys(names, fail))()


def limited(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which raises Planned at its 200th call: a loop ends."""
    left = iter(range(200))

    def called(*args: Any, **kwargs: Any) -> Any:
        if next(left, None) is None:
            raise Planned
        return function(*args, **kwargs)

    return called


def fails(*_: Any, **__: Any) -> Any:
    raise Planned


def leaf(*shape: int) -> Any:
    return mg.ones(shape, requires_grad=True)


def exited(transform: Callable[..., Any] = func.grad) -> Any:
    """An array of a transformation that is over."""
    kept: list[Any] = []
    transform(lambda x: kept.append(x) or mg.sum(x))(np.ones(2))
    return kept[0]


def exited_jvp() -> Any:
    return exited(lambda f: lambda x: func.jvp(f, (x,), (x,)))


def freed() -> Any:
    """A Tensor whose graph a backward pass has freed."""
    y = mg.sum(leaf(2) ** 2)
    y.backward()
    return y


def closed() -> Any:
    generator = (i for i in range(2))
    generator.close()
    return generator


def recursive(kind: type = list) -> Any:
    """A list or a dictionary that contains itself."""
    x: Any = kind()
    if kind is dict:
        x["x"] = x
    else:
        x.append(x)
    return x


def strict(*shape: int) -> Any:
    """An array of another library."""
    return mg.namespace("strict").ones(shape).array


def entered(context: Any) -> Any:
    with context as inside:
        return inside


class Foreign:
    """It looks like an array of a library that multigrad does not know."""

    shape = (2,)
    ndim = 1
    dtype = "float64"

    def __init__(self) -> None:
        """Python's own does not name the class in its errors."""


Point = collections.namedtuple("Point", "x y")


def profiled() -> Any:
    with mg.autograd.profiler.profile() as p:
        graph(2)
    return p


def context() -> Any:
    """The ctx of a Function."""
    return Square.apply(leaf(2)).grad_fn


def graph(*shape: int) -> Any:
    """A Tensor with a graph."""
    return leaf(*shape) * 2.0


# -- signatures


def parameters(says: str) -> list[inspect.Parameter]:
    """The parameters of a signature in tools/surface.txt, whose annotations stay text."""
    (node,) = ast.parse(f"def f{says}: ...").body
    assert isinstance(node, ast.FunctionDef)
    a, kinds = node.args, inspect.Parameter
    required = len(a.posonlyargs) + len(a.args) - len(a.defaults)
    given = [
        *((x, kinds.POSITIONAL_ONLY) for x in a.posonlyargs),
        *((x, kinds.POSITIONAL_OR_KEYWORD) for x in a.args),
    ]
    rows = [(x, kind, i >= required) for i, (x, kind) in enumerate(given)]
    rows += [(a.vararg, kinds.VAR_POSITIONAL, False)] if a.vararg else []
    rows += [
        (x, kinds.KEYWORD_ONLY, default is not None)
        for x, default in zip(a.kwonlyargs, a.kw_defaults, strict=True)
    ]
    rows += [(a.kwarg, kinds.VAR_KEYWORD, False)] if a.kwarg else []
    return [
        kinds(
            x.arg,
            kind,
            default=None if optional else kinds.empty,
            annotation=ast.unparse(x.annotation) if x.annotation else "",
        )
        for x, kind, optional in rows
    ]


# -- the sources of arguments


def _split(text: str) -> list[str]:
    return [source.strip() for line in text.strip().splitlines() for source in line.split(" | ")]


BAD = _split("""
None | ... | NotImplemented | object() | object | int | type | print | mg | np | slice(None) | 'x'
'' | 'numpy' | 'float64' | b'x' | bytearray(2) | memoryview(b'xy') | Exception | Exception()
1.5 | -1 | 7 | 2**62 | 10**30 | -2**63 | float('nan') | float('inf') | 1j | True | False
{} | {1: 2} | {'x': 1} | [] | () | ('',) | [None] | [[1.0], [1.0, 2.0]] | [[[]]] | set() | {1, 2}
range(3) | iter([1]) | (i for i in range(2)) | closed() | recursive() | recursive(dict)
np.float64(1.5) | np.int64(1) | np.bool_(True) | np.float64('nan') | np.float64 | np.dtype('f8')
np.ones(7) | np.ones((2, 3, 4)) | np.ones((0,)) | np.array(1.0) | np.array(3) | np.array([1, 2])
np.array(['a']) | np.array([object()]) | np.ones(2, 'bool') | np.ones(2, 'float16')
np.ones(2, 'complex64') | np.zeros(2, 'M8[s]') | np.ma.ones(2) | np.matrix([[1.0]])
mg.ones(7) | leaf(3) | leaf() | leaf(0) | leaf(2, 3, 4) | mg.asarray([1, 2]) | mg.ones(2) > 0
mg.ones(2, dtype='complex128', requires_grad=True) | strict(2) | strict(2, 2) | freed()
mg.namespace('strict').ones(2, requires_grad=True) | mg.namespace('numpy') | mg.backends()[0]
exited() | exited_jvp() | exited(func.vmap) | Foreign() | Foreign | mg.Tensor
Point(1.0, 2.0) | Point | collections.Counter() | mg.no_grad | mg.no_grad() | inspect.signature(len)
graph(2).grad_fn | context() | mg.registry.OPS['sin'] | mg.sin | func.grad | Square | Square.apply
fails | lambda: 1.0 | lambda a, b, c: a | lambda x, *, k: x | lambda x: None | lambda *a: 'x'
raising('__array__') | raising('__index__') | raising('__bool__') | raising('__eq__')
raising('__len__') | raising('__iter__') | raising('__float__') | raising('__hash__')
raising('__call__') | raising('__getitem__') | raising('__getattr__') | raising('__repr__')
raising('__instancecheck__') | raising('__array__', '__iter__', '__len__', '__getitem__')
""")

ARRAYS = _split("""
leaf(2, 2) | np.ones((2, 2)) | mg.ones((2, 2)) | graph(2, 2) | leaf(2) | np.array([0.5, 0.25])
""")
FUNCTIONS = _split("""
lambda x: mg.sum(x * x) | lambda x: x * 2.0 | mg.sin | lambda *a: mg.sum(a[0] * 3.0)
lambda x, y=1.0: mg.sum(x * y)
""")
INTEGERS = _split("0 | 1 | -1 | 2")
FITTING = {
    "function fun func f f_raw fn g op_fun optimize primitive_fun": FUNCTIONS,
    "cond_fun": _split("lambda x: False | lambda x: mg.sum(x) != mg.sum(x)"),
    "body_fun": _split("limited(lambda x: x * 2.0) | limited(lambda i, x: x * 2.0)"),
    "body": _split("limited(lambda c, x: (c, x))"),
    "distance": _split("limited(lambda x, y: 0.0)"),
    "true_fun false_fun": _split("lambda x: x | lambda x: 2.0 * x"),
    "branches": _split("[lambda x: x, lambda x: 2.0 * x]"),
    "operator operator_": _split("lambda f, x: f(x)"),
    "primals tangents inputs v": _split(
        "(leaf(2, 2),) | leaf(2, 2) | np.ones((2, 2)) | np.ones(2)"
    ),
    "outputs": _split("mg.sum(graph(2)) | graph(2)"),
    "init_val carry state": _split("1.0 | mg.ones(2) | np.ones(2)"),
    "lower": ["0"],
    "upper num_iters length": ["2"],
    "index pred": _split("0 | True | mg.asarray(1)"),
    "tree": _split("{'a': np.ones(2), 'b': [leaf(2)]} | [np.ones(2)]"),
    "tensor x t": ARRAYS,
    "tensors": _split("graph(2) | [mg.sum(graph(2))]"),
    "axis axes axis1 axis2 source destination in_axes out_axes argnums argnum": INTEGERS,
    "shape": _split("(2, 2) | 4 | (4,) | [2, 2]"),
    "axes": _split("(1, 0) | 1"),
    "dtype type": _split("'float64' | mg.float32 | np.float64"),
    "kind": _split("'real floating' | mg.float64"),
    "device": _split("'cpu' | None"),
    "norm": ["'ortho'"],
    "mode": _split("'all' | 'reduced'"),
    "key": _split("0 | slice(None) | (0, 1) | None"),
    "value": _split("1.0 | np.ones(2) | leaf(2)"),
    "indices": _split("mg.asarray([0, 1]) | np.array([0, 1])"),
    "arrays tup": _split("[leaf(2, 2), mg.ones((2, 2))] | (leaf(2, 2),)"),
    "subscripts": _split("'ij,jk->ik' | 'ij->i'"),
    "name": _split("'numpy' | 'x'"),
    "backend": _split("'numpy' | 'strict'"),
    "op": _split("mg.registry.OPS['sin'] | mg.registry.OPS['multiply']"),
    "args": _split("(leaf(2),) | (leaf(2), leaf(2))"),
    "signature": _split("'misused.f(x, /)' | 'misused.g(x, y, /)'"),
    "path": _split("'file' | 'file.html'"),
    "level": ["0"],
    "strategy outer_jacobian_strategy": _split("'reverse-mode' | 'forward-mode'"),
    "forward jvp vjp vjpmaker jvpmaker": _split("lambda xp, x: x | lambda xp, g: g"),
    "flatten": ["lambda x: ((x.a,), None)"],
    "unflatten": ["lambda aux, children: children[0]"],
    "cls": _split("type('Own', (), {}) | type('Arrays', (np.ndarray,), {})"),
    "listener hook": ["lambda *_: None"],
    "t_span": ["(0.0, 1.0)"],
    "x0 y0 p0": _split("np.ones(2) | leaf(2)"),
    "xdata ydata": ["np.ones(5)"],
    "matvec": ["lambda x: 2.0 * x"],
    "structure": ["func.tree.flatten([1.0])[1]"],
    "leaves": ["[1.0]"],
    "array_types": ["(Foreign,)"],
    "namespace": ["np"],
    "metric": ["'self_cpu_time_total'"],
}
"""By the name of a parameter, the sources of arguments that may be right."""

ANNOTATED = {
    "bool": _split("True | False"),
    "int": INTEGERS,
    "float": _split("1e-3 | 1.0"),
    "str": _split("'' | 'x'"),
    "Callable": FUNCTIONS,
    "Function": FUNCTIONS,
    "Array": ARRAYS,
    "Tensor": ["leaf(2, 2)"],
    "Sequence": _split("() | (1,)"),
    "Iterable": _split("() | (1,)"),
    "Mapping": ["{}"],
}
"""By a word of its annotation."""

_BY_NAME = {name: sources for names, sources in FITTING.items() for name in names.split()}


def fitting(name: str, annotation: str) -> list[str]:
    """The sources of arguments that a parameter may take."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    words = [sources for word, sources in ANNOTATED.items() if word in annotation]
    return words[0] if words else [*ARRAYS, "1.0", "1"]


INSTANCES = {
    "multigrad.Tensor": _split("""
leaf(2, 2) | graph(2, 2) | mg.ones((2, 2)) | mg.namespace('strict').ones((2, 2)) | mg.asarray([1, 2])
leaf(2)[0] | leaf() | freed() | exited()
"""),
    "multigrad.autograd.Function": ["Square()"],
    "multigrad.autograd.function.FunctionCtx": ["context()"],
    "multigrad.autograd.function.BackwardCFunction": ["context()"],
    "multigrad.autograd.graph.Node": _split("graph(2).grad_fn | freed().grad_fn"),
    "multigrad.autograd.graph.GraphPicture": ["mg.autograd.graph.draw(graph(2))"],
    "multigrad.autograd.graph.MemoryReport": ["mg.autograd.graph.memory_report(graph(2))"],
    "multigrad.autograd.profiler_util.FormattedTimesMixin": ["profiled().function_events[0]"],
    "multigrad.autograd.profiler.EventList": ["profiled().function_events"],
    "multigrad.autograd.profiler.FunctionEvent": ["profiled().function_events[0]"],
    "multigrad.autograd.profiler.profile": ["profiled()"],
    "multigrad.extend.Op": ["mg.registry.OPS['sin']"],
    "multigrad.extend.Transform": ["mg.extend.Transform('x')"],
    "multigrad.registry.Rule": ["mg.registry.OPS['sum'].vjp['x']"],
    "multigrad.func.custom_vjp": ["func.custom_vjp(lambda x: x)"],
    "multigrad.func.custom_jvp": ["func.custom_jvp(lambda x: x)"],
    "multigrad.typing.Namespace": _split("mg.namespace('strict') | mg.namespace('numpy')"),
    "multigrad.typing.Linalg": ["mg.namespace('strict').linalg"],
    "multigrad.typing.FFT": ["mg.namespace('strict').fft"],
    "multigrad_conformance.Draw": ["multigrad_conformance.Draw('x')"],
    "multigrad_conformance.Sample": ["multigrad_conformance.Sample('x', np.ones(2))"],
}
"""Instances of the classes whose constructors take arguments."""
