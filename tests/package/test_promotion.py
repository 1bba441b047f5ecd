"""Python's operators between Tensors, raw arrays and scalars, on either side and in place: dtypes,
mutation, refusals, gradients.

array-api-tests tries no reflected operator and no raw operand, and does not look whether `x += y`
changes x.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import standard_names
from conftest import values

import multigrad as mg
from multigrad.core import element
from multigrad.errors import GradientError

DTYPES = standard_names.DTYPES
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = DTYPES[1:9]

# The dtypes for which the standard defines each operator.
DEFINED = {
    **dict.fromkeys(("add", "sub", "mul", "pow", "matmul"), (*INTEGERS, *FLOATS, *COMPLEX)),
    "truediv": (*FLOATS, *COMPLEX),
    **dict.fromkeys(("floordiv", "mod"), (*INTEGERS, *FLOATS)),
    **dict.fromkeys(("and", "or", "xor"), ("bool", *INTEGERS)),
    **dict.fromkeys(("lshift", "rshift"), INTEGERS),
}
FUNCTION: dict[str, Callable[[Any, Any], Any]] = {
    stem: getattr(operator, f"{stem}_" if stem in ("and", "or") else stem)
    for stem in standard_names.ARITHMETIC
}
IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    stem: getattr(operator, f"i{stem}") for stem in standard_names.ARITHMETIC
}


def bits(dtype: str) -> int:
    return int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz"))


def kind(dtype: str) -> str:
    return dtype.rstrip("0123456789")


def promoted(a: str, b: str) -> str | None:
    """The standard's promotion of two dtypes; None where it defines none."""
    if a == b:
        return a
    kinds = {kind(a), kind(b)}
    wide = max(bits(d) for d in (a, b)) if "bool" not in kinds else 0
    if kinds == {"int", "uint"}:
        signed, unsigned = (a, b) if kind(a) == "int" else (b, a)
        n = bits(signed) if bits(signed) > bits(unsigned) else 2 * bits(unsigned)
        return None if n > 64 else f"int{n}"
    if kinds == {"float", "complex"}:
        real, both = (a, b) if kind(a) == "float" else (b, a)
        return f"complex{max(bits(both), 2 * bits(real))}"
    return f"{kind(a)}{wide}" if len(kinds) == 1 else None


PAIRS = [
    (a, b, c) for a, b in itertools.product(DTYPES, DTYPES) if (c := promoted(a, b)) is not None
]


def pairs(stem: str) -> list[tuple[str, str, str]]:
    return [(a, b, c) for a, b, c in PAIRS if a in DEFINED[stem] and b in DEFINED[stem]]


def defers(xp: Any) -> bool:
    """Whether `raw * tensor` is left to the Tensor by this library."""
    capabilities: Any = xp.ones(1)._elem.library.backend.capabilities
    return bool(capabilities.defers)


def test_promotion_is_written_down_right() -> None:
    assert (
        promoted("int8", "uint32") == "int64"
        and promoted("int64", "uint64") is None
        and promoted("float64", "complex64") == "complex128"
    )
    assert all(str(np.result_type(a, b)) == c for a, b, c in PAIRS)
    assert len(PAIRS) == 1 + 16 + 16 + 2 * 12 + 16, (
        "bool; signed; unsigned; of both signs, without uint64; floating"
    )


# JAX would compile each of them.
APART_FROM_JAX = pytest.mark.parametrize("backend", ["numpy", "strict"], indirect=True)


@APART_FROM_JAX
class TestDtypes:
    @pytest.mark.parametrize("stem", standard_names.ARITHMETIC)
    def test_of_arrays(self, xp: Any, stem: str) -> None:
        """Of Tensors and raw arrays on either side, also where one or both have no axes."""
        f = FUNCTION[stem]
        shapes = [((2, 2), (2, 2))] + (
            [] if stem == "matmul" else [((2, 2), ()), ((), (2, 2)), ((), ())]
        )
        for (a, b, expected), (s1, s2) in itertools.product(pairs(stem), shapes):
            x, y = xp.ones(s1, dtype=a), xp.ones(s2, dtype=b)
            for z in (f(x, y), f(x, y.array), *([f(x.array, y)] if defers(xp) else [])):
                assert isinstance(z, mg.Tensor) and z.dtype == getattr(xp, expected), (
                    f"{a}{s1} {stem} {b}{s2}: {z.dtype}"
                )

    @pytest.mark.parametrize("stem", [s for s in standard_names.ARITHMETIC if s != "matmul"])
    def test_of_scalars(self, xp: Any, stem: str) -> None:
        """A Python scalar takes the array's dtype; a complex one makes a real array complex of the
        same precision.
        """
        f = FUNCTION[stem]
        for dtype in DEFINED[stem]:
            scalars: list[Any] = (
                [True] if dtype == "bool" else [2] if dtype in INTEGERS else [2, 2.0]
            )
            scalars += (
                [2j]
                if dtype in (*FLOATS, *COMPLEX) and stem in ("add", "sub", "mul", "truediv")
                else []
            )
            for scalar, shape in itertools.product(scalars, [(2,), ()]):
                x = xp.ones(shape, dtype=dtype)
                expected = promoted(dtype, "complex64") if type(scalar) is complex else dtype
                for z in (f(x, scalar), f(scalar, x)):
                    assert z.dtype == getattr(xp, str(expected)), (
                        f"{dtype} {stem} {scalar!r}: {z.dtype}"
                    )


class TestInPlace:
    @APART_FROM_JAX
    @pytest.mark.parametrize("stem", standard_names.ARITHMETIC)
    def test_the_same_object_and_dtype(self, xp: Any, stem: str) -> None:
        """Within one kind a wider operand is cast, as in PyTorch; across kinds it is refused, and
        nothing has changed.
        """
        f, out_of_place = IN_PLACE[stem], FUNCTION[stem]
        for (a, b, expected), raw in itertools.product(pairs(stem), (False, True)):
            x, y = xp.ones((2, 2), dtype=a), xp.ones((2, 2), dtype=b)
            old = x
            if kind(expected) == "complex" != kind(a):
                with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
                    f(x, y.array if raw else y)
                assert x.dtype == getattr(xp, a) and x._version == 0
                continue
            result = values(out_of_place(x, y))
            x = f(x, y.array if raw else y)
            assert x is old and x.dtype == getattr(xp, a) and x._version == 1
            assert (values(x) == result.astype(a)).all()

    def test_across_kinds(self, xp: Any) -> None:
        for dtype, scalar in (("int16", 2.0), ("float32", 2j), ("bool", 2)):
            x = xp.ones(3, dtype=dtype)
            with pytest.raises((RuntimeError, TypeError)):
                x += scalar
            with pytest.raises((RuntimeError, TypeError)):
                x += xp.asarray(scalar)
            assert x.dtype == getattr(xp, dtype) and x.tolist() == [1, 1, 1] and x._version == 0

    def test_the_memory_is_written(self) -> None:
        array = np.ones(3)
        for mode in (mg.no_grad(), mg.enable_grad()):
            x = mg.asarray(array)
            with mode:
                for operand in (
                    mg.ones(3),
                    np.ones(3),
                    1.0,
                    mg.ones(()),
                    mg.ones(3, dtype="float32"),
                ):
                    before = array.copy()
                    x += operand
                    assert x.array is array and (array == before + 1).all()
        y = mg.ones(3, requires_grad=True) * 1
        memory = y.array
        y *= 2
        assert y.array is memory and (memory == 2).all()

    def test_a_raw_array_cannot_hold_a_history(self) -> None:
        array = np.ones(2)
        with pytest.raises(GradientError, match="a NumPy array cannot keep its history"):
            array += mg.ones(2, requires_grad=True)
        assert type(array) is np.ndarray and (array == 1).all()
        array += mg.ones(2)
        assert type(array) is np.ndarray and (array == 2).all()


class TestOperands:
    def test_what_is_no_array_is_refused(self, xp: Any) -> None:
        x = xp.ones(2)
        for stem, bad in itertools.product(
            ("add", "mul", "matmul", "truediv"), ([1.0, 2.0], None, "1", object(), (1.0, 2.0))
        ):
            for call in (
                lambda f=FUNCTION[stem], b=bad: f(x, b),
                lambda f=FUNCTION[stem], b=bad: f(b, x),
                lambda f=IN_PLACE[stem], b=bad: f(x, b),
            ):
                with pytest.raises(TypeError):
                    call()

    def test_scalars_of_numpy(self, xp: Any) -> None:
        """An array of NumPy for a Tensor of NumPy, a Python scalar for any other."""
        x = xp.ones(2, dtype="float32")
        expected = xp.float64 if xp.__name__.endswith("numpy") else xp.float32
        assert (x * np.float64(2)).dtype == (np.float64(2) * x).dtype == expected
        assert isinstance(np.float64(2) * x, mg.Tensor)

    def test_libraries_that_do_not_defer_say_so(self) -> None:
        xp = mg.namespace("strict")
        assert not defers(xp)
        with pytest.raises(TypeError):
            xp.ones(2).array * xp.ones(2)


GRADIENTS = {
    "add": (1.0, 1.0),
    "sub": (1.0, -1.0),
    "mul": (3.0, 2.0),
    "truediv": (1 / 3, -2 / 9),
    "pow": (12.0, 8 * np.log(2)),
    "mod": (1.0, 0.0),
    "matmul": (3.0, 2.0),
}


@pytest.mark.parametrize("stem", GRADIENTS)
def test_gradients_of_every_form(xp: Any, stem: str) -> None:
    """2 . 3 as Tensor and Tensor, raw array, scalar, either way round, and in place."""
    f, (g1, g2) = FUNCTION[stem], GRADIENTS[stem]

    def leaf(value: float) -> Any:
        return xp.asarray([value], requires_grad=True)

    def check(y: Any, *expected: tuple[Any, float]) -> None:
        y.sum().backward()
        for t, g in expected:
            assert np.allclose(values(t.grad), g, rtol=1e-15), stem

    a, b = leaf(2.0), leaf(3.0)
    check(f(a, b), (a, g1), (b, g2))
    a, b = leaf(2.0), leaf(3.0)
    check(f(a, b.detach().array), (a, g1))
    if defers(xp):
        check(f(a.detach().array, b), (b, g2))
    if stem != "matmul":
        a, b = leaf(2.0), leaf(3.0)
        check(f(a, 3.0), (a, g1))
        check(f(2.0, b), (b, g2))
        a, b = leaf(2.0), leaf(3.0)
        y = a * 1
        y = IN_PLACE[stem](y, b)
        check(y, (a, g1), (b, g2))
        a = leaf(2.0)
        y = a * 1
        y = IN_PLACE[stem](y, 3.0)
        check(y, (a, g1))


def test_pytorch_does_not_promote_and_multigrad_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's operators leave 0-d arrays out of promotion.

    A backend that gives array_api_compat's functions is right all the same.
    """
    torch = pytest.importorskip("torch")
    import array_api_compat.torch as xp

    functions = {
        name: getattr(xp, name)
        for name in (*standard_names.UNARY, *standard_names.BINARY)
        if hasattr(xp, name)
    }
    backend = mg.Backend("torch-stand-in", xp, (torch.Tensor,), functions=functions)
    library = element.Library(backend)
    monkeypatch.setitem(element._libraries, library.name, library)
    monkeypatch.setitem(element.by_type, torch.Tensor, library)
    narrow, wide = torch.ones(2, dtype=torch.float32), torch.ones((), dtype=torch.float64)
    assert (narrow + wide).dtype == torch.float32, (
        "PyTorch has changed: this stand-in shows nothing any more"
    )
    y = mg.asarray(wide)
    for stem in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv"):
        x, f = mg.asarray(narrow.clone()), FUNCTION[stem]
        for z in (f(x, y), f(y, x), f(x, wide), f(narrow, y), f(x, y)):
            assert isinstance(z, mg.Tensor) and z.dtype == torch.float64, stem
        assert f(x, 2.0).dtype == f(2.0, x).dtype == torch.float32
        assert IN_PLACE[stem](x, y).dtype == torch.float32, "in place, the dtype stays"
