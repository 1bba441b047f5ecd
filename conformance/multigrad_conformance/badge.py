"""Badges: the verdict of a certificate as a small picture."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from string import Template

from .certificate import Results, counts, outcomes, verdict
from .plain import html

LABEL = "multigrad"
COLOURS = {
    "conformant": "#2b7a2b",
    "partial": "#6b7280",
    "untested": "#6b7280",
    "failed": "#b3261e",
    "died": "#b3261e",
}
"""White text on each of these colours has a contrast above 4.5."""
WORST = ("died", "failed", "untested", "partial", "conformant")


def message(results: Results) -> tuple[str, str]:
    """Return the verdict of the worst backend, and the text of the badge, which says the level.

    The verdict is conformant only if every test of the level ran on every backend.
    """
    words = {name: verdict(results, name)[0] for name in results["backends"]}
    if not words:
        return "untested", "untested"
    worst = min(words.values(), key=WORST.index)
    states = counts(outcomes(results))
    failures = f"{states['failed']} failed" if states.get("failed") else "failed"
    shown = {"partial": "partial run", "failed": failures}
    text = f"{shown.get(worst, worst)} ({results['samples']})"
    if worst in ("conformant", "partial"):
        text += f": {states.get('passed', 0)} passed"
    if worst == "conformant":
        text += "".join(f", {states[s]} {s}" for s in ("missing", "exempt") if s in states)
    names = (
        [name for name, word in words.items() if word == worst]
        if worst in ("died", "failed")
        else list(words)
    )
    return worst, f"{', '.join(names)}: {text}"


def write(results: Results, path: Path) -> None:
    path.write_text(svg(results), encoding="utf-8")


def svg(results: Results) -> str:
    """Return the badge as SVG without fonts or other external resources."""
    word, text = message(results)
    left, right = _width(LABEL), _width(text)
    template = files(__package__).joinpath("badge.svg").read_text(encoding="utf-8")
    return Template(template).substitute(
        label=html(LABEL),
        text=html(text),
        colour=COLOURS[word],
        left=left,
        right=right,
        width=left + right,
        label_middle=left / 2,
        text_middle=left + right / 2,
        label_length=left - 12,
        text_length=right - 12,
    )


def _width(text: str) -> int:
    return 12 + round(6.6 * len(text))
