"""custom_vjp and custom_jvp: functions with a derivative of the user's own, as in JAX."""

from __future__ import annotations

from ..custom.decorators import custom_jvp, custom_vjp

__all__ = ["custom_jvp", "custom_vjp"]
