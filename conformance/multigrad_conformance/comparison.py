"""Comparison of two certificates: improvements and regressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .certificate import Results, parts
from .plain import clean

NOT_RUN = "not run"
RANK = {"passed": 3, "exempt": 2, "missing": 2, NOT_RUN: 0, "failed": 0}
"""A test with a state of lower rank is worse. Unknown states rank in the middle."""


@dataclass
class Comparison:
    """The differences of two certificates, line by line.

    Added, removed and merely changed tests are neither better nor worse.
    """

    better: list[str] = field(default_factory=list)
    worse: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        lines = []
        for title in ("worse", "better", "changed", "added", "removed"):
            entries = getattr(self, title)
            if entries:
                lines += [f"{title}:", *(f"  {line}" for line in entries), ""]
        lines += [f"note: {n}" for n in self.notes]
        return "\n".join(
            [*lines, "worse" if self.worse else "better" if self.better else "no better, no worse"]
        )


def compare(old: Results, new: Results) -> Comparison:
    """Compare two certificates test by test.

    `new` counts as worse if it lacks a backend or a test that has a result in `old`, or if one of
    its backends died.
    """
    out = Comparison()
    if old["samples"] != new["samples"]:
        out.notes.append(
            f"the samples are {clean(old['samples'])} in the first and {clean(new['samples'])} "
            "in the second: tests of one level alone count as removed or added"
        )
    before, after = old.get("problems", {}), new.get("problems", {})
    out.worse += [clean(f"{p}: {why}") for p, why in after.items() if p not in before]
    out.better += [clean(problem) for problem in before if problem not in after]
    for name in old["backends"] | new["backends"]:
        if name not in new["backends"]:
            why = new["left out"].get(name, "")
            out.worse.append(clean(f"{name}: no longer tested{': ' if why else ''}{why}"))
        elif name not in old["backends"]:
            backend = new["backends"][name]
            out.added.append(clean(f"{name}: the backend, {len(backend['tests'])} tests"))
            failures = {i: s for i, s in backend["tests"].items() if s[0] == "failed"}
            _backend(name, {"tests": {}}, {**backend, "tests": failures, "not run": []}, out)
        else:
            _backend(name, old["backends"][name], new["backends"][name], out)
    return out


def _backend(name: str, old: Results, new: Results, out: Comparison) -> None:
    if new.get("died") and not old.get("died"):
        out.worse.append(clean(f"{name}: died {new['died']}"))
    if old.get("died") and not new.get("died"):
        out.better.append(clean(f"{name}: no longer dies"))
    before, after = {i: s[0] for i, s in old["tests"].items()}, _states(new)
    moved: dict[str, dict[str, Sequence[str]]] = {}
    for i in before | after:
        change = before.get(i, ""), after.get(i, "")
        moved.setdefault(_title(*change), {})[i] = change
    for title in ("worse", "better", "changed", "added", "removed"):
        _tell(name, moved.get(title, {}), getattr(out, title))


def _title(before: str, after: str) -> str:
    """Return where a change of state belongs, "" if it is none."""
    if before == after or (not before and after == NOT_RUN):
        return ""
    if not before:
        return "worse" if after == "failed" else "added"
    if not after:
        return "removed"
    step = _rank(after) - _rank(before)
    return "worse" if step < 0 else "better" if step else "changed"


def _states(backend: Results) -> dict[str, str]:
    return dict.fromkeys(backend.get("not run", []), NOT_RUN) | {
        i: s[0] for i, s in backend["tests"].items()
    }


def _rank(state: str) -> int:
    return RANK.get(state, 1)


def _tell(name: str, moved: Mapping[str, Sequence[str]], lines: list[str]) -> None:
    """Append a line for each operation, check and change of state."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for test_id, (before, after) in moved.items():
        operation, check, label = parts(test_id)
        change = " -> ".join(filter(None, (before, after)))
        groups.setdefault((operation, check, change), []).append(label)
    for (operation, check, change), labels in groups.items():
        more = [f"and {len(labels) - 8} more"] if len(labels) > 8 else []
        few = ", ".join(labels[:8] + more)
        lines.append(clean(f"{name} {operation}/{check}: {change}: {few}"))
