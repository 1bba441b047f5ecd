"""A regression on an array that is larger than the memory of the workers that train on it.

`loss` is written against the Array API standard and contains no Dask code. The workers create the
array chunk by chunk, and only a few chunks are in memory at a time. `dask.compute(loss, gradient)`
takes one pass for both, because the loss and the gradient share the tasks of one graph.

    python examples/out_of_core.py                              3 GB on two workers of 1 GB each
    python examples/out_of_core.py --megabytes 300 --steps 5
    python examples/out_of_core.py --scheduler threads          in this process, without
                                                                dask.distributed

It needs multigrad-dask and, for the cluster, dask.distributed:

    pip install ./plugins/multigrad-dask "dask[distributed]"
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.diagnostics import ProgressBar

import multigrad as mg

COLUMNS, CHUNK, RATE = 250, 10_000, 0.4  # a chunk is 20 MB


# -- user code


def loss(weights: Any, data: Any, targets: Any) -> Any:
    """The mean of the squared residuals."""
    xp = data.__array_namespace__()
    return xp.mean((data @ weights - targets) ** 2)


def step(weights: Any, data: Any, targets: Any) -> Any:
    """The weights after one step of gradient descent, and the loss before it.

    One pass over the data computes both.
    """
    w = mg.asarray(da.from_array(weights), requires_grad=True)
    value = loss(w, data, targets)
    value.backward()
    value, gradient = dask.compute(value, w.grad)
    return weights - RATE * gradient, float(value)


# -- the data and the cluster


def problem(megabytes: float) -> tuple[Any, Any, Any]:
    """Rows of random numbers, the noisy output of a linear model for them, and the weights of that
    model.
    """
    rows = max(int(megabytes * 1e6 / 8 / COLUMNS), 1)
    rng = da.random.default_rng(0)
    data = rng.standard_normal((rows, COLUMNS), chunks=(min(CHUNK, rows), COLUMNS))
    truth = np.random.default_rng(1).standard_normal(COLUMNS)
    noise = rng.standard_normal(rows, chunks=data.chunks[0])
    return mg.asarray(data), mg.asarray(data @ truth + 0.1 * noise), truth


@contextmanager
def workers(scheduler: str, number: int, memory: str) -> Iterator[None]:
    """A context in which Dask computes with the given scheduler and shows a progress bar."""
    if scheduler == "threads":
        with dask.config.set(scheduler="threads"), ProgressBar(minimum=1.0):
            yield
        return
    from distributed import Client, LocalCluster, progress

    def compute(expression: Any, keys: Any, **options: Any) -> Any:
        futures = client.get(expression, keys, sync=False, **options)
        progress(futures, notebook=False)
        print()
        return client.gather(futures)

    with (
        LocalCluster(
            n_workers=number, threads_per_worker=1, memory_limit=memory, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
        dask.config.set(scheduler=compute),
    ):
        yield


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=float, default=3000)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="1GB", help="of each worker")
    parser.add_argument("--scheduler", choices=("distributed", "threads"), default="distributed")
    options = parser.parse_args()

    with workers(options.scheduler, options.workers, options.memory):
        data, targets, truth = problem(options.megabytes)
        print(
            f"{data.array.nbytes / 1e6:,.0f} MB in {data.array.npartitions} chunks of "
            f"{data.array.nbytes / data.array.npartitions / 1e6:,.1f} MB"
        )
        weights = np.zeros(COLUMNS)
        for i in range(options.steps):
            weights, value = step(weights, data, targets)
            print(
                f"step {i + 1}: the loss was {value:.6g}, the weights are "
                f"{np.abs(weights - truth).max():.3g} from those of the model"
            )


if __name__ == "__main__":
    main()
