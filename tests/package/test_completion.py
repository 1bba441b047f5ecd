"""What a person sees who types a dot, or asks for help: names that are for users, and words about
each.
"""

from __future__ import annotations

import inspect
import pydoc
import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import autograd
from multigrad.registry import OPS

INTERNAL = (
    "scatter_add",
    "unindex",
    "refuse",
    "singular_factor",
    "logistic",
    "log_sum_exp",
    "getitem",
    "setitem",
    "to_backend",
    "read_slices",
    "__array_namespace_info__",
    "annotations",
)


@pytest.mark.parametrize(
    "module", [mg, autograd, autograd.graph, mg.func, mg.typing], ids=lambda m: m.__name__
)
def test_every_listed_name_is_there(module: ModuleType) -> None:
    for name in dir(module):
        getattr(module, name)


def test_the_module_lists_what_users_call() -> None:
    names = dir(mg)
    assert {
        "sum",
        "linalg",
        "fft",
        "asarray",
        "autograd",
        "func",
        "extend",
        "typing",
        "float32",
        "pi",
        "softmax",
        "__version__",
    } <= set(names)
    assert not set(INTERNAL) & set(names) and names == sorted(names)
    assert not {op.name for op in OPS.values() if op.chapter == "kernels"} & set(names)
    assert [name for name in names if name.startswith("_")] == ["__all__", "__doc__", "__version__"]


def test_so_does_a_namespace() -> None:
    assert not set(INTERNAL) - {"__array_namespace_info__"} & set(dir(mg.namespace("numpy")))
    assert hasattr(mg.namespace("numpy"), "setitem")  # which is there for rules


@pytest.mark.parametrize("prefix", ["linalg", "fft", "special"])
def test_so_do_the_functions_of_an_extension(prefix: str) -> None:
    mg.extend.load_plugins()
    mg.zeros(1)
    there = getattr(mg, prefix)
    names = {
        name.removeprefix(f"{prefix}.")
        for name, op in OPS.items()
        if name.startswith(f"{prefix}.") and op.public
    }
    assert (
        set(dir(there))
        == names
        == {
            name for name in dir(getattr(mg.namespace("numpy"), prefix)) if not name.startswith("_")
        }
    )
    assert (
        all(callable(getattr(there, name)) for name in names)
        and repr(there) == f"<namespace 'multigrad.{prefix}'>"
    )


def test_autograd_lists_its_surface() -> None:
    assert [name for name in dir(autograd) if not name.startswith("__")] == sorted(autograd.__all__)
    assert [name for name in dir(autograd.graph) if not name.startswith("__")] == sorted(
        autograd.graph.__all__
    )


def test_help_begins_with_a_cheat_sheet() -> None:
    shown = pydoc.plain(pydoc.render_doc(mg)).splitlines()
    assert any("import multigrad as mg" in line for line in shown[:8]) and any(
        "mg.func.hessian(loss)(w, a)" in line for line in shown[:24]
    )


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_the_cheat_sheet_runs(capsys: Any) -> None:
    text = inspect.getdoc(mg) or ""
    code = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    "))
    scope: dict[str, Any] = {}
    exec(re.sub(r"(?<=\S)  +#.*", "", code), scope)
    np.testing.assert_allclose(scope["g"].array, np.exp([1.0, 2.0, 3.0]))


@pytest.mark.parametrize(
    "decorate",
    [mg.no_grad, mg.no_grad(), mg.enable_grad(), mg.inference_mode(True)],
    ids=("no_grad", "no_grad()", "enable_grad()", "inference_mode(True)"),
)
def test_what_they_decorate_keeps_its_signature(decorate: Any) -> None:
    def evaluate(x: int, *, scale: float = 1.0) -> float:
        """Evaluate."""
        return scale * x

    decorated = decorate(evaluate)
    assert (
        inspect.signature(decorated) == inspect.signature(evaluate)
        and decorated.__doc__ == "Evaluate."
    )


def test_attributes_of_a_tensor_say_what_they_are() -> None:
    x = mg.asarray(np.ones((2, 2)))
    for name in dir(x):
        member = inspect.getattr_static(type(x), name, None)
        if not name.startswith("_") and isinstance(member, property):
            assert len(member.__doc__ or "") > 10, name
