"""The report of a certificate: a table of operations by backends, for terminals and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from . import certificate, plain
from .certificate import Results, chapter_of, lacking, verdict
from .plain import clean, code

BEGIN, END = "<!-- conformance: begin -->", "<!-- conformance: end -->"
RUN = (
    "library",
    "plugin",
    "multigrad",
    "suite",
    "python",
    "platform",
    "device",
    "precision",
    "samples",
    "selected by",
    "date",
)
"""The facts shown for each run, in this order."""


# ----- the table -----


def grid(results: Results) -> tuple[list[str], list[tuple[str, list[list[str]]]]]:
    """Return the head, and the rows of each chapter: the operation, then a cell per backend."""
    counts = _counts(0, results)
    kernels = {o for of_backend in counts for o in of_backend if o.startswith("kernels.")}
    chapters: dict[str, list[list[str]]] = {}
    for operation in sorted(kernels.union(results["operations"])):
        row = [operation.removeprefix("kernels."), *(_cell(c.get(operation)) for c in counts)]
        chapters.setdefault(chapter_of(results, operation), []).append(row)
    return ["operation", *results["backends"]], sorted(chapters.items())


def _counts(part: int, results: Results) -> list[dict[str, dict[str, int]]]:
    return [
        certificate.counts_by(part, backend["tests"]) for backend in results["backends"].values()
    ]


def _cell(counts: dict[str, int] | None) -> str:
    """Format the counts: failures first, then passes, then missing and exempt tests."""
    if not counts:
        return "none"
    words = {"failed": "FAIL", "passed": "ok"}
    order = [s for s in counts if s not in ("passed", "exempt", "missing")] + [
        s for s in ("passed", "exempt", "missing") if s in counts
    ]
    return ", ".join(f"{counts[s]} {words.get(s, s)}" for s in order)


def by_check(results: Results) -> tuple[list[str], list[list[str]]]:
    """Return the head, and a row per check with the number of passed tests per backend."""
    counts = _counts(1, results)
    checks = sorted({check for of_backend in counts for check in of_backend})
    rows = [[check, *(_cell(c.get(check)) for c in counts)] for check in checks]
    return ["check", *results["backends"]], rows


def notes(results: Results) -> Iterator[str]:
    """Yield explanations of every cell that is empty, exempt, missing or failed."""
    for test, reason in results.get("problems", {}).items():
        yield f"problem of the suite: {test}: {reason}"
    for name, backend in results["backends"].items():
        tests = backend["tests"]
        if backend.get("died"):
            yield f"{name}, died: {backend['died']}"
        reasons: dict[tuple[str, str], list[str]] = {}
        for test_id, (state, *why) in tests.items():
            if state != "passed":
                reasons.setdefault((state, why[0] if why else "no reason given"), []).append(
                    test_id
                )
        for (state, reason), ids in reasons.items():
            yield f"{name}, {state}: {', '.join(ids)}: {reason}"
        seen = {i.partition("/")[0] for i in tests}
        absent = [o for o in results["operations"] if o not in seen]
        if absent and len(absent) < len(results["operations"]):
            left = {i.partition("/")[0] for i in backend.get("not run", ())}
            lacks = "" if set(absent) <= left else ", ".join(lacking(backend))
            why = (
                f"the backend lacks what they need: {lacks}"
                if lacks
                else "they were not selected in this run"
            )
            yield f"{name}, none: {', '.join(absent)}: {why}"
    for name, why in results["left out"].items():
        yield f"{name}, not tested: {why}"


def summary(results: Results) -> str:
    """Return one line per backend, which ends with its verdict unless that is conformant."""
    lines = []
    for name, backend in results["backends"].items():
        counts = certificate.counts(backend["tests"].values())
        usual = {s: counts.get(s, 0) for s in ("passed", "failed", "exempt", "missing")}
        numbers = ", ".join(f"{n} {s}" for s, n in (usual | counts).items())
        word, why = verdict(results, name)
        lines.append(
            clean(
                f"{name}: {len(certificate.counts_by(0, backend['tests']))} operations, {numbers}"
                + ("" if word == "conformant" else f"; {word}: {why}")
            )
        )
    return "\n".join(lines)


def runs(results: Results) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each run of a backend with its facts."""
    for name, backend in results["backends"].items():
        for run in backend.get("runs", []):
            yield name, {key: str(run[key]) for key in RUN if run.get(key)}


def asked(results: Results) -> Results:
    """Return the results without the operations that no test was selected of.

    Of a run on selected tests, the table would otherwise say `none` a few hundred times.
    """
    backends = results["backends"].values()
    if not backends or not all(_selected(backend) for backend in backends):
        return results
    seen = {test_id.partition("/")[0] for backend in backends for test_id in backend["tests"]}
    return results | {"operations": {o: r for o, r in results["operations"].items() if o in seen}}


def _selected(backend: Results) -> bool:
    """Return whether every run on a backend was one on selected tests, and ended."""
    runs = backend.get("runs", ())
    return bool(runs) and not backend.get("died") and all(run.get("selected by") for run in runs)


def text(results: Results) -> str:
    """Return the table for a terminal, of the operations that were selected."""
    results = asked(results)
    head, chapters = grid(results)
    head = [clean(h) for h in head]
    chapters = [(clean(c), [[clean(cell) for cell in r] for r in rows]) for c, rows in chapters]
    rows = [row for _, of_chapter in chapters for row in of_chapter]
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip()

    lines = [line(head), line(["-" * w for w in widths])]
    for chapter, of_chapter in chapters:
        lines += [f"{chapter}:", *(line(r) for r in of_chapter)]
    explained = [f"- {clean(n)}" for n in notes(results)]
    explained.append("" if explained else "no cell is empty, exempt, missing or failed")
    return "\n".join([*lines, "", *explained, summary(results)])


def _table(
    head: Sequence[str], rows: Sequence[Sequence[str]], first: Callable[[object], str] = code
) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = ["| " + " | ".join(plain.markdown(h) for h in head) + " |", "|" + "---|" * len(head)]
    return lines + [
        "| " + " | ".join([first(r[0]), *(plain.markdown(c) for c in r[1:])]) + " |" for r in rows
    ]


def markdown(results: Results) -> str:
    """Return the table for a document."""
    head, chapters = grid(results)
    heading = plain.markdown(f"multigrad {results['multigrad']}, {results['samples']} samples")
    lines = [f"{heading}; each cell counts the tests of one operation on one backend.", ""]
    lines += _table(head, [])
    for chapter, of_chapter in chapters:
        lines.append(
            f"| **{plain.markdown(chapter.replace('_', ' '))}** |" + " |" * (len(head) - 1)
        )
        lines += _table([], of_chapter)[2:]
    lines += ["", *_table(*by_check(results)), ""]
    columns = [key for key in RUN if any(key in run for _, run in runs(results))]
    rows = [[name, *(run.get(key, "") for key in columns)] for name, run in runs(results)]
    if rows:
        lines += [*_table(["backend", *columns], rows, plain.markdown), ""]
    for name, backend in results["backends"].items():
        lines += [
            plain.markdown(f"- {name} lacks {capability}{': ' if why else ''}{why}")
            for capability, why in lacking(backend).items()
        ]
    explained = [f"- {plain.markdown(n)}" for n in notes(results)]
    lines += explained or ["No cell is empty, exempt, missing or failed."]
    return "\n".join(
        [*lines, "", *(f"{plain.markdown(line)}  " for line in summary(results).splitlines())]
    ).rstrip()


def write(results: Results, path: Path) -> None:
    """Write the table to a file: between its markers if it has them, else as the whole file."""
    body = f"{BEGIN}\n\n{markdown(results)}\n\n{END}"
    before, begin, rest = (
        path.read_text(encoding="utf-8").partition(BEGIN) if path.is_file() else ("", "", "")
    )
    after = rest.partition(END)[2]
    path.write_text(
        f"{before}{body}{after}" if begin else f"# Operations by backends\n\n{body}\n",
        encoding="utf-8",
    )
