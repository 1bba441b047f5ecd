"""Comparison of two certificates: improvements and regressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .certificate import Results
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
    for problem, reason in new.get("problems", {}).items():
        if problem not in old.get("problems", {}):
            out.worse.append(clean(f"{problem}: {reason}"))
    out.better += [
        clean(problem)
        for problem in old.get("problems", {})
        if problem not in new.get("problems", {})
    ]
    for name in old["backends"] | new["backends"]:
        if name not in new["backends"]:
            why = new["left out"].get(name, "")
            out.worse.append(clean(f"{name}: no longer tested{': ' if why else ''}{why}"))
        elif name not in old["backends"]:
            out.added.append(
                clean(f"{name}: the backend, {len(new['backends'][name]['tests'])} tests")
            )
            _failures(name, new["backends"][name], out)
        else:
            _backend(name, old["backends"][name], new["backends"][name], out)
    return out


def _failures(name: str, new: Results, out: Comparison) -> None:
    """Record the new failures of a backend."""
    if new.get("died"):
        out.worse.append(clean(f"{name}: died {new['died']}"))
    _tell(name, {i: ("", s[0]) for i, s in new["tests"].items() if s[0] == "failed"}, out.worse)


def _backend(name: str, old: Results, new: Results, out: Comparison) -> None:
    if new.get("died") and not old.get("died"):
        out.worse.append(clean(f"{name}: died {new['died']}"))
    if old.get("died") and not new.get("died"):
        out.better.append(clean(f"{name}: no longer dies"))
    before, after = {i: s[0] for i, s in old["tests"].items()}, _states(new)
    both = {i: (before[i], after[i]) for i in before if i in after and before[i] != after[i]}
    _tell(name, {i: s for i, s in both.items() if _rank(s[1]) < _rank(s[0])}, out.worse)
    _tell(name, {i: s for i, s in both.items() if _rank(s[1]) > _rank(s[0])}, out.better)
    _tell(name, {i: s for i, s in both.items() if _rank(s[1]) == _rank(s[0])}, out.changed)
    added = {i: ("", s) for i, s in after.items() if i not in before and s != NOT_RUN}
    _tell(name, {i: s for i, s in added.items() if s[1] == "failed"}, out.worse)
    _tell(name, {i: s for i, s in added.items() if s[1] != "failed"}, out.added)
    _tell(name, {i: (before[i], "") for i in before if i not in after}, out.removed)


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
        operation, check, label = test_id.split("/", 2)
        change = f"{before} -> {after}" if before and after else before or after
        groups.setdefault((operation, check, change), []).append(label)
    lines += [
        clean(f"{name} {operation}/{check}: {change}: {_few(labels)}")
        for (operation, check, change), labels in groups.items()
    ]


def _few(labels: Sequence[str]) -> str:
    def listed() -> Iterator[str]:
        yield from labels[:8]
        if len(labels) > 8:
            yield f"and {len(labels) - 8} more"

    return ", ".join(listed())
