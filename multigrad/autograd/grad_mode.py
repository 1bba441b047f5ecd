"""The modes that decide whether operations are recorded, as torch.autograd.grad_mode.

They are defined in `core/grad_mode.py`.
"""

from __future__ import annotations

from ..core.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
