"""Products under NumPy's names: dot, inner, outer, cross, kron, convolve."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...registry import About, composite
from ..keys import place


def _is_scalar(x: Any) -> bool:
    return not getattr(x, "shape", ())


def contraction(name: str, xp: Any, a: Any, b: Any) -> Any:
    """Compute dot, which sums over the last axis but one of `b`, or inner: over its last axis."""
    if _is_scalar(a) or _is_scalar(b):
        return xp.multiply(a, b)
    n, last = len(b.shape), name == "inner"
    axis = n - 1 if last or n == 1 else n - 2
    if a.shape[-1] != b.shape[axis]:
        raise ValueError(
            f"{name}: the shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit: the axes to sum "
            f"over have lengths {a.shape[-1]} and {b.shape[axis]}."
        )
    if n < 3 and len(a.shape) < 3:
        return xp.matmul(a, xp.matrix_transpose(b) if last and n == 2 else b)
    return xp.tensordot(a, b, axes=((len(a.shape) - 1,), (axis,)))


def outer(xp: Any, a: Any, b: Any) -> Any:
    """Flatten arrays whose number of axes is not 1."""
    if hasattr(a, "shape"):
        a = a[:, None] if len(a.shape) == 1 else xp.reshape(a, (-1, 1))
    if hasattr(b, "shape") and len(b.shape) != 1:
        b = xp.reshape(b, (-1,))
    product = xp.multiply(a, b)
    if len(product.shape) == 2:
        return product
    return xp.reshape(product, (-1, 1) if hasattr(a, "shape") else (1, -1))


def cross(xp: Any, a: Any, b: Any, axisa: Any, axisb: Any, axisc: Any, axis: Any) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    last = [
        x if place("cross", what, of, len(x.shape)) == len(x.shape) - 1 else xp.moveaxis(x, of, -1)
        for x, what, of in ((a, "axisa", axisa), (b, "axisb", axisb))
    ]
    for x in last:
        if x.shape[-1] != 3:
            raise ValueError(
                f"cross: a vector has 3 elements; the shapes are {tuple(a.shape)} and "
                f"{tuple(b.shape)}."
            )
    product = xp.linalg.cross(*last, axis=-1)
    return product if axisc == -1 else xp.moveaxis(product, -1, axisc)


def kron(xp: Any, a: Any, b: Any) -> Any:
    """Each element of `a` times all of `b`, in blocks."""
    if _is_scalar(a) or _is_scalar(b):
        return xp.multiply(a, b)
    ndim = max(len(a.shape), len(b.shape))
    shape1, shape2 = ((1,) * (ndim - len(x.shape)) + tuple(x.shape) for x in (a, b))
    a = xp.reshape(a, tuple(length for n in shape1 for length in (n, 1)))
    b = xp.reshape(b, tuple(length for n in shape2 for length in (1, n)))
    return xp.reshape(a * b, tuple(n1 * n2 for n1, n2 in zip(shape1, shape2, strict=True)))


def convolve(xp: Any, a: Any, v: Any, mode: str) -> Any:
    a, v = (xp.reshape(x, (1,)) if not x.shape else x for x in (a, v))
    if len(a.shape) != 1 or len(v.shape) != 1:
        raise ValueError(
            f"convolve: both operands must have one axis; their shapes are {tuple(a.shape)} and "
            f"{tuple(v.shape)}."
        )
    n, m = a.shape[0], v.shape[0]
    if not n or not m:
        raise ValueError(
            f"convolve: an operand has no elements; the shapes are {tuple(a.shape)} and "
            f"{tuple(v.shape)}."
        )
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"convolve: the mode is {mode!r}; it must be 'full', 'same' or 'valid'.")
    if n < m:
        a, v, n, m = v, a, m, n
    if mode != "same":
        return xp.convolution(a, v, mode)
    return xp.convolution(a, v, "full")[(m - 1) // 2 : (m - 1) // 2 + n]


# fmt: off
composite("dot(a: array, b: array)", partial(contraction, "dot"),
          doc="The product of vectors, matrices or scalars. With more axes it sums over the last "
              "axis of a and the last but one of b. Same as numpy.dot.",
          about=About(example="P, Q", method=True))
composite("inner(a: array, b: array)", partial(contraction, "inner"),
          doc="Sums of products over the last axes, without conjugation. Same as numpy.inner.",
          about=About(example="P, Q", method=True))
composite("outer(a: array, b: array)", outer,
          doc="The products of each element of one array with each element of another, both "
              "flattened. Same as numpy.outer.",
          about=About(example="P, Q", method=True))
composite("cross(a: array, b: array, axisa=-1, axisb=-1, axisc=-1, axis=None)", cross,
          doc="The cross product of vectors of three elements. Same as numpy.cross.",
          about=About(example="mg.asarray([1.0, 0.0, 0.0]), mg.asarray([0.0, 1.0, 0.0])",
                      method=True))
composite("kron(a: array, b: array)", kron,
          doc="The Kronecker product: for each element of the first array, a block with that "
              "element times the second array. Same as numpy.kron.",
          about=About(example="P, Q", method=True))
composite("convolve(a: array, v: array, mode='full')", convolve,
          doc="The convolution of two vectors: the whole ('full'), the part where they overlap "
              "completely ('valid'), or the middle ('same'). Same as numpy.convolve.",
          about=About(example="P, Q"))
