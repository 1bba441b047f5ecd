"""The surface of torch.autograd, name for name, over any array library."""

from __future__ import annotations

from ..engine.grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from ..engine.gradients import backward, grad

__all__ = ["backward", "enable_grad", "grad", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled"]
