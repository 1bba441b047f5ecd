"""Train one array-agnostic function on every array library that works on this machine.

`loss` is written against the Array API standard and refers to no array library. A network of
64-128-10 units classifies the 1,797 handwritten digits that are part of scikit-learn. Every backend
starts from the same weights and uses the same batches, so in float64 the losses must agree to
rounding.

    python examples/digits.py                     every backend that works here
    python examples/digits.py --backend numpy     only that one; repeatable
    python examples/digits.py --file-order        test on the last 360 images of the file

The images are shuffled with a fixed seed. The first 1,437 are the training set and the last 360 the
test set. In the order of the file, the last 360 come from writers who wrote none of the other
images, which is a harder problem. In that order this network with plain gradient descent reaches
about 91 % for every seed, as `--file-order` shows.
"""

from __future__ import annotations

import os

# BLAS threads make these small products slower and timings erratic
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JAX_ENABLE_X64", "1")  # JAX uses float32 by default

import argparse
import inspect
import math
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.syntax import Syntax
from rich.table import Table
from sklearn.datasets import load_digits

import multigrad as mg

EPOCHS, BATCH, RATE, TRAIN = 20, 64, 0.5, 1437
AGREEMENT = 1e-11  # rounding differs in the last bit, and 460 steps accumulate it
ACCURACY, ACCURACY_IN_FILE_ORDER = 0.95, 0.88


# -- user code


def logits(weights: Any, images: Any) -> Any:
    xp = images.__array_namespace__()
    w1, b1, w2, b2 = weights
    hidden = images @ w1 + b1
    return xp.where(hidden > 0, hidden, 0.0) @ w2 + b2


def loss(weights: Any, images: Any, labels: Any) -> Any:
    """The mean softmax cross-entropy; the labels are one-hot."""
    xp = images.__array_namespace__()
    z = logits(weights, images)
    z = z - xp.max(z, axis=1, keepdims=True)
    return xp.mean(xp.log(xp.sum(xp.exp(z), axis=1)) - xp.sum(labels * z, axis=1))


def step(weights: Any, images: Any, labels: Any) -> Any:
    """Plain gradient descent: the loss, and the weights after one step."""
    leaves = [w.detach().requires_grad_() for w in weights]
    value = loss(leaves, images, labels)
    gradients = mg.autograd.grad(value, leaves)
    return value.detach(), [w - RATE * g for w, g in zip(weights, gradients, strict=True)]


def gradient(x: Any) -> Any:
    t = mg.asarray(x, requires_grad=True)
    xp = t.__array_namespace__()
    xp.sum(xp.sin(t) * xp.exp(-t * t)).backward()
    return t.grad


# -- the same for every backend


@dataclass
class Digits:
    """The data and the initial weights as NumPy arrays, and the order of images in each epoch."""

    images: Any
    labels: Any
    weights: list[Any]
    orders: list[Any]


def load(epochs: int, file_order: bool) -> Digits:
    data = load_digits()
    rng = np.random.default_rng(0)
    order = np.arange(len(data.target)) if file_order else rng.permutation(len(data.target))
    weights = [
        rng.normal(size=(64, 128)) * np.sqrt(2 / 64),
        np.zeros(128),
        rng.normal(size=(128, 10)) * np.sqrt(1 / 128),
        np.zeros(10),
    ]
    orders = [rng.permutation(TRAIN) for _ in range(epochs)]
    return Digits(data.data[order] / 16.0, np.eye(10)[data.target[order]], weights, orders)


@dataclass
class Outcome:
    label: str
    device: str
    steps_per_second: float  # the median over epochs, which excludes compilation in the first
    losses: list[float]
    accuracy: float


def train(
    label: str, xp: Any, descend: Callable[..., Any], digits: Digits, tick: Callable[[], None]
) -> Outcome:
    """Train on the backend of the namespace `xp` with the step `descend`, and classify the test
    images.
    """
    images, labels = xp.asarray(digits.images), xp.asarray(digits.labels)
    weights = [xp.asarray(w) for w in digits.weights]
    losses: list[float] = []
    rates: list[float] = []
    for order in digits.orders:
        start = time.perf_counter()
        chosen = xp.asarray(order)
        shuffled, targets = xp.take(images, chosen, axis=0), xp.take(labels, chosen, axis=0)
        total = 0.0
        for i in range(0, TRAIN, BATCH):
            stop = min(i + BATCH, TRAIN)  # the standard leaves open what a slice past the end means
            batch, target = shuffled[i:stop, :], targets[i:stop, :]
            value, weights = descend(weights, batch, target)
            total = total + value * batch.shape[0]
        # the only place where an asynchronous library is waited for
        losses.append(float(total) / TRAIN)
        rates.append(math.ceil(TRAIN / BATCH) / (time.perf_counter() - start))
        tick()
    best = xp.argmax(logits(weights, images[TRAIN:, :]), axis=1) == xp.argmax(
        labels[TRAIN:, :], axis=1
    )
    named = re.search("'(.+)'", str(images.device))  # strict's devices print as a call
    return Outcome(
        label,
        named[1] if named else str(images.device),
        median(rates),
        losses,
        float(xp.mean(xp.astype(best, xp.float64))),
    )


def usable(only: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """The names of the backends that work on this machine, and the names of the others with the
    reason.
    """
    works, not_here = [], []
    for backend in mg.backends():
        if only and backend.name not in only:
            continue
        try:
            float(mg.namespace(backend.name).zeros(()))
        except Exception as error:
            # any error of a library whose package, driver or device is missing
            not_here.append((backend.name, str(error)))
        else:
            works.append(backend.name)
    return sorted(works, key=lambda name: (name != "numpy", name)), not_here


def variants(name: str) -> list[tuple[str, Callable[..., Any]]]:
    """The variants of the step on a backend: eager, and on JAX also compiled with jax.jit."""
    if name != "jax":
        return [(name, step)]
    import jax

    return [("jax, eager", step), ("jax, under jax.jit", jax.jit(step))]


def train_all(console: Console, names: list[str], digits: Digits) -> list[Outcome]:
    runs = [(name, label, descend) for name in names for label, descend in variants(name)]
    columns = (
        TextColumn("{task.description:<20}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("epochs"),
        TimeRemainingColumn(),
    )
    outcomes = []
    with Progress(*columns, console=console) as progress:
        for name, label, descend in runs:
            task = progress.add_task(label, total=len(digits.orders))
            outcomes.append(
                train(
                    label,
                    mg.namespace(name),
                    descend,
                    digits,
                    lambda task=task: progress.advance(task),
                )
            )
    return outcomes


def report(console: Console, outcomes: list[Outcome]) -> float:
    """Print the table and return the largest relative difference between a loss and that of the
    first backend.
    """
    table = Table(
        title="Training on handwritten digits: 64-128-10, float64, the same weights at the start",
        show_lines=True,
    )
    for heading, justify in (
        ("backend", "left"),
        ("device", "left"),
        ("steps/s", "right"),
        ("loss by epoch", "left"),
        ("differs by", "right"),
        ("test accuracy", "right"),
    ):
        table.add_column(heading, justify=justify)
    furthest = 0.0
    for outcome in outcomes:
        apart = max(
            abs(a - b) / abs(b) for a, b in zip(outcome.losses, outcomes[0].losses, strict=True)
        )
        furthest = max(furthest, apart)
        losses = " ".join(f"{value:.4f}" for value in outcome.losses)
        table.add_row(
            outcome.label,
            outcome.device,
            f"{outcome.steps_per_second:,.0f}",
            losses,
            f"{apart:.0e}",
            f"{outcome.accuracy:.2%}",
        )
    console.print(table)
    return furthest


def show_gradients(console: Console, names: list[str]) -> None:
    console.print("\nThe gradient of one line of Array API code, on each:")
    console.print(Syntax(inspect.getsource(gradient), "python", background_color="default"))
    for name in names:
        raw = mg.namespace(name).asarray([0.0, 0.5, 1.0], dtype="float64").array
        console.print(
            f"{name:<8} {type(raw).__name__:<12} {gradient(raw)}", highlight=False, markup=False
        )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--backend",
        action="append",
        default=[],
        metavar="NAME",
        help="only this backend; repeatable",
    )
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument(
        "--file-order", action="store_true", help="do not shuffle the images before they are split"
    )
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 120)
    names, not_here = usable(options.backend)
    if not names:
        console.print(
            "no backend works here: " + "; ".join(f"{name}: {why}" for name, why in not_here)
            or "none is known"
        )
        return 1
    outcomes = train_all(console, names, load(options.epochs, options.file_order))
    furthest = report(console, outcomes)
    for name, why in not_here:
        console.print(f"not here: {name}: {why}", markup=False)
    show_gradients(console, names)
    least = ACCURACY_IN_FILE_ORDER if options.file_order else ACCURACY
    worst = min(outcome.accuracy for outcome in outcomes)
    assert furthest <= AGREEMENT, (
        f"the losses differ by {furthest:.1e} between backends; float64 rounding allows "
        f"{AGREEMENT:.0e}"
    )
    assert worst > least, f"the accuracy is {worst:.2%}; more than {least:.0%} was expected"
    console.print(f"\nThe losses agree to {furthest:.0e}; every accuracy is above {least:.0%}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
