"""Typical mistakes: each error says what is wrong, why, and how to mend it.

A row has the mistake, the exception, and what it must say: its first words, which are PyTorch's
where the text is PyTorch's, and what follows of it, in its text or in the note that an error of the
array library gets. The words are multigrad's own, so they are the same on all libraries; mistakes
of which a library has its own error are made on each.
"""

from __future__ import annotations

import ast
import copy
import math
import pickle
import re
import traceback
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from function_programs import Square

import multigrad as mg
from multigrad import func
from multigrad.autograd import Function, gradcheck, gradgradcheck, graph
from multigrad.errors import OWN
from multigrad.registry import define


class Row(NamedTuple):
    name: str
    mistake: Callable[[Any], Any]
    begins: str
    says: tuple[str, ...] = ()
    kind: Any = TypeError


class Series:
    """As that of pandas: neither an array nor hashable."""

    __hash__ = None  # type: ignore[assignment]

    def to_numpy(self) -> Any:
        return np.ones(2)


class Convertible:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.ones(2)


class AddsOne(Function):
    """It writes to its argument."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x += 1.0
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


class TooMany(Square):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, g


def leaf(xp: Any, *shape: int) -> Any:
    return xp.ones(shape or (2,), dtype=xp.float64, requires_grad=True)


def raw(xp: Any, *shape: int) -> Any:
    return xp.ones(shape or (2,), dtype=xp.float64).array


def integers(xp: Any) -> Any:
    return xp.asarray([1, 2])


def modified(xp: Any) -> None:
    y = xp.exp(leaf(xp))
    y += 1
    xp.sum(y).backward()


def leaked(xp: Any) -> Any:
    kept: list[Any] = []
    func.jvp(lambda x: kept.append(x) or xp.sum(x), raw(xp), raw(xp))
    return kept[0] + 1


def leaked_batch(xp: Any) -> Any:
    kept: list[Any] = []
    func.vmap(lambda x: kept.append(x) or x)(raw(xp))
    return kept[0] + 1


def setting(x: Any, name: str, value: Any) -> None:
    setattr(x, name, value)


def assigned(x: Any, key: Any, value: Any) -> None:
    x[key] = value


def added(x: Any, value: Any) -> None:
    x += value


def plain_jvp(f: Any, x: Any) -> Any:
    return func.jvp(f, (x,), (x,))


NO_AXIS = "has no axis. x.item() is its value"
IN_PLACE = (
    "Write to it in `with multigrad.no_grad():`",
    "y = x + v instead of x += v",
    "y = x.clone() before y[0] = v",
)
COPY = (
    "It is an argument of a function that is being differentiated: copy it first, x = x.clone(), "
    "and write to the copy.",
)
LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
NUMPY = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
ASKED = (
    "NumPy asked for the values",
    "multigrad.stack([...]) or multigrad.asarray([...])",
    "np.zeros_like(x)",
    "multigrad.func.custom_vjp",
)
SCALAR = "grad can be implicitly created only for scalar outputs"
BROADCAST = "Shapes broadcast where their lengths, counted from the last axis, are equal or 1"
KEEPS = "A Tensor written in place keeps its"

ROWS = [
    # backward and grad
    Row(
        "backward of no scalar",
        lambda xp: leaf(xp).backward(),
        SCALAR,
        ("shape (2,)", "xp.sum()", "func.jacrev"),
        kind=RuntimeError,
    ),
    Row(
        "backward of a complex number",
        lambda xp: xp.sum(leaf(xp) * xp.asarray(1j)).backward(),
        "grad can be implicitly created only for real scalar outputs but got",
        ("complex128", "xp.real()", "xp.abs()"),
        kind=RuntimeError,
    ),
    Row(
        "backward of a constant",
        lambda xp: xp.sum(xp.ones(2)).backward(),
        "element 0 of tensors does not require grad",
        ("no_grad()", "python -m multigrad breaks"),
        kind=RuntimeError,
    ),
    Row(
        "grad by what was not used",
        lambda xp: mg.autograd.grad(xp.sum(leaf(xp)), leaf(xp)),
        "The differentiated Tensor at index 0 appears to not have been used",
        ("allow_unused=True",),
        kind=RuntimeError,
    ),
    Row(
        "grad by a raw array",
        lambda xp: mg.autograd.grad(xp.sum(leaf(xp)), raw(xp)),
        "inputs of grad() must be Tensors",
        ("func.grad",),
    ),
    Row(
        "grad by a constant",
        lambda xp: mg.autograd.grad(xp.sum(leaf(xp)), xp.ones(2)),
        "One of the differentiated Tensors does not require grad",
        ("requires_grad_() before the outputs are computed",),
        kind=RuntimeError,
    ),
    Row(
        "backward of a raw array",
        lambda xp: mg.autograd.backward(raw(xp, 1)),
        "element 0 of tensors is of type",
        ("expected a multigrad Tensor", "func.grad"),
    ),
    Row(
        "no outputs",
        lambda xp: mg.autograd.grad([], leaf(xp)),
        "grad requires non-empty outputs",
        kind=RuntimeError,
    ),
    Row(
        "a saved value was modified",
        modified,
        "one of the variables needed for gradient computation has been modified by an inplace",
        ("output 0 of Exp", "set_detect_anomaly"),
        kind=RuntimeError,
    ),
    # leaves, flags, hooks
    Row(
        "in place on a leaf",
        lambda xp: added(leaf(xp), 1.0),
        LEAF,
        IN_PLACE,
        kind=RuntimeError,
    ),
    Row(
        "a write to a part of a leaf",
        lambda xp: assigned(leaf(xp), 0, 1.0),
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
        IN_PLACE,
        kind=RuntimeError,
    ),
    Row(
        "a twin on a leaf",
        lambda xp: leaf(xp).sin_(),
        LEAF,
        IN_PLACE,
        kind=RuntimeError,
    ),
    Row(
        "integers that require grad",
        lambda xp: xp.asarray([1, 2], requires_grad=True),
        "only Tensors of floating point and complex dtype can require gradients",
        ("int64", "xp.astype(x, xp.float64)"),
        kind=RuntimeError,
    ),
    Row(
        "the flag of a result",
        lambda xp: setting(leaf(xp) * 2, "requires_grad", False),
        "you can only change requires_grad flags of leaf variables.",
        ("detach()",),
        kind=RuntimeError,
    ),
    Row(
        "a hook on a constant",
        lambda xp: xp.ones(2).register_hook(print),
        "cannot register a hook on a tensor that doesn't require gradient",
        ("requires_grad_() first",),
        kind=RuntimeError,
    ),
    Row(
        "retain_grad of a constant",
        lambda xp: xp.ones(2).retain_grad(),
        "can't retain_grad on Tensor that has requires_grad=False",
        ("requires_grad_() first",),
        kind=RuntimeError,
    ),
    Row(
        "a grad of another shape",
        lambda xp: setting(leaf(xp), "grad", xp.ones(3)),
        "attempting to assign a gradient of size '[3]'",
        ("same size",),
        kind=RuntimeError,
    ),
    Row(
        "a raw grad",
        lambda xp: setting(leaf(xp), "grad", raw(xp)),
        "assigned grad expected to be a Tensor or None",
        ("multigrad.asarray(grad)",),
    ),
    # leaving the graph
    Row(
        "np.asarray of a leaf, as in a plot",
        lambda xp: np.asarray(leaf(xp)),
        NUMPY,
        ASKED,
        kind=RuntimeError,
    ),
    Row(
        "np.array of a list inside func.jvp",
        lambda xp: plain_jvp(lambda x: np.array([x[0], x[1]]), raw(xp)),
        "Can't call numpy() on a Dual",
        ASKED,
        kind=RuntimeError,
    ),
    Row(
        "np.array of a list inside func.vmap",
        lambda xp: func.vmap(lambda x: np.array([x[0], x[1]]))(raw(xp, 2, 2)),
        "Can't call numpy() on a batch",
        ASKED,
        kind=RuntimeError,
    ),
    Row(
        "item() of several",
        lambda xp: xp.ones(2).item(),
        "a Tensor with 2 elements cannot be converted to Scalar",
        ("x[0]", "tolist()"),
        kind=RuntimeError,
    ),
    *(
        Row(f"{how} a result", lambda xp, f=f: f(leaf(xp) * 2), begins, (way,), kind=RuntimeError)
        for how, f, begins, way in (
            ("pickling", pickle.dumps, "only leaf Tensors can be pickled", "detach()"),
            ("copying", copy.copy, "only leaf Tensors can be copied by copy.copy()", "clone()"),
        )
    ),
    Row(
        "an index that is a float",
        lambda xp: [1, 2][xp.asarray(1.0)],
        "only integer Tensors of one element can be used as an index",
        ("float64", "int(x)"),
    ),
    Row(
        "len of one number",
        lambda xp: len(xp.asarray(1.0)),
        "len() of a 0-d Tensor",
        (NO_AXIS,),
    ),
    Row(
        "iteration over one number",
        lambda xp: list(xp.asarray(1.0)),
        "iteration over a 0-d Tensor",
        (NO_AXIS,),
    ),
    # making arrays
    Row(
        "zeros with a backend",
        lambda xp: mg.zeros(3, backend="numpy"),
        "zeros() got an unexpected keyword argument 'backend'",
        ("multigrad.namespace('numpy').zeros(", "multigrad.use_backend()"),
    ),
    Row(
        "ones of two numbers",
        lambda xp: xp.ones(2, 3),
        "ones() too many positional arguments",
        ("The shape is one argument: ones((2, 3))",),
    ),
    Row(
        "a misspelt keyword of zeros",
        lambda xp: xp.zeros(2, dtyp=None),
        "zeros() got an unexpected keyword argument 'dtyp'",
        ("Did you mean 'dtype'?",),
    ),
    Row(
        "too many numbers for arange",
        lambda xp: xp.arange(1, 2, 3, 4),
        "arange() too many positional arguments",
        ("It takes arange(",),
    ),
    Row(
        "a misspelt name of an extension",
        lambda xp: mg.linalg.sovle,
        "the namespace 'multigrad.numpy.linalg' has no 'sovle'",
        kind=AttributeError,
    ),
    Row(
        "two dtypes where one is meant",
        lambda xp: xp.finfo(xp.float32, xp.float64),
        "finfo() too many positional arguments",
    ),
    Row(
        "a call of the class",
        lambda xp: mg.Tensor([1.0]),
        "a Tensor is made by multigrad.asarray(obj) or multigrad.tensor(data)",
    ),
    Row(
        "an unknown dtype",
        lambda xp: xp.ones(2, dtype="float12"),
        "unknown dtype 'float12'",
        ("the names of the standard are bool, int8",),
    ),
    Row(
        "an unknown backend",
        lambda xp: mg.namespace("numpi"),
        "unknown backend 'numpi'",
        ("Did you mean 'numpy'?",),
        kind=RuntimeError,
    ),
    # arguments that are no arrays
    Row(
        "a list for an array",
        lambda xp: mg.sin([1.0]),
        "sin: none of the arguments is an array of a known library (list)",
        ("multigrad.asarray",),
    ),
    Row(
        "a list beside a Tensor",
        lambda xp: xp.multiply(leaf(xp), [1.0, 2.0]),
        "multiply: expected an array, a Tensor or a Python scalar for 'x2', got builtins.list",
        ("Wrap lists with multigrad.asarray",),
    ),
    Row(
        "text for the second array of a composite",
        lambda xp: mg.convolve(leaf(xp), "x"),
        "convolve: expected an array for 'v', got str",
        ("Wrap lists and scalars with multigrad.asarray",),
    ),
    Row(
        "text for an axis",
        lambda xp: xp.flip(leaf(xp), axis=""),
        "flip(): argument 'axis' must be an integer, a tuple of integers, or None, not str: ''",
        ("Pass the number of the axis, as in axis=0.",),
    ),
    Row(
        "text for a flag",
        lambda xp: leaf(xp).sum(keepdims="numpy"),
        "sum(): argument 'keepdims' must be a bool, not str: 'numpy'",
        ("Pass True or False.",),
    ),
    Row(
        "text for an integer",
        lambda xp: xp.tril(leaf(xp, 2, 2), k="1"),
        "tril(): argument 'k' must be an integer, not str: '1'",
        ("Pass it as in k=1.",),
    ),
    Row(
        "text for a shape",
        lambda xp: xp.zeros("3"),
        "zeros(): argument 'shape' must be an integer or a tuple of integers, not str: '3'",
    ),
    Row(
        "bytes for requires_grad",
        lambda xp: xp.ones(3, requires_grad=b"x"),
        "ones(): argument 'requires_grad' must be a bool, not bytes: b'x'",
        ("Pass True or False.",),
    ),
    Row(
        "text for requires_grad of an array",
        lambda xp: xp.asarray(raw(xp), requires_grad=""),
        "asarray(): argument 'requires_grad' must be a bool, not str: ''",
    ),
    Row(
        "text for requires_grad of a copy",
        lambda xp: mg.tensor(raw(xp), requires_grad="no"),
        "tensor(): argument 'requires_grad' must be a bool",
    ),
    Row(
        "text for copy",
        lambda xp: xp.asarray(raw(xp), copy="no"),
        "asarray(): argument 'copy' must be a bool or None, not str: 'no'",
        ("Pass True, False or None.",),
    ),
    Row(
        "a number for the dtype of new zeros",
        lambda xp: xp.zeros(3, dtype=1.5),
        "",
        ("multigrad.zeros: shape=3, dtype=1.5",),
        kind=Exception,
    ),
    Row(
        "an axis out of bounds of logsumexp",
        lambda xp: mg.logsumexp(leaf(xp), axis=-99),
        "axis -99 is out of bounds for ",
        kind=IndexError,
    ),
    Row(
        "too many axes in a fill value",
        lambda xp: xp.full_like(leaf(xp), raw(xp, 2, 1)),
        "full_like: an array of shape (2, 1) cannot be written to a part of 1 dimensions",
        ("Only leading axes of length 1 are dropped.",),
        kind=ValueError,
    ),
    Row(
        "text for create_graph",
        lambda xp: mg.autograd.grad(xp.sum(x := leaf(xp)), x, create_graph="no"),
        "grad(): argument 'create_graph' must be a bool, not str: 'no'",
        ("Pass True or False.",),
    ),
    Row(
        "text for retain_graph",
        lambda xp: xp.sum(leaf(xp)).backward(retain_graph="no"),
        "backward(): argument 'retain_graph' must be a bool, not str: 'no'",
    ),
    Row(
        "a hook for raw arrays",
        lambda xp: graph.register_multi_grad_hook([raw(xp)], print),
        "register_multi_grad_hook(): argument 'tensors' must be a Tensor or a sequence of Tensors",
        ("Only a Tensor has a place in the graph.",),
    ),
    Row(
        "the gradient edge of a raw array",
        lambda xp: graph.get_gradient_edge(raw(xp)),
        "get_gradient_edge(): argument 'tensor' must be a Tensor, not ",
        ("Only a Tensor has a place in the graph.",),
    ),
    Row(
        "an array for a list of arrays",
        lambda xp: mg.concat(3),
        "concat: expected a list or a tuple of arrays, got int",
        ("Pass list(",),
    ),
    Row(
        "a sum with text",
        lambda xp: leaf(xp) + "a",
        "unsupported operand type(s) for +: 'Tensor' and 'str'",
    ),
    Row(
        "two libraries",
        lambda xp: leaf(xp) * mg.namespace("strict" if "numpy" in xp.__name__ else "numpy").ones(2),
        "multiply: got arrays of two backends",
        ("to_backend(", "multigrad.asarray(x, backend="),
    ),
    Row(
        "a keyword that is unlike any",
        lambda xp: xp.concat([leaf(xp)], foo=1),
        "concat() got an unexpected keyword argument 'foo'. It takes concat(arrays, /, *, axis=0)",
    ),
    Row(
        "a keyword beside a shape",
        lambda xp: leaf(xp).reshape(2, cpy=True),
        "Tensor.reshape() got an unexpected keyword argument 'cpy'",
    ),
    Row(
        "a misspelt keyword of a transformation",
        lambda xp: func.grad(lambda x: x, argnum=1),
        "grad() got an unexpected keyword argument 'argnum'. Did you mean 'argnums'?",
    ),
    Row(
        "a misspelt keyword of the function that is differentiated",
        lambda xp: func.grad(lambda x: xp.sum(x))(raw(xp), argnums=1),
        "",
        ("got an unexpected keyword argument 'argnums'",),
    ),
    # in place
    Row(
        "in place to a larger shape",
        lambda xp: added(xp.ones(2), xp.ones((3, 2))),
        "output with shape [2] doesn't match the broadcast shape [3, 2]",
        (KEEPS + " shape", "y = x + v instead of x += v"),
        kind=RuntimeError,
    ),
    # functions with a derivative of one's own
    Row(
        "a Function without jvp in hessian",
        lambda xp: func.hessian(lambda x: xp.sum(Square.apply(x)))(raw(xp)),
        "You must implement the jvp function for custom autograd.Function to use it with "
        "forward mode AD.",
        ("jvp(ctx, *tangents)", "func.jacrev(func.grad(f))", "func.custom_jvp"),
        kind=NotImplementedError,
    ),
    Row(
        "too many gradients",
        lambda xp: xp.sum(TooMany.apply(leaf(xp))).backward(),
        "function TooManyBackward returned an incorrect number of gradients (expected 1, got 2)",
        ("one for each argument of forward", "None"),
        kind=RuntimeError,
    ),
    Row(
        "custom_vjp without a rule",
        lambda xp: func.grad(func.custom_vjp(lambda x: x))(raw(xp, 1)),
        "",
        ("defvjp",),
        kind=RuntimeError,
    ),
    # transformations
    Row(
        "grad by integers",
        lambda xp: func.grad(lambda x: xp.sum(x))(integers(xp).array),
        "grad: cannot differentiate with respect to an array of dtype",
        ("int64", "xp.astype(x, xp.float64)"),
    ),
    Row(
        "grad by a number",
        lambda xp: func.grad(lambda x: x**2)(3.0),
        "grad: cannot differentiate with respect to a Python float",
        ("pass an array, as np.asarray(3.0)",),
    ),
    Row(
        "grad by a series",
        lambda xp: func.grad(lambda x: x)(Series()),
        "grad: cannot differentiate with respect to a Series",
        ("Pass its values, x.to_numpy().",),
    ),
    Row(
        "grad by what NumPy can convert",
        lambda xp: func.grad(lambda x: x)(Convertible()),
        "grad: cannot differentiate with respect to a Convertible",
        ("Pass its values, np.asarray(x).",),
    ),
    Row(
        "a compiled function of a series",
        lambda xp: func.compile(lambda x: x)(Series()),
        "compile: the argument args[0] of type Series is neither an array, a number nor",
        ("Pass its values, x.to_numpy().",),
    ),
    Row(
        "grad by text",
        lambda xp: func.grad(lambda x: x)("a"),
        "grad: cannot differentiate with respect to a str",
        ("register_pytree",),
    ),
    Row(
        "grad by an argument that is not there",
        lambda xp: func.grad(lambda x: x, argnums=2)(raw(xp)),
        "grad: argnums names argument 2, but the function was called with 1 positional arguments",
        kind=ValueError,
    ),
    Row(
        "grad without a function",
        lambda xp: func.grad(raw(xp)),
        "grad: the first argument must be a function",
    ),
    Row(
        "grad of a function that returns two",
        lambda xp: func.grad(lambda x: (xp.sum(x), x))(raw(xp)),
        "grad: the function must return one real scalar, but it returned tuple.",
        ("has_aux=True",),
    ),
    Row(
        "grad of an integer result",
        lambda xp: func.grad(lambda x: xp.argmax(x))(raw(xp)),
        "grad: the function must return one real scalar",
        ("its result has dtype",),
    ),
    Row(
        "argnums that is no integer",
        lambda xp: func.grad(lambda x: x, argnums=1.0),
        "grad: argnums must be an int or a tuple of ints, not 1.0",
    ),
    Row(
        "has_aux without more than a result",
        lambda xp: func.grad(lambda x: xp.sum(x), has_aux=True)(raw(xp)),
        "grad: with has_aux=True the function must return a tuple",
    ),
    Row(
        "a cotangent of another structure",
        lambda xp: func.vjp(lambda x: {"a": x, "b": 2 * x}, raw(xp))[1]({"a": raw(xp)}),
        "the pullback of vjp takes cotangents with the structure of the output: expected a "
        "dictionary with the keys ['a', 'b'], got dict of 1",
        kind=ValueError,
    ),
    Row(
        "in place on an argument of func.grad",
        lambda xp: func.grad(lambda x: added(x, 1.0))(raw(xp)),
        LEAF,
        COPY,
        kind=RuntimeError,
    ),
    Row(
        "a write to the argument of an outer function",
        lambda xp: func.grad(lambda x: func.grad(lambda y: assigned(x, 0, 1.0))(x))(raw(xp)),
        f"a view of {LEAF}",
        COPY,
        kind=RuntimeError,
    ),
    Row(
        "a Function that writes to an argument of func.grad",
        lambda xp: func.grad(AddsOne.apply)(raw(xp, 1)),
        "a leaf Variable that requires grad has been used in an in-place operation.",
        ("Apply the Function to a copy, x.clone().",),
        kind=RuntimeError,
    ),
    Row(
        "a Function that writes to a leaf",
        lambda xp: AddsOne.apply(leaf(xp)),
        "a leaf Variable that requires grad has been used in an in-place operation.",
        ("Apply the Function to a copy, x.clone(), or under `with multigrad.no_grad():`.",),
        kind=RuntimeError,
    ),
    Row(
        "a write to a leaf that is not an argument of func.grad",
        lambda xp: func.grad(lambda x: assigned(leaf(xp), 0, 1.0))(raw(xp)),
        f"a view of {LEAF}",
        IN_PLACE,
        kind=RuntimeError,
    ),
    *(
        Row(
            f"a value from a finished {name}",
            leak,
            f"{what} that was made inside the transformation '{name}'",
            ("return it from the function instead",),
            kind=RuntimeError,
        )
        for name, leak, what in (("jvp", leaked, "a Dual"), ("vmap", leaked_batch, "a batch"))
    ),
    Row(
        "a branch inside vmap",
        lambda xp: func.vmap(lambda x: x if x > 0 else -x)(raw(xp)),
        "bool() of an array inside vmap",
        ("a batch of 2 examples", "where()"),
        kind=RuntimeError,
    ),
    Row(
        "a mask inside vmap",
        lambda xp: func.vmap(lambda x: x[x > 0])(raw(xp, 2, 2)),
        "indexing with a mask inside vmap",
        ("where()", "multiply by the mask"),
        kind=RuntimeError,
    ),
    Row(
        "vmap over an axis that is not there",
        lambda xp: func.vmap(lambda x: x, in_axes=3)(raw(xp)),
        "vmap: in_axes has 3 for an array of shape (2,), which has no such axis",
        ("the axis that counts the examples",),
        kind=ValueError,
    ),
    Row(
        "vmap of different numbers",
        lambda xp: func.vmap(lambda x, y: x)(raw(xp, 2), raw(xp, 3)),
        "vmap: the arguments have different numbers of examples along their in_axes: 2, 3",
        ("in_axes=None",),
        kind=ValueError,
    ),
    Row(
        "vmap over a number",
        lambda xp: func.vmap(lambda x: x)(3.0),
        "vmap: in_axes maps over an argument of type float",
        ("in_axes=None",),
    ),
    Row(
        "vmap of text",
        lambda xp: func.vmap(lambda x: "a")(raw(xp)),
        "vmap: the function must return arrays",
        ("str",),
    ),
    Row(
        "jvp of other shapes",
        lambda xp: func.jvp(lambda x: x, (raw(xp, 2),), (raw(xp, 3),)),
        "Trying to set a forward gradient that has a different size than that of the original "
        "Tensor, this is not supported.",
        ("size [2]", "size [3]", "jvp: each tangent has the shape of its primal"),
        kind=RuntimeError,
    ),
    Row(
        "jvp of a list",
        lambda xp: func.jvp(lambda x: x, [raw(xp)], [raw(xp)]),
        "jvp: primals must be a tuple, so that function(*primals) is a call, or the array that is "
        "the only argument, not list of 1.",
        ("jvp(f, (x,), (v,))",),
    ),
    Row(
        "jvp of an array along a tuple",
        lambda xp: func.jvp(lambda x: x, raw(xp), (raw(xp),)),
        "jvp: primals is an array, so tangents must be an array too, not tuple of 1. With tuples, ",
        ("jvp(f, (x,), (v,))",),
    ),
    Row(
        "jvp of an array along a list",
        lambda xp: func.jvp(lambda x: x, raw(xp), [1.0, 0.0]),
        "jvp: primals is an array, so tangents must be an array too, not list of 2; np.asarray(v) "
        "makes one.",
        ("jvp(f, (x,), (v,))",),
    ),
    Row(
        "hvp of a dictionary",
        lambda xp: func.hvp(lambda p: xp.sum(p["a"]), {"a": raw(xp)}, {"a": raw(xp)}),
        "hvp: primals must be a tuple of at least one argument, so that function(*primals) is a "
        "call, or the array that is the only argument, not dict of 1.",
        ("hvp(f, (x,), (v,))",),
    ),
    Row(
        "hvp along integers",
        lambda xp: func.hvp(xp.sum, raw(xp), integers(xp).array),
        "Expected tangent to be floating point or complex, but got: ",
        ("int64. hvp: convert the tangent, as by xp.astype(v, xp.float64).",),
        kind=ValueError,
    ),
    Row(
        "hvp of other structures",
        lambda xp: func.hvp(xp.sum, (raw(xp),), raw(xp)),
        "hvp: tangents must have the structure of primals: expected a tuple of 1",
        kind=ValueError,
    ),
    Row(
        "a checkpoint of a number",
        lambda xp: func.checkpoint(3),
        "checkpoint: expected a function, not int",
        ("checkpoint(function)(*args)",),
    ),
]


LIBRARIES = [
    Row(
        "shapes that do not broadcast",
        lambda xp: leaf(xp, 2, 3) * leaf(xp, 4, 3),
        "",
        (
            "multigrad.multiply: x1 has shape (2, 3)",
            "x2 has shape (4, 3)",
            BROADCAST,
            "expand_dims()",
        ),
        kind=(ValueError, TypeError),
    ),
    Row(
        "where of other shapes",
        lambda xp: xp.where(xp.ones(2) > 0, leaf(xp, 2), leaf(xp, 3)),
        "",
        ("multigrad.where: condition has shape (2,)", BROADCAST),
        kind=(ValueError, TypeError),
    ),
    Row(
        "matrices that do not match",
        lambda xp: leaf(xp, 2, 3) @ leaf(xp, 2, 3),
        "",
        (
            "multigrad.matmul: x1 has shape (2, 3)",
            "The last axis of x1, of length 3, must be as long as the last but one of x2",
            "x.mT",
        ),
        kind=(ValueError, TypeError),
    ),
    Row(
        "matmul of numbers",
        lambda xp: xp.matmul(leaf(xp), xp.asarray(2.0)),
        "",
        ("multigrad.matmul:", "Both must have an axis"),
        kind=(ValueError, TypeError),
    ),
    Row(
        "an axis that is not there",
        lambda xp: xp.sum(leaf(xp, 2, 3), axis=2),
        "",
        ("multigrad.sum: x has shape (2, 3)", "axis=2", "axes 0 to 1, or -2 to -1 from the end"),
        kind=Exception,
    ),
    Row(
        "an axis of one number",
        lambda xp: xp.max(xp.asarray(1.0), axis=1),
        "",
        ("multigrad.max: x has shape ()", "has no axis"),
        kind=Exception,
    ),
    Row(
        "reshape to another size",
        lambda xp: leaf(xp, 2, 3).reshape(4, 2),
        "",
        ("multigrad.reshape: x has shape (2, 3)", "shape=(4, 2)", "must have 6 elements too"),
        kind=(ValueError, TypeError),
    ),
    Row(
        "axes that are no permutation",
        lambda xp: leaf(xp, 2, 3).permute_dims(0),
        "",
        ("multigrad.permute_dims: x has shape (2, 3)", "axes must name each of the 2 axes once"),
        kind=(ValueError, TypeError),
    ),
    Row(
        "stack of other shapes",
        lambda xp: xp.stack([leaf(xp, 2), leaf(xp, 3)]),
        "",
        (
            "multigrad.stack: arrays have shapes (2,), (3,)",
            "concat() joins arrays along an axis that they have",
        ),
        kind=(ValueError, TypeError),
    ),
    Row(
        "concat of other axes",
        lambda xp: xp.concat([leaf(xp, 2), leaf(xp, 2, 1)]),
        "",
        (
            "multigrad.concat: arrays have shapes (2,), (2, 1)",
            "stack() joins arrays along a new axis",
        ),
        kind=(ValueError, TypeError),
    ),
    Row(
        "concat of other shapes",
        lambda xp: xp.concat([leaf(xp, 2, 3), leaf(xp, 3, 2)]),
        "",
        (
            "multigrad.concat:",
            "The shapes must be the same but along the axis they are joined along",
        ),
        kind=(ValueError, TypeError),
    ),
    Row(
        "broadcast_to a shape that does not fit",
        lambda xp: xp.broadcast_to(leaf(xp, 2), (3,)),
        "",
        ("multigrad.broadcast_to: x has shape (2,)", "must be that of the new shape, or 1"),
        kind=(ValueError, TypeError),
    ),
    Row(
        "an inverse of no square",
        lambda xp: xp.linalg.inv(leaf(xp, 2, 3)),
        "",
        ("multigrad.linalg.inv: x has shape (2, 3)", "a square matrix"),
        kind=Exception,
    ),
    Row(
        "T of three axes",
        lambda xp: leaf(xp, 2, 3, 4).T,
        "T is for two dimensions; this Tensor has 3.",
        (".mT", "permute_dims"),
        kind=ValueError,
    ),
    Row(
        "einsum of other lengths",
        lambda xp: mg.einsum("ij,jk->ik", leaf(xp, 2, 3), leaf(xp, 2, 3)),
        "einsum: 'j' has the lengths 3 and 2 in different operands",
        ("the shapes are (2, 3), (2, 3)",),
        kind=ValueError,
    ),
    Row(
        "too many indexes",
        lambda xp: leaf(xp)[0, 0],
        "",
        ("multigrad.getitem: x has shape (2,)", "takes at most 1 index"),
        kind=IndexError,
    ),
    Row(
        "a part of another shape",
        lambda xp: assigned(xp.ones(2), slice(None), xp.ones(3)),
        "",
        ("setitem", "(3,)"),
        kind=(ValueError, TypeError),
    ),
]
"""Mistakes of shapes and axes, of which the library's error gets a note."""


def said(error: BaseException) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def raised(mistake: Callable[[], Any]) -> BaseException | None:
    try:
        mistake()
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_mistake_is_told_with_its_cure(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    check(row, mg.namespace("numpy"), monkeypatch)


@pytest.mark.parametrize("row", LIBRARIES, ids=lambda row: row.name)
def test_an_error_of_a_library_gets_a_note(
    row: Row, xp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(row, xp, monkeypatch)


def check(row: Row, xp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words, and the traceback: no two lines of multigrad stand one after the other."""
    monkeypatch.delenv("MULTIGRAD_TRACEBACK", raising=False)
    error = raised(lambda: row.mistake(xp))
    assert isinstance(error, row.kind), error
    assert str(error).startswith(row.begins), error
    for words in row.says:
        assert words in said(error), said(error)
    assert re.search(r"\b(LayeredTensor|View|Batched)\b", said(error)) is None, said(error)
    if row.says == COPY:
        assert "no_grad" not in said(error)
    ours = [f.filename.startswith(OWN) for f in traceback.extract_tb(error.__traceback__)]
    assert not any(a and b for a, b in pairwise(ours)), "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    "transform", [func.grad, func.jacrev, func.jacfwd], ids=lambda f: f.__name__
)
def test_a_copy_of_an_argument_is_written(transform: Any) -> None:
    """The cure gives the right gradient, and the caller's array stays as it is."""

    def f(x: Any) -> Any:
        x = x.clone()
        x[0] = 3.0
        return mg.sum(x**2)

    given = np.ones(3)
    assert transform(f)(given).tolist() == [0.0, 2.0, 2.0]
    assert given.tolist() == [1.0, 1.0, 1.0]


def test_numpy_called_by_the_user_says_what_pytorch_says() -> None:
    for convert in (lambda x: x.numpy(), func.grad(lambda x: x.numpy())):
        with pytest.raises(RuntimeError, match=f"^{re.escape(NUMPY)}$"):
            convert(leaf(mg))


@pytest.mark.parametrize("convert", [math.exp, float, int, lambda x: assigned(np.zeros(1), 0, x)])
def test_a_scalar_is_told_with_its_cure(convert: Any) -> None:
    advice = (
        r"\.detach\(\) first\. Instead of math\.exp\(x\), call multigrad\.exp\(x\)\. Instead of a "
        r"NumPy array, write into np\.zeros_like\(x\)\. `python -m multigrad breaks SCRIPT` lists the "
        r"lines on which a gradient is lost\.$"
    )
    begins = "^Converting a tensor with requires_grad=True to a scalar by .* drops its gradient"
    with pytest.warns(UserWarning, match=begins + ".*" + advice):
        convert(leaf(mg, 1)[0])
    with pytest.warns(UserWarning, match="^Converting a Dual .* drops the tangent.*" + advice):
        plain_jvp(lambda x: (convert(x[0]), x)[1], np.ones(1))


@pytest.mark.parametrize("transform", [func.grad, func.jacfwd], ids=lambda f: f.__name__)
def test_what_is_advised_carries_the_derivative(transform: Any) -> None:
    def filled(x: Any) -> Any:
        b = np.zeros_like(x)
        b[0], b[1:] = x[0] ** 2, x[1:] * 3
        return mg.sum(b)

    for f, expected in (
        (lambda x: np.mean(mg.stack([x[0], x[1]])), [0.5, 0.5, 0.0]),
        (lambda x: np.sum(mg.asarray([x[0], x[1]])), [1.0, 1.0, 0.0]),
        (filled, [2.0, 3.0, 3.0]),
        (lambda x: mg.exp(x[0]), [math.e, 0.0, 0.0]),
    ):
        np.testing.assert_allclose(transform(f)(np.ones(3)), expected)


# What is accepted now


def test_arrays_in_the_place_of_tuples() -> None:
    x, v = np.asarray([1.0, 2.0]), np.asarray([1.0, 0.0])
    for kind in (np.asarray, mg.asarray):
        value, product, aux = func.hvp(
            lambda x: (mg.sum(x**3), "aux"), kind(x), kind(v), has_aux=True
        )
        assert (float(value), product.tolist(), aux) == (9.0, [6.0, 0.0], "aux")
        assert type(product) is type(kind(x))
        _, tangent = func.jvp(lambda x: x**2, kind(x), kind(v))
        assert tangent.tolist() == [2.0, 0.0]


# JAX


CALL = (
    r"Call multigrad's functions instead of the library's, as mg\.sin\(x\) for jnp\.sin\(x\), and "
    r"write jax\.jit\(func\.grad\(f\)\) for func\.grad\(jax\.jit\(f\)\); likewise with jvp and vmap\."
)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda jax, x: func.grad(lambda x: jax.numpy.sum(jax.numpy.sin(x)))(x),
            "a Tensor that requires grad cannot pass into or out of a JAX transformation, which "
            rf"would make a constant of it\. {CALL}",
        ),
        (
            lambda jax, x: func.grad(lambda x: jax.numpy.sum(jax.numpy.sin(x * 2)))(x),
            rf"a Tensor with a grad_fn cannot pass .* cut its graph\. {CALL}",
        ),
        (
            lambda jax, x: jax.numpy.sin(mg.asarray(x, requires_grad=True)),
            r"\. Call multigrad's functions .* as mg\.sin\(x\) for jnp\.sin\(x\)\. Into a JAX "
            r"transformation, pass t\.detach\(\) and call requires_grad_\(\) inside",
        ),
        (
            lambda jax, x: jax.numpy.sin(mg.asarray(x, requires_grad=True) * 2),
            r"Into a JAX transformation, pass t\.detach\(\), or take its gradient inside and "
            r"return that\.",
        ),
        (
            lambda jax, x: func.vmap(jax.jit(lambda x: x * 2))(x),
            rf"a batch of a running transformation cannot pass .* the batch\. {CALL}",
        ),
        (
            lambda jax, x: plain_jvp(jax.jit(lambda x: x * 2), x),
            "a Dual of a running transformation cannot pass into or out of a JAX transformation, "
            rf"which would lose the derivative or the batch\. {CALL}",
        ),
    ],
)
def test_what_cannot_pass_into_jax(call: Any, message: str) -> None:
    jax = pytest.importorskip("jax")
    with pytest.raises(RuntimeError, match=message):
        call(jax, jax.numpy.ones(2))


def test_what_is_advised_for_jax() -> None:
    jax = pytest.importorskip("jax")
    assert [*jax.jit(func.grad(lambda x: mg.sum(x * 2)))(jax.numpy.ones(3))] == [2, 2, 2]


def test_jaxs_grad_of_functions_of_multigrad() -> None:
    jax = pytest.importorskip("jax")
    with pytest.raises(
        TypeError, match="Gradient only defined for scalar-output functions. Output was Tensor"
    ) as caught:
        jax.grad(lambda x: mg.sum(mg.sin(x)))(jax.numpy.ones(2))
    assert (
        "return y.array from a function that jax.grad differentiates, or use "
        "multigrad.func.grad" in str(caught.value.__cause__)
    )
    assert np.allclose(
        jax.grad(lambda x: mg.sum(mg.sin(x)).array)(jax.numpy.ones(2)), np.cos(np.ones(2))
    )


# Rules


@pytest.mark.parametrize("recorded", [False, True])
def test_a_rule_that_fails_names_the_operation_and_what_it_was_given(
    operations: Any, recorded: bool
) -> None:
    define(
        "t.failing(x, /)",
        forward=lambda xp, x: x * 1.0,
        x=lambda xp, g, x: xp.matmul(g, xp.ones((7, 3))) * x,
    )
    x = leaf(mg)
    for call in (
        lambda: mg.autograd.grad(mg.sum(mg.t.failing(x)), x, create_graph=recorded),
        lambda: func.grad(lambda x: mg.sum(mg.t.failing(x)))(np.ones(2)),
    ):
        with pytest.raises(ValueError) as caught:
            call()
        (note,) = (n for n in caught.value.__notes__ if n.startswith("In the derivative rule of"))
        assert note == (
            "In the derivative rule of multigrad.t.failing: g has shape (2,) and dtype float64, "
            "x has shape (2,) and dtype float64."
        )


def test_a_jvp_that_is_missing_names_operation_and_argument(operations: Any) -> None:
    define(
        "t.one_way(x, y, /)",
        forward=lambda xp, x, y: x * y,
        x=lambda xp, g, y: g * y,
        y=lambda xp, g, x: g * x,
    )
    for _ in range(6):
        with pytest.raises(
            NotImplementedError,
            match=r"the operation 't.one_way' has no jvp, so it cannot be differentiated in "
            r"forward mode, as it was by 'x'\. Declare it with one",
        ):
            plain_jvp(lambda x: mg.t.one_way(x, mg.ones(2)), np.ones(2))


# Gradcheck


class Half(Function):
    """Its backward is that of half of it, in the second element."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x**2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        xp = x.__array_namespace__()
        return g * x * xp.asarray([2.0, 1.0, 2.0])


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_names_the_worst_entry(fast: bool) -> None:
    x = mg.asarray([1.0, 2.0, 3.0], requires_grad=True)
    with pytest.raises(
        RuntimeError, match="^Jacobian mismatch for output 0 with respect to input 0,\nnumerical:"
    ) as caught:
        gradcheck(Half.apply, x, fast_mode=fast)
    assert re.search(
        r"The worst of the 1 entries of 9 that differ is the derivative of output element "
        r"\(1,\) by input element \(1,\): (4\.0\d*|3\.9\d*) numerically, 2\.0 analytically\.",
        str(caught.value),
    )
    with pytest.raises(
        RuntimeError,
        match="^Jacobian mismatch for output 0 with respect to input 0,\nThe worst of the ",
    ) as caught:
        gradgradcheck(lambda x: Half.apply(x) * x, x, fast_mode=fast)
    assert "array(" not in str(
        caught.value
    ) and "The whole Jacobians are error.numerical and error.analytical." in str(caught.value)
    error: Any = caught.value
    assert error.numerical.shape == error.analytical.shape == (3, 3) and not np.allclose(
        error.numerical, error.analytical
    )


# The words of all messages


PYTORCHS = ("functorch transforms",)
"""Texts of PyTorch's own that name it."""


def messages() -> Iterator[tuple[str, int, str]]:
    """The texts in multigrad's code that are raised, warned of, added as notes, or constants."""
    for path in sorted(Path(mg.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Assign):
                said = all(isinstance(t, ast.Name) and t.id.isupper() for t in node.targets)
            elif isinstance(node, ast.Call):
                said = ast.unparse(node.func).endswith(("warn", "Error", "add_note"))
            else:
                said = isinstance(node, ast.Raise)
            for part in ast.walk(node) if said else ():
                if isinstance(part, ast.Constant) and " " in str(part.value):
                    yield str(path), part.lineno, str(part.value)


def test_no_message_names_pytorch_or_a_class_inside() -> None:
    words = re.compile(r"\b(PyTorch|torch|functorch|LayeredTensor|View|Batched)\b(?!\.)")
    found = {text for text in messages() if words.search(text[2])}
    assert [text for text in found if not any(known in text[2] for known in PYTORCHS)] == []
    assert found  # PyTorch's own
