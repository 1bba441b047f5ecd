"""Names as people type them: methods beyond the standard, arguments by position, float16, and what
errors say of names that are not there.
"""

from __future__ import annotations

from timeit import repeat
from typing import Any

import numpy as np
import pytest
from conftest import values

import multigrad as mg
from multigrad.core.foreign_names import ATTRIBUTES, FUNCTIONS
from multigrad.registry import OPS

X = np.arange(12.0).reshape(3, 4)
REDUCTIONS = (
    "sum",
    "mean",
    "max",
    "min",
    "prod",
    "all",
    "any",
    "var",
    "std",
    "argmax",
    "argmin",
    "count_nonzero",
    "flip",
    "sort",
    "argsort",
)


class TestPositions:
    @pytest.mark.parametrize("name", REDUCTIONS)
    @pytest.mark.parametrize("on", ["numpy", "strict"])
    def test_the_axis(self, name: str, on: str) -> None:
        x = mg.asarray(X, backend=on)
        expected = getattr(np, name)(X, 1)
        for found in (
            getattr(mg, name)(x, 1),
            getattr(mg.namespace(on), name)(x, 1),
            getattr(x, name)(1),
        ):
            np.testing.assert_allclose(values(found), expected)

    def test_of_what_takes_more_than_one_array(self) -> None:
        x = mg.asarray(X)
        assert mg.concat([x, x], 1).shape == (3, 8) and mg.stack([x, x], 1).shape == (3, 2, 4)
        assert mg.take(x, mg.asarray([0]), 1).shape == (3, 1) and len(mg.unstack(x, 1)) == 4
        assert mg.roll(x, 1, 1).shape == mg.repeat(x, 1, 1).shape == (3, 4)
        np.testing.assert_allclose(mg.cumulative_sum(x, 0).array, np.cumsum(X, 0))

    def test_diff_and_tensordot(self, xp: Any) -> None:
        x = xp.asarray(X)
        np.testing.assert_allclose(values(xp.diff(x, 2)), np.diff(X, 2))
        np.testing.assert_allclose(values(mg.diff(x, 1, 0)), np.diff(X, 1, 0))
        np.testing.assert_allclose(values(x.diff(2)), np.diff(X, 2))
        for axes in (2, ((0, 1), (0, 1))):
            np.testing.assert_allclose(values(mg.tensordot(x, x, axes)), np.tensordot(X, X, axes))
            np.testing.assert_allclose(
                values(xp.linalg.tensordot(x, x, axes)), np.tensordot(X, X, axes)
            )


class TestMethods:
    def test_squeeze_and_cumulative_functions(self, xp: Any) -> None:
        x = xp.zeros((1, 2, 1))
        assert (x.squeeze().shape, x.squeeze(0).shape, x.squeeze(axis=(0, 2)).shape) == (
            (2,),
            (2, 1),
            (2,),
        )
        for name, function in (("cumsum", np.cumsum), ("cumprod", np.cumprod)):
            method = getattr(xp.asarray(X), name)
            np.testing.assert_allclose(values(method()), function(X))
            np.testing.assert_allclose(values(method(1)), function(X, 1))
        x = xp.asarray(X, requires_grad=True)
        x.cumsum().sum().backward()
        np.testing.assert_allclose(values(x.grad), np.arange(12.0, 0.0, -1.0).reshape(3, 4))

    def test_transpose(self, xp: Any) -> None:
        t = xp.asarray(np.zeros((2, 3, 4)), requires_grad=True)
        assert t.transpose().shape == t.transpose(None).shape == (4, 3, 2)
        assert t.transpose(1, 0, 2).shape == t.transpose((1, 0, 2)).shape == (3, 2, 4)
        with pytest.raises(
            ValueError,
            match=r"the axes \(0, 1\) are not a permutation of the 3 axes of the array. To exchange two "
            r"axes, call swapaxes",
        ):
            t.transpose(0, 1)

    def test_of_numpy_and_pytorch(self) -> None:
        t, u = mg.asarray(X), mg.asarray(X.T)
        np.testing.assert_allclose(t.dot(u).array, X @ X.T)
        assert t.swapaxes(0, 1).shape == (4, 3) and t.ravel().shape == t.flatten().shape == (12,)
        assert t.diagonal(1).shape == t.diag().shape == (3,) and t.inner(t).shape == (3, 3)
        assert t.outer(t).shape == t.kron(u).shape == (12, 12)
        assert float(t.dot(u).trace()) == np.trace(X @ X.T)


class TestFloat16:
    @pytest.mark.parametrize("on", ["numpy", pytest.param("jax", marks=pytest.mark.slow)])
    def test_where_the_library_has_it(self, on: str) -> None:
        xp = mg.namespace(on)
        assert (
            xp.zeros(2, dtype="float16").dtype == xp.zeros(2, dtype=xp.float16).dtype == xp.float16
        )
        assert "float16" in dir(xp) and xp.isdtype(xp.float16, "real floating")
        assert xp.sum(xp.ones(3, dtype="float16", requires_grad=True)).requires_grad

    def test_where_it_has_none(self) -> None:
        xp = mg.namespace("strict")
        assert not hasattr(xp, "float16") and "float16" not in dir(xp)
        with pytest.raises(TypeError, match="unknown dtype 'float16'"):
            xp.zeros(2, dtype="float16")

    def test_inspection_keeps_to_the_standard(self) -> None:
        assert "float16" not in mg.namespace("numpy").__array_namespace_info__().dtypes()


class TestMissing:
    @pytest.mark.parametrize(
        "owner, name, message",
        [
            (
                mg.namespace("numpy"),
                "cat",
                r"the namespace 'multigrad.numpy' has no 'cat'. It is called concat here",
            ),
            (mg.namespace("numpy"), "rsqrt", r"has no 'rsqrt'. Write 1 / sqrt\(x\)"),
            (
                mg.namespace("numpy"),
                "nonesuch",
                "has no 'nonesuch': no operation 'nonesuch' is declared",
            ),
            (mg.namespace("numpy").linalg, "cat", "no operation 'linalg.cat' is declared"),
            (mg.namespace("numpy"), "__wrapped__", "has no '__wrapped__'"),
            (
                mg,
                "unsqueeze",
                "module 'multigrad' has no attribute 'unsqueeze'. It is called expand_dims here",
            ),
            (mg, "nonesuch", "module 'multigrad' has no attribute 'nonesuch'$"),
            (mg.asarray(X), "dim", r"'Tensor' object has no attribute 'dim'. Write x.ndim"),
            (
                mg.asarray(X),
                "view",
                r"'Tensor' object has no attribute 'view'. Write x.reshape\(\)",
            ),
            (
                mg.asarray(X),
                "split",
                r"Write split\(x, indices_or_sections\): NumPy's sections, not PyTorch's sizes",
            ),
            (mg.asarray(X), "nonesuch", "'Tensor' object has no attribute 'nonesuch'$"),
        ],
    )
    def test_python_can_suggest(self, owner: Any, name: str, message: str) -> None:
        with pytest.raises(AttributeError, match=message) as caught:
            getattr(owner, name)
        assert caught.value.name == name and caught.value.obj is owner

    def test_layers_say_it_too(self) -> None:
        with pytest.raises(
            AttributeError,
            match=r"'Dual' object has no attribute 'unsqueeze'. Write x.expand_dims\(\)",
        ):
            mg.func.jvp(lambda x: x.unsqueeze(0), (X,), (X,))

    def test_the_table_names_what_there_is(self) -> None:
        t = mg.asarray(X)
        for there in FUNCTIONS.values():
            word = there.split("(")[0].split(",")[0]
            assert (
                not word.replace(".", "").isidentifier() or word.startswith("x.") or word in OPS
            ), there
        for name, there in ATTRIBUTES.items():
            assert not hasattr(t, name) and name not in dir(t), name
            if there.startswith("x.") and there[2:].split("(")[0].isidentifier():
                assert hasattr(t, there[2:].split("(")[0]), there

    def test_asking_for_what_is_not_there_is_fast(self) -> None:
        t = mg.asarray(X)
        assert min(repeat(lambda: hasattr(t, "nope"), number=1000, repeat=20)) < 1e-3  # 1 us each
