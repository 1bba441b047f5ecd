"""The surface of torch.autograd, name for name, over any array library."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

from ..backward.gradients import backward, grad
from ..core.grad_mode import is_grad_enabled
from . import anomaly_mode, forward_ad, function, functional, grad_mode, graph
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
    "detect_breaks",
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
    "profiler_util",
    "set_detect_anomaly",
    "set_grad_enabled",
    "variable",
]


_TOOLS = ("detect_breaks", "profiler", "profiler_util")


def __getattr__(name: str) -> Any:
    """A tool, imported on first use, since most programs use none."""
    if name not in _TOOLS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name != "detect_breaks":
        return import_module(f"{__name__}.{name}")
    from ..tools.breaks.watch import detect_breaks

    globals()[name] = detect_breaks
    return detect_breaks


def __dir__() -> list[str]:
    return sorted({*__all__, "__all__", "__doc__"})


def variable(*args: Any, **kwargs: Any) -> NoReturn:
    # an import finds the module of this name, as in torch
    """Deprecated."""
    raise RuntimeError(
        "multigrad.autograd.variable(...) is deprecated, use multigrad.tensor(...) instead"
    )
