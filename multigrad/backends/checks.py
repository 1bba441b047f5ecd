"""Checks of a backend's record against the table of operations and the attributes of Tensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from .. import registry
from ..errors import RegistrationError, nearest
from . import own


def check_operations(backend: Any) -> None:
    """Raise for functions and rules of unknown operations, which would never run.

    A prefix that no operation has belongs to a plugin that is not installed; its entries are kept
    for that plugin.
    """
    for label, given in (("functions", backend.functions), ("rules", backend.rules)):
        unknown = sorted(_unknown_of_all(given)) if _unknown(given) else []
        if unknown:
            raise RegistrationError(
                f"backend {backend.name!r} gives {label} for unknown operations: "
                f"{', '.join(unknown)}.{nearest(unknown[0], registry.OPS)} `python -m multigrad "
                "ops` lists them."
            )
    for name, rules in backend.rules.items():
        if name in registry.OPS:
            _check_rules(backend, registry.OPS[name], rules)


def _unknown_of_all(names: Collection[str]) -> set[str]:
    """The unknown names, once the table has the operations of all plugins.

    While a plugin is declaring operations, the result is empty.
    """
    return _unknown(names) if registry.fill() else set()


def _unknown(names: Collection[str]) -> set[str]:
    missing = {name for name in names if name not in registry.OPS}
    prefixes = (
        {name.partition(".")[0] for name in list(registry.OPS) if "." in name} if missing else set()
    )
    return {name for name in missing if "." not in name or name.partition(".")[0] in prefixes}


def _check_rules(backend: Any, op: registry.Op, given: Mapping[str, Any]) -> None:
    takes = op.arrays if op.kind not in ("nondifferentiable", "composite") else ()
    for argument, rule in given.items():
        if argument not in takes:
            has = (
                f"its rules are for {', '.join(takes)}"
                if takes
                else f"a {op.kind} operation has none"
            )
            raise RegistrationError(
                f"backend {backend.name!r} gives rules for {op.name!r} by the unknown argument "
                f"{argument!r}: {has}."
            )
        kind = "partial" if op.kind == "elementwise" else "vjp"
        registry.checked_rule(op.name, argument, rule, op.roles, op.outputs, kind=kind)


def check_attributes(backend: Any) -> None:
    """Raise for attributes that Tensors of all backends have.

    Their meaning does not depend on the library.
    """
    if backend.attributes:
        registry.fill()  # methods are attributes too
        taken = [name for name in sorted(backend.attributes) if own.has_attribute(name)]
        if taken:
            raise RegistrationError(
                f"backend {backend.name!r} gives attributes that Tensors of all backends have: "
                f"{', '.join(taken)}."
            )
