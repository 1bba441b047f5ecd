"""What is made of elementary functions: roots, powers, degrees, transformations of Box and Cox, losses."""

from __future__ import annotations

__all__: list[str] = []
