"""One small program on every side: multigrad on each backend, and PyTorch where it is installed.

The numbers and messages stated in a test hold on all sides, so without PyTorch those of multigrad
are still checked. `backend`, `xp` and `values` are those of tests/conftest.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import multigrad as mg
from multigrad.errors import BackendError


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@dataclass
class Side:
    """name: of the backend, or "torch"; xp: the functions of the standard; autograd: the package.

    tensor(data, dtype="float64", requires_grad=False) makes a leaf.
    """

    name: str
    xp: Any
    autograd: Any
    tensor: Callable[..., Any]
    Tensor: type
    no_grad: Any

    def values(self, t: Any) -> Any:
        """As a NumPy array; tuples and lists of Tensors as tuples of those."""
        if isinstance(t, (tuple, list)):
            return tuple(self.values(x) for x in t)
        t = t.detach()
        return np.asarray(t.numpy() if self.name == "torch" else t.array)


@pytest.fixture(params=["numpy", "strict", "jax", "torch"])
def side(request: pytest.FixtureRequest) -> Side:
    name: str = request.param
    if name == "torch":
        torch = pytest.importorskip("torch")
        import array_api_compat.torch as xp

        def tensor(data: Any, dtype: str = "float64", requires_grad: bool = False) -> Any:
            return torch.tensor(data, dtype=getattr(torch, dtype), requires_grad=requires_grad)

        return Side(name, xp, torch.autograd, tensor, torch.Tensor, torch.no_grad)
    try:
        xp = mg.namespace(name)
    except BackendError as error:
        pytest.skip(f"backend {name!r} cannot be used here: {error}")

    def tensor(data: Any, dtype: str = "float64", requires_grad: bool = False) -> Any:
        return mg.tensor(data, dtype=dtype, backend=name, requires_grad=requires_grad)

    return Side(name, xp, mg.autograd, tensor, mg.Tensor, mg.no_grad)
