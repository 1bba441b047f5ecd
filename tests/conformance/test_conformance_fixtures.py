"""The fixtures of multigrad-conformance in projects of their own, check_rule, and the example
project of docs/testing.md.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest_runs import ROOT, run_pytest

import multigrad as mg
from multigrad import registry

pytest.importorskip("multigrad_conformance")
pytest.importorskip("array_api_strict")

from multigrad_conformance import Kink, Sample, check_rule

GUIDE = ROOT / "docs" / "testing.md"
X = np.asarray([[0.3, -1.2, 0.7], [1.5, 0.2, -0.4]])


# ----- the example project -----


@pytest.mark.sweep
def test_the_example_project_passes_as_it_stands(tmp_path: Path) -> None:
    files = re.findall(r"^`([\w/]+\.py)`:\n\n```python\n(.*?)```", GUIDE.read_text(), re.S | re.M)
    assert [name for name, _ in files] == [
        "curves/__init__.py",
        "curves/operations.py",
        "tests/test_curves.py",
    ]
    for name, text in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "conftest.py").write_text("")  # where pytest begins: `import curves` works
    done = run_pytest(
        tmp_path, "-rs", "--multigrad-backend", "numpy", "--multigrad-backend", "strict"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 passed" in done.stdout


def test_the_examples_of_the_guide() -> None:
    blocks = re.findall(r"^```python\n(.*?)```", GUIDE.read_text(), re.S | re.M)[:2]
    scope: dict[str, Any] = {}
    printed: list[str] = []
    for block in blocks:
        exec(
            compile(block, str(GUIDE), "exec"),
            scope | {"print": lambda error: printed.append(str(error))} if scope else scope,
        )
    told = re.search(r"    (square fails: .*)\n    (also numpy.*) \.\.\.\n", GUIDE.read_text())
    assert told is not None
    # the last digits are the machine's
    short = [re.sub(r"(\.\d{8})\d*", r"\1", text) for text in (f"{told[1]}\n{told[2]}", printed[0])]
    assert short[1].startswith(short[0])


# ----- the fixtures -----


def project(folder: Path, test: str, conftest: str = "", ini: str = "") -> None:
    (folder / "test_project.py").write_text(test)
    (folder / "conftest.py").write_text(conftest)
    (folder / "pytest.ini").write_text(f"[pytest]\n{ini}\n")


USES = """
def test_names(xp, multigrad_backend):
    assert xp.__name__ == f"multigrad.{multigrad_backend}"

def test_gradient(xp):
    x = xp.asarray([1.0, 2.0], requires_grad=True)
    xp.sum(x * x).backward()
    assert x.grad.tolist() == [2.0, 4.0]
"""


@pytest.mark.sweep
def test_a_test_with_xp_stands_for_one_on_each_installed_backend(tmp_path: Path) -> None:
    project(
        tmp_path,
        USES
        + """
def test_last():
    import sys
    assert not {"jax", "array_api_strict"} & set(sys.modules)
""",
    )
    done = run_pytest(tmp_path, "--collect-only")
    assert done.returncode == 0, done.stdout + done.stderr
    for b in mg.backends():
        if b.state not in ("operations", "deferred"):
            assert (f"::test_gradient[{b.name}]" in done.stdout) == (b.state != "not installed"), (
                b.name
            )
    # no library is imported to list the tests
    assert "1 passed" in run_pytest(tmp_path, "-k", "test_last").stdout


@pytest.mark.sweep_after(1)
@pytest.mark.parametrize(
    ("ini", "options", "told"),
    [
        ("strict", ["--multigrad-backend", "numpy"], "test_names[numpy] PASSED"),
        ("strict numpy strict", [], "4 passed"),
        ("nunpy", [], "multigrad_backends names 'nunpy', which is not a backend; there are "),
    ],
)
def test_backends_are_chosen(tmp_path: Path, ini: str, options: list[str], told: str) -> None:
    """By the ini file, or by the option, which goes first."""
    project(tmp_path, USES, ini=f"multigrad_backends = {ini}")
    done = run_pytest(tmp_path, "-vv", *options)
    assert told in done.stdout + done.stderr
    assert ("test_names[strict] PASSED" in done.stdout) == (told == "4 passed")
    assert bool(done.returncode) == (ini == "nunpy")


@pytest.mark.sweep
def test_a_backend_that_does_not_work_is_skipped_with_its_reason(tmp_path: Path) -> None:
    project(
        tmp_path,
        USES
        + """
def test_function(check_function):
    check_function(lambda x: x * 2, __import__("numpy").ones(2))
""",
        ini="multigrad_backends = cupy numpy",
    )
    (tmp_path / "cupy.py").write_text("raise ImportError('this cupy is a ruin')")
    done = run_pytest(tmp_path, "-rs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed, 2 skipped" in done.stdout
    assert (
        "the backend 'cupy' cannot be used here: " in done.stdout
        and "this cupy is a ruin" in done.stdout
    )
    project(tmp_path, "def test_function(check_function): pass", ini="multigrad_backends = cupy")
    assert (
        "no backend that multigrad_backends names can be used here"
        in run_pytest(tmp_path, "-rs").stdout
    )


def test_fixtures_and_parameters_of_a_project_win(tmp_path: Path) -> None:
    conftest = """
import pytest

@pytest.fixture
def check_function():
    return "mine"
"""
    test = """
import pytest

@pytest.fixture(params=[1, 2])
def xp(request):
    return request.param

def test_fixture(xp, check_function):
    assert xp in (1, 2) and check_function == "mine"
"""
    project(tmp_path, test, conftest)
    (tmp_path / "test_other.py").write_text("""
import pytest

@pytest.mark.parametrize("xp", ["a", "b", "c"])
def test_parameter(xp):
    assert xp in "abc"

def test_nothing_is_imported():
    assert not {"numpy", "multigrad", "multigrad_conformance.testing"} & set(__import__("sys").modules)
""")
    done = run_pytest(tmp_path)
    assert done.returncode == 0 and "6 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.sweep
def test_with_xdist(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    project(tmp_path, USES, ini="multigrad_backends = numpy strict")
    done = run_pytest(tmp_path, "-n", "2")
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout + done.stderr


# ----- check_rule -----


def rule_fails(
    op: Any, samples: Any = None, backends: Any = ("numpy", "strict"), **kwargs: Any
) -> str:
    with pytest.raises(AssertionError) as caught:
        check_rule(op, samples, backends=backends, **kwargs)
    return str(caught.value)


def test_the_package_has_its_names() -> None:
    import multigrad_conformance as package

    assert {"check_function", "check_rule", "Sample"} <= set(dir(package))
    with pytest.raises(
        AttributeError, match="'multigrad_conformance' has no attribute 'checks_of'"
    ):
        package.checks_of


def test_a_rule_of_the_table() -> None:
    assert check_rule("tanh", backends="numpy") is None
    assert check_rule(registry.OPS["linalg.det"], backends=["strict"], level="short") is None
    assert check_rule("tanh") is None


def softsign(name: str, **changed: Any) -> None:
    rules = {
        "x": lambda xp, x: 1 / (1 + xp.abs(x)) ** 2,
        "forward": lambda xp, x: x / (1 + xp.abs(x)),
    } | changed
    registry.elementwise(f"{name}(x, /)", doc="x / (1 + |x|).", **rules)


def test_a_right_rule_with_samples(operations: Any) -> None:
    softsign("toolcheck.softsign")
    assert check_rule("toolcheck.softsign", [(X,)], backends=("numpy", "strict")) is None
    at_zero = Kink("at 0", [0.0], gradients={"x": [1.0]})
    for samples in ([Sample("real", X), at_zero], lambda draw: [(draw.real(2, 3),)]):
        check_rule("toolcheck.softsign", samples, backends="numpy")


def test_a_wrong_partial(operations: Any) -> None:
    softsign("toolcheck.partial", x=lambda xp, x: 1 / (1 + xp.abs(x)))
    text = rule_fails("toolcheck.partial", [(X,)])
    assert text.startswith(
        "the operation 'toolcheck.partial' fails: numpy, toolcheck.partial/vjp/sample-0: "
    )
    assert (
        "gradient x, finite differences" in text
        and "\nalso numpy, toolcheck.partial/" in text
        and "more" in text.splitlines()[-1]
    )


def test_what_check_rule_refuses(operations: Any) -> None:
    softsign("toolcheck.bare")
    for arguments, message in (
        (("nosuch.operation",), "check_rule: no operation 'nosuch.operation' is declared"),
        ((3,), "check_rule: no operation 3 is declared"),
        (
            ("toolcheck.bare",),
            r"the operation 'toolcheck.bare' has no samples: pass samples=\[\(argument, ...\)\]",
        ),
        (("toolcheck.bare", []), "has no samples"),
    ):
        with pytest.raises(ValueError, match=message):
            check_rule(*arguments)
    with pytest.raises(
        ValueError,
        match=r"an object of type ndarray, where a Sample or a tuple of arguments, such as \(x,\)",
    ):
        check_rule("toolcheck.bare", [X])
    with pytest.raises(ValueError, match="there is no check 'grad' of 'tanh' here; there are "):
        check_rule("tanh", checks="grad", backends="numpy")
    with pytest.raises(ValueError, match="level must be 'full' or 'short', not 'long'"):
        check_rule("tanh", level="long")
    with pytest.raises(mg.errors.BackendError, match="nosuch"):
        check_rule("tanh", backends="nosuch")


def test_an_old_declaration_is_refused(operations: Any) -> None:
    softsign("toolcheck.twice")
    old = registry.OPS["toolcheck.twice"]
    softsign("toolcheck.twice", override=True)
    with pytest.raises(
        ValueError, match=r"this declaration of 'toolcheck.twice' has been replaced by another one"
    ):
        check_rule(old)
