"""One row for each path of an operation, with its aim.

The paths are the tape, func's transformations, hooks, and single operations. The program of the
rows with a backward pass is `mix`: a hundred times `sin(x * w + b) * 0.98`, four operations, on
arrays of four elements. `x` and `w` are differentiated, `b` is data. On the tape `b` is a Tensor
(torch's Tensor in torch); in multigrad.func it is a raw array in the closure, as in typical code.
Times are per operation of the program.

The rows of single operations time the forward operation alone: it is recorded, and its result
dropped.
"""

from __future__ import annotations

import importlib
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import peers as installed_peers
from measure import OURS, Aim, Case
from workloads import tiny_inputs, tiny_step

import multigrad as mg
from multigrad import func

TORCH, HIPS, TAPE, NUMPY = "torch", "HIPS autograd", "tape", "numpy"
TENSORS, BOUND, ALONE = "Tensor * Tensor", "xp.f", "another thread, unobserved"
SIZE, TURNS, CALLS, STEPS = 4, 100, 400, 10
OPERATIONS = 4 * TURNS

Run = Callable[[], list[Any]]


@dataclass(frozen=True)
class Peers:
    """The modules of the peers, or None for those that are not installed."""

    torch: Any = None
    autograd: Any = None

    @classmethod
    def found(cls) -> Peers:
        torch = installed_peers.torch() if installed_peers.installed("torch") else None
        return cls(
            torch,
            importlib.import_module("autograd") if installed_peers.installed("autograd") else None,
        )


def path_cases(peers: Peers) -> Iterator[Case]:
    yield tape(peers)
    yield gradient(peers)
    yield from batches(peers)
    yield from forward_mode(peers)
    yield from watched(peers)
    yield from products(peers)
    yield from conversions(peers)
    yield from gathers(peers)
    yield from signatures()
    yield from transformed_signatures()
    yield from module_functions()
    yield from observed()


# -- the program, and its inputs


def mix(xp: Any, x: Any, w: Any, b: Any, turns: int = TURNS) -> Any:
    for _ in range(turns):
        x = xp.sin(x * w + b) * 0.98
    return x


def inputs() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=SIZE), rng.uniform(0.9, 1.1, size=SIZE), rng.normal(size=SIZE)


def of_torch(torch: Any, *arrays: Any) -> list[Any]:
    return [torch.tensor(a) for a in arrays]


def loss(xp: Any, b: Any, turns: int = TURNS) -> Callable[[Any, Any], Any]:
    """Return the scalar function of x and w, over any namespace, with `b` in its closure."""
    return lambda x, w: xp.sum(mix(xp, x, w, b, turns))


def namespace() -> Any:
    return mg.namespace("numpy")


def tape_run() -> Run:
    xp, (x, w, b) = namespace(), [mg.asarray(a) for a in inputs()]

    def run() -> list[Any]:
        leaves = [x.detach().requires_grad_(), w.detach().requires_grad_()]
        return [*mg.autograd.grad(xp.sum(mix(xp, *leaves, b)), leaves)]

    return run


def torch_run(torch: Any) -> Run:
    x, w, b = of_torch(torch, *inputs())

    def run() -> list[Any]:
        leaves = [x.detach().requires_grad_(), w.detach().requires_grad_()]
        return [*torch.autograd.grad(torch.sum(mix(torch, *leaves, b)), leaves)]

    return run


def hips_run(hips: Any) -> Run:
    x, w, b = inputs()
    both = hips.grad(loss(hips.numpy, b), (0, 1))
    return lambda: [*both(x, w)]


# -- the tape, and the gradient of raw arrays


def tape(peers: Peers) -> Case:
    runs = {OURS: tape_run()}
    if peers.torch:
        runs[TORCH] = torch_run(peers.torch)
    if peers.autograd:
        runs[HIPS] = hips_run(peers.autograd)
    return _passes("tape: Tensors of one dtype", runs, [Aim(TORCH, 0.48), Aim(HIPS, 0.20)])


def gradient(peers: Peers) -> Case:
    (x, w, b), xp = inputs(), namespace()
    both = func.grad(loss(xp, b), (0, 1))
    runs: dict[str, Run] = {OURS: lambda: [*both(x, w)], TAPE: tape_run()}
    if peers.torch:
        tx, tw, tb = of_torch(peers.torch, x, w, b)
        theirs = peers.torch.func.grad(loss(peers.torch, tb), (0, 1))
        runs["torch.func"] = lambda: [*theirs(tx, tw)]
    if peers.autograd:
        runs[HIPS] = hips_run(peers.autograd)
    return _passes(
        "func.grad of raw arrays", runs, [Aim(TAPE, 1.9), Aim("torch.func", 0.5), Aim(HIPS, 0.4)]
    )


def _passes(
    label: str, runs: dict[str, Run], aims: list[Aim], yardsticks: tuple[str, ...] = ()
) -> Case:
    return Case("paths", label, OPERATIONS, runs, aims, yardsticks=yardsticks)


# -- batches


def batches(peers: Peers) -> Iterator[Case]:
    (_, w, b), xp = inputs(), namespace()
    rows = np.random.default_rng(1).normal(size=(SIZE, SIZE))
    each = func.vmap(lambda x: mix(xp, x, w, b))
    gradients = func.vmap(func.grad(loss(xp, b), (0, 1)), in_axes=(0, None))
    forward: dict[str, Run] = {OURS: lambda: [each(rows)]}
    backward: dict[str, Run] = {OURS: lambda: [*gradients(rows, w)]}
    if peers.torch:
        torch, (trows, tw, tb) = peers.torch, of_torch(peers.torch, rows, w, b)
        of_each = torch.func.vmap(lambda x: mix(torch, x, tw, tb))
        of_gradients = torch.func.vmap(torch.func.grad(loss(torch, tb), (0, 1)), in_dims=(0, None))
        forward["torch.func"] = lambda: [of_each(trows)]
        backward["torch.func"] = lambda: [*of_gradients(trows, tw)]
    yield _passes("vmap, 4 examples, forward", forward, [Aim("torch.func", 1.1)])
    yield _passes("vmap(grad), 4 examples", backward, [Aim("torch.func", 1.1)])


# -- tangents, and second derivatives: their aims are multiples of the tape's time


def forward_mode(peers: Peers) -> Iterator[Case]:
    """Yield the cases of forward mode, for the values also with HIPS autograd."""
    (x, w, b), xp = inputs(), namespace()
    vx, vw = np.random.default_rng(2).normal(size=(2, SIZE))
    of_w = lambda w: xp.sum(mix(xp, x, w, b))
    slope, second = func.grad(of_w), func.hessian(of_w)
    jvp: dict[str, Run] = {
        OURS: lambda: [*func.jvp(lambda x, w: mix(xp, x, w, b), (x, w), (vx, vw))]
    }
    nested: dict[str, Run] = {OURS: lambda: [func.jvp(slope, (w,), (vw,))[1]]}
    product: dict[str, Run] = {OURS: lambda: [func.hvp(of_w, (w,), (vw,))[1][0]]}
    hessian: dict[str, Run] = {OURS: lambda: [second(w)]}
    if peers.autograd:
        hips, np_of_hips = peers.autograd, peers.autograd.numpy
        of_both, of_hw = (
            (lambda xw: mix(np_of_hips, xw[0], xw[1], b)),
            (lambda w: np_of_hips.sum(mix(np_of_hips, x, w, b))),
        )
        push, times, their_second = (
            hips.make_jvp(of_both),
            hips.hessian_vector_product(of_hw),
            hips.hessian(of_hw),
        )
        jvp[HIPS] = lambda: [*push(np.stack([x, w]))(np.stack([vx, vw]))]
        nested[HIPS] = product[HIPS] = lambda: [times(w, vw)]
        hessian[HIPS] = lambda: [their_second(w)]
    named = [
        ("jvp", jvp, 2.5),
        ("hvp: jvp(grad)", nested, 8.0),
        ("hvp: func.hvp", product, 8.0),
        ("hessian, 4 x 4", hessian, 12.0),
    ]
    for label, runs, most in named:
        runs[TAPE] = tape_run()
        yield Case("paths", label, OPERATIONS, runs, [Aim(TAPE, most)], yardsticks=(TAPE,))


# -- hooks on saved arrays, and checkpoints


def watched(peers: Peers) -> Iterator[Case]:
    yield _passes("saved_tensors_hooks, identity", _hooked(peers), [Aim(TORCH, 1.5)])
    yield _passes("checkpoint of the whole program", _checkpointed(peers), [Aim(TORCH, 1.3)])
    yield _passes(
        "writes allowed, none made",
        _allowed(peers, mix) | {TAPE: tape_run()},
        [Aim(TAPE, 1.25)],
        (TAPE,),
    )
    yield _passes(
        "writes allowed, one in four operations", _allowed(peers, mix_written), [Aim(TORCH, 0.5)]
    )
    yield _training_step()


def _hooked(peers: Peers) -> dict[str, Run]:
    def hooked(module: Any, xp: Any, x: Any, w: Any, b: Any) -> Run:
        def run() -> list[Any]:
            leaves = [x.detach().requires_grad_(), w.detach().requires_grad_()]
            with module.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                out = xp.sum(mix(xp, *leaves, b))
            return [*module.autograd.grad(out, leaves)]

        return run

    runs = {OURS: hooked(mg, namespace(), *(mg.asarray(a) for a in inputs()))}
    if peers.torch:
        runs[TORCH] = hooked(peers.torch, peers.torch, *of_torch(peers.torch, *inputs()))
    return runs


def mix_written(xp: Any, x: Any, w: Any, b: Any) -> Any:
    """Run the program; each turn writes into the array that its sine has saved."""
    for _ in range(TURNS):
        y = x * w
        x = xp.sin(y) * 0.98
        y *= 0.5
    return x + y + b


def _allowed(peers: Peers, program: Callable[..., Any]) -> dict[str, Run]:
    def allowed(module: Any, xp: Any, x: Any, w: Any, b: Any) -> Run:
        def run() -> list[Any]:
            leaves = [x.detach().requires_grad_(), w.detach().requires_grad_()]
            with module.autograd.graph.allow_mutation_on_saved_tensors():
                return [*module.autograd.grad(xp.sum(program(xp, *leaves, b)), leaves)]

        return run

    runs = {OURS: allowed(mg, namespace(), *(mg.asarray(a) for a in inputs()))}
    if peers.torch:
        runs[TORCH] = allowed(peers.torch, peers.torch, *of_torch(peers.torch, *inputs()))
    return runs


def _training_step() -> Case:
    """Return a step of TinyModel where writes are allowed, and one where they are not."""

    def step(allowed: bool) -> Run:
        given, x, ideal = tiny_inputs()
        weights = [mg.asarray(w, requires_grad=True) for w in given]
        xp, tx, tideal = namespace(), mg.asarray(x), mg.asarray(ideal)

        def train() -> list[Any]:
            return [tiny_step(xp, mg.no_grad, weights, tx, tideal) for _ in range(STEPS)][-1]

        def inside() -> list[Any]:
            with mg.autograd.graph.allow_mutation_on_saved_tensors():
                return train()

        return inside if allowed else train

    return Case(
        "paths",
        "writes allowed, a training step of TinyModel",
        STEPS,
        {OURS: step(True), TAPE: step(False)},
        [Aim(TAPE, 1.1)],
        tolerance=1e-3,
        yardsticks=(TAPE,),
    )


def _checkpointed(peers: Peers) -> dict[str, Run]:
    def checkpointed(module: Any, xp: Any, checkpoint: Any, x: Any, w: Any, b: Any) -> Run:
        def run() -> list[Any]:
            leaves = [x.detach().requires_grad_(), w.detach().requires_grad_()]
            return [
                *module.autograd.grad(
                    xp.sum(checkpoint(lambda x, w: mix(xp, x, w, b), *leaves)), leaves
                )
            ]

        return run

    runs = {
        OURS: checkpointed(
            mg,
            namespace(),
            lambda f, *xs: func.checkpoint(f)(*xs),
            *(mg.asarray(a) for a in inputs()),
        )
    }
    if peers.torch:
        from torch.utils.checkpoint import checkpoint

        runs[TORCH] = checkpointed(
            peers.torch,
            peers.torch,
            lambda f, *xs: checkpoint(f, *xs, use_reentrant=False),
            *of_torch(peers.torch, *inputs()),
        )
    return runs


# -- single operations, forward, recorded


def repeated(expression: str, **names: Any) -> Run:
    """Return a run of the expression, CALLS times in a generated loop, as in timeit.

    A function call around it would be a tenth of the smaller times.
    """
    scope = {"turns": range(CALLS - 1), **names}
    exec(f"def run():\n    for _ in turns:\n        {expression}\n    return [{expression}]", scope)
    run: Run = scope["run"]
    return run


def _single(label: str, runs: dict[str, Run], aims: list[Aim]) -> Case:
    return Case("paths, one operation", label, CALLS, runs, aims, tolerance=1e-6)


def leaves() -> tuple[Any, Any, Any]:
    """Return a Tensor that requires grad, and two constants."""
    x, y, z = inputs()
    return mg.asarray(x, requires_grad=True), mg.asarray(y), mg.asarray(z)


def torch_leaves(torch: Any) -> list[Any]:
    x, y, z = of_torch(torch, *inputs())
    return [x.requires_grad_(), y, z]


def products(peers: Peers) -> Iterator[Case]:
    (x, y, _), (a, raw, _), number = leaves(), inputs(), np.float64(1.5)
    numbers = mg.asarray(np.full(SIZE, number))
    runs = {OURS: repeated("x * y", x=x, y=y), NUMPY: repeated("x * y", x=a, y=raw)}
    if peers.torch:
        tx, ty, _ = torch_leaves(peers.torch)
        runs[TORCH] = repeated("x * y", x=tx, y=ty)
    yield _single(TENSORS, runs, [])
    yield _single(
        "Tensor * raw array",
        {OURS: repeated("x * y", x=x, y=raw), TENSORS: repeated("x * y", x=x, y=y)},
        [Aim(TENSORS, 1.25)],
    )
    # NumPy's multiplication runs first, and calls the Tensor by NumPy's protocol
    yield _single(
        "raw array * Tensor",
        {OURS: repeated("y * x", x=x, y=raw), TENSORS: repeated("x * y", x=x, y=y)},
        [Aim(TENSORS, 1.7)],
    )
    for label, ours in (
        ("np.multiply(Tensor, Tensor)", "np.multiply(x, y)"),
        ("np.sin(Tensor)", "np.sin(x)"),
        ("np.sum(Tensor)", "np.sum(x)"),
        ("np.concatenate of 2 Tensors", "np.concatenate([x, y])"),
    ):
        named = {"x": x, "y": y, "np": np, "xp": namespace()}
        theirs = ours.replace("np.concatenate", "xp.concat").replace("np.", "xp.")
        yield _single(
            label,
            {OURS: repeated(ours, **named), TENSORS: repeated(theirs, **named)},
            [Aim(TENSORS, 2.0)],
        )
    yield _single(
        "Tensor * np.float64",
        {OURS: repeated("x * y", x=x, y=number), TENSORS: repeated("x * y", x=x, y=numbers)},
        [Aim(TENSORS, 1.4)],
    )


def conversions(peers: Peers) -> Iterator[Case]:
    (x, _, _), xp, (_, b, _), at = leaves(), namespace(), inputs(), np.array([2, 0, 3])
    narrow = b.astype(np.float32)
    named: list[tuple[str, str, dict[str, Any], str, float]] = [
        ("float64 * float32", "x * y", {"y": mg.asarray(narrow)}, "x * y", 1.1),
        ("astype(x, float32)", "xp.astype(x, xp.float32)", {}, "x.to(xp.float32)", 1.1),
        ("x[index array], a raw array", "x[at]", {"at": at}, "x[at]", 1.3),
        ("x[index array], a Tensor", "x[at]", {"at": mg.asarray(at)}, "x[at]", 1.3),
        ("clip(x, -1, 1)", "xp.clip(x, -1.0, 1.0)", {}, "xp.clamp(x, -1.0, 1.0)", 2.2),
    ]
    for label, expression, names, theirs, most in named:
        runs = {OURS: repeated(expression, xp=xp, x=x, **names)}
        if peers.torch:
            (tx, _, _), (tn, tat) = torch_leaves(peers.torch), of_torch(peers.torch, narrow, at)
            runs[TORCH] = repeated(theirs, xp=peers.torch, x=tx, y=tn, at=tat)
        yield _single(label, runs, [Aim(TORCH, most)])


def gathers(peers: Peers) -> Iterator[Case]:
    named = [
        ("stack of 3", "xp.stack([x, y, z])", Aim(NUMPY, 2.5, 1e-6)),
        ("concat of 2", "xp.concat([x, y])", Aim(NUMPY, 7.0, 0.5e-6)),
    ]
    for label, expression, aim in named:
        operands = {OURS: (namespace(), leaves()), NUMPY: (np, inputs())}
        if peers.torch:
            operands[TORCH] = (peers.torch, torch_leaves(peers.torch))
        yield _single(
            label,
            {
                p: repeated(expression, xp=xp, x=x, y=y, z=z)
                for p, (xp, (x, y, z)) in operands.items()
            },
            [aim],
        )


def signatures() -> Iterator[Case]:
    """Yield one call of each class of signature that the rows above lack, beside NumPy's."""
    (x, y, z), arrays = leaves(), inputs()
    square, rows = np.eye(SIZE) + 0.1, np.random.default_rng(1).normal(size=(SIZE, SIZE))
    integers = np.arange(1, SIZE + 1)
    for label, expression, more in (
        ("Tensor * 2.0", "x * 2.0", {}),
        ("float64 * int64", "x * n", {"n": integers}),
        ("multiply(raw array, Tensor)", "xp.multiply(raw, x)", {}),
        ("stack of 20", "xp.stack([x, y, z, x, y] * 4)", {}),
        ("concat of a Tensor and raw arrays", "xp.concat([raw, x, raw])", {}),
        ("clip(x, a raw array, a Tensor)", "xp.clip(x, raw, top)", {"top": arrays[1] + 2.0}),
        ("where(mask, x, 0.0)", "xp.where(mask, x, 0.0)", {"mask": arrays[0] > 0}),
        ("sum(x)", "xp.sum(x)", {}),
        ("x[1:]", "x[1:]", {}),
        ("several outputs: unstack", "xp.unstack(rows)[0]", {"rows": rows}),
        ("several outputs: qr", "xp.linalg.qr(rows)[1]", {"rows": square}),
        ("a composite: trace", "xp.trace(rows)", {"rows": rows}),
    ):
        ours = {n: mg.asarray(a, requires_grad=n == "rows") for n, a in more.items()}
        names = {"xp": namespace(), "x": x, "y": y, "z": z, "raw": arrays[1], **ours}
        runs = {OURS: repeated(expression, **names)}
        if "unstack" not in expression or hasattr(np, "unstack"):  # NumPy 2.1
            theirs = dict(zip("xyz", arrays, strict=True))
            runs[NUMPY] = repeated(expression, xp=np, raw=arrays[1], **theirs, **more)
        yield _single(label, runs, [])


def transformed_signatures() -> Iterator[Case]:
    """Yield the same calls inside of transformations, and the second derivative of the tape."""
    (x, w, b), xp = inputs(), namespace()
    (vx, _), rows = (
        np.random.default_rng(2).normal(size=(2, SIZE)),
        np.random.default_rng(1).normal(size=(SIZE, SIZE)),
    )

    def stacked(x: Any) -> Any:
        for _ in range(TURNS):
            x = xp.sum(xp.stack([x, b, x]), axis=0)
        return x * 0.5**TURNS

    def sliced(x: Any) -> Any:
        total = xp.sum(x)
        for _ in range(TURNS):
            total = total + xp.sum(x[1:])
        return total * total

    def twice() -> list[Any]:
        leaf = mg.asarray(x, requires_grad=True)
        (g,) = mg.autograd.grad(xp.sum(mix(xp, leaf, w, b)), leaf, create_graph=True)
        return [*mg.autograd.grad(xp.sum(g * g), leaf, create_graph=True)]

    slope = func.grad(sliced)
    for label, count, run in (
        ("jvp of a stack", 2, lambda: [func.jvp(stacked, (x,), (vx,))[1]]),
        ("vmap of a stack", 2, lambda: [func.vmap(stacked)(rows)]),
        ("grad of x[1:]", 3, lambda: [slope(x)]),
        ("jvp(grad) of x[1:]", 3, lambda: [func.jvp(slope, (x,), (vx,))[1]]),
        ("vmap(grad) of x[1:]", 3, lambda: [func.vmap(slope)(rows)]),
        ("create_graph twice", 4, twice),
    ):
        yield Case("paths", label, count * TURNS, {OURS: run}, [])


def module_functions() -> Iterator[Case]:
    """Yield the functions of the module `multigrad`, and those of a namespace for comparison.

    The module's functions find the library by their operands.
    """
    x, y, _ = leaves()
    for call in ("sum(x)", "exp(x)", "multiply(x, y)"):
        runs = {
            OURS: repeated(f"xp.{call}", xp=mg, x=x, y=y),
            BOUND: repeated(f"xp.{call}", xp=namespace(), x=x, y=y),
        }
        yield _single(f"mg.{call}", runs, [Aim(BOUND, 1.1)])


def observed() -> Iterator[Case]:
    """Yield a recorded operation under observers, and meanwhile in another thread."""
    warnings.filterwarnings("ignore", message="Anomaly Detection has been enabled")
    x, y, _ = leaves()
    run = repeated("x * y", x=x, y=y)
    anomaly = partial(mg.autograd.set_detect_anomaly, True)
    named: list[tuple[str, Callable[[], Any], Aim]] = [
        ("graph.label", partial(mg.autograd.graph.label, "part"), Aim(TENSORS, 1.6)),
        ("anomaly mode", anomaly, Aim(TENSORS, 10.0)),
        ("profiler", mg.autograd.profiler.profile, Aim(TENSORS, 1.0, 2e-6)),
        ("detect_breaks", mg.autograd.detect_breaks, Aim(TENSORS, 6.0)),
    ]
    for label, context, aim in named:
        yield _single(f"in {label}", {OURS: within(context, run), TENSORS: run}, [aim])
    for label, context, _ in named:
        yield _single(
            f"{label}, another thread",
            {OURS: within(context, elsewhere(run)), ALONE: elsewhere(run)},
            [Aim(ALONE, 1.1)],
        )


def within(context: Callable[[], Any], run: Run) -> Run:
    def inside() -> list[Any]:
        with context():
            return run()

    return inside


def elsewhere(run: Run) -> Run:
    """Return the same run in a new thread, with its own context."""

    def started() -> list[Any]:
        results: list[Any] = []
        thread = threading.Thread(target=lambda: results.extend(run()))
        thread.start()
        thread.join()
        return results

    return started
