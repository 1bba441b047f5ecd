"""Whether operations are recorded, as torch.autograd.grad_mode.

The modes themselves are the engine's.
"""

from __future__ import annotations

from ..core.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
