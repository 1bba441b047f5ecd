"""Derivatives on a dask.distributed cluster: arrays larger than a worker's memory, one pass for
loss and gradient, a worker that is killed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import multigrad as mg

dask = pytest.importorskip("dask", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
import dask.array as da  # noqa: E402

if "dask" not in {b.name for b in mg.backends()}:
    pytest.skip("multigrad-dask is not installed", allow_module_level=True)

COLUMNS, CHUNK = 250, 10_000  # a chunk is 20 MB
SIZES = [pytest.param(300e6, id="300MB"), pytest.param(3e9, id="3GB", marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers of 1 GB each, which die and come back.

    Their logs tell of it, so they are not shown.
    """
    with (
        dask.config.set(
            {"distributed.logging.distributed": "critical", "distributed.comm.retry.count": 2}
        ),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def noted(block: Any, folder: str, wait: bool = False, block_info: Any = None) -> Any:
    """A chunk of random numbers. Each time it is made, a file says so.

    With `wait`, the third chunk and later ones wait for a worker's end.
    """
    number = block_info[None]["chunk-location"][0]
    Path(folder, f"{number}-{time.monotonic_ns()}-{os.getpid()}").touch()
    while (
        wait and len(made(Path(folder))) >= 3 and not Path(folder).with_suffix(".killed").exists()
    ):
        time.sleep(0.01)
    return np.random.default_rng(number).standard_normal(block.shape)


def made(folder: Path) -> list[int]:
    """The numbers of the chunks that were made, once for each time."""
    return sorted(int(p.name.partition("-")[0]) for p in folder.iterdir())


def data_of(size: float, folder: Path, wait: bool = False) -> Any:
    rows = int(size / 8 / COLUMNS)
    blank = da.empty((rows, COLUMNS), chunks=(CHUNK, COLUMNS), dtype=float)
    return da.map_blocks(
        noted, blank, folder=str(folder), wait=wait, dtype=float, meta=np.empty((0, 0))
    )


def loss(w: Any, x: Any, t: Any) -> Any:
    return mg.mean((x @ w - t) ** 2)


TRUTH = np.random.default_rng(1).standard_normal(COLUMNS)


@pytest.mark.parametrize("size", SIZES)
def test_what_no_worker_can_hold_is_differentiated_and_trained(
    client: Any, size: float, tmp_path: Path
) -> None:
    """Each step takes one pass: every chunk is made once, for the loss and the gradient
    together.
    """
    x = data_of(size, tmp_path)
    data, targets, weights, values = mg.asarray(x), mg.asarray(x @ TRUTH), np.zeros(COLUMNS), []
    steps = 2
    for _ in range(steps):
        w = mg.asarray(da.from_array(weights), requires_grad=True)
        value = loss(w, data, targets)
        value.backward()
        value, gradient = dask.compute(value, w.grad)
        values.append(float(value))
        weights = weights - 0.4 * gradient
    assert values[0] == pytest.approx(TRUTH @ TRUTH, rel=0.05) and values[1] < 0.1 * values[0]
    assert np.abs(weights - TRUTH).max() < 0.3
    assert made(tmp_path) == sorted(list(range(x.numblocks[0])) * steps)


def test_the_gradient_of_the_data_keeps_their_chunks_and_stays_on_the_workers(
    client: Any, tmp_path: Path
) -> None:
    data = mg.asarray(data_of(300e6, tmp_path), requires_grad=True)
    loss(mg.asarray(da.from_array(TRUTH)), data, 1.0).backward()
    g = data.grad.array
    assert g.chunks == data.array.chunks and made(tmp_path) == []  # nothing was computed
    first = np.random.default_rng(0).standard_normal((CHUNK, COLUMNS))
    expected = 2 * (first @ TRUTH - 1.0)[:, None] * TRUTH / len(g)
    rows, total = dask.compute(g[:3], abs(g).sum())
    assert np.allclose(rows, expected[:3]) and total > 0
    assert made(tmp_path) == list(range(data.array.numblocks[0]))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL on Windows")
def test_a_worker_that_is_killed_in_mid_pass_loses_nothing(client: Any, tmp_path: Path) -> None:
    """Its chunks are made again by the others, and the result is that of the undisturbed pass.

    All numbers are integers, so that sums are exact: products of BLAS differ in the last bit with
    the place of an array in memory, also undisturbed.
    """

    def planned(folder: Path, wait: bool = False) -> tuple[Any, Any]:
        folder.mkdir()
        x = da.rint(data_of(100e6, folder, wait))
        w = mg.asarray(da.from_array(np.zeros(COLUMNS)), requires_grad=True)
        value = mg.sum((mg.asarray(x) @ w - mg.asarray(x @ np.rint(TRUTH))) ** 2)
        value.backward()
        return value, w.grad

    quiet = dask.compute(*planned(tmp_path / "undisturbed"))
    futures = client.compute(planned(tmp_path / "disturbed", wait=True))
    while len(made(tmp_path / "disturbed")) < 3:
        time.sleep(0.01)
    newest = max((tmp_path / "disturbed").iterdir(), key=lambda p: int(p.name.split("-")[1]))
    os.kill(int(newest.name.split("-")[2]), signal.SIGKILL)  # while it makes that chunk
    (tmp_path / "disturbed.killed").touch()
    value, gradient = client.gather(futures)
    assert value == quiet[0] and np.array_equal(gradient, quiet[1])
    again = made(tmp_path / "disturbed")
    # what was lost with it was made again
    assert value > 0 and set(again) == set(range(5)) and len(again) > 5
