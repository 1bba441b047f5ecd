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
    for label, entries in (("functions", backend.functions), ("rules", backend.rules)):
        unknown = sorted(_unknown(entries))
        if unknown:
            raise RegistrationError(
                f"backend {backend.name!r} gives {label} for unknown operations: "
                f"{', '.join(unknown)}.{nearest(unknown[0], registry.OPS)} `python -m multigrad "
                "ops` lists them."
            )
    for name, rules in backend.rules.items():
        if name in registry.OPS:
            _check_rules(backend, registry.OPS[name], rules)


def _unknown(names: Collection[str]) -> set[str]:
    """The names that no operation of an installed plugin has.

    While a plugin is declaring operations, the result is empty.
    """
    if all(name in registry.OPS for name in names) or not registry.fill():
        return set()
    prefixes = {name.partition(".")[0] for name in list(registry.OPS) if "." in name}
    return {
        name
        for name in names
        if name not in registry.OPS and ("." not in name or name.partition(".")[0] in prefixes)
    }


def _check_rules(backend: Any, op: registry.Op, rules: Mapping[str, Any]) -> None:
    takes = op.arrays if op.kind not in ("nondifferentiable", "composite") else ()
    for argument, rule in rules.items():
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
        registry.checked_rule(
            op.name, argument, rule, op.roles, op.outputs, partial=op.kind == "elementwise"
        )


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
