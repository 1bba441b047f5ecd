"""Compare HIPS autograd's own examples on HIPS autograd and on multigrad-autograd.

The comparison covers what both print, and how long they take.

    export AUTOGRAD_EXAMPLES=<checkout of HIPS/autograd>
    python tools/hips_examples.py                   compare the printed output
    python tools/hips_examples.py --time            the ratios of their times, as a table
    python tools/hips_examples.py --time --write    the same, into the README of multigrad-autograd
    python tools/hips_examples.py gmm lstm          these examples alone

HIPS autograd must be installed. Its examples are read from the checkout and run unchanged, except
for these changes, which are the same for both:

- long optimizations get fewer iterations (`PATCHES`), and random numbers are seeded
- downloaded data (MNIST) is replaced by seeded data of the same shape, but smaller
- figures are drawn by matplotlib's Agg backend, without windows and pauses
- matplotlib's functions do nothing while times are measured

Each run is a separate process. The two libraries take turns, and the median of their runs counts. A
time is the processor time of a program after all modules are imported. A program of less than two
seconds is repeated for two seconds; its time is the mean of all repetitions, including the first.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
README = ROOT / "plugins" / "multigrad-autograd" / "README.md"
LIBRARIES = ("hips", "multigrad")
ENOUGH = 26
LEAST = 2.0  # seconds

HOW = """NOT RUN: HIPS autograd's examples, because AUTOGRAD_EXAMPLES names no checkout of them,
or autograd is not installed. To run them:
    git clone https://github.com/HIPS/autograd
    pip install autograd
    make test-clients AUTOGRAD_EXAMPLES=$PWD/autograd"""

PATCHES: dict[str, list[tuple[str, str]]] = {
    "bayesian_neural_net": [("num_iters=1000", "num_iters=100")],
    "bayesian_optimization": [("num_iters=20", "num_iters=3")],
    "black_box_svi": [("num_iters=2000", "num_iters=200")],
    "convnet": [("num_epochs = 50", "num_epochs = 1"), ("npr.RandomState()", "npr.RandomState(0)")],
    "deep_gaussian_process": [('method="CG"', 'method="CG", options={"maxiter": 20}')],
    "gaussian_process": [],
    "generative_adversarial_net": [("num_epochs = 50", "num_epochs = 4")],
    "gmm": [('method="Newton-CG"', 'method="Newton-CG", options={"maxiter": 4}')],
    "gplvm": [('method="CG"', 'method="CG", options={"maxiter": 20}')],
    "hmm_em": [
        ("max_lines=60", "max_lines=12"),
        ("while different(x0, x1):", "for _ in range(4):"),
    ],
    "ica": [('method="CG"', 'method="CG", options={"maxiter": 20}')],
    "lstm": [
        ("num_iters=1000", "num_iters=20"),
        ("range(20):\n        text", "range(2):\n        text"),
    ],
    "mixture_variational_inference": [("num_iters=2000", "num_iters=30")],
    "natural_gradient_black_box_svi": [("num_iters = 200", "num_iters = 20")],
    "neural_net": [("num_epochs = 5", "num_epochs = 3")],
    "neural_net_regression": [("num_iters=1000", "num_iters=300")],
    "ode_net": [("num_iters=1000", "num_iters=4")],
    "rnn": [
        ("num_iters=1000", "num_iters=30"),
        ("range(20):\n        text", "range(2):\n        text"),
    ],
    "variational_autoencoder": [("num_epochs = 15", "num_epochs = 2")],
}
EXEMPT = {"print_trace": "prints what HIPS autograd is made of inside"}
TOLERANCE: dict[str, float] = {}
"""Relative tolerances for examples whose iteration amplifies rounding; otherwise 1e-6."""

# -- one run, in a subprocess


class Nothing:
    """A replacement for matplotlib while times are measured: all of its calls do nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self

    def __iter__(self) -> Any:
        return iter(())


def without_windows() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.pause = lambda *args: None  # type: ignore[assignment]
    pyplot.show = lambda *args, **kwargs: None


def without_figures() -> None:
    nothing = Nothing()
    for name in ("matplotlib", "matplotlib.pyplot", "matplotlib.image", "matplotlib.cm"):
        module = types.ModuleType(name)
        module.__getattr__ = lambda name: (
            nothing if not name.startswith("__") else getattr(object, name)
        )  # type: ignore[method-assign]
        module.__path__ = []
        sys.modules[name] = module


def mnist() -> tuple[Any, Any, Any, Any]:
    """Return ten blurred patterns under noise, as uint8 images of 28 by 28 with labels.

    2048 are for training, 512 for testing.
    """
    import numpy as np

    rng = np.random.RandomState(0)
    patterns = rng.rand(10, 7, 7).repeat(4, axis=1).repeat(4, axis=2)
    labels = rng.randint(0, 10, 2560)
    images = np.clip(255 * (0.7 * patterns[labels] + 0.3 * rng.rand(2560, 28, 28)), 0, 255).astype(
        np.uint8
    )
    labels = labels.astype(np.uint8)
    return images[:2048], labels[:2048], images[2048:], labels[2048:]


def run(name: str, library: str, examples: Path, timing: bool) -> None:
    """Run one example with one library, and print its output.

    A line with the seconds that it took follows.
    """
    if library == "multigrad":
        importlib.import_module("multigrad_autograd").install()
    (without_figures if timing else without_windows)()
    for module in (
        "numpy",
        "scipy.optimize",
        "scipy.stats",
        "scipy.linalg",
        "scipy.integrate",
        "autograd.numpy.random",
        "autograd.scipy",
        "autograd.scipy.stats",
        "autograd.misc.optimizers",
        "autograd.extend",
        "autograd.test_util",
    ):
        importlib.import_module(module)
    import numpy as np

    data: Any = types.ModuleType("data_mnist")
    data.mnist = mnist
    sys.modules["data_mnist"] = data
    sys.path.insert(0, str(examples))
    path = examples / f"{name}.py"
    program = compile(patched(name, path.read_text()), str(path), "exec")
    begun, runs = time.process_time(), 0
    while not runs or (timing and time.process_time() - begun < LEAST):
        scope = types.ModuleType("__main__")
        scope.__dict__["__file__"] = str(path)
        sys.modules["__main__"] = scope
        np.random.seed(0)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(program, scope.__dict__)
        runs += 1
    print(
        json.dumps({"seconds": (time.process_time() - begun) / runs, "output": output.getvalue()})
    )


def patched(name: str, source: str) -> str:
    for old, new in PATCHES.get(name, []):
        if old not in source:
            raise SystemExit(
                f"{name}: {old!r} is not in the example; the checkout is of another version "
                "than this tool is for"
            )
        source = source.replace(old, new)
    return source


# -- comparison


def started(name: str, library: str, examples: Path, timing: bool) -> dict[str, Any]:
    """Return the result of a run: seconds and output, or an error."""
    command = [
        sys.executable,
        str(Path(__file__).resolve()),
        name,
        "--run",
        library,
        *(["--time"] if timing else []),
    ]
    environment = {
        **os.environ,
        "AUTOGRAD_EXAMPLES": str(examples),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
    }
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, check=False
        )
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {
            "error": (done.stderr.strip().splitlines() or ["no output"])[-1],
            "trace": done.stderr,
        }
    result: dict[str, Any] = json.loads(lines[-1])
    return result


SCALAR = re.compile(r"(?:np\.float64|array)\(([^][(),]*)\)")  # a number or a 0-d array
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?|nan|inf")


def same(ours: str, theirs: str, tolerance: float) -> str:
    """Return the first difference of two outputs, or "" if their numbers agree within tolerance."""
    ours, theirs = (
        SCALAR.sub(r"\1", re.sub(r"node_\d+", _numbered(), text)) for text in (ours, theirs)
    )
    for i, (a, b) in enumerate(zip(ours.splitlines(), theirs.splitlines(), strict=False)):
        if (
            re.sub(r"\s+", " ", NUMBER.sub("#", a)).strip()
            != re.sub(r"\s+", " ", NUMBER.sub("#", b)).strip()
        ):
            return f"line {i + 1}: {a!r}, not {b!r}"
        for x, y in zip(NUMBER.findall(a), NUMBER.findall(b), strict=True):
            if not math.isclose(float(x), float(y), rel_tol=tolerance, abs_tol=1e-9) and not (
                x == y == "nan"
            ):
                return f"line {i + 1}: {x}, not {y}, in {a!r}"
    return (
        ""
        if len(ours.splitlines()) == len(theirs.splitlines())
        else f"{len(ours.splitlines())} lines, not {len(theirs.splitlines())}"
    )


def _numbered() -> Any:
    """Return a function that replaces addresses in names by numbers, in order of appearance."""
    known: dict[str, int] = {}
    return lambda match: f"node_{known.setdefault(match[0], len(known))}"


def compare(names: list[str], examples: Path) -> bool:
    """Print the results of each example with both libraries. Return whether enough agree."""
    equal = 0
    for name in names:
        results = {library: started(name, library, examples, False) for library in LIBRARIES}
        for library in LIBRARIES:
            if "error" in results[library]:
                print(f"{name:34} fails with {library}: {results[library]['error']}")
                break
        else:
            difference = same(
                results["multigrad"]["output"], results["hips"]["output"], TOLERANCE.get(name, 1e-6)
            )
            equal += not difference
            print(f"{name:34} {difference or 'the same'}")
    print(f"{equal} of {len(names)} run and print HIPS autograd's numbers")
    return equal >= min(ENOUGH, len(names))


def measure(names: list[str], examples: Path, rounds: int) -> list[tuple[str, float, float]]:
    """Return (name, HIPS's seconds, multigrad's) of each example that runs with both."""
    rows = []
    for name in names:
        taken: dict[str, list[float]] = {library: [] for library in LIBRARIES}
        for _ in range(rounds):
            for library in LIBRARIES:
                result = started(name, library, examples, True)
                if "error" in result:
                    print(f"{name}: {library}: {result['error']}", file=sys.stderr)
                    break
                taken[library].append(result["seconds"])
        if all(len(t) == rounds for t in taken.values()):
            rows.append(
                (name, statistics.median(taken["hips"]), statistics.median(taken["multigrad"]))
            )
            print(
                f"{name:34} {rows[-1][1]:8.3f} {rows[-1][2]:8.3f} {rows[-1][2] / rows[-1][1]:6.2f}",
                flush=True,
            )
    return rows


def table(rows: list[tuple[str, float, float]]) -> str:
    lines = ["| example | HIPS autograd, s | multigrad-autograd, s | ratio |", "|---|---|---|---|"]
    lines += [
        f"| `{name}` | {theirs:.3f} | {ours:.3f} | {ours / theirs:.2f} |"
        for name, theirs, ours in rows
    ]
    median = statistics.median(ours / theirs for _, theirs, ours in rows)
    return "\n".join([*lines, f"| median | | | {median:.2f} |"])


def write(text: str) -> None:
    page = README.read_text()
    begin, end = "<!-- examples -->", "<!-- end of examples -->"
    before, _, rest = page.partition(begin)
    README.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--time", action="store_true", help="take times")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--write", action="store_true", help="write the table of times into the plugin's README"
    )
    parser.add_argument("--run", choices=LIBRARIES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    checkout = os.environ.get("AUTOGRAD_EXAMPLES", "")
    if not checkout or find_spec("autograd") is None:
        print(HOW)
        return
    examples = (
        Path(checkout) / "examples" if (Path(checkout) / "examples").is_dir() else Path(checkout)
    )
    if args.run:
        run(args.names[0], args.run, examples, args.time)
        return
    helpers = ("__init__", "data", "data_mnist")
    names = args.names or sorted(
        p.stem for p in examples.glob("*.py") if p.stem not in (*helpers, *EXEMPT)
    )
    if not args.time:
        left = "; ".join(f"{name}, which {why}, is left out" for name, why in EXEMPT.items())
        print(
            f"== HIPS autograd's examples: {len(names)} programs with both libraries; {left}",
            flush=True,
        )
        sys.exit(not compare(names, examples))
    rows = measure(names, examples, args.rounds)
    print(table(rows))
    if args.write:
        write(table(rows))


if __name__ == "__main__":
    main()
