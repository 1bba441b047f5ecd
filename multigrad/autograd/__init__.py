"""The surface of torch.autograd, name for name, over any array library."""

from __future__ import annotations

from typing import Any, NoReturn

from ..engine.grad_mode import is_grad_enabled
from ..engine.gradients import backward, grad
from . import anomaly_mode, forward_ad, function, functional, grad_mode, graph, profiler
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from .gradcheck import gradcheck, gradgradcheck
from .variable import Variable

__all__ = [
    "Function",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "variable",
]


def variable(*args: Any, **kwargs: Any) -> NoReturn:  # the module of this name is found by import, as in torch
    """Deprecated."""
    raise RuntimeError("multigrad.autograd.variable(...) is deprecated, use multigrad.tensor(...) instead")
