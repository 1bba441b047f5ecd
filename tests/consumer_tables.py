"""Tables of other libraries' calls: each has right values and a right gradient on Tensors, or
refuses in words that are known.

A file `tests/consumers/test_calls_<stem>.py` has one `Table` of calls and `test_calls =
TABLE.test()`. What each call does stands in `tests/consumers/outcomes/<stem>.toml`, which `make
consumers` writes and the tests compare. Whatever is wrong or silent, a value, a gradient, an error
in words that no reason has, is an `AssertionError` and never an outcome.
"""

from __future__ import annotations

import os
import re
import tomllib
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consumer_checks import cotangent, floating, values

import multigrad as mg
from multigrad.autograd.graph import allow_mutation_on_saved_tensors
from multigrad.errors import BackendError
from multigrad_conformance.differences import gradient

FOLDER = Path(__file__).parent / "consumers"
SWITCHED = os.environ.get("SCIPY_ARRAY_API", "").lower() in ("1", "true")


@dataclass(frozen=True)
class Setting:
    """Where calls are tried: the backend of the Tensors, and whether SciPy dispatches by
    SCIPY_ARRAY_API=1 (None: as it comes).

    sample  only calls that say so are tried there: JAX compiles each of them
    """

    backend: str
    title: str
    switched: bool | None = None
    sample: bool = False

    def here(self) -> bool:
        """Whether this process can try it."""
        return SWITCHED == bool(self.switched)


NUMPY, STRICT, JAX = (
    Setting("numpy", "numpy"),
    Setting("strict", "strict"),
    Setting("jax", "jax", sample=True),
)
LIBRARY = {"numpy": NUMPY, "strict": STRICT, "jax": JAX}
"""The settings of a library that has no switch."""
SCIPY = {
    "off": Setting("numpy", "numpy, dispatch off", switched=False),
    "on": Setting("numpy", "numpy, SCIPY_ARRAY_API=1", switched=True),
    "strict": Setting("strict", "strict, SCIPY_ARRAY_API=1", switched=True),
    "jax": Setting("jax", "jax, SCIPY_ARRAY_API=1", switched=True, sample=True),
}


@dataclass(frozen=True)
class Reason:
    """Why a call refuses: the type and the words of what it raises, and what the page says of
    it.
    """

    error: type[BaseException] | tuple[type[BaseException], ...]
    words: str
    says: str

    def fits(self, error: BaseException) -> bool:
        return isinstance(error, self.error) and re.search(self.words, str(error)) is not None


# The first that fits is taken. A table may have more of its own, which come first.
REASONS: dict[str, Reason] = {
    "converts": Reason(
        mg.errors.GradientError,
        r"Can't call numpy\(\) on Tensor that requires grad",
        "converts its argument to a NumPy array: the function is compiled, or supports only NumPy",
    ),
    "writes": Reason(
        mg.errors.GradientError,
        "has been modified by an inplace operation",
        "writes into an array that the backward pass needs",
    ),
    "writes into its argument": Reason(
        mg.errors.GradientError,
        "leaf Variable that requires grad is being used in an in-place operation",
        "writes into its argument, which raises for a leaf that requires grad",
    ),
    "no rule": Reason(
        mg.errors.MissingRuleError,
        "has no derivative rule",
        "calls an operation without a derivative with respect to one of the arguments",
    ),
    "exports": Reason(
        BufferError, "Can't export tensors that require gradient", "exports the memory with DLPack"
    ),
    "ufunc": Reason(
        TypeError, "does not support ufuncs", "calls a ufunc without a counterpart in multigrad"
    ),
    "no counterpart": Reason(
        mg.errors.GradientError,
        "multigrad has no (counterpart|derivative) of it",
        "calls a NumPy function or a ufunc without a counterpart in multigrad",
    ),
    "two libraries": Reason(
        mg.errors.MixedBackendsError,
        "got arrays of two backends",
        "creates NumPy arrays, which do not mix with Tensors of another library",
    ),
    "strict's rules": Reason(
        (AttributeError, IndexError, TypeError, ValueError),
        "Integer index arrays are only allowed with integer indices|the multi-axes index only "
        "specifies|dtype must be one of the supported dtypes|Only numeric dtypes are "
        "allowed|has no attribute '_np_dtype'|Cannot interpret 'array_api_strict.[a-z0-9]+' as "
        "a data type",
        "uses a nonstandard feature, which array-api-strict refuses",
    ),
    "two namespaces": Reason(
        TypeError,
        "Multiple namespaces for array inputs",
        "mixes Tensors with arrays of another library",
    ),
}


@dataclass(frozen=True)
class Call:
    """One call of a library.

    function, args  called as `function(*args)`; NumPy arrays among the arguments are what becomes a
                    Tensor, so the function takes both
    by              the places of the arguments that require grad; all floating arrays, if not given
    also            the sampled settings that it is tried in
    rtol            of the gradient against differences; `value_rtol` of values
    note            what the page adds to its name
    raw             what is called on NumPy arrays, where that is another function
    """

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    by: Sequence[int] | None = None
    also: Sequence[str] = ()
    rtol: float = 1e-6
    value_rtol: float = 1e-10
    note: str = ""
    raw: Callable[..., Any] | None = None

    def places(self) -> list[int]:
        """Which arguments require grad."""
        return [
            i
            for i, a in enumerate(self.args)
            if isinstance(a, np.ndarray) and floating(a) and (self.by is None or i in self.by)
        ]

    def reference(self, *args: Any) -> list[Any]:
        """What the library gives for NumPy arrays, in one list."""
        return leaves(
            (self.raw or self.function)(
                *(a.copy() if isinstance(a, np.ndarray) else a for a in args)
            )
        )

    def tensors(self, backend: str, places: Sequence[int]) -> list[Any]:
        """The arguments as they are given: each array a Tensor of its own memory."""
        return [
            mg.tensor(a.copy(), backend=backend, requires_grad=i in places)
            if isinstance(a, np.ndarray)
            else a
            for i, a in enumerate(self.args)
        ]


@dataclass(frozen=True)
class Outcome:
    """What a call does in one setting.

    values    "Tensor" or "plain": right, in a Tensor or in what the library makes of NumPy arrays;
              else the reason why constants refuse
    gradient  "checked", which may go on: "checked, with multigrad-special", "checked, in the
              context" (`allow_mutation_on_saved_tensors`); "none": the results do not depend on the
              arguments differentiably, as differences confirm; "warned": it was lost by a
              conversion to a number, with the warning; else the reason why a Tensor that requires
              grad is refused
    """

    values: str
    gradient: str

    @property
    def right(self) -> bool:
        return self.values in ("Tensor", "plain") or self.checked

    @property
    def checked(self) -> bool:
        return self.gradient.startswith("checked")

    @property
    def refused(self) -> bool:
        return not self.checked and self.gradient != "none"


@dataclass
class Table:
    """The calls of one library, or of one part of it.

    library, part  how the page calls it; totals are those of the library
    stem           of the file with its outcomes
    """

    library: str
    stem: str
    calls: list[Call]
    part: str = ""
    settings: dict[str, Setting] = field(default_factory=lambda: dict(LIBRARY))
    reasons: dict[str, Reason] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [call.name for call in self.calls]
        assert len(set(names)) == len(names), (
            f"twice in the table: {sorted({n for n in names if names.count(n) > 1})}"
        )
        self.reasons = {**self.reasons, **REASONS}

    def tried(self) -> Iterator[tuple[Call, str]]:
        """The calls and the settings that this process can try."""
        for key, setting in self.settings.items():
            if setting.here():
                yield from (
                    (call, key) for call in self.calls if not setting.sample or key in call.also
                )

    def outcome(self, call: Call, key: str) -> Outcome:
        """What the call does in a setting; AssertionError if anything of it is wrong or silent."""
        backend = self.settings[key].backend
        expected = call.reference(*call.args)
        try:
            with quiet():
                constants = leaves(call.function(*call.tensors(backend, ())))
        except Exception as error:
            kept = self.reason(error)
        else:
            kept = compared(constants, expected, call)
        gradient = self.gradient(call, backend)
        if gradient == "writes":
            with allow_mutation_on_saved_tensors():
                inside = self.gradient(call, backend)
            gradient = f"{inside}, in the context" if inside.startswith("checked") else gradient
        return Outcome(kept, gradient)

    def gradient(self, call: Call, backend: str) -> str:
        """Whether the gradient is that of differences, or why there is none."""
        places = call.places()
        given = call.tensors(backend, places)
        try:
            with quiet() as heard:
                results = leaves(call.function(*given))
                wanted = [y for y in results if isinstance(y, mg.Tensor) and y.requires_grad]
                weights = [finite(y, cotangent(y, i)) for i, y in enumerate(wanted)]
                chosen = [given[i] for i in places]
                special = bool(wanted) and uses_special(wanted)
                grads = (
                    mg.autograd.grad(
                        wanted,
                        chosen,
                        [mg.asarray(w, backend=backend) for w in weights],
                        allow_unused=True,
                    )
                    if wanted
                    else ()
                )
        except Exception as error:
            return self.reason(error)
        compared(results, call.reference(*call.args), call)
        lost = [
            i for i, y in enumerate(results) if not (isinstance(y, mg.Tensor) and y.requires_grad)
        ]
        if constant_results(call, lost, places):
            if not wanted:
                return "none"
        else:
            assert any("drops its gradient" in str(w.message) for w in heard), (
                "SILENT: a result that depends on an argument has no gradient"
            )
            return "warned"
        has = [i for i in range(len(results)) if i not in lost]
        loss = weighted(call, has, weights)
        for i, leaf, grad in zip(places, chosen, grads, strict=True):
            exact = quiet_differences(loss, call.args, i)
            if grad is None:
                assert not np.any(np.abs(exact) > 1e-9), f"argument {i} got no gradient"
                continue
            assert grad.shape == leaf.shape and grad.dtype == leaf.dtype
            np.testing.assert_allclose(
                values(grad),
                exact,
                rtol=call.rtol,
                atol=call.rtol * (1 + np.max(np.abs(exact), initial=0)),
            )
        return "checked, with multigrad-special" if special else "checked"

    def reason(self, error: BaseException) -> str:
        for name, reason in self.reasons.items():
            if reason.fits(error):
                return name
        raise AssertionError(
            f"no reason has these words: {type(error).__name__}: {error}"
        ) from error

    def test(self) -> Callable[..., None]:
        """The test function of the table's file."""
        table = self
        recorded = read_outcomes(self.stem)

        @pytest.mark.filterwarnings("ignore")
        @pytest.mark.parametrize(
            "call, key",
            [pytest.param(call, key, id=f"{call.name}-{key}") for call, key in table.tried()],
        )
        def test_calls(call: Call, key: str) -> None:
            try:
                mg.namespace(table.settings[key].backend)
            except BackendError as error:
                pytest.skip(f"backend {table.settings[key].backend!r} cannot be used here: {error}")
            known = recorded.get(call.name, {}).get(key)
            assert known is not None, (
                f"no outcome is recorded of {call.name} ({key}); `make consumers` does it"
            )
            assert table.outcome(call, key) == known

        return test_calls


def check(backend: str, function: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Assert that a call of no table has the right values and gradients; `options` are of Call."""
    call = Call("", function, args, **options)
    outcome = Table("", "", [call]).outcome(call, backend)
    arrays = any(hasattr(y, "dtype") for y in call.reference(*args))
    assert outcome.values == ("Tensor" if arrays else "plain"), outcome
    assert outcome.checked or outcome.gradient == "none", outcome


# ----- what is compared -----


@contextmanager
def quiet() -> Iterator[list[warnings.WarningMessage]]:
    """Records warnings, each time; a library's own go nowhere."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield heard


def leaves(result: Any) -> list[Any]:
    """What a call returned, in one list: arrays and numbers, or nested tuples, lists and
    dictionaries of these.
    """
    if isinstance(result, (tuple, list)):
        return [y for r in result for y in leaves(r)]
    if isinstance(result, dict):
        return [y for r in result.values() for y in leaves(r)]
    return [result]


def is_array(y: Any) -> bool:
    return (
        isinstance(y, (np.ndarray, np.generic, mg.Tensor, int, float, complex))
        or hasattr(y, "__array__")
        or hasattr(y, "__dlpack__")
    )


def compared(results: list[Any], expected: list[Any], call: Call) -> str:
    """Assert that values, shapes and dtypes are those for NumPy arrays; "Tensor" if all arrays are
    Tensors, else "plain".
    """
    assert len(results) == len(expected) > 0, "another number of results"
    kinds = set()
    for y, known in zip(results, expected, strict=True):
        if not is_array(known):
            assert type(y) is type(known) and y == known, f"{y!r} is not {known!r}"
            continue
        assert is_array(y), f"{type(y).__name__} where NumPy arrays give {type(known).__name__}"
        kinds.add(isinstance(y, mg.Tensor))
        actual, wanted = np.asarray(values(y)), np.asarray(known)
        assert actual.shape == wanted.shape, (
            f"the shape {actual.shape}, where NumPy arrays give {wanted.shape}"
        )
        if hasattr(y, "dtype") and hasattr(known, "dtype"):
            assert actual.dtype == wanted.dtype, (
                f"{actual.dtype} where NumPy arrays give {wanted.dtype}"
            )
        if wanted.dtype.kind in "biufc":
            np.testing.assert_allclose(actual, wanted, rtol=call.value_rtol, atol=call.value_rtol)
        else:
            assert actual.tolist() == wanted.tolist()
    return "plain" if False in kinds or not kinds else "Tensor"


def uses_special(results: list[Any]) -> bool:
    """Whether an operation of multigrad-special is in the graph of the results."""
    stack, seen = [y.grad_fn for y in results], set()
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if getattr(getattr(getattr(node, "rule", None), "op", None), "name", "").startswith(
            "special."
        ):
            return True
        stack += [parent for parent, _ in node.next_functions]
    return False


def real(y: Any) -> Any:
    """A floating result as a NumPy array; None for anything else."""
    y = np.asarray(y) if is_array(y) else np.asarray(0)
    return y if y.dtype.kind in "fc" else None


def weighted(call: Call, which: list[int], weights: list[Any]) -> Callable[..., float]:
    def loss(*args: Any) -> float:
        results = call.reference(*args)
        return sum(
            float(np.sum(np.real(np.conj(w) * np.asarray(results[i]))[w != 0]))
            for i, w in zip(which, weights, strict=True)
        )

    return loss


def finite(y: Any, weight: Any) -> Any:
    """A weight that leaves out what is nan or infinite in a result: differences do not exist
    there.
    """
    return np.where(np.isfinite(np.asarray(values(y))), weight, weight * 0)


def constant_results(call: Call, which: list[int], places: list[int]) -> bool:
    """Whether no argument changes the results at `which`, by differences."""
    known = call.reference(*call.args)
    floats = [i for i in which if real(known[i]) is not None]
    loss = weighted(
        call, floats, [finite(known[i], cotangent(real(known[i]), 90 + i)) for i in floats]
    )
    return all(
        not np.any(np.abs(quiet_differences(loss, call.args, place)) > 1e-6) for place in places
    )


def quiet_differences(loss: Callable[..., float], args: tuple[Any, ...], place: int) -> Any:
    """The gradient of `loss(*args)` by the argument at `place`, by differences, without the
    warnings of the library that computes the loss.
    """
    with quiet():
        return gradient(lambda x: loss(*args[:place], x, *args[place + 1 :]), args[place])


# ----- outcomes, as they are kept -----


def read_outcomes(stem: str) -> dict[str, dict[str, Outcome]]:
    """By call and setting, as `outcomes/<stem>.toml` has them."""
    path = FOLDER / "outcomes" / f"{stem}.toml"
    data = tomllib.loads(path.read_text()) if path.exists() else {}
    return {name: {key: Outcome(*pair) for key, pair in row.items()} for name, row in data.items()}
