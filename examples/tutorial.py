"""PyTorch's introduction to autograd, on any array library:
https://pytorch.org/tutorials/beginner/introyt/autogradyt_tutorial.html

This program computes and prints every result of the tutorial: the graph of a sine, a training step,
disabling and enabling gradient recording, a vector-Jacobian product, and the functions of
`autograd.functional`. Random numbers come from a fixed seed, so they differ from the tutorial's,
but all its observations hold. Names are those of the Array API standard: a node is called
`MultiplyBackward` instead of `MulBackward0`.

    python examples/tutorial.py                     on NumPy
    python examples/tutorial.py --backend jax       on any installed backend
    python examples/tutorial.py --plots FOLDER      where sin.png and gradient.png go (with
                                                    matplotlib); default: here
"""

from __future__ import annotations

import argparse
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import multigrad as mg
from multigrad.autograd import functional


def heading(text: str) -> None:
    print(f"\n== {text}")


# -- a function with one input and one output


def sine(xp: Any) -> dict[str, Any]:
    """out = sum(2 sin(a) + 1), its graph, and its gradient, 2 cos(a)."""
    heading("The graph of a sine")
    a = xp.linspace(0.0, 2.0 * math.pi, 25, dtype=xp.float32, requires_grad=True)
    print("a =", a)
    b = xp.sin(a)
    print("b = sin(a) =", b)
    c = 2 * b
    print("c = 2 * b =", c)
    d = c + 1
    print("d = c + 1 =", d)
    out = xp.sum(d)
    print("out = sum(d) =", out)

    print("\nFrom d back to a, each node with the number of its output; (None, 0) is a constant:")
    node, chain = d.grad_fn, []
    while node is not None:
        chain.append(
            (node.name(), [(None if n is None else n.name(), i) for n, i in node.next_functions])
        )
        print(f"  {chain[-1][0]}.next_functions = {chain[-1][1]}")
        node = next((n for n, _ in node.next_functions if n is not None), None)
    print("c was made by", c.grad_fn.name(), "- b by", b.grad_fn.name(), "- a by", a.grad_fn)

    out.backward()
    print("\nAfter out.backward(), a.grad =", a.grad)
    print(
        "The expected gradient is 2 cos(a), for any added constant. The largest difference is",
        f"{float(xp.max(xp.abs(a.grad - 2 * xp.cos(a.detach())))):.1e}",
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        inner = c.grad
    print(
        f"Only leaves have a gradient: c.grad is {inner}, with a warning: "
        f"{str(caught[0].message)[:80]}..."
    )
    return {
        "a": a,
        "b": b,
        "c": c,
        "d": d,
        "out": out,
        "chain": chain,
        "inner": inner,
        "warned": len(caught),
    }


def plot(folder: Path, a: Any, b: Any) -> list[Path]:
    """Plot sin and its gradient as PNG files. Returns their paths; none without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        print(
            "No plots: matplotlib is not installed; `pip install multigrad-array[viz]` brings it."
        )
        return []
    matplotlib.use("Agg")  # files only, no window
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, title, y in (
        ("sin", "sin(a)", b.detach()),
        ("gradient", "the gradient of sum(2 sin(a) + 1)", a.grad),
    ):
        figure, axes = pyplot.subplots()
        axes.plot(a.tolist(), y.tolist(), marker=".")
        axes.set(xlabel="a", title=title)
        axes.grid(alpha=0.3)
        written.append(folder / f"{name}.png")
        figure.savefig(written[-1], dpi=100)
        pyplot.close(figure)
        print("Wrote", written[-1])
    return written


# -- training


class TinyModel:
    """Linear(1000, 100), ReLU, Linear(100, 10): its parameters are leaves that require grad."""

    def __init__(self, xp: Any, rng: np.random.Generator) -> None:
        def parameter(rows: int, *shape: int) -> Any:
            bound = 1 / math.sqrt(rows)
            return xp.asarray(
                rng.uniform(-bound, bound, shape).astype(np.float32), requires_grad=True
            )

        self.weight1, self.bias1 = parameter(1000, 100, 1000), parameter(1000, 100)
        self.weight2, self.bias2 = parameter(100, 10, 100), parameter(100, 10)
        self.parameters = [self.weight1, self.bias1, self.weight2, self.bias2]

    def __call__(self, x: Any) -> Any:
        hidden = x @ self.weight1.mT + self.bias1
        hidden = hidden.__array_namespace__().where(hidden > 0, hidden, 0.0)
        return hidden @ self.weight2.mT + self.bias2


class SGD:
    """Plain gradient descent: w = w - rate * w.grad."""

    def __init__(self, parameters: list[Any], rate: float) -> None:
        self.parameters, self.rate = parameters, rate

    def step(self) -> None:
        with mg.no_grad():
            for w in self.parameters:
                w -= self.rate * w.grad

    def zero_grad(self) -> None:
        for w in self.parameters:
            w.grad.zero_()


def training(xp: Any, rate: float = 0.001) -> dict[str, Any]:
    """One step of gradient descent, and the accumulation of gradients without zero_grad()."""
    heading("A training step")
    rng = np.random.default_rng(0)
    model = TinyModel(xp, rng)
    some_input = xp.asarray(rng.normal(size=(16, 1000)).astype(np.float32))
    ideal_output = xp.asarray(rng.normal(size=(16, 10)).astype(np.float32))

    def part(t: Any) -> list[float]:
        return [round(v, 4) for v in t.detach()[0, :10].tolist()]

    weight = model.weight2
    print("Part of a weight:", weight[0, :10])
    print("Its gradient before the first pass:", weight.grad)
    before = {"weight": part(weight), "grad": weight.grad}

    optimizer = SGD(model.parameters, rate)
    loss = xp.sum((ideal_output - model(some_input)) ** 2)
    print("loss =", loss)
    loss.backward()
    after_backward = {"weight": part(weight), "grad": part(weight.grad)}
    print("After loss.backward(), part of the weight, as before:", after_backward["weight"])
    print("and of its gradient:", after_backward["grad"])

    optimizer.step()
    after_step = {"weight": part(weight), "grad": part(weight.grad)}
    print(f"After a step of {rate} down the gradient, the weight:", after_step["weight"])
    first = after_step["grad"]
    print(
        f"e.g. {before['weight'][0]:.4f} - {rate} * {first[0]:.4f} = "
        f"{after_step['weight'][0]:.4f}; the gradient is still",
        first,
    )

    for _ in range(5):
        xp.sum((ideal_output - model(some_input)) ** 2).backward()
    accumulated = part(weight.grad)
    print("After five more backward passes without zero_grad(), the gradient:", accumulated)
    optimizer.zero_grad()
    zeroed = part(weight.grad)
    print("After zero_grad():", zeroed)
    return {
        "before": before,
        "loss": loss,
        "after_backward": after_backward,
        "after_step": after_step,
        "accumulated": accumulated,
        "zeroed": zeroed,
    }


# -- disabling and enabling gradient recording


def recording(xp: Any) -> dict[str, Any]:
    """requires_grad, no_grad, enable_grad, detach, and an in-place operation that raises."""
    heading("Recording or not")
    a = xp.ones((2, 3), dtype=xp.float32, requires_grad=True)
    print("a =", a)
    b1 = 2 * a
    print("b1 = 2 * a =", b1)
    a.requires_grad = False
    b2 = 2 * a
    print("After a.requires_grad = False, b2 = 2 * a =", b2)

    a = xp.ones((2, 3), dtype=xp.float32, requires_grad=True) * 2
    b = xp.ones((2, 3), dtype=xp.float32, requires_grad=True) * 3
    c1 = a + b
    print("c1 = a + b =", c1)
    with mg.no_grad():
        c2 = a + b
    print("Inside no_grad, c2 = a + b =", c2)
    c3 = a * b
    print("and after it, c3 = a * b =", c3)

    def add_tensors1(x: Any, y: Any) -> Any:
        return x + y

    @mg.no_grad()
    def add_tensors2(x: Any, y: Any) -> Any:
        return x + y

    @mg.enable_grad()
    def add_tensors3(x: Any, y: Any) -> Any:
        return x + y

    sums = [add_tensors1(a, b), add_tensors2(a, b)]
    print("add_tensors1(a, b) =", sums[0])
    print("decorated with no_grad:", sums[1])
    with mg.no_grad():
        sums.append(add_tensors3(a, b))
    print("decorated with enable_grad, inside no_grad:", sums[2])

    x = xp.asarray(np.random.default_rng(1).random(5, dtype=np.float32), requires_grad=True)
    y = x.detach()
    print("x =", x)
    print("x.detach() =", y)

    leaf = xp.linspace(0.0, 2.0 * math.pi, 25, dtype=xp.float32, requires_grad=True)
    refused = ""
    try:
        xp.sin(leaf)
        leaf.sin_()
    except RuntimeError as error:
        refused = str(error)
    print("leaf.sin_() is refused:", refused)
    return {
        "b1": b1,
        "b2": b2,
        "c1": c1,
        "c2": c2,
        "c3": c3,
        "sums": sums,
        "x": x,
        "y": y,
        "refused": refused,
    }


def long_graph(xp: Any) -> dict[str, int]:
    """z = (z / x) * y, a thousand times, and the nodes of the resulting graph."""
    heading("A thousand divisions and a thousand products")
    rng = np.random.default_rng(2)
    x, y = (xp.asarray(rng.uniform(0.5, 1.5, (2, 3)), requires_grad=True) for _ in range(2))
    z = xp.ones((2, 3), dtype=xp.float64, requires_grad=True)
    for _ in range(1000):
        z = (z / x) * y
    counts: dict[str, int] = {}
    node = z.grad_fn
    while node is not None:
        counts[node.name()] = counts.get(node.name(), 0) + 1
        node = node.next_functions[0][0] if node.next_functions else None
    print("nodes from z back to the first:", counts)
    return counts


# -- vectors and Jacobians


def do_some_doubling(x: Any) -> Any:
    y = x * 2
    while float(y.__array_namespace__().linalg.vector_norm(y.data)) < 1000:
        y = y * 2
    return y


def exp_adder(x: Any, y: Any) -> Any:
    return 2 * x.__array_namespace__().exp(x) + 3 * y


def products(xp: Any) -> dict[str, Any]:
    """The gradient of an output with several elements: v^T J, where v is the gradient of a later
    loss with respect to that output.
    """
    heading("A vector-Jacobian product")
    start = xp.asarray([0.6, -0.9, 0.4], dtype=xp.float32)
    x = xp.asarray(start, copy=True, requires_grad=True)
    y = do_some_doubling(x)
    print("y, doubled until its norm exceeds 1000 =", y)
    refused = ""
    try:
        y.backward()
    except RuntimeError as error:
        refused = str(error)
    print("y.backward() is refused:", refused)
    v = xp.asarray([0.1, 1.0, 0.0001], dtype=xp.float32)
    y.backward(v)
    print("y.backward(v) with v =", v.array, "gives x.grad =", x.grad)
    outputs, gradients = functional.vjp(do_some_doubling, start, v=v)
    print("functional.vjp gives the same:", outputs, gradients)
    return {"y": y, "refused": refused, "grad": x.grad, "outputs": outputs, "vjp": gradients}


def higher_level(xp: Any) -> dict[str, Any]:
    """jacobian, hessian, jvp, vhp and hvp."""
    heading("Jacobians, Hessians and their products with vectors")
    one = (xp.asarray([0.7212], dtype=xp.float32), xp.asarray([0.2079], dtype=xp.float32))
    three = (
        xp.asarray([0.2080, 0.2604, 0.4415], dtype=xp.float32),
        xp.asarray([0.5220, 0.9867, 0.4288], dtype=xp.float32),
    )
    found: dict[str, Any] = {
        "one": functional.jacobian(exp_adder, one),
        "three": functional.jacobian(exp_adder, three),
    }
    print("The Jacobian of 2 exp(x) + 3 y at one x and y:", *found["one"])
    print("and at three of each:", *found["three"], sep="\n")

    def scalar(x: Any, y: Any) -> Any:
        return xp.sum(exp_adder(x, y) * y)

    found["hessian"] = functional.hessian(scalar, one)
    print(
        "The Hessian of (2 exp(x) + 3 y) y:", *(block for row in found["hessian"] for block in row)
    )
    v = (xp.ones(3, dtype=xp.float32), xp.ones(3, dtype=xp.float32))
    found["jvp"] = functional.jvp(exp_adder, three, v)[1]
    print("The Jacobian times a vector of ones:", found["jvp"])
    found["vhp"], found["hvp"] = (
        functional.vhp(scalar, three, v)[1],
        functional.hvp(scalar, three, v)[1],
    )
    print("That vector times the Hessian:", *found["vhp"])
    print("The Hessian times that vector:", *found["hvp"])
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--backend",
        default="numpy",
        help="the name of a backend, see `python -m multigrad backends`",
    )
    parser.add_argument(
        "--plots",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="where to write sin.png and gradient.png",
    )
    options = parser.parse_args(arguments)
    xp = mg.namespace(options.backend)
    with np.printoptions(precision=4):
        found = sine(xp)
        plot(options.plots, found["a"], found["b"])
        training(xp)
        recording(xp)
        long_graph(xp)
        products(xp)
        higher_level(xp)


if __name__ == "__main__":
    main()
