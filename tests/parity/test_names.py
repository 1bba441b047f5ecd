"""Names, parameters, their order and their defaults are PyTorch's: those in tools/parity/, which
are compared with an installed PyTorch.
"""

from __future__ import annotations

import importlib
import inspect

import numpy as np
import pytest
import tool_modules
from function_programs import enabled, leaf, make, same

import multigrad as mg

tool = tool_modules.tool("parity")
DATA = tool.read()
ROWS = [(module, row) for module, rows in DATA.names.items() for row in rows if "(" not in row.key]


def place(module):
    return mg.Tensor if module == "Tensor" else importlib.import_module(f"multigrad.{module}")


def found(path):
    """What multigrad has under the path of a name of PyTorch; LookupError if there is none."""
    module = max((m for m in DATA.names if path.startswith(m + ".")), key=len)
    obj = place(module)
    for part in path.removeprefix(module + ".").split("."):
        if not hasattr(obj, part):
            raise LookupError(path)
        obj = getattr(obj, part)
    return obj


def written(path):
    """The parameters as keys are written; names of *args and **kwargs mean nothing to a caller."""
    owner, _, name = path.rpartition(".")
    holder = place(owner) if owner in DATA.names else found(owner)
    method = inspect.isclass(holder) and inspect.isfunction(inspect.getattr_static(holder, name))
    return [
        plain(tool.shown(p))
        for p in list(inspect.signature(found(path)).parameters.values())[method:]
    ]


def plain(parameter):
    star = (
        "**"
        if parameter.startswith("**")
        else "*"
        if parameter.startswith("*") and not parameter.startswith("*, ")
        else ""
    )
    return star or parameter


@pytest.mark.parametrize(
    ("module", "row"),
    [pytest.param(*entry, id=f"{entry[0]}.{entry[1].key}") for entry in ROWS if entry[1].here],
)
def test_it_is_there(module, row):
    obj = found(f"{module}.{row.key}")
    for other in row.see:
        assert obj is found(other)


@pytest.mark.parametrize(
    "path",
    [f"{module}.{row.key}" for module, row in ROWS if row.none and module not in tool.PROFILER],
)
def test_what_has_no_meaning_is_not(path):
    with pytest.raises(LookupError):
        found(path)


def signatures():
    for module, rows in DATA.names.items():
        for row in rows:
            path = f"{module}.{row.key}"
            parameters = [
                r.key[len(row.key) + 1 : -1] for r in rows if r.key.startswith(f"{row.key}(")
            ]
            if row.here and "(" not in row.key and parameters and path not in DATA.unlike:
                more = [key[len(path) + 1 : -1] for key in DATA.more if key.startswith(f"{path}(")]
                yield pytest.param(path, [plain(p) for p in [*parameters, *more]], id=path)


@pytest.mark.parametrize(("path", "parameters"), list(signatures()))
def test_its_parameters_are_pytorchs(path, parameters):
    assert written(path) == parameters


def test_nothing_of_pytorch_is_missing(torch):
    if not torch.__version__.startswith(tool.VERSION):
        pytest.skip(
            f"the table is that of PyTorch {tool.VERSION}, and {torch.__version__} is installed"
        )
    assert tool.compare(DATA) == []


def test_names_of_a_tensor_are_pytorchs(torch):
    """They are chosen by hand, so that the comparison of modules does not find them."""
    for row in DATA.names["Tensor"]:
        name, _, parameter = row.key.partition("(")
        if name == "volatile":  # gone, with a warning: see test_variable.py
            continue
        assert hasattr(torch.Tensor, name), name
        if parameter and name != "requires_grad_":  # which shows no signature
            assert parameter[:-1] in [
                tool.shown(p)
                for p in inspect.signature(getattr(torch.Tensor, name)).parameters.values()
            ]


# Names that no other test has a use for


def test_modules(side):
    package = "torch" if side.name == "torch" else "multigrad"
    for name in (
        "functional",
        "graph",
        "function",
        "gradcheck",
        "grad_mode",
        "anomaly_mode",
        "variable",
    ):
        module = importlib.import_module(f"{package}.autograd.{name}")
        assert inspect.ismodule(module)
        if name not in ("gradcheck", "variable"):  # where the package has a function of that name
            assert getattr(side.autograd, name) is module
    assert side.autograd.grad_mode.no_grad is side.autograd.no_grad


def test_modes_decorate_without_parentheses(side):
    @side.autograd.enable_grad
    def on():
        return enabled(side)

    assert on()
    with side.no_grad():
        assert on() and not enabled(side)
        assert side.autograd.enable_grad(lambda: enabled(side))()


def test_save_on_cpu_takes_what_pytorch_does(side):
    x = leaf(side, 1.0, 2.0)
    for options in ({}, {"pin_memory": False}, {"pin_memory": False, "device_type": "cuda"}):
        with side.autograd.graph.save_on_cpu(**options):
            y = side.xp.sum(side.xp.exp(x))
        same(side, side.autograd.grad(y, x)[0], np.exp([1, 2]))


def test_what_forward_said_is_on_its_ctx(side):
    seen = []

    def forward(ctx, a):
        a *= 2
        ctx.mark_dirty(a)
        ctx.mark_non_differentiable(a)
        ctx.save_for_backward(a, None)
        ctx.save_for_forward(a)
        seen.append(
            [
                [t is a for t in kept]
                for kept in (
                    ctx.dirty_tensors,
                    ctx.non_differentiable,
                    ctx.to_save,
                    ctx.saved_for_forward,
                )
            ]
        )
        return a

    make(side, forward).apply(side.tensor([1.0]))
    assert seen == [[[True], [True], [True, False], [True]]]


def test_apply_jvp(side):
    """The node calls the user's jvp; forward mode does, once it is there."""
    y = make(side, lambda ctx, a: a * 3, jvp=staticmethod(lambda ctx, t: t * 3)).apply(
        leaf(side, 1.0)
    )
    same(side, y.grad_fn.apply_jvp(side.tensor([2.0])), [6])
