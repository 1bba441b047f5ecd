"""A certificate as one self-contained HTML page.

The page contains everything as text; the script only hides rows that a filter excludes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

from multigrad import pages

from .certificate import Results, chapter_of, counts, dtype_of, lacking, outcomes, parts, verdict
from .plain import clean, html
from .report import RUN


def write(results: Results, path: Path) -> None:
    path.write_text(html_of(results), encoding="utf-8")


def html_of(results: Results) -> str:
    """Return the page."""
    backends = results["backends"]
    title = f"multigrad conformance: {', '.join(backends)}"
    body = [
        f"<h1>{html(title)}</h1>",
        f"<p>multigrad {html(results['multigrad'])}, {html(results['samples'])} samples.</p>",
        *_overview(results),
        *_form(results),
        *(line for number, name in enumerate(backends) for line in _section(results, name, number)),
    ]
    script = files(__package__).joinpath("filter.js").read_text(encoding="utf-8")
    return pages.page(clean(title), "certificate", "\n".join(body), script)


def _overview(results: Results) -> Iterator[str]:
    """Yield one row per backend: its verdict and its counts."""
    states = list(counts(outcomes(results)))
    rows = []
    for number, (name, backend) in enumerate(results["backends"].items()):
        word, why = verdict(results, name)
        numbers = counts(backend["tests"].values())
        found = [*(numbers.get(s, 0) for s in states), len(backend.get("not run", ()))]
        link = f'<a href="#b{number}">{html(name)}</a>'
        rows.append(_row(link, f'<span class="{word}">{word}</span>', html(why), *map(str, found)))
    rows += [
        _row(html(name), "not tested", html(why), *[""] * (len(states) + 1))
        for name, why in results["left out"].items()
    ]
    caption = "Each backend, with the number of its tests in each state"
    yield from _table(["backend", "verdict", "why", *states, "not run"], rows, caption)
    problems = [_row(html(t), html(why)) for t, why in results.get("problems", {}).items()]
    if problems:
        yield '<h2 class="failed">Problems of the suite</h2>'
        caption = "Tests that concern no single operation of a backend"
        yield from _table(["test", "error"], problems, caption)


def _form(results: Results) -> Iterator[str]:
    """Yield the filters; they are hidden until the script runs."""
    tests = [(b, i) for b in results["backends"].values() for i in b["tests"]]
    choices = {
        "state": list(counts(outcomes(results))),
        "check": sorted({parts(i)[1] for _, i in tests}),
        "dtype": sorted({dtype_of(b, i) for b, i in tests} - {""}),
        "backend": list(results["backends"]),
    }
    yield '<form id="filter" role="search" aria-label="Filter the rows of all tables" hidden>'
    yield (
        '<label>search<input name="text" type="search" placeholder="operation, test or '
        'reason" autocomplete="off"></label>'
    )
    for name, values in choices.items():
        options = "".join(f'<option value="{html(v)}">{html(v)}</option>' for v in values)
        options = f'<option value="">all</option>{options}'
        yield f'<label>{name}<select name="{name}">{options}</select></label>'
    yield '<button type="reset">show all</button><span id="count" role="status"></span></form>'
    yield "<noscript><p>Without JavaScript there is no filter; everything is shown.</p></noscript>"


def _section(results: Results, name: str, number: int) -> Iterator[str]:
    """Yield everything about one backend."""
    backend = results["backends"][name]
    word, why = verdict(results, name)
    yield f'<section data-backend="{html(name)}" id="b{number}" aria-labelledby="h{number}">'
    yield f'<h2 id="h{number}">{html(name)}: <span class="{word}">{word}</span></h2>'
    yield f"<p>{html(why)}</p>"
    keys = [k for k in RUN if any(run.get(k) for run in backend.get("runs", []))]
    if keys:
        rows = [_row(*(html(run.get(k, "")) for k in keys)) for run in backend["runs"]]
        yield from _table(keys, rows, "Where, when and of what this was made")
    lacks = [_row(html(c), html(reason)) for c, reason in lacking(backend).items()]
    if lacks:
        yield "<h3>Missing capabilities</h3>"
        yield from _table(["capability", "reason"], lacks, "What the library cannot do")
    others = [_test(name, backend, i, *s) for i, s in backend["tests"].items() if s[0] != "passed"]
    if others:
        yield "<h3>Tests that did not pass, with reasons</h3>"
        caption = "Failed tests, what the library lacks, and exemptions"
        yield from _table(["test", "state", "dtype", "reason"], others, caption, "scroll")
    yield "<h3>Operations by checks and dtypes</h3>"
    yield from _grid(results, name)
    left = backend.get("not run")
    if left:
        shown = ", ".join(map(html, left[:200])) + (
            f" and {len(left) - 200} more, which the JSON names" if len(left) > 200 else ""
        )
        yield f"<details><summary>{len(left)} tests were not run</summary><p>{shown}</p></details>"
    yield "</section>"


def _test(
    name: str, backend: Results, test_id: str, state: str, reason: str = "no reason given"
) -> str:
    dtype = dtype_of(backend, test_id)
    cells = html(test_id), f'<span class="{_class(state)}">{html(state)}</span>', html(dtype)
    data = _data(name, [state], [parts(test_id)[1]], dtype)
    return _row(*cells, f'<div class="reason">{html(reason)}</div>', data=data)


def _grid(results: Results, name: str) -> Iterator[str]:
    """Yield a table with a row for each operation and dtype, and a column for each check."""
    backend = results["backends"][name]
    cells: dict[tuple[str, str, str], dict[str, list[Sequence[str]]]] = {}
    for test_id, outcome in backend["tests"].items():
        operation, check, _ = parts(test_id)
        at = chapter_of(results, operation), operation, dtype_of(backend, test_id)
        cells.setdefault(at, {}).setdefault(check, []).append(outcome)
    checks = sorted({check for row in cells.values() for check in row})
    rows, last = [], ""
    for (chapter, operation, dtype), row in sorted(cells.items()):
        if chapter != last:
            rows.append(
                f'<tr class="chapter"><th colspan="{len(checks) + 2}" '
                f'scope="rowgroup">{html(chapter.replace("_", " "))}</th></tr>'
            )
            last = chapter
        states = sorted({s for tests in row.values() for s, *_ in tests})
        data = _data(name, states, list(row), dtype)
        numbers = (_counted(row.get(check, [])) for check in checks)
        rows.append(_row(html(operation), html(dtype), *numbers, data=data, columns=checks))
    head, caption = ["operation", "dtype", *checks], "A number alone counts tests that passed"
    yield from _table(head, rows, caption, "scroll grid", columns=checks)


def _counted(tests: Sequence[Sequence[str]]) -> str:
    """Return the text of a cell: a number alone counts the tests that passed."""
    return ", ".join(
        str(n) if s == "passed" else f'<span class="{_class(s)}">{n} {html(s)}</span>'
        for s, n in counts(tests).items()
    )


def _class(state: str) -> str:
    return state if state in ("passed", "missing", "exempt") else "failed"


def _data(backend: str, states: Sequence[str], checks: Sequence[str], dtype: str) -> str:
    """Return the attributes of a row that the filters read."""
    return (
        f' data-backend="{html(backend)}" data-state="{html(" ".join(states))}" '
        f'data-check="{html(" ".join(checks))}" data-dtype="{html(dtype)}"'
    )


def _row(head: str, *cells: str, data: str = "", columns: Sequence[str] = ()) -> str:
    """Return a row of HTML; the last cells may belong to columns that a filter hides."""
    tds = "".join(f"<td{m}>{c}</td>" for m, c in zip(_marks(cells, columns), cells, strict=True))
    return f'<tr{data}><th scope="row">{head}</th>{tds}</tr>'


def _marks(cells: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return the attributes of cells, of which the last belong to columns that a filter hides."""
    return [""] * (len(cells) - len(columns)) + [f' data-column="{html(c)}"' for c in columns]


def _table(
    head: Sequence[str],
    rows: Sequence[str],
    caption: str,
    kind: str = "",
    columns: Sequence[str] = (),
) -> Iterator[str]:
    """Yield a table; the last of its columns may be hidden by a filter."""
    marks = _marks(head, columns)
    cells = "".join(f'<th scope="col"{m}>{html(h)}</th>' for m, h in zip(marks, head, strict=True))
    if kind:
        yield f'<div class="{kind}" role="region" aria-label="{html(caption)}" tabindex="0">'
    yield f"<table><caption>{html(caption)}</caption><thead><tr>{cells}</tr></thead><tbody>"
    yield from rows
    yield "</tbody></table>" + ("</div>" if kind else "")
