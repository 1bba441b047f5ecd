"""The libraries a program runs on: PyTorch, multigrad on a backend, and multigrad on JAX while it
is traced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import multigrad as mg


class Library:
    """The functions of the standard, as attributes, and the few things that a program needs beside
    them.
    """

    name: str
    Tensor: type
    no_grad: Callable[[], Any]
    enable_grad: Callable[[], Any]
    grad: Callable[..., Any]

    def __init__(self, namespace: Any) -> None:
        self._namespace = namespace

    def __getattr__(self, name: str) -> Any:
        return getattr(self._namespace, name)

    def array(self, data: Any, requires_grad: bool = False) -> Any:
        """A leaf on a copy of a NumPy array."""
        raise NotImplementedError

    def raw(self, t: Any) -> Any:
        """The values of a Tensor as they are now, in an array that later writes do not reach."""
        raise NotImplementedError

    def dtype_name(self, t: Any) -> str:
        return str(t.dtype).rsplit(".")[-1]

    def ints(self, *indices: Any) -> Any:
        return self.array(np.asarray(indices))

    def mask(self, *flags: Any) -> Any:
        return self.array(np.asarray(flags, dtype=bool))

    def node(self, t: Any) -> str | None:
        """What made it, in words that hold on all sides: None for a constant, "leaf", "written" or
        "operation".
        """
        if t.is_leaf:
            return "leaf" if t.requires_grad else None
        return self.node_name(t.grad_fn)

    def node_name(self, node: Any) -> str:
        """Of a node: "leaf" for what accumulates into one, "written" for CopySlices; PyTorch has
        further names for writes without a view.
        """
        name: str = node.name().rsplit(":")[-1]
        if name in (
            "CopySlices",
            "IndexPutBackward0",
            "CopyBackwards",
            "ZeroBackward0",
            "FillBackward3",
        ):
            return "written"
        return "leaf" if name == "AccumulateGrad" else "operation"

    def look(self, t: Any) -> None:
        """Before a view that is older than the last write is written or given a hook: PyTorch takes
        it for a leaf or crashes, unless its grad_fn was looked at. Elsewhere nothing has to be
        done."""

    def append(self, log: list[Any]) -> Callable[[Any], None]:
        """A hook that notes the gradients it is given."""
        return lambda g: log.append(g.detach().clone())


class Torch(Library):
    name = "torch"

    def __init__(self) -> None:
        import array_api_compat.torch as namespace
        import torch

        super().__init__(namespace)
        self._torch = torch
        self.Tensor = torch.Tensor
        self.no_grad, self.enable_grad, self.grad = (
            torch.no_grad,
            torch.enable_grad,
            torch.autograd.grad,
        )

    def array(self, data: Any, requires_grad: bool = False) -> Any:
        return self._torch.tensor(data, requires_grad=requires_grad)

    def raw(self, t: Any) -> Any:
        return t.detach().clone().numpy()

    def look(self, t: Any) -> None:
        _ = t.grad_fn


class Multigrad(Library):
    Tensor = mg.Tensor
    no_grad, enable_grad, grad = mg.no_grad, mg.enable_grad, staticmethod(mg.autograd.grad)

    def __init__(self, backend: str) -> None:
        super().__init__(mg.namespace(backend))
        self.name = backend

    def array(self, data: Any, requires_grad: bool = False) -> Any:
        return mg.tensor(data, backend=self.name, requires_grad=requires_grad)

    def raw(self, t: Any) -> Any:
        return np.array(t.detach().array)


class Traced(Multigrad):
    """JAX inside `jax.jit`: the arrays that a program is given are tracers; what it returns leaves
    the trace later.
    """

    def __init__(self) -> None:
        super().__init__("jax")

    def array(self, data: Any, requires_grad: bool = False) -> Any:
        import jax.numpy as jnp

        return mg.asarray(jnp.asarray(data), requires_grad=requires_grad)

    def raw(self, t: Any) -> Any:
        return t.detach().array
