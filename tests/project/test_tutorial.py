"""The tutorial's printed numbers, in float32 as there, on every backend."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import multigrad as mg

TUTORIAL = Path(__file__).parents[2] / "examples" / "tutorial.py"


@pytest.fixture(scope="module")
def tutorial():
    spec = importlib.util.spec_from_file_location("tutorial", TUTORIAL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shown(t, expected):
    """The values as the tutorial prints them: to four digits after the point, zeros of sin and cos
    to what float32 makes of them.
    """
    found = np.asarray(t.detach().array)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.asarray(expected, dtype=np.float32), rtol=5e-5, atol=2e-7)


A = np.linspace(0, 2 * np.pi, 25, dtype=np.float32)


class TestSine:
    @pytest.fixture
    def found(self, tutorial, xp):
        return tutorial.sine(xp)

    def test_values(self, found):
        shown(found["a"], A)
        b = np.sin(A)
        shown(found["b"], b)
        shown(found["c"], 2 * b)
        np.testing.assert_allclose(
            np.asarray(found["d"].detach().array), 2 * b + 1, rtol=5e-5, atol=1e-6
        )
        assert abs(float(found["out"].detach()) - 25.0) < 1e-5

    def test_graph(self, found):
        names = [name for name, _ in found["chain"]]
        assert names == ["AddBackward", "MultiplyBackward", "SinBackward", "AccumulateGrad"]
        # 2 * b: the constant comes first, as it was written
        edges = [sorted(edge, key=str) for _, edge in found["chain"]]
        assert edges == [
            [("MultiplyBackward", 0), (None, 0)],
            [("SinBackward", 0), (None, 0)],
            [("AccumulateGrad", 0)],
            [],
        ]
        assert (
            found["c"].grad_fn.name() == "MultiplyBackward"
            and found["b"].grad_fn.name() == "SinBackward"
            and found["a"].grad_fn is None
        )
        assert (
            found["out"].grad_fn.name() == "SumBackward"
            and found["a"].requires_grad
            and found["a"].is_leaf
        )

    def test_gradient(self, found):
        shown(found["a"].grad, 2 * np.cos(A))
        assert found["inner"] is None and found["warned"] == 1


def test_training(tutorial, xp):
    found = tutorial.training(xp)
    before, after_backward, after_step = (
        found["before"],
        found["after_backward"],
        found["after_step"],
    )
    assert found["loss"].grad_fn.name() == "SumBackward"
    assert (
        before["grad"] is None
        and after_backward["weight"] == before["weight"]
        and any(after_backward["grad"])
    )
    expected = np.asarray(before["weight"]) - 0.001 * np.asarray(after_backward["grad"])
    np.testing.assert_allclose(after_step["weight"], expected, atol=2e-4)
    assert after_step["grad"] == after_backward["grad"]
    assert max(abs(a) for a in found["accumulated"]) > max(abs(a) for a in after_step["grad"])
    assert found["zeroed"] == [0.0] * 10
    # The weights are drawn by NumPy from a fixed seed; float32 sums differ between libraries.
    np.testing.assert_allclose(after_backward["grad"][:3], [1.1831, -3.9322, 0.8324], atol=2e-3)
    assert abs(float(found["loss"].detach()) - 171.1226) < 0.01


def test_recording(tutorial, xp):
    found = tutorial.recording(xp)
    assert found["b1"].grad_fn.name() == "MultiplyBackward" and not found["b2"].requires_grad
    assert (
        found["c1"].grad_fn.name() == "AddBackward"
        and not found["c2"].requires_grad
        and found["c3"].grad_fn.name() == "MultiplyBackward"
    )
    for name, value in (("b1", 2.0), ("b2", 2.0), ("c1", 5.0), ("c2", 5.0), ("c3", 6.0)):
        shown(found[name], np.full((2, 3), value))
    assert [t.requires_grad for t in found["sums"]] == [True, False, True]
    assert (
        found["x"].requires_grad
        and not found["y"].requires_grad
        and found["x"].tolist() == found["y"].tolist()
    )
    assert (
        "a leaf Variable that requires grad is being used in an in-place operation"
        in found["refused"]
    )


def test_long_graph(tutorial, xp):
    assert tutorial.long_graph(xp) == {
        "MultiplyBackward": 1000,
        "DivideBackward": 1000,
        "AccumulateGrad": 1,
    }


def test_vector_jacobian_product(tutorial, xp):
    found = tutorial.products(xp)
    assert "grad can be implicitly created only for scalar outputs" in found["refused"]
    shown(found["grad"], [102.4, 1024.0, 0.1024])
    shown(found["vjp"], [102.4, 1024.0, 0.1024])
    shown(found["y"], [614.4, -921.6, 409.6])
    shown(found["outputs"], [614.4, -921.6, 409.6])
    assert found["y"].requires_grad and not found["outputs"].requires_grad


def test_higher_level(tutorial, xp):
    found = tutorial.higher_level(xp)
    shown(found["one"][0], [[4.1138]])
    shown(found["one"][1], [[3.0]])
    shown(found["three"][0], np.diag([2.46243, 2.59490, 3.11007]))
    shown(found["three"][1], 3 * np.eye(3))
    shown(found["jvp"], [5.46243, 5.59490, 6.11007])
    shown(found["hessian"][0][0], [[0.2079 * 4.113796]])
    shown(found["hessian"][0][1], [[4.1138]])
    shown(found["hessian"][1][1], [[6.0]])
    for product in ("vhp", "hvp"):
        shown(found[product][0], [2.46243 * 1.5220, 2.59490 * 1.9867, 3.11007 * 1.4288])
        shown(found[product][1], [8.46243, 8.59490, 9.11007])


def test_what_it_prints(tutorial, capsys, tmp_path):
    tutorial.main(["--plots", str(tmp_path)])
    printed = capsys.readouterr().out
    for number in (
        "-8.7423e-08",
        "1.7485e-07",
        "2.3850e-08",
        "1.024e+02, 1.024e+03, 1.024e-01",
        "4.1138",
        "25.0",
        "grad_fn=<SumBackward>",
    ):
        assert number in printed, number


def test_plots(tutorial, backend, tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="the plots need matplotlib, of the extra [viz]")
    found = tutorial.sine(mg.namespace(backend))
    written = tutorial.plot(tmp_path / "plots", found["a"], found["b"])
    assert [p.name for p in written] == ["sin.png", "gradient.png"]
    printed = capsys.readouterr().out
    for path in written:
        assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000
        assert f"Wrote {path}" in printed


def test_without_matplotlib(tutorial, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert tutorial.plot(tmp_path / "none", None, None) == []
    assert (
        "No plots: matplotlib is not installed; `pip install multigrad-array[viz]` brings it."
        in capsys.readouterr().out
    )
    assert not (tmp_path / "none").exists()
