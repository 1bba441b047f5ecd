"""Planted defects: each is put into multigrad, and the properties must find it.

    make test-mutation      (python tools/planted.py [--only TEXT] [--seeds 1,2,3] [--seconds 60]
                            [--jobs 2])

A defect is a change of the source of one module, in a process of its own, which runs
tests/properties with a fixed seed until a property fails. Most are mistakes that the project has
made before, one for each mechanism: version cells, views, batches, recordings, checkpoints, loops,
hooks, dtypes. The exit status is 1 if a defect is not found within the seconds for each seed, or if
the properties fail without a defect. The seconds are those of the processor, imports included.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SECONDS = "seconds of the processor: "


class Defect(NamedTuple):
    """`old` stands once in the file, and `new` takes its place."""

    path: str
    old: str
    new: str


DEFECTS: dict[str, Defect] = {
    "a lost version cell of a constant": Defect(
        "multigrad/dispatch/writer.py",
        "            if source is not None:\n                cells.append",
        "            if source is not None and name != op.arrays[-1]:\n"
        "                cells.append",
    ),
    "memory of a constant that does not move before a write": Defect(
        "multigrad/memory/views.py",
        "    if root._elem.run is None:\n        if gate",
        "    if root._elem.run is None or getattr(root, '_node', 0) is None:\n        if gate",
    ),
    "an eager iteration in a recording": Defect(
        "multigrad/compiling/recorded.py",
        "return map(self._run.element, super().__iter__())",
        "return iter(list(map(self._run.element, super().__iter__())))",
    ),
    "a scalar in place of an array without axes": Defect(
        "multigrad/compiling/recorded.py",
        "if self._is_scalar():  # only an array can be written",
        "if False:",
    ),
    "a dropped parameter of a joint rule": Defect(
        "multigrad/ops/linalg.py",
        "    vector = len(x2_shape) == 1  # only",
        "    vector = len(g.shape) == 1  # only",
    ),
    "a stale view": Defect(
        "multigrad/core/aliasing.py",
        "        if not internally(view._renew):\n            return\n",
        "        view._seen = now\n",
    ),
    "a wrong batch axis of a captured array": Defect(
        "multigrad/layers/batch_code.py",
        "(x.shape[0], *(1,) * missing, *x.shape[1:])",
        "(*x.shape, *(1,) * missing)",
    ),
    "a second derivative that forgets a factor": Defect(
        "multigrad/memory/saved.py",
        '    if kind == "in" or t._elem.floating:',
        '    if kind == "in":',
    ),
    "a gradient that is added to memory that others hold": Defect(
        "multigrad/backward/run.py",
        "        The second contribution makes a new array, later ones are added in place.\n"
        '        """\n',
        '        """\n        owned.add(node)\n',
    ),
    "a node that runs before all of its gradients have arrived": Defect(
        "multigrad/backward/run.py",
        "if heap and node.seq <= -heap[0][0]:",
        "if heap and node.seq <= -heap[0][0] - 3:",
    ),
    "a gradient that is not summed over a broadcast axis": Defect(
        "multigrad/dispatch/conform.py",
        "return xp.sum(g, axis=0, dtype=g.dtype)",
        "return g[0, ...]",
    ),
    "a gradient of another dtype": Defect(
        "multigrad/dispatch/conform.py",
        "            g = xp.astype(g, dtype)\n    return g\n",
        "            pass\n    return g\n",
    ),
    "a complex gradient without its conjugate": Defect(
        "multigrad/dispatch/pullbacks.py",
        'f"g * xp.conj({call})" if complex_',
        'f"g * {call}" if complex_',
    ),
    "a hook whose result is dropped": Defect(
        "multigrad/backward/hooks.py",
        "            t = _checked(hook, result, t)\n",
        "            _checked(hook, result, t)\n",
    ),
    "a checkpoint that computes again what comes first, not what is asked for": Defect(
        "multigrad/func/checkpoint.py",
        "        return arrays.pop(number)\n",
        "        same = [k for k in arrays if arrays[k].shape == arrays[number].shape]\n"
        "        return arrays.pop(min(same))\n",
    ),
    "a loop that drops the cotangents of its stacked results": Defect(
        "multigrad/func/control/scanning.py",
        "p.gradients(spread([*g, *g_ys, *g_sums], self.has))",
        "p.gradients(spread([*g, *[None] * len(g_ys), *g_sums], self.has))",
    ),
    "raw operands in the wrong order": Defect(
        "multigrad/protocols/__init__.py",
        "result = function(*inputs)",
        "result = function(*sorted(inputs, key=lambda x: x is not self))",
    ),
    "elements of an index array that meet in one place": Defect(
        "multigrad/backends/numpy/backend.py",
        "    np.add.at(result, key, values)\n    return",
        "    result[key] = values\n    return",
    ),
    "a program that is found by too little": Defect(
        "multigrad/compiling/leaves.py",
        "return self.kind, self.cls, self.form",
        "return self.kind, self.cls, self.form and len(self.form)",
    ),
    "a branch that a program does not look at again": Defect(
        "multigrad/compiling/recording.py",
        '"""Record the answer to a question about a value."""',
        "if kind == 'bool':\n            return",
    ),
    "a tangent that forgets the first of two arguments": Defect(
        "multigrad/layers/tangents.py",
        '_tangent = _term if _tangent is None else _tangent + _term"',
        '_tangent = _term"',
    ),
    "the gradient of what was overwritten": Defect(
        "multigrad/ops/views.py",
        '"""The gradient of `x` is 0 where it was overwritten."""',
        "return g",
    ),
    "a write through a view that the base does not know of": Defect(
        "multigrad/memory/inplace.py", "        rebase(t, value, place)\n", "        pass\n"
    ),
    "a view of a layer with a version cell of its own": Defect(
        "multigrad/dispatch/writer.py",
        'f"    _result._cell = _cell = {first}._cell"',
        'f"    _result._cell = _cell = []"',
    ),
}


class _Loader(importlib.machinery.SourceFileLoader):
    defect: Defect

    def get_code(self, fullname: str) -> Any:
        text = Path(self.path).read_text()
        return compile(text.replace(self.defect.old, self.defect.new), self.path, "exec")


class _Finder:
    """An import finder that gives one module another source."""

    def __init__(self, defect: Defect) -> None:
        self.defect = defect
        self.module = defect.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        assert spec is not None and spec.origin is not None
        loader = _Loader(name, spec.origin)
        loader.defect = self.defect
        return importlib.util.spec_from_file_location(
            name,
            spec.origin,
            loader=loader,
            submodule_search_locations=spec.submodule_search_locations,
        )


def worker(name: str, arguments: list[str]) -> int:
    """Run pytest with a defect."""
    import pytest

    if name:
        defect = DEFECTS[name]
        text = (ROOT / defect.path).read_text()
        assert text.count(defect.old) == 1, f"{name}: its place in {defect.path} has changed"
        sys.meta_path.insert(0, _Finder(defect))  # type: ignore[arg-type]
    status = int(pytest.main(arguments))
    print(f"{SECONDS}{time.process_time()}")
    return status


def attempt(name: str, seed: int, seconds: float) -> tuple[str, float]:
    """Return the property that finds a defect, "" if none does, and after how many seconds."""
    options = ["-x", "-q", "--tb=line", "--properties-as-found", "-p", "no:cacheprovider"]
    options += ["--properties-seed", str(seed), "--properties-seconds", str(seconds)]
    command = [sys.executable, __file__, "--plant", name, *options, "tests/properties"]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{name}: pytest could not run\n{done.stdout}{done.stderr}")
    lines = done.stdout.splitlines()
    taken = next(float(x.removeprefix(SECONDS)) for x in lines if x.startswith(SECONDS))
    failed = [line for line in lines if line.startswith("FAILED")]
    return (failed[0].partition("::")[2] if failed else ""), taken


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only defects with that text")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each defect and seed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--plant", help=argparse.SUPPRESS)
    options, rest = parser.parse_known_args()
    if options.plant is not None:
        return worker(options.plant, rest)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    seeds = [int(seed) for seed in options.seeds.split(",")]
    tries = [(n, s) for n in ["", *DEFECTS] if options.only in n for s in seeds]
    missed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(lambda t: attempt(t[0], t[1], options.seconds), tries)
        for (name, seed), (by, taken) in zip(tries, found, strict=True):
            wrong = bool(by) != bool(name) or (bool(name) and taken > options.seconds)
            missed += wrong
            what = by or "not found"
            print(
                f"{'WRONG: ' * wrong}{name or 'no defect'}, seed {seed}: {what}, {taken:.0f} s",
                flush=True,
            )
    print(f"{len(tries)} tries, {missed} of them wrong")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
