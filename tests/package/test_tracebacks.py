"""Tracebacks show the program: each run of frames inside multigrad is one line, the last but one
line is the program's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad.errors import OWN
from multigrad.registry import elementwise

X, Y = np.ones(2), np.ones(3)


@pytest.fixture(autouse=True)
def default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MULTIGRAD_TRACEBACK", raising=False)


def frames(error: BaseException) -> list[str]:
    """Whose the frames of a traceback are, from the outermost to the innermost: "us", "here", or a
    file's name.
    """
    files = [f.filename for f in traceback.extract_tb(error.__traceback__)]
    return ["us" if f.startswith(OWN) else "here" if f == __file__ else Path(f).name for f in files]


def raised(call: Callable[[], Any]) -> BaseException:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def scalar(x: Any) -> Any:
    return mg.sum(x * mg.asarray(Y))


class TestFolding:
    @pytest.mark.parametrize(
        "transformed",
        [
            lambda: func.grad(scalar)(X),
            lambda: func.value_and_grad(scalar)(X),
            lambda: func.vmap(scalar)(np.ones((4, 2))),
            lambda: func.jvp(scalar, (X,), (X,)),
            lambda: func.vjp(scalar, X),
            lambda: func.hvp(scalar, (X,), (X,)),
            lambda: func.jacrev(scalar)(X),
            lambda: func.jacfwd(scalar)(X),
            lambda: func.jacobian(scalar)(X),
            lambda: func.hessian(scalar)(X),
            lambda: func.vmap(func.grad(scalar))(np.ones((4, 2))),
            lambda: func.checkpoint(scalar)(mg.asarray(X)),
            lambda: func.scan(lambda c, x: (c * mg.asarray(Y), x), X, np.ones((4, 2))),
            lambda: func.cond(True, scalar, scalar, X),
            lambda: func.compile(scalar)(X),
            lambda: func.switch(0, [scalar], X),
            lambda: func.fori_loop(0, 3, lambda i, x: x * mg.asarray(Y), X),
            lambda: func.while_loop(lambda x: x.sum() < 3, lambda x: x * mg.asarray(Y), X),
            lambda: func.linearize(scalar, X),
            lambda: mg.autograd.functional.jacobian(scalar, mg.asarray(X)),
            lambda: mg.autograd.gradcheck(scalar, mg.asarray(X, requires_grad=True)),
        ],
    )
    def test_functions_of_the_program_stay(self, transformed):
        error = raised(transformed)
        assert frames(error)[-4:] == ["here", "us", "here", "us"], "".join(
            traceback.format_exception(error)
        )
        assert "could not be broadcast" in str(error) and "multiply" in error.__notes__[0]

    def test_an_error_of_the_program_ends_in_the_program(self):
        def f(x: Any) -> Any:
            return 1 / 0

        error = raised(lambda: func.vmap(func.grad(f))(np.ones((4, 2))))
        assert type(error) is ZeroDivisionError and frames(error)[-3:] == ["here", "us", "here"]
        assert not hasattr(error, "__notes__")

    def test_a_function_of_the_program_as_a_custom_derivative(self):
        class Fails(mg.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * mg.asarray(Y)

        error = raised(lambda: mg.sum(Fails.apply(mg.asarray(X, requires_grad=True))).backward())
        assert frames(error)[-4:] == ["here", "us", "here", "us"], "".join(
            traceback.format_exception(error)
        )

    def test_a_rule_of_the_program(self, operations):
        def forward(xp: Any, x: Any) -> Any:
            raise LookupError("as it is meant to")

        elementwise("t.fails(x, /)", forward=forward, x=1)
        error = raised(lambda: mg.t.fails(mg.ones(2)))
        assert (
            type(error) is LookupError
            and frames(error)[-3:] == ["here", "us", "here"]
            and not hasattr(error, "__notes__")
        )

    def test_protocols(self):
        for call in (
            lambda: np.multiply(mg.ones(2), mg.ones(3)),
            lambda: np.sum(mg.ones(2), axis=3),
        ):
            assert frames(raised(call))[-1] == "us" and frames(raised(call)).count("us") == 1


class TestTheException:
    def test_is_the_same_object(self, monkeypatch):
        seen: list[BaseException] = []

        def f(x: Any) -> Any:
            try:
                return x * mg.asarray(Y)
            except ValueError as error:
                seen.append(error)
                raise

        assert raised(lambda: func.grad(f)(X)) is seen[0]

    def test_keeps_cause_and_context(self):
        def f(x: Any) -> Any:
            try:
                return x * mg.asarray(Y)
            except ValueError as error:
                raise LookupError("one's own") from error

        error = raised(lambda: func.grad(f)(X))
        assert (
            type(error) is LookupError
            and type(error.__cause__) is ValueError
            and frames(error.__cause__) == ["here", "us"]
        )

    def test_keeps_what_the_program_was_handling(self):
        def f(x: Any) -> Any:
            try:
                raise KeyError("before")
            except KeyError:
                return x * mg.asarray(Y)

        error = raised(lambda: func.grad(f)(X))
        assert type(error) is ValueError and not error.__suppress_context__
        assert type(error.__context__) is KeyError and frames(error.__context__) == ["here"]

    def test_causes_within_are_folded_as_well(self):
        error = raised(lambda: func.vmap(lambda x: x, in_axes=(0, 1))(X))
        assert (
            error.__cause__ is None
            and error.__suppress_context__
            and frames(error.__context__).count("us") == 1
        )

    def test_ends_in_the_function_of_the_operation(self):
        error = raised(lambda: mg.ones(2) * mg.ones(3))
        innermost = error.__traceback__
        while innermost.tb_next is not None:
            innermost = innermost.tb_next
        assert innermost.tb_frame.f_code.co_name == "multiply"

    def test_interrupts_are_left_alone(self):
        def f(x: Any) -> Any:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt) as caught:
            func.grad(f)(X)
        assert frames(caught.value).count("us") > 1

    def test_again_and_again(self):
        """An exception that is kept and raised anew has the frames of the program once more, and no
        more of multigrad's.
        """
        kept = LookupError("kept")

        def f(x: Any) -> Any:
            raise kept

        for _ in range(3):
            kept.__traceback__ = None
            assert raised(lambda: func.grad(f)(X)) is kept and frames(kept)[-3:] == [
                "here",
                "us",
                "here",
            ]


class TestNotes:
    def test_name_the_operation_that_the_program_called(self):
        (note,) = raised(lambda: mg.linalg.trace(mg.ones(2))).__notes__
        assert note.startswith("multigrad.linalg.trace: x has shape (2,)")

    def test_give_the_shapes_of_one_example(self):
        (note,) = raised(lambda: func.vmap(lambda x: x * mg.asarray(Y))(np.ones((4, 2)))).__notes__
        assert "x1 has shape (2,)" in note

    def test_notes_of_the_program_stay(self):
        def f(x: Any) -> Any:
            try:
                return x * mg.asarray(Y)
            except ValueError as error:
                error.add_note("in the third layer")
                raise

        assert [n.partition(":")[0] for n in raised(lambda: func.grad(f)(X)).__notes__] == [
            "multigrad.multiply",
            "in the third layer",
        ]

    def test_errors_of_multigrad_have_none(self):
        error = raised(lambda: mg.ones(2) * mg.namespace("strict").ones(2))
        assert not hasattr(error, "__notes__") and "multiply" in str(error)


SCRIPT = """
import sys
import numpy as np
import multigrad as mg

def loss(w):
    return mg.sum(w * mg.asarray(np.ones(3)))

def train():
    return mg.func.grad(loss)(np.ones(2))

{run}
"""


def run(*arguments: str, feed: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "MULTIGRAD_TRACEBACK"}
    return subprocess.run(
        [sys.executable, *arguments],
        input=feed,
        capture_output=True,
        text=True,
        env=clean | environment,
        timeout=300,
        check=False,
    )


class TestPrograms:
    def test_a_script(self, tmp_path):
        path = tmp_path / "script.py"
        path.write_text(SCRIPT.format(run="train()"))
        shown = run(str(path)).stderr
        assert [line.strip() for line in shown.splitlines() if line.startswith("  File")][
            -2
        ].endswith(f'"{path}", line 7, in loss')
        assert "multigrad.multiply: x1 has shape (2,)" in shown and shown.count("  File") == 5
        assert run(str(path), MULTIGRAD_TRACEBACK="full").stderr.count("  File") > 7

    def test_a_generator(self) -> None:
        def rows() -> Any:
            for _ in range(2):
                yield func.grad(scalar)(X)

        assert frames(raised(lambda: list(rows()))) == ["here", "here", "here", "us", "here", "us"]

    def test_a_group(self) -> None:
        """Each error of a group is folded, and so is a group that a function of the program raises
        inside.
        """

        def both(x: Any) -> Any:
            raise ExceptionGroup(
                "both", [raised(lambda: scalar(x)), raised(lambda: func.grad(scalar)(X))]
            )  # type: ignore[list-item]

        group: Any = raised(lambda: func.grad(both)(X))
        assert frames(group) == ["here", "here", "us", "here"]
        assert [frames(error) for error in group.exceptions] == [
            ["here", "here", "here", "us"],
            ["here", "here", "us", "here", "us"],
        ]

    def test_pdb_after_the_fact(self, tmp_path):
        path = tmp_path / "script.py"
        path.write_text(
            SCRIPT.format(
                run="import pdb\n"
                "try:\n"
                "    train()\n"
                "except ValueError as error:\n"
                "    pdb.post_mortem(error.__traceback__)"
            )
        )
        shown = run(str(path), feed="up\np w.shape\nup\nup\nwhere\nq\n").stdout
        assert (
            "(2,)" in shown
            and "-> return mg.sum(w * mg.asarray(np.ones(3)))" in shown
            and "-> return mg.func.grad(loss)(np.ones(2))" in shown
        )

    def test_pytest_ends_at_the_line_of_the_test(self, tmp_path):
        path = tmp_path / "test_it.py"
        path.write_text(
            SCRIPT.format(run="def test_it():\n    a, b = mg.ones(2), mg.ones(3)\n    a * b")
        )
        shown = run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)).stdout
        assert (
            ">       a * b" in shown
            and "test_it.py:14: ValueError" in shown
            and "_failed(" not in shown
        )
        assert "multigrad.multiply: x1 has shape (2,)" in shown

    def test_a_breakpoint_inside(self):
        """Debuggers that stop while the program runs see all frames: only what is raised is
        folded.
        """
        seen: list[str] = []

        def f(x: Any) -> Any:
            frame = sys._getframe().f_back
            while frame is not None:
                seen.append(frame.f_code.co_filename)
                frame = frame.f_back
            return mg.sum(x)

        func.grad(f)(X)
        assert sum(name.startswith(OWN) for name in seen) > 1


def test_threads_do_not_meet():
    errors: list[BaseException] = []

    def work() -> None:
        for _ in range(50):
            errors.append(raised(lambda: mg.asarray(X) * mg.asarray(Y)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(errors) == 200 and all(frames(e)[-2:] == ["here", "us"] for e in errors)


def test_a_traceback_without_an_end():
    """Exceptions may refer to each other in a circle."""
    first, second = LookupError("a"), LookupError("b")
    first.__context__, second.__context__ = second, first

    def f(x: Any) -> Any:
        raise first

    assert raised(lambda: func.grad(f)(X)) is first and isinstance(
        first.__traceback__, TracebackType
    )


def test_jax_has_its_own_folding():
    jax = pytest.importorskip("jax")
    x = mg.asarray(jax.numpy.ones(2))
    error = raised(lambda: x * jax.numpy.ones(3))
    assert frames(error) == ["here", "here", "us"] and "multigrad.multiply" in "".join(
        error.__notes__
    )


class TestArgumentsInErrors:
    """An error of Python that does not name the function says with what it was called."""

    def test_a_note_has_the_arguments(self) -> None:
        error = raised(lambda: func.custom_vjp(scalar, nondiff_argnums=1.5))
        assert str(error) == "'float' object is not iterable"
        (note,) = error.__notes__
        assert note.startswith("Called as custom_vjp(fun=<function scalar")
        assert note.endswith(", nondiff_argnums=1.5).")

    def test_arrays_are_described_by_their_shapes(self) -> None:
        error = raised(lambda: func.tree.map(3, {"a": X}, mg.asarray(Y)))
        assert str(error) == "tree.map: the first argument must be a function, not int"
        assert error.__notes__ == [
            "Called as map(function=3, tree={'a': array([1., 1.])}, <Tensor of shape (3,), float64>)."
        ]

    def test_the_outermost_call_is_told(self) -> None:
        error = raised(lambda: mg.autograd.functional.hessian(3, mg.asarray(X)))
        assert [n.partition("(")[0] for n in error.__notes__] == ["Called as hessian"]

    @pytest.mark.parametrize(
        ("call", "kind", "text"),
        [
            (
                lambda: mg.autograd.graph.MemoryReport(mg.asarray(X)),  # type: ignore[arg-type]
                TypeError,
                "MemoryReport() failed with AttributeError: 'Tensor' object has no attribute "
                "'operations'",
            ),
            (
                lambda: func.tree.leaves(itself),
                ValueError,
                "leaves() failed with RecursionError: maximum recursion depth exceeded",
            ),
            (
                lambda: func.vmap(scalar)(itself),
                ValueError,
                "vmap(f)() failed with RecursionError: maximum recursion depth exceeded",
            ),
            (
                lambda: np.linalg.eigh(mg.asarray(np.eye(2)), UPLO=3),  # type: ignore[arg-type]
                TypeError,
                "eigh() failed with AttributeError: 'int' object has no attribute 'upper'",
            ),
            (
                lambda: mg.fft.rfftfreq(0),
                ValueError,
                "fft.rfftfreq() failed with ZeroDivisionError: float division by zero",
            ),
        ],
    )
    def test_an_error_from_inside_becomes_one_of_the_function(
        self, call: Callable[[], Any], kind: type[Exception], text: str
    ) -> None:
        error = raised(call)
        assert type(error) is kind and str(error).startswith(text)
        assert frames(error) == ["here", "here", "us"]

    def test_errors_of_the_program_stay_as_they_are(self) -> None:
        def attribute(x: Any) -> Any:
            return x.no_such

        for call in (lambda: func.vmap(attribute)(X), lambda: func.grad(attribute)(X)):
            error = raised(call)
            assert type(error) is AttributeError and not hasattr(error, "__notes__")

    def test_a_library_without_the_function_is_an_attribute_error(self, operations: Any) -> None:
        elementwise("misused.nothing(x, /)", x=1)
        error = raised(lambda: mg.misused.nothing(mg.asarray(X)))
        assert type(error) is AttributeError

    def test_a_plugin_decorates_its_functions(self) -> None:
        error = raised(lambda: mg.extend.entry(3))  # type: ignore[type-var]
        assert str(error) == "entry: expected a Python function, not int"
        multigrad_autograd = pytest.importorskip("multigrad_autograd")
        error = raised(lambda: multigrad_autograd.multigrad(scalar, argnums=1.5))
        assert frames(error)[:2] == ["here", "here"] and "multigrad(fun=" in error.__notes__[0]
        assert not any("multigrad_autograd" in f for f in frames(error))

    def test_the_module_of_a_declaration_is_that_of_the_caller(self, operations: Any) -> None:
        assert elementwise("misused.mine(x, /)", x=1).module == __name__


itself: list[Any] = []
itself.append(itself)
