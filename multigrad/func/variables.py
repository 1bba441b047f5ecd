"""Type variables of the transformations whose types need no overloads."""

from __future__ import annotations

from typing import ParamSpec, TypeVar, TypeVarTuple

__all__ = ["Args", "P", "R", "State"]

P = ParamSpec("P")
R = TypeVar("R")
Args = TypeVarTuple("Args")
State = TypeVar("State")
