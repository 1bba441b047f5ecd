"""The examples that no other test runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.sweep
def test_the_digits_are_trained_on_eight_devices() -> None:
    """The losses are those of one device, and the compiled step has the collectives of JAX's own:
    one all-reduce.
    """
    pytest.importorskip("jax", reason="JAX is not installed")
    env = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "digits_sharded.py", "--epochs", "1"],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "8 devices, 22 steps" in done.stdout
    assert (
        "collectives of multigrad's step: {'all-reduce': 1}; of JAX's: {'all-reduce': 1}"
        in done.stdout
    )
