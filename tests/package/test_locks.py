"""Locks come from one module, which a fork asks for all of them; faults/ has what forks, signal
handlers and finalizers meet.
"""

from __future__ import annotations

import ast
import threading

import package_source as source

from multigrad import locks


def test_only_this_module_makes_locks():
    made = [
        f"{m.name}:{node.lineno}"
        for m in source.modules().values()
        if m.name != "locks"
        for node in ast.walk(m.tree)
        if (isinstance(node, ast.Attribute) and node.attr in {"Lock", "RLock", "Condition"})
        or (
            isinstance(node, ast.ImportFrom)
            and node.module == "threading"
            and {alias.name for alias in node.names} & {"Lock", "RLock", "Condition"}
        )
    ]
    assert made == []


def test_a_lock_that_is_gone_is_forgotten():
    before = len(locks._locks)
    lock = locks.new_lock()
    assert len(locks._locks) == before + 1 and isinstance(lock, type(threading.RLock()))
    del lock
    assert len(locks._locks) == before
