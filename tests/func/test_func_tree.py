"""func.tree: nested structures of arrays by public names, the example and the page of
optimizers.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad import func
from multigrad.extend import raw_namespace
from multigrad.func import tree

ROOT = Path(__file__).parents[2]


@dataclass
class Pair:
    a: Any
    b: Any


def test_map_takes_several_trees() -> None:
    found = tree.map(
        lambda x, y, z: x + y * z,
        {"a": 1, "b": [2, None]},
        {"b": (3, None), "a": 4},
        {"a": 5, "b": [6, None]},
    )
    assert found == {"a": 21, "b": [20, None]}
    assert tree.map(lambda x: x + 1, Pair(1, (2,))) == Pair(2, (3,))
    text = (
        r"tree.map: tree 3 must have the structure of the first one: expected a Pair at "
        r"\[0\], got list of 2"
    )
    with pytest.raises(ValueError, match=text):
        tree.map(lambda *x: x, [Pair(1, 2)], [Pair(1, 2)], [[1, 2]])
    with pytest.raises(
        TypeError, match="tree.map: the first argument must be a function, not dict"
    ):
        tree.map({}, {})  # type: ignore[arg-type]


def test_flatten_and_unflatten() -> None:
    given = {"b": [1, (2, None)], "a": Pair(3, {})}
    leaves, structure = tree.flatten(given)
    assert leaves == tree.leaves(given) == [1, 2, 3] and structure == tree.structure(given)
    assert tree.unflatten(structure, iter("xyz")) == {"b": ["x", ("y", None)], "a": Pair("z", {})}
    assert tree.structure([1, 2]) != tree.structure([1, (2,)]) and tree.structure(
        {"a": 1}
    ) != tree.structure({"b": 1})
    with pytest.raises(
        ValueError, match="tree.unflatten: the structure has 3 leaves, but 2 were given"
    ):
        tree.unflatten(structure, [1, 2])
    with pytest.raises(
        TypeError,
        match="tree.unflatten: expected a structure from tree.flatten or tree.structure, not dict",
    ):
        tree.unflatten(given, leaves)  # type: ignore[arg-type]


def test_structures_are_equal_after_another_class_was_registered() -> None:
    before = tree.structure([Pair(1, 2)])

    class Box:
        x = 1.0

    func.register_pytree(Box, lambda b: ((b.x,), None), lambda aux, x: Box())
    assert tree.structure([Pair(3, 4)]) == before and hash(before) == hash(
        tree.structure([Pair(3, 4)])
    )


def test_norms_on_every_backend(backend: str) -> None:
    xp = raw_namespace(backend)
    given = {
        "a": xp.asarray([3.0, 0.0], dtype=xp.float32),
        "b": [Pair(xp.asarray([[4.0]], dtype=xp.float64), None)],
    }
    norm = tree.global_norm(given)
    assert (
        float(norm) == 5.0
        and norm.dtype == xp.float64
        and norm.shape == ()
        and not isinstance(norm, mg.Tensor)
    )
    assert isinstance(tree.global_norm(tree.map(mg.asarray, given)), mg.Tensor)
    assert tree.global_norm([given["a"]]).dtype == xp.float32
    assert float(tree.global_norm(xp.asarray([3.0 + 4.0j]))) == 5.0
    assert bool(tree.all_finite(given)) and bool(tree.all_finite([xp.asarray([1])]))
    for bad in (float("nan"), float("inf")):
        assert not bool(tree.all_finite({"x": given, "y": xp.asarray([1.0, bad])}))
    vector, unravel = tree.ravel(given)
    assert vector.shape == (3,) and unravel(vector)["b"][0].a.shape == (1, 1)


def test_norms_are_differentiated() -> None:
    given = {"a": np.array([3.0, 0.0]), "b": np.array([4.0])}
    g = func.grad(tree.global_norm)(given)
    assert np.allclose(g["a"], [0.6, 0.0]) and np.allclose(g["b"], [0.8])
    zero = func.grad(tree.global_norm)(tree.map(np.zeros_like, given))
    assert np.array_equal(zero["a"], [0.0, 0.0])
    assert np.allclose(
        func.vmap(tree.global_norm)({"a": np.array([[3.0], [6.0]]), "b": np.array([[4.0], [8.0]])}),
        [5.0, 10.0],
    )
    assert np.array_equal(
        func.vmap(tree.all_finite)({"a": np.array([[3.0], [np.nan]])}), [True, False]
    )


def test_without_arrays_and_errors_by_name() -> None:
    assert float(tree.global_norm({})) == 0.0 and bool(tree.all_finite([None]))
    with pytest.raises(
        TypeError,
        match=r"tree.global_norm: expected arrays, but the leaf at \['a'\]\[1\] is a float",
    ):
        tree.global_norm({"a": [np.ones(2), 1.0]})
    with pytest.raises(
        TypeError,
        match=r"tree.global_norm: expected floating dtypes, but the leaf at .b is of dtype int64",
    ):
        tree.global_norm(Pair(np.ones(2), np.ones(2, dtype=np.int64)))
    with pytest.raises(TypeError, match=r"tree.all_finite: expected arrays, but the leaf is a str"):
        tree.all_finite("x")
    text = (
        "tree.ravel: expected arrays, or nested dictionaries, lists and tuples of arrays, "
        "but a leaf is a float, at [1]"
    )
    with pytest.raises(TypeError, match=re.escape(text)):
        tree.ravel([np.ones(2), 1.0])


def test_arrays_of_two_libraries_are_refused() -> None:
    jax = pytest.importorskip("jax")
    for function in (tree.global_norm, tree.all_finite):
        with pytest.raises(
            mg.errors.MixedBackendsError,
            match=f"tree.{function.__name__}: got arrays of two backends, 'numpy' and 'jax'",
        ):
            function([np.ones(2), jax.numpy.ones(2)])


def _example() -> Any:
    spec = importlib.util.spec_from_file_location("optimizers", ROOT / "examples" / "optimizers.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_trains(
    backend: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = _example()
    monkeypatch.setattr("sys.argv", ["optimizers.py", "--backend", backend])
    module.main()
    lines = re.findall(r"(.*): (\S+) -> (\S+)", capsys.readouterr().out)
    assert [name for name, *_ in lines] == ["sgd", "adam", "clipped sgd"]
    assert all(float(last) < 0.01 * float(first) for _, first, last in lines)


def test_the_optimizers_do_what_their_formulas_say() -> None:
    module = _example()
    grads = [{"a": np.array([1.0, -2.0])}, {"a": np.array([0.5, 3.0])}]
    g0, g1 = (g["a"] for g in grads)
    start = {"a": np.zeros(2)}
    init, update = module.sgd(0.1, momentum=0.9)
    _, state = update(grads[0], init(start))
    assert np.allclose(update(grads[1], state)[0]["a"], -0.1 * (0.9 * g0 + g1))
    init, update = module.adam(0.1)
    step, state = update(grads[0], init(start))
    assert np.allclose(step["a"], -0.1 * np.sign(g0))
    mean, square = (
        (0.9 * 0.1 * g0 + 0.1 * g1) / (1 - 0.9**2),
        (0.999 * 0.001 * g0**2 + 0.001 * g1**2) / (1 - 0.999**2),
    )
    assert np.allclose(update(grads[1], state)[0]["a"], -0.1 * mean / (np.sqrt(square) + 1e-8))
    init, update = module.clipped(module.sgd(1.0), 1.0)
    assert np.allclose(update({"a": np.array([3.0, 4.0])}, init(start))[0]["a"], [-0.6, -0.8])
    assert np.allclose(update({"a": np.array([0.3, 0.4])}, init(start))[0]["a"], [-0.3, -0.4])


@pytest.mark.filterwarnings("error")
def test_the_page() -> None:
    text = (ROOT / "docs" / "optimizers.md").read_text()
    scope: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        if "import optax" in block:
            pytest.importorskip("jax", reason="JAX is not installed")
            pytest.importorskip(
                "optax",
                reason="optax is not installed: the last part of docs/optimizers.md was not run",
            )
        exec(compile(block, "docs/optimizers.md", "exec"), scope)
