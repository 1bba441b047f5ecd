"""How long each property is tried, and from which seed.

The seconds that all properties have together are shared by the marker `share`. They are those of
the processor, so that a loaded machine tries as much as a quiet one. A property takes programs in
batches. The seed, the name of the test and the number of the batch decide what a batch has, so a
slower machine tries fewer batches, and never others.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

BATCH = 50
Try = Callable[..., None]


def pytest_configure(config: pytest.Config) -> None:
    if config.option.properties_seed == "fresh":
        # the processes of pytest-xdist get the seed of the one that started them
        seed = getattr(config, "workerinput", {}).get("properties_seed")
        config.option.properties_seed = seed or str(int.from_bytes(os.urandom(4), "little"))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["properties_seed"] = node.config.option.properties_seed


def pytest_report_header(config: pytest.Config) -> str:
    return f"properties: --properties-seed {config.option.properties_seed}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The largest shares come first: what these properties look for is rare."""
    places = [i for i, item in enumerate(items) if "tried" in getattr(item, "fixturenames", ())]
    for i, item in zip(places, sorted((items[i] for i in places), key=share, reverse=True)):
        items[i] = item


def share(item: pytest.Item) -> float:
    marker = item.get_closest_marker("share")
    part = float(marker.args[0]) if marker else 1.0
    return part / 2 if "[jax" in item.name or "[strict" in item.name else part


@pytest.fixture
def tried(request: pytest.FixtureRequest) -> Try:
    """A function that tries a check on what strategies draw, until the time of the test is over."""
    option = request.config.option
    items = [i for i in request.session.items if "tried" in getattr(i, "fixturenames", ())]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    seconds = option.properties_seconds * workers * share(request.node) / sum(map(share, items))

    def run(check: Callable[..., None], *strategies: Any) -> None:
        end = time.process_time() + seconds
        batch = option.properties_batch or 0
        failed = False

        def limited(drawn: tuple[Any, ...]) -> None:
            nonlocal failed
            if time.process_time() > end and not failed and option.properties_batch is None:
                raise _Over
            try:
                check(*drawn)
            except Exception:
                failed = True
                raise

        settings = hypothesis.settings(
            max_examples=BATCH,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink)[: 2 - option.properties_as_found],
            suppress_health_check=list(HealthCheck),
        )
        while True:
            seed = zlib.crc32(f"{option.properties_seed} {request.node.name} {batch}".encode())
            test = hypothesis.given(st.tuples(*strategies))(limited)
            try:
                hypothesis.seed(seed)(settings(test))()
            except _Over:
                return
            except BaseException as error:
                error.add_note(
                    f"To replay it alone: pytest '{request.node.nodeid}' --properties-seed "
                    f"{option.properties_seed} --properties-batch {batch}"
                )
                raise
            batch += 1
            if option.properties_batch is not None or time.process_time() > end:
                return

    return run


class _Over(BaseException):
    """The time of a test has passed. Hypothesis passes it on, as it does KeyboardInterrupt."""
