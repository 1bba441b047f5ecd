"""Real programs, compared with HIPS autograd, eager PyTorch and hand-written gradients.

multigrad is used as its README recommends to authors of libraries: `func.grad` or
`func.value_and_grad` of raw arrays, raw data in the closure, functions of the arrays' namespace or
of the module. torch uses leaves and `torch.autograd.grad`, HIPS autograd its `value_and_grad`. One
formula serves all three, unless a peer has a better idiom (logsumexp). Values and gradients are
compared before anything is timed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import peers as installed_peers
from judging import PROGRAMS
from measure import HAND, OURS, Case
from paths import HIPS, TORCH, Peers, of_torch

import multigrad as mg
from multigrad import func

MOST = {HIPS: 0.45, TORCH: 0.8}  # limits of the median over the programs

Run = Callable[[], list[Any]]
Loss = Callable[..., Any]  # a function of a namespace, the parameters, and the data


def program_cases(peers: Peers, steps: int = 1000) -> Iterator[Case]:
    yield logistic_regression(peers)
    yield lstm(peers)
    yield gaussian_process(peers)
    yield mixture(peers)
    yield leapfrog(peers)
    yield runge_kutta(peers, steps)
    if installed_peers.installed("scipy"):
        yield minimizing(peers)


def _case(label: str, runs: dict[str, Run], count: int = 1, tolerance: float = 1e-8) -> Case:
    return Case(PROGRAMS, label, count, runs, tolerance=tolerance)


def gradients(
    peers: Peers,
    loss: Loss,
    params: list[Any],
    data: list[Any],
    *,
    module: bool = False,
    **own: Any,
) -> dict[str, Callable[..., Any]]:
    """Return for each peer a function from the parameters to the value and the gradients.

    The parameters are raw arrays, or torch's Tensors for torch. `module` takes multigrad's
    functions from the module instead of the arrays' namespace. `own` has functions that a peer
    writes in its own way, by the peer's name.
    """
    numbers = tuple(range(len(params)))
    extra = lambda peer: [own[peer]] if peer in own else []

    def ours(*p: Any) -> Any:
        return loss(mg if module else p[0].__array_namespace__(), p, *data, *extra("ours"))

    by_peer: dict[str, Callable[..., Any]] = {OURS: func.value_and_grad(ours, numbers)}
    if peers.torch:
        torch, constants = peers.torch, of_torch(peers.torch, *data)

        def theirs(*p: Any) -> Any:
            leaves = [t.detach().requires_grad_() for t in p]
            value = loss(torch, leaves, *constants, *extra("torch"))
            return value, torch.autograd.grad(value, leaves)

        by_peer[TORCH] = theirs
    if peers.autograd:
        np_of_hips = peers.autograd.numpy
        by_peer[HIPS] = peers.autograd.value_and_grad(
            lambda *p: loss(np_of_hips, p, *data, *extra("hips")), numbers
        )
    return by_peer


def once(
    peers: Peers, functions: dict[str, Callable[..., Any]], params: list[Any]
) -> dict[str, Run]:
    """Return for each peer a run that computes the value and the gradients once."""

    def run_of(gradient: Callable[..., Any], arguments: list[Any]) -> Run:
        def run() -> list[Any]:
            value, grads = gradient(*arguments)
            return [value, *grads]

        return run

    return {
        p: run_of(f, of_torch(peers.torch, *params) if p == TORCH else params)
        for p, f in functions.items()
    }


# -- logistic regression: ten steps of gradient descent on 50,000 rows of 50

ROWS, FEATURES, STEPS, PENALTY = 50_000, 50, 10, 1e-3


def logistic_loss(xp: Any, params: Any, features: Any, signs: Any) -> Any:
    (w,) = params
    return xp.mean(xp.log1p(xp.exp(-(features @ w) * signs))) + PENALTY * xp.sum(w * w)


def logistic_by_hand(features: Any, signs: Any) -> Callable[[Any], Any]:
    def gradient(w: Any) -> Any:
        e = np.exp(-(features @ w) * signs)
        value = np.mean(np.log1p(e)) + PENALTY * np.sum(w * w)
        return value, [features.T @ (-signs * e / ((1 + e) * ROWS)) + 2 * PENALTY * w]

    return gradient


def logistic_regression(peers: Peers) -> Case:
    rng = np.random.default_rng(0)
    features, start = rng.normal(size=(ROWS, FEATURES)), np.zeros(FEATURES)
    signs = np.sign(features @ rng.normal(size=FEATURES) + rng.normal(size=ROWS))
    functions = {HAND: logistic_by_hand(features, signs)} | gradients(
        peers, logistic_loss, [start], [features, signs], module=True
    )

    def descent(gradient: Callable[..., Any], w: Any) -> Run:
        def run() -> list[Any]:
            at = w
            for _ in range(STEPS):
                value, (g,) = gradient(at)
                at = at - 0.5 * g
            return [value, at]

        return run

    runs = {
        p: descent(f, peers.torch.tensor(start) if p == TORCH else start)
        for p, f in functions.items()
    }
    return _case(f"logistic regression, {ROWS:,} x {FEATURES}, a step", runs, STEPS)


# -- an LSTM: 20 steps of a batch of 8, 8 inputs, 16 units

LENGTH, BATCH, INPUTS, UNITS = 20, 8, 8, 16


def sigmoid(xp: Any, z: Any) -> Any:
    return 1 / (1 + xp.exp(-z))


def lstm_loss(xp: Any, params: Any, sequence: Any, zeros: Any, target: Any) -> Any:
    wx, wh, b = params
    h = c = zeros
    for t in range(LENGTH):
        z = sequence[t] @ wx + h @ wh + b
        i, f, o = (sigmoid(xp, z[:, n * UNITS : (n + 1) * UNITS]) for n in range(3))
        c = f * c + i * xp.tanh(z[:, 3 * UNITS :])
        h = o * xp.tanh(c)
    return xp.sum((h - target) ** 2)


def lstm_by_hand(sequence: Any, zeros: Any, target: Any) -> Callable[..., Any]:
    def gradient(wx: Any, wh: Any, b: Any) -> Any:
        h, c, saved = zeros, zeros, []
        for t in range(LENGTH):
            z = sequence[t] @ wx + h @ wh + b
            i, f, o = (sigmoid(np, z[:, n * UNITS : (n + 1) * UNITS]) for n in range(3))
            g = np.tanh(z[:, 3 * UNITS :])
            before, c = (h, c), f * c + i * g
            tanh = np.tanh(c)
            h = o * tanh
            saved.append((*before, i, f, o, g, tanh))
        value, gh, gc = np.sum((h - target) ** 2), 2 * (h - target), zeros
        gwx, gwh, gb = np.zeros_like(wx), np.zeros_like(wh), np.zeros_like(b)
        for t in range(LENGTH - 1, -1, -1):
            h, c, i, f, o, g, tanh = saved[t]
            gc = gc + gh * o * (1 - tanh * tanh)
            gz = np.concat(
                [
                    gc * g * i * (1 - i),
                    gc * c * f * (1 - f),
                    gh * tanh * o * (1 - o),
                    gc * i * (1 - g * g),
                ],
                axis=1,
            )
            gwx += sequence[t].T @ gz
            gwh += h.T @ gz
            gb += gz.sum(axis=0)
            gh, gc = gz @ wh.T, gc * f
        return value, [gwx, gwh, gb]

    return gradient


def lstm(peers: Peers) -> Case:
    rng = np.random.default_rng(1)
    params = [
        rng.normal(size=shape) / 4
        for shape in ((INPUTS, 4 * UNITS), (UNITS, 4 * UNITS), (4 * UNITS,))
    ]
    data = [
        rng.normal(size=(LENGTH, BATCH, INPUTS)),
        np.zeros((BATCH, UNITS)),
        rng.normal(size=(BATCH, UNITS)),
    ]
    functions = {HAND: lstm_by_hand(*data)} | gradients(peers, lstm_loss, params, data)
    return _case(
        f"LSTM, {LENGTH} steps, batch {BATCH}, {UNITS} units", once(peers, functions, params)
    )


# -- a Gaussian process: the marginal likelihood of 50 points by Cholesky, and its gradient by three
# logarithms

POINTS = 50


def process_loss(
    xp: Any, params: Any, squares: Any, eye: Any, y: Any, diagonal: Callable[[Any], Any]
) -> Any:
    length, variance, noise = (xp.exp(params[0][n]) for n in range(3))
    factor = xp.linalg.cholesky(variance * xp.exp(squares / (-2 * length**2)) + noise * eye)
    white = xp.linalg.solve(factor, y)
    return 0.5 * xp.sum(white * white) + xp.sum(xp.log(diagonal(factor)))


def process_by_hand(squares: Any, eye: Any, y: Any) -> Callable[[Any], Any]:
    def gradient(logarithms: Any) -> Any:
        length, variance, noise = np.exp(logarithms)
        smooth = variance * np.exp(squares / (-2 * length**2))
        covariance = smooth + noise * eye
        factor = np.linalg.cholesky(covariance)
        white = np.linalg.solve(factor, y)
        value = 0.5 * np.sum(white * white) + np.sum(np.log(np.diagonal(factor)))
        weights = np.linalg.solve(factor.T, white)
        slope = 0.5 * (np.linalg.inv(covariance) - np.outer(weights, weights))
        slopes = [
            np.sum(slope * smooth * squares) / length**2,
            np.sum(slope * smooth),
            noise * np.trace(slope),
        ]
        return value, [np.array(slopes)]

    return gradient


def gaussian_process(peers: Peers) -> Case:
    rng = np.random.default_rng(2)
    at = np.sort(rng.uniform(0, 10, size=POINTS))
    data = [
        (at[:, None] - at[None, :]) ** 2,
        np.eye(POINTS),
        np.sin(at) + 0.1 * rng.normal(size=POINTS),
    ]
    params = [np.log([1.0, 1.5, 0.1])]
    own: dict[str, Any] = {"ours": lambda a: mg.linalg.diagonal(a)}
    if peers.torch:
        own["torch"] = peers.torch.diagonal
    if peers.autograd:
        own["hips"] = peers.autograd.numpy.diag
    functions = {HAND: process_by_hand(*data)} | gradients(peers, process_loss, params, data, **own)
    return _case(f"Gaussian process, {POINTS} points", once(peers, functions, params))


# -- a mixture of three Gaussians in the plane, 200 points, by logsumexp

SAMPLES, COMPONENTS = 200, 3


def logsumexp(z: Any) -> Any:
    """Return logsumexp over the last axis by functions of the standard, which lacks it."""
    xp = z.__array_namespace__()
    top = xp.max(z, axis=-1, keepdims=True)
    return xp.squeeze(top, axis=-1) + xp.log(xp.sum(xp.exp(z - top), axis=-1))


def mixture_loss(xp: Any, params: Any, points: Any, logsumexp: Callable[[Any], Any]) -> Any:
    weights, centres, scales = params
    z = (points - centres) * xp.exp(-scales)
    each = -0.5 * xp.sum(z * z, axis=-1) - xp.sum(scales, axis=-1) + weights - logsumexp(weights)
    return -xp.mean(logsumexp(each))


def mixture_by_hand(points: Any) -> Callable[..., Any]:
    def of(z: Any) -> Any:
        top = np.max(z, axis=-1, keepdims=True)
        e = np.exp(z - top)
        total = np.sum(e, axis=-1, keepdims=True)
        return np.squeeze(top + np.log(total), axis=-1), e / total

    def gradient(weights: Any, centres: Any, scales: Any) -> Any:
        narrow = np.exp(-scales)
        z = (points - centres) * narrow
        norm, share = of(weights)
        whole, part = of(-0.5 * np.sum(z * z, axis=-1) - np.sum(scales, axis=-1) + weights - norm)
        part = part / -SAMPLES
        gz = part[..., None] * z
        return -np.mean(whole), [
            part.sum(axis=0) + share,
            np.sum(gz, axis=0) * narrow,
            np.sum(gz * z, axis=0) - part.sum(axis=0)[:, None],
        ]

    return gradient


def mixture(peers: Peers) -> Case:
    rng = np.random.default_rng(3)
    points = rng.normal(size=(SAMPLES, 1, 2)) + rng.integers(-2, 3, size=(SAMPLES, 1, 2))
    params = [
        rng.normal(size=COMPONENTS),
        rng.normal(size=(COMPONENTS, 2)),
        rng.normal(size=(COMPONENTS, 2)) / 4,
    ]
    own: dict[str, Any] = {"ours": logsumexp}
    if peers.torch:
        own["torch"] = lambda z: peers.torch.logsumexp(z, -1)
    if peers.autograd:
        special = importlib.import_module("autograd.scipy.special")
        own["hips"] = lambda z: special.logsumexp(z, axis=-1)
    functions = {HAND: mixture_by_hand(points)} | gradients(
        peers, mixture_loss, params, [points], module=True, **own
    )
    return _case(
        f"mixture of {COMPONENTS} Gaussians, {SAMPLES} points", once(peers, functions, params)
    )


# -- Hamiltonian Monte Carlo: one trajectory of 25 leapfrog steps in ten dimensions

DIMENSIONS, LEAPS, STEP = 10, 25, 1e-2


def potential(xp: Any, params: Any) -> Any:
    """Return Rosenbrock's valley."""
    (q,) = params
    return xp.sum(100.0 * (q[1:] - q[:-1] ** 2) ** 2 + (1.0 - q[:-1]) ** 2) / 20.0


def potential_by_hand(q: Any) -> Any:
    bend, rest = q[1:] - q[:-1] ** 2, 1.0 - q[:-1]
    g = np.zeros_like(q)
    g[1:] = 200.0 * bend
    g[:-1] += -400.0 * bend * q[:-1] - 2.0 * rest
    return np.sum(100.0 * bend**2 + rest**2) / 20.0, [g / 20.0]


def leapfrog(peers: Peers) -> Case:
    rng = np.random.default_rng(4)
    start, momentum = rng.normal(size=DIMENSIONS) / 2, rng.normal(size=DIMENSIONS)
    functions = {HAND: potential_by_hand} | gradients(peers, potential, [start], [])
    functions[OURS] = _with_no_value(func.grad(lambda q: potential(q.__array_namespace__(), [q])))
    if peers.autograd:
        functions[HIPS] = _with_no_value(
            peers.autograd.grad(lambda q: potential(peers.autograd.numpy, [q]))
        )

    def trajectory(gradient: Callable[..., Any], q0: Any, p0: Any) -> Run:
        def run() -> list[Any]:
            q, p = q0, p0 - 0.5 * STEP * gradient(q0)[1][0]
            for _ in range(LEAPS - 1):
                q = q + STEP * p
                p = p - STEP * gradient(q)[1][0]
            q = q + STEP * p
            return [q, p - 0.5 * STEP * gradient(q)[1][0]]

        return run

    runs = {
        p: trajectory(
            f, *(of_torch(peers.torch, start, momentum) if p == TORCH else (start, momentum))
        )
        for p, f in functions.items()
    }
    return _case(f"Hamiltonian Monte Carlo, {LEAPS} leapfrog steps, a gradient", runs, LEAPS + 1)


def _with_no_value(gradient: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *params: (None, [gradient(*params)])


# -- Runge and Kutta's method of order four, the gradient through all steps by the matrix and the
# offset of the equation

STATES, TIME = 4, 5.0


def slope(xp: Any, y: Any, a: Any, b: Any) -> Any:
    return xp.tanh(a @ y + b) - y


def kutta_loss(xp: Any, params: Any, start: Any, steps: int) -> Any:
    (a, b), y, dt = params, start, TIME / steps
    for _ in range(steps):
        k1 = slope(xp, y, a, b)
        k2 = slope(xp, y + 0.5 * dt * k1, a, b)
        k3 = slope(xp, y + 0.5 * dt * k2, a, b)
        k4 = slope(xp, y + dt * k3, a, b)
        y = y + (dt / 6) * (k1 + 2 * k2 + 2 * k3 + k4)
    return xp.sum(y * y)


def kutta_by_hand(start: Any, steps: int) -> Callable[..., Any]:
    dt = TIME / steps

    def gradient(a: Any, b: Any) -> Any:
        y, saved = start, []
        for _ in range(steps):
            points, slopes, tanhs = [], [], []
            for part in (0.0, 0.5 * dt, 0.5 * dt, dt):
                points.append(y + part * slopes[-1] if slopes else y)
                tanhs.append(np.tanh(a @ points[-1] + b))
                slopes.append(tanhs[-1] - points[-1])
            y = y + (dt / 6) * (slopes[0] + 2 * slopes[1] + 2 * slopes[2] + slopes[3])
            saved.append((points, tanhs))
        g, ga, gb = 2 * y, np.zeros_like(a), np.zeros_like(b)
        while saved:
            points, tanhs = saved.pop()
            total, back = g, 0.0
            for n, share, part in (
                (3, dt / 6, dt),
                (2, dt / 3, 0.5 * dt),
                (1, dt / 3, 0.5 * dt),
                (0, dt / 6, 0.0),
            ):
                gk = share * g + back
                d = gk * (1 - tanhs[n] * tanhs[n])
                ga += d[:, None] * points[n]
                gb += d
                gy = d @ a - gk
                total = total + gy
                back = part * gy
            g = total
        return np.sum(y * y), [ga, gb]

    return gradient


def runge_kutta(peers: Peers, steps: int) -> Case:
    rng = np.random.default_rng(5)
    params, start = (
        [rng.normal(size=(STATES, STATES)), rng.normal(size=STATES)],
        rng.normal(size=STATES),
    )
    loss = lambda xp, params, start: kutta_loss(xp, params, start, steps)
    functions = {HAND: kutta_by_hand(start, steps)} | gradients(
        peers, loss, params, [start], module=True
    )
    return _case(f"Runge-Kutta, {steps:,} steps, a step", once(peers, functions, params), steps)


# -- scipy.optimize.minimize with value_and_grad: 40 iterations of L-BFGS-B down Rosenbrock's valley


def minimizing(peers: Peers) -> Case:
    from scipy.optimize import minimize

    start = np.zeros(DIMENSIONS)
    functions = {HAND: potential_by_hand} | gradients(peers, potential, [start], [])

    def minimized(gradient: Callable[..., Any], torch: Any = None) -> Run:
        def value_and_slope(q: Any) -> Any:
            value, (g,) = gradient(q if torch is None else torch.from_numpy(q))
            return (value, g) if torch is None else (value.item(), g.numpy())

        return lambda: [
            minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options={"maxiter": 40}).x
        ]

    runs = {p: minimized(f, peers.torch if p == TORCH else None) for p, f in functions.items()}
    return _case("scipy.optimize.minimize, 40 iterations of L-BFGS-B", runs, 1, 1e-5)
