"""custom_vjp and custom_jvp: functions with a user-defined derivative, as in JAX."""

from __future__ import annotations

from ..custom.decorators import custom_jvp, custom_vjp

__all__ = ["custom_jvp", "custom_vjp"]
