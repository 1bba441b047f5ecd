"""What a library lacks: a backend says it or the library tells it, and the conformance suite holds
both to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import array_api_compat.numpy as namespace
import numpy as np
import pytest
from plugin_sites import Site, site
from pytest_runs import run_suite

import multigrad as mg
from multigrad import extend
from multigrad.errors import RegistrationError

pytest.importorskip("multigrad_conformance")
from multigrad_conformance import Draw, Sample, cells, certificate, report
from multigrad_conformance import test_conformance as suite
from multigrad_conformance.sample import CAPABILITIES
from multigrad_conformance.target import Target, shape_of

__all__ = ["site"]


def backend(capabilities: mg.Capabilities | None = None, /, **told: Any) -> mg.Backend:
    """A backend whose library tells that of itself."""
    library = SimpleNamespace(__array_namespace_info__=lambda: SimpleNamespace(**told))
    return mg.Backend(
        "told", library, (np.ndarray,), capabilities=capabilities or mg.Capabilities()
    )


def telling(masks: bool, shapes: bool, dtypes: Any) -> dict[str, Any]:
    return {
        "capabilities": lambda: {"boolean indexing": masks, "data-dependent shapes": shapes},
        "dtypes": lambda kind: dtypes,
    }


ABLE = telling(True, True, {"complex64": 1})
POOR = telling(False, False, {})


class TestWhatIsMissing:
    def test_a_library_tells(self) -> None:
        assert backend(**ABLE).lacks() == {}
        assert backend(**POOR).lacks() == {
            "complex": "no complex (the library tells)",
            "data_dependent": "no data-dependent shapes (the library tells)",
            "boolean_indexing": "no boolean indexing (the library tells)",
        }

    def test_a_declaration_comes_first(self) -> None:
        able = mg.Capabilities(complex=True, data_dependent=True)
        assert backend(able, **POOR).lacks() == {}
        poor = mg.Capabilities(complex=False, data_dependent=False, negative_steps=False, lazy=True)
        assert backend(poor, **ABLE).lacks() == {
            "complex": "no complex (declared)",
            "data_dependent": "no data-dependent shapes (declared)",
            "boolean_indexing": "no boolean indexing (declared)",
            "negative_steps": "no negative steps (declared)",
            "truth": "lazy (declared)",
        }

    def test_masks_alone(self) -> None:
        masks = mg.Capabilities(data_dependent=False, boolean_indexing=True)
        assert list(backend(masks, **ABLE).lacks()) == ["data_dependent"]
        told = backend(**telling(False, True, {"complex64": 1}))
        assert list(told.lacks()) == ["boolean_indexing"]

    def test_capabilities_have_a_hash(self) -> None:
        assert hash(mg.Capabilities(missing={"sin": "no sin"})) == hash(mg.Capabilities())

    def test_a_library_that_does_not_tell_can(self) -> None:
        assert backend(capabilities=lambda: {}, dtypes=lambda kind: {"complex64": 1}).lacks() == {}
        assert backend().lacks() == {}  # half an inspection
        assert mg.Backend("told", SimpleNamespace(), (np.ndarray,)).lacks() == {}

    def test_flags_change_what_is_told(self) -> None:
        strict = pytest.importorskip("array_api_strict")
        found = extend.backend("strict")
        assert found.lacks() == {}
        with strict.ArrayAPIStrictFlags(data_dependent_shapes=False):
            assert list(found.lacks()) == ["data_dependent"]

    def test_the_namespace_says_so(self) -> None:
        from multigrad.core.element import Library
        from multigrad.inspection import Info

        poor = mg.Capabilities(data_dependent=False)
        silent = mg.Backend("told", SimpleNamespace(), (np.ndarray,), capabilities=poor)
        able = mg.Capabilities(data_dependent=True)  # but not here, as JAX says under jax.jit
        for of in (silent, backend(poor, **ABLE), backend(able, **POOR)):
            told = Info(Library(of)).capabilities()
            assert told["boolean indexing"] is told["data-dependent shapes"] is False

    def test_a_lazy_library_knows_no_truth(self) -> None:
        assert (
            backend(mg.Capabilities(lazy=True)).kernel("concrete_bool")(namespace, np.asarray(True))
            is None
        )
        own = mg.Backend(
            "told",
            namespace,
            (np.ndarray,),
            capabilities=mg.Capabilities(lazy=True),
            kernels={"concrete_bool": lambda xp, x: False},
        )
        assert own.kernel("concrete_bool")(namespace, np.asarray(True)) is False

    @pytest.mark.parametrize(
        "missing, message",
        [
            (
                ["linalg.svd"],
                r"Capabilities.missing must be a mapping of names to reasons, not "
                r"\['linalg.svd'\].",
            ),
            (
                {"linalg.svd": ""},
                "Capabilities.missing must give a reason for each name, {'linalg.svd': 'no "
                "svd'}, not {'linalg.svd': ''}.",
            ),
            ({7: "no"}, "must give a reason for each name, .* not {7: 'no'}."),
        ],
    )
    def test_a_wrong_declaration(self, missing: Any, message: str) -> None:
        with pytest.raises(RegistrationError, match=message):
            mg.Capabilities(missing=missing)


class TestTheSuite:
    """Strict both ways: what is missing raises, and what does not raise is not missing."""

    @pytest.fixture
    def cell(self, monkeypatch: pytest.MonkeyPatch) -> Callable[..., cells.Cell]:
        def made(
            run: Any, check: str = "forward", needs: str = "", **capabilities: Any
        ) -> cells.Cell:
            declared = replace(
                extend.backend("numpy"), capabilities=mg.Capabilities(**capabilities)
            )
            monkeypatch.setattr(extend, "backend", lambda name: declared)
            return cells.Cell(
                "numpy", "suite.op", check, "real", run, True, needs=frozenset({needs} - {""})
            )

        return made

    def test_it_raises(self, cell: Any) -> None:
        def run(target: Target) -> None:
            raise TypeError("no complex here")

        with pytest.raises(pytest.skip.Exception, match=r"^missing: no complex \(declared\)$"):
            suite.test_operation(cell(run, needs="complex", complex=False))
        with pytest.raises(pytest.skip.Exception, match="^missing: no op$"):
            suite.test_operation(cell(run, missing={"suite.*": "no op"}))
        with pytest.raises(pytest.skip.Exception, match="^missing: no real op$"):
            suite.test_operation(cell(run, missing={"suite.op/*/real": "no real op"}))
        with pytest.raises(TypeError, match="no complex here"):
            suite.test_operation(cell(run, missing={"suite.op/vjp/*": "no gradient"}))

    def test_it_is_hidden(self, cell: Any) -> None:
        message = (
            r"suite.op/forward/real passes, yet the backend 'numpy' says 'no complex \(declared\)': it hides what the library can do. "
            "Change its Capabilities"
        )
        with pytest.raises(pytest.fail.Exception, match=message):
            suite.test_operation(cell(lambda target: None, needs="complex", complex=False))

    def test_vmap_refuses_what_depends_on_values_on_every_library(self, cell: Any) -> None:
        suite.test_operation(
            cell(lambda target: None, "vmap", needs="data_dependent", data_dependent=False)
        )
        with pytest.raises(pytest.fail.Exception, match="it hides"):
            suite.test_operation(cell(lambda target: None, "vmap", missing={"suite.op": "no op"}))

    def test_it_computes_something_else(self, cell: Any) -> None:
        from multigrad_conformance.compare import assert_close

        with pytest.raises(
            pytest.fail.Exception,
            match="(?s)suite.op/forward/real: no op, yet the library computes it, and not what "
            "NumPy does; it should raise.*exemptions={'suite.op/forward/real': reason}",
        ):
            suite.test_operation(
                cell(lambda target: assert_close(1.0, 2.0, "value"), missing={"suite.op": "no op"})
            )

        def library(target: Target) -> None:
            assert target is None, "of the library itself"

        with pytest.raises(pytest.skip.Exception):
            suite.test_operation(cell(library, missing={"suite.op": "no op"}))

    def test_a_declaration_of_nothing(self, cell: Any) -> None:
        cell(None, missing={"sin": "no sin", "linalg.*/vjp/*": "no gradients"})
        suite.test_declarations("numpy")
        cell(None, missing={"sine": "no sine"})
        with pytest.raises(
            AssertionError,
            match="the backend 'numpy' says that 'sine' is missing, but there is no such "
            "operation or test",
        ):
            suite.test_declarations("numpy")

    def test_what_a_sample_can_need(self) -> None:
        poor = mg.Capabilities(complex=False, data_dependent=False, negative_steps=False, lazy=True)
        assert set(backend(poor, **ABLE).lacks()) == set(CAPABILITIES)
        draw = Draw("capabilities")
        for needs in ("", *CAPABILITIES):
            assert Sample("real", draw.real(3), needs=needs).capabilities == {needs} - {""}
        with pytest.raises(
            ValueError,
            match="needs='lazzy' of the sample 'real' is not a capability. Choose one of "
            "'complex', 'data_dependent', 'boolean_indexing', 'negative_steps', 'truth', or ''",
        ):
            Sample("real", draw.real(3), needs="lazzy")

    def test_what_a_sample_needs(self) -> None:
        draw = Draw("capabilities")
        assert Sample("real", draw.real(3), (slice(None, None, -1),)).backwards
        assert not Sample("real", draw.real(3), (slice(None, None, 2), 1)).backwards
        needs = {cell.id: cell.needs for cell in cells.everything("numpy")}
        assert needs["getitem/vjp/backwards"] == needs["sin/layout/reversed"] == {"negative_steps"}
        assert needs["getitem/vjp/mask"] == {"boolean_indexing"} and needs[
            "nonzero/forward/integers"
        ] == {"data_dependent"}
        assert (
            needs["kernels.concrete_bool/kernel/override"] == {"truth"}
            and needs["sin/vjp/complex"] == {"complex"}
            and not needs["sin/vjp/real"]
        )

    def test_a_shape_that_is_not_known_yet(self) -> None:
        class Lazy:
            shape = (float("nan"), 3)

        target = Target("numpy")
        target.numpy = lambda x: np.ones((2, 3))  # type: ignore[method-assign]
        assert shape_of(target, Lazy()) == (2, 3) and shape_of(target, np.ones((1, 2))) == (1, 2)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"mutable": False}, "mutable=False, yet x[0] = v changes the memory that a view shows"),
        ({"negative_steps": False}, "negative_steps=False, yet x[::-1] reverses x"),
        ({"lazy": True}, "lazy=True, yet take raises at once for an index that is out of bounds"),
    ],
)
def test_a_declaration_that_hides_what_the_library_can_do(
    said: Any, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every level, whatever operations are tested."""
    suite.test_declarations("numpy")
    wrong = replace(extend.backend("numpy"), capabilities=mg.Capabilities(**said))
    monkeypatch.setattr(extend, "backend", lambda name: wrong)
    message = rf"the backend 'numpy' says {re.escape(told)}.*: it hides what the library can do"
    with pytest.raises(AssertionError, match=message):
        suite.test_declarations("numpy")


PLUGIN = '''
"""A library as poor as some are: array_api_strict without complex dtypes, svd, negative steps and shapes that depend on values, whose values are
not known while a graph is built."""
import types

import multigrad as mg


@mg.hookimpl
def multigrad_backends():
    return [mg.BackendSpec("meagre", module="array_api_strict", load="plugin_meagre:make")]


def make():
    import array_api_strict as library

    library.set_array_api_strict_flags(data_dependent_shapes=False, boolean_indexing=False)
    array = type(library.asarray(0))
    getitem = array.__getitem__

    def forwards(self, key):
        if any(isinstance(k, slice) and (k.step or 1) < 0 for k in (key if isinstance(key, tuple) else (key,))):
            raise ValueError("step must be greater than zero")
        return getitem(self, key)

    array.__getitem__ = forwards

    def real(f):
        def made(x, *args, **kwargs):
            if "complex" in str(kwargs.get("dtype") or getattr(x, "dtype", "")):
                raise TypeError("there are no complex dtypes")
            return f(x, *args, **kwargs)
        return made

    info = library.__array_namespace_info__()
    there = types.SimpleNamespace(capabilities=info.capabilities, devices=info.devices, default_device=info.default_device,
                                  default_dtypes=info.default_dtypes,
                                  dtypes=lambda **how: {n: d for n, d in info.dtypes(**how).items() if "complex" not in n})
    xp = types.SimpleNamespace(**{n: getattr(library, n) for n in dir(library) if n in library.__all__ and n not in ("linalg", "fft")})
    xp.__array_namespace_info__ = lambda: there
    xp.asarray, xp.from_dlpack, xp.astype = real(library.asarray), real(library.from_dlpack), library.astype
    xp.linalg = types.SimpleNamespace(**{n: getattr(library.linalg, n) for n in library.linalg.__all__ if n not in ("svd", "svdvals")})
    return mg.Backend("meagre", xp, (array,), capabilities=mg.Capabilities(
        defers=False, negative_steps=False, lazy=True, missing={"linalg.svd*": "no svd"}), exemptions={"isin/*/inverted": "a defect"})
'''


@pytest.mark.sweep
def test_a_poor_library(site: Site) -> None:
    """Everything that it can do passes, and what it cannot is told apart."""
    pytest.importorskip("array_api_strict")
    site.plugin("meagre", PLUGIN)
    chosen = [
        "getitem",
        "exp/",
        "multiply",
        "linalg.svd/",
        "linalg.qr",
        "unique_values",
        "kernels",
        "refuse",
    ]
    done = run_suite(
        site.folder,
        "meagre",
        "--multigrad-samples=full",
        "--multigrad-json=results.json",
        "-k",
        f"meagre and ({' or '.join(chosen)})",
        MULTIGRAD_BLOCK="strict",
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-1000:]
    for reason in (
        "no complex (the library tells)",
        "no svd",
        "no negative steps (declared)",
        "no data-dependent shapes (the library tells)",
        "no boolean indexing (the library tells)",
        "lazy (declared)",
    ):
        assert f"  missing: {reason} (" in done.stdout, done.stdout[-3000:]
    results = certificate.read(site.folder / "results.json")
    assert results["backends"]["meagre"]["lacks"]["linalg.svd*"] == "no svd"
    assert results["backends"]["meagre"]["tests"]["linalg.svd/vjp/tall"] == ["missing", "no svd"]
    assert "- meagre, missing: " in report.markdown(results)
