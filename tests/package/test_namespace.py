"""The namespace against the standard's own list: every name, its signature, what it says about
itself, DLPack, devices.

Values and special cases are the business of array-api-tests (`make test-standard`) and of the
conformance suite.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from importlib.util import find_spec
from typing import Any

import array_api_compat.numpy as reference
import numpy as np
import pytest
import standard_names
from conftest import values
from leaves import vector

import multigrad as mg
from multigrad import registry
from multigrad.errors import GradientError, MixedBackendsError

FUNCTIONS = sorted(standard_names.functions)


def named(xp: Any, name: str) -> Any:
    for part in name.split("."):
        xp = getattr(xp, part)
    return xp


def name_of(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


KINDS = {"elementwise", "linear", "multilinear", "define", "nondifferentiable", "composite"}


class TestNames:
    def test_every_name_is_there_and_classified(self, xp: Any) -> None:
        for name in standard_names.functions:
            assert callable(named(xp, name)), name
            assert registry.OPS[name].kind in KINDS, name
        for name in standard_names.inspection:
            assert callable(getattr(xp.__array_namespace_info__(), name)), name
        t = xp.ones((2, 2))
        for name in (
            *standard_names.methods,
            *standard_names.unwritten,
            *standard_names.ATTRIBUTES,
        ):
            assert hasattr(t, name), name
        assert {n.partition(".")[0] for n in standard_names.functions} | {
            *standard_names.CONSTANTS,
            *standard_names.DTYPES,
        } <= set(dir(xp))
        assert set(dir(xp.linalg)) | set(dir(xp.fft)) == {
            n.partition(".")[2] for n in standard_names.functions if "." in n
        }

    def test_version_and_name(self, backend: str, xp: Any) -> None:
        assert xp.__array_api_version__ == "2025.12"
        assert xp.__name__ == f"multigrad.{backend}"
        assert xp.linalg.__name__ == f"multigrad.{backend}.linalg"
        t = xp.ones(1)
        assert mg.namespace(t) is xp and mg.namespace(t.array) is xp
        assert t.__array_namespace__() is xp and t.__array_namespace__(api_version="2021.12") is xp
        with pytest.raises(
            ValueError, match="unsupported version of the Array API standard: '2020.01'"
        ):
            t.__array_namespace__(api_version="2020.01")

    def test_constants(self, xp: Any) -> None:
        assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (np.e, np.pi, np.inf, None)
        assert all(type(getattr(xp, n)) is float for n in ("e", "pi", "inf", "nan")) and np.isnan(
            xp.nan
        )

    def test_dtypes(self, xp: Any) -> None:
        for name in standard_names.DTYPES:
            t = xp.zeros(1, dtype=getattr(xp, name))
            assert (
                t.dtype == getattr(xp, name) == xp.zeros(1, dtype=name).dtype
                and name_of(t.dtype) == name
            )


def agree(ours: inspect.Signature, theirs: inspect.Signature) -> bool:
    """Whether ours has the standard's parameters: order, kinds, defaults, names where they can be
    used; more only by keyword.
    """
    mine, standard = list(ours.parameters.values()), list(theirs.parameters.values())
    for p, q in zip(mine, standard, strict=False):
        if (
            p.kind is not q.kind
            or p.default != q.default
            or (q.kind is not q.POSITIONAL_ONLY and p.name != q.name)
        ):
            return False
    return len(mine) >= len(standard) and all(
        p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in mine[len(standard) :]
    )


class TestSignatures:
    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_functions(self, name: str) -> None:
        for owner in (mg.namespace("numpy"), mg):
            signature = inspect.signature(named(owner, name))
            assert agree(signature, standard_names.functions[name]), f"{name}{signature}"
            assert named(owner, name).__name__ == name.rpartition(".")[2]
            assert named(owner, name).__doc__

    def test_only_what_makes_an_array_takes_requires_grad(self) -> None:
        xp = mg.namespace("numpy")
        makes = {
            n for n in FUNCTIONS if "requires_grad" in inspect.signature(named(xp, n)).parameters
        }
        assert makes == {
            n
            for n in FUNCTIONS
            if n != "astype" and {"device"} <= set(standard_names.functions[n].parameters)
        }

    def test_inspection(self, xp: Any) -> None:
        info = xp.__array_namespace_info__()
        assert not inspect.signature(xp.__array_namespace_info__).parameters
        for name, signature in standard_names.inspection.items():
            assert agree(inspect.signature(getattr(info, name)), signature), name

    @pytest.mark.parametrize("name", [*standard_names.methods, *standard_names.unwritten])
    def test_methods(self, name: str) -> None:
        method = getattr(mg.ones((2, 2)), name)
        expected = (standard_names.methods | standard_names.unwritten)[name]
        assert agree(inspect.signature(method), expected), f"{name}{inspect.signature(method)}"


class TestInspection:
    def test_info(self, xp: Any) -> None:
        info = xp.__array_namespace_info__()
        capabilities = info.capabilities()
        assert (
            type(capabilities["boolean indexing"])
            is type(capabilities["data-dependent shapes"])
            is bool
        )
        assert capabilities["max dimensions"] is None or capabilities["max dimensions"] > 1
        devices = info.devices()
        assert type(devices) is tuple and devices and xp.zeros(1).device in devices
        assert info.default_device() is None or info.default_device() in devices
        for device in (None, *devices):
            defaults = info.default_dtypes(device=device)
            assert xp.zeros(1, device=device).dtype == defaults["real floating"]
            assert xp.arange(1, device=device).dtype == defaults["integral"]
            assert set(defaults) == {"real floating", "complex floating", "integral", "indexing"}
            there = info.dtypes(device=device)
            assert all(dtype == getattr(xp, name) for name, dtype in there.items()) and set(
                there
            ) <= set(standard_names.DTYPES)
        assert set(info.dtypes()) == set(standard_names.DTYPES)

    def test_kinds(self, xp: Any) -> None:
        dtypes = xp.__array_namespace_info__().dtypes
        assert list(dtypes(kind="bool")) == ["bool"]
        assert set(dtypes(kind="integral")) == set(
            dtypes(kind=("signed integer", "unsigned integer"))
        )
        assert set(dtypes(kind="numeric")) == set(standard_names.DTYPES) - {"bool"}
        assert set(dtypes(kind=("real floating", "complex floating"))) == {
            "float32",
            "float64",
            "complex64",
            "complex128",
        }
        assert dtypes(kind=()) == {}
        with pytest.raises(ValueError, match="unknown kind of dtypes 'float'"):
            dtypes(kind="float")

    def test_a_device_has_the_dtypes_of_its_own(self) -> None:
        xp = mg.namespace("strict")
        info = xp.__array_namespace_info__()
        poor = next(d for d in info.devices() if "no_x64" in str(d))
        assert {"int64", "float64", "uint64", "complex128"} & set(info.dtypes(device=poor)) == set()
        assert name_of(info.default_dtypes(device=poor)["integral"]) == "int32"

    def test_a_library_without_inspection(self) -> None:
        from multigrad.core.element import Library
        from multigrad.inspection import Info

        class Bare:
            def __getattr__(self, name: str) -> Any:
                if name.startswith("__") or name == "uint64":
                    raise AttributeError(name)
                return getattr(reference, name)

        info = Info(Library(mg.Backend("bare", Bare(), (np.ndarray, np.generic))))
        assert info.devices() == ("cpu",) and info.default_device() is None
        assert info.capabilities() == {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": None,
        }
        assert {k: str(v) for k, v in info.default_dtypes().items()} == {
            "real floating": "float64",
            "complex floating": "complex128",
            "integral": "int64",
            "indexing": "int64",
        }
        assert set(info.dtypes(kind="unsigned integer")) == {"uint8", "uint16", "uint32"}


class TestDtypes:
    def test_limits_are_python_numbers(self, xp: Any) -> None:
        """Of a dtype, of its name, and of an array; the values are the conformance suite's."""
        for name, real in (("float32", "float32"), ("complex128", "float64")):
            t = xp.ones(2, dtype=name, requires_grad=True)
            for of in (t.dtype, name, t, t.array):
                found = xp.finfo(of)
                assert found.dtype == getattr(xp, real) and type(found.bits) is int
                for field in ("eps", "max", "min", "smallest_normal"):
                    assert type(getattr(found, field)) is float
        t = xp.ones(2, dtype="uint8")
        for of in (t.dtype, "uint8", t, t.array):
            found = xp.iinfo(of)
            assert {type(found.bits), type(found.max), type(found.min)} == {int}
        for wrong in (lambda: xp.finfo(xp.int32), lambda: xp.iinfo(xp.float32)):
            with pytest.raises((TypeError, ValueError)):
                wrong()

    def test_dtypes_names_and_tensors_go_together(self, xp: Any) -> None:
        t = xp.ones(2, dtype="float32", requires_grad=True)
        assert xp.result_type(t, 1.0) == xp.result_type(xp.float32, 2) == xp.float32
        assert xp.result_type(t, 1j) == xp.result_type("float32", 1j) == xp.complex64
        assert xp.result_type(t, t.array, xp.float64) == xp.result_type(t, "float64") == xp.float64
        # 0-d arrays promote as any other
        assert xp.result_type(xp.ones((), dtype="float64"), t) == xp.float64
        assert xp.can_cast(t, xp.float64) is xp.can_cast("int8", "int16") is True
        assert xp.can_cast(t.array, xp.int32) is xp.can_cast(xp.float64, "float32") is False
        assert xp.isdtype("int8", ("bool", "integral")) and not xp.isdtype(
            dtype=xp.bool, kind="numeric"
        )
        with pytest.raises((TypeError, ValueError)):
            xp.isdtype(xp.int8, "whole")

    def test_an_array_decides_for_its_own_library(self) -> None:
        numpy, jax = mg.ones(2, dtype="float32"), mg.namespace("jax").ones(2, dtype="complex64")
        assert mg.finfo(jax).dtype == mg.namespace("jax").float32
        assert mg.result_type(jax, 1.0) == jax.dtype and mg.can_cast(jax, jax.dtype)
        with pytest.raises(MixedBackendsError, match="'numpy' and 'jax'"):
            mg.result_type(numpy, jax)
        assert mg.namespace("jax").result_type(jax, np.float64(1)) == jax.dtype, (
            "NumPy's scalars are Python's elsewhere"
        )


class TestLeaving:
    def test_dlpack(self, xp: Any) -> None:
        t = xp.asarray([1.0, 2.0, 3.0])
        kind, number = t.__dlpack_device__()
        assert (int(kind), number) == (1, 0)
        for options in (
            {},
            {"max_version": (0, 5)},
            {"max_version": (1, 0)},
            {"copy": True},
            {"copy": False},
            {"dl_device": (1, 0)},
            {"stream": None},
        ):
            assert type(t.__dlpack__(**options)).__name__ == "PyCapsule", options
        assert (np.from_dlpack(t) == values(t)).all()
        leaf = xp.ones(2, requires_grad=True)
        for refused in (leaf, leaf * 2):
            with pytest.raises(BufferError, match=r"use tensor\.detach\(\)"):
                refused.__dlpack__()
            with pytest.raises(BufferError, match=r"use tensor\.detach\(\)"):
                xp.from_dlpack(refused)
        assert xp.from_dlpack(leaf.detach(), requires_grad=True).requires_grad

    def test_a_scalar_of_numpy_has_memory_too(self) -> None:
        t = mg.ones(3).sum()
        assert isinstance(t.array, np.generic)
        assert np.from_dlpack(t) == 3 and t.__dlpack_device__() == (1, 0)

    def test_from_dlpack_of_a_tensor_shares_its_counter(self) -> None:
        t = mg.ones(3)
        same, copied = mg.from_dlpack(t), mg.from_dlpack(t, copy=True)
        t += 1
        assert (
            same.tolist() == [2, 2, 2]
            and copied.tolist() == [1, 1, 1]
            and same._version == t._version == 1
        )
        x = mg.ones(3, requires_grad=True)
        y = mg.from_dlpack(same) * x
        same += 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()

    def test_between_libraries(self) -> None:
        jax = mg.namespace("jax")
        t = mg.ones(16, dtype="float32")
        there = jax.from_dlpack(t)
        assert there.__array_namespace__() is jax and (values(there) == 1).all()
        assert mg.namespace("numpy").from_dlpack(there).tolist() == [1.0] * 16

    def test_no_derivative_leaves_a_transformation(self) -> None:
        with pytest.raises(GradientError, match="belongs to the transformation|requires grad"):
            mg.func.grad(lambda x: mg.func.grad(lambda y: np.asarray(y * x).sum())(x))(np.ones(()))
        with pytest.raises((BufferError, GradientError)):
            mg.func.grad(lambda x: mg.from_dlpack(x) * x)(np.ones(()))

    def test_integers_and_booleans_leave_what_adds_a_derivative_alone(self) -> None:
        x, v = np.asarray([1.0, -2.0]), np.arange(2.0)

        def f(x: Any) -> Any:
            assert np.array_equal(np.asarray(x > 0), [True, False]) and np.array_equal(
                v[mg.argsort(x)], [1.0, 0.0]
            )
            return mg.sum(x**2)

        assert np.array_equal(mg.func.hvp(f, (x,), (v,))[1][0], 2 * v)
        assert np.array_equal(mg.func.grad(lambda x: mg.sum(mg.func.grad(f)(x)))(x), [2.0, 2.0])
        for g in (mg.func.vmap(f), mg.func.vmap(mg.func.grad(f))):
            with pytest.raises(GradientError, match="belongs to the transformation"):
                g(np.ones((3, 2)))

    def test_to_device(self, xp: Any) -> None:
        t = xp.asarray([1.0, 2.0], requires_grad=True)
        for device in xp.__array_namespace_info__().devices():
            if xp.float64 not in xp.__array_namespace_info__().dtypes(device=device).values():
                continue  # the values could not go there
            t.grad = None
            moved = t.to_device(device)
            assert moved.device == device
            (moved * moved).sum().backward()
            assert t.grad.device == t.device and t.grad.tolist() == [2.0, 4.0]

    def test_tuples(self, xp: Any) -> None:
        a, b = xp.ones((2, 1)), xp.ones(3)
        for found in (xp.broadcast_arrays(a, b), xp.meshgrid(b, b), xp.unstack(a), xp.nonzero(b)):
            assert type(found) is tuple
        for found, fields in (
            (xp.unique_all(b), "values indices inverse_indices counts"),
            (xp.linalg.eigh(a @ a.T), "eigenvalues eigenvectors"),
            (xp.linalg.slogdet(a @ a.T), "sign logabsdet"),
            (xp.linalg.svd(a), "U S Vh"),
        ):
            assert isinstance(found, tuple) and found._fields == tuple(fields.split())


def test_a_namespace_survives_pickle_and_copy() -> None:
    xp = mg.namespace("numpy")
    spaces = [xp, xp.special] if find_spec("multigrad_special") else [xp]
    for space in spaces:
        assert pickle.loads(pickle.dumps(space)) is space
        assert copy.copy(space) is space and copy.deepcopy(space) is space


def test_array_api_compat_knows_a_tensor() -> None:
    compat = pytest.importorskip("array_api_compat")
    t = vector([1.0, 2.0])
    assert compat.array_namespace(t, None, 1.0) is mg.namespace("numpy")
    assert (
        compat.is_array_api_obj(t) and not compat.is_numpy_array(t) and not compat.is_lazy_array(t)
    )
    assert compat.device(t) == "cpu" and compat.size(t) == 2
