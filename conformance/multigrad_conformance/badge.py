"""Badges: the verdict of a certificate as a small picture."""

from __future__ import annotations

from pathlib import Path

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
    told = f"{shown.get(worst, worst)} ({results['samples']})"
    if worst in ("conformant", "partial"):
        told += f": {states.get('passed', 0)} passed"
    if worst == "conformant":
        told += "".join(f", {states[s]} {s}" for s in ("missing", "exempt") if s in states)
    names = (
        [name for name, word in words.items() if word == worst]
        if worst in ("died", "failed")
        else list(words)
    )
    return worst, f"{', '.join(names)}: {told}"


def write(results: Results, path: Path) -> None:
    path.write_text(svg(results), encoding="utf-8")


def svg(results: Results) -> str:
    """Return the badge as SVG without fonts or other external resources."""
    word, told = message(results)
    left, right = _width(LABEL), _width(told)
    title = html(f"{LABEL}: {told}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}">\n'
        f"<title>{title}</title>\n"
        f'<rect width="{left}" height="20" fill="#374151"/><rect x="{left}" width="{right}" height="20" fill="{COLOURS[word]}"/>\n'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11">\n'
        f'<text x="{left / 2}" y="14" textLength="{left - 12}" lengthAdjust="spacingAndGlyphs">{html(LABEL)}</text>\n'
        f'<text x="{left + right / 2}" y="14" textLength="{right - 12}" lengthAdjust="spacingAndGlyphs">{html(told)}</text>\n'
        "</g>\n</svg>\n"
    )


def _width(text: str) -> int:
    return 12 + round(6.6 * len(text))
