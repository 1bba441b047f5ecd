"""The report: a table of operations by backends, from the results that the plugin writes as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- conformance: begin -->", "<!-- conformance: end -->"
Results = dict[str, Any]


def merged(paths: Sequence[Path]) -> Results:
    """The results of several runs as one; of a backend that is in two of them, the tests of both, the later one's first."""
    total: Results = {}
    for path in paths:
        found = json.loads(path.read_text())
        if not total:
            total = found
            continue
        total["operations"] |= found["operations"]
        for name, backend in found["backends"].items():
            total["backends"].setdefault(name, {"tests": {}})["tests"] |= backend["tests"]
        if found["samples"] not in total["samples"].split(", "):
            total["samples"] += f", {found['samples']}"
    tested = total.get("backends", {})
    total["left out"] = {name: why for name, why in total.get("left out", {}).items() if name not in tested}
    return total


def write_json(results: Results, path: Path) -> None:
    path.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


def failed(results: Results) -> bool:
    return any(state[0] == "failed" for b in results["backends"].values() for state in b["tests"].values())


# ----- the table -----


def grid(results: Results) -> tuple[list[str], list[tuple[str, list[list[str]]]]]:
    """The head, and for each chapter its rows: the operation, then a cell for each backend."""
    backends = list(results["backends"])
    counts = {name: _counts(results["backends"][name]["tests"]) for name in backends}
    kernels = {o for found in counts.values() for o in found if o.startswith("kernels.")}
    operations = results["operations"] | {o: {"chapter": "kernels of the engine"} for o in kernels}
    chapters: dict[str, list[list[str]]] = {}
    for operation, record in sorted(operations.items()):
        row = [operation.removeprefix("kernels."), *(_cell(counts[name].get(operation)) for name in backends)]
        chapters.setdefault(record["chapter"], []).append(row)
    return ["operation", *backends], sorted(chapters.items())


def _counts(tests: dict[str, list[str]]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for test_id, (state, *_) in tests.items():
        one = counts.setdefault(test_id.partition("/")[0], {})
        one[state] = one.get(state, 0) + 1
    return counts


def _cell(counts: dict[str, int] | None) -> str:
    if not counts:
        return "none"
    parts = [f"{counts['failed']} FAIL"] if counts.get("failed") else []
    if counts.get("passed"):
        parts.append(f"{counts['passed']} ok")
    parts += [f"{counts[state]} {state}" for state in ("exempt", "missing") if counts.get(state)]
    return ", ".join(parts)


def by_check(results: Results) -> tuple[list[str], list[list[str]]]:
    """The head, and for each check a row: how many tests of it each backend passes."""
    backends = list(results["backends"])
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for name in backends:
        for test_id, (state, *_) in results["backends"][name]["tests"].items():
            one = counts.setdefault(test_id.split("/")[1], {}).setdefault(name, {})
            one[state] = one.get(state, 0) + 1
    return ["check", *backends], [[check, *(_cell(found.get(name)) for name in backends)] for check, found in sorted(counts.items())]


def notes(results: Results) -> Iterator[str]:
    """What explains every cell that is empty, exempt, missing or failed."""
    for name, backend in results["backends"].items():
        tests = backend["tests"]
        reasons: dict[str, list[str]] = {}
        for test_id, (state, *why) in tests.items():
            if state != "passed":
                reasons.setdefault(f"{state}: {why[0] if why else 'no reason given'}", []).append(test_id)
        for reason, ids in reasons.items():
            state, _, text = reason.partition(": ")
            yield f"{name}, {state}: {', '.join(ids)}: {text}"
        seen = {i.partition("/")[0] for i in tests}
        absent = [o for o in results["operations"] if o not in seen]
        if absent and len(absent) < len(results["operations"]):
            yield f"{name}, none: {', '.join(absent)}: they were not selected in this run"
    for name, why in results["left out"].items():
        yield f"{name}, not tested: {why}"


def summary(results: Results) -> str:
    """One line for each backend."""
    lines = []
    for name, backend in results["backends"].items():
        states = [s[0] for s in backend["tests"].values()]
        counts = ", ".join(f"{states.count(state)} {state}" for state in ("passed", "failed", "exempt", "missing"))
        lines.append(f"{name}: {len(_counts(backend['tests']))} operations, {counts}")
    return "\n".join(lines)


def text(results: Results) -> str:
    """The table for a terminal."""
    head, chapters = grid(results)
    rows = [row for _, found in chapters for row in found]
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip()

    lines = [line(head), line(["-" * w for w in widths])]
    for chapter, found in chapters:
        lines += [f"{chapter}:", *(line(r) for r in found)]
    explained = [f"- {n}" for n in notes(results)]
    return "\n".join([*lines, "", *explained, "" if explained else "no cell is empty, exempt, missing or failed", summary(results)])


def markdown(results: Results) -> str:
    """The table for a document."""
    head, chapters = grid(results)
    lines = [f"multigrad {results['multigrad']}, {results['samples']} samples; each cell counts the tests of one operation on one backend.", "",
             "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for chapter, found in chapters:
        lines.append(f"| **{chapter.replace('_', ' ')}** |" + " |" * (len(head) - 1))
        lines += ["| " + " | ".join([f"`{r[0]}`", *r[1:]]) + " |" for r in found]
    head, rows = by_check(results)
    lines += ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join([f"`{r[0]}`", *r[1:]]) + " |" for r in rows)]
    nothing = [] if explained else ["no cell is empty, exempt, missing or failed"]
    return "\n".join([*lines, "", *explained, *nothing, summary(results)])
    return "\n".join([*lines, "", *(f"{line}  " for line in summary(results).splitlines())]).rstrip()


def write(results: Results, path: Path) -> None:
    """Write the table to a file: between its markers where it has them, else as the whole of it."""
    body = f"{BEGIN}\n\n{markdown(results)}\n\n{END}"
    before, begin, rest = path.read_text().partition(BEGIN) if path.is_file() else ("", "", "")
    after = rest.partition(END)[2]
    path.write_text(f"{before}{body}{after}" if begin else f"# Operations by backends\n\n{body}\n")
