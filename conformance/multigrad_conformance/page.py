"""A certificate as one self-contained HTML page.

The page contains everything as text; the script only hides rows that a filter excludes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from .certificate import Results, counts, dtype_of, lacking, verdict
from .plain import html
from .report import RUN

STYLE = """
:root { color-scheme: light dark; --page: #fff; --text: #111827; --soft: #4b5563; --line: #d1d5db; --head: #f3f4f6;
  --good: #166534; --bad: #b3261e; --note: #854d0e; --link: #1d4ed8 }
@media (prefers-color-scheme: dark) { :root { --page: #111418; --text: #e5e7eb; --soft: #a8b0bb; --line: #3a424d; --head: #1c2128;
  --good: #86efac; --bad: #fca5a5; --note: #fcd34d; --link: #93c5fd } }
body { margin: 0 auto; max-width: 1500px; padding: 0 20px 60px; font: 14px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page) }
h1 { font-size: 23px; margin: 22px 0 6px } h2 { font-size: 18px; margin: 38px 0 8px; border-bottom: 1px solid var(--line) }
h3 { font-size: 15px; margin: 22px 0 6px } p { margin: 6px 0 } a { color: var(--link) } .soft { color: var(--soft) }
.conformant, .passed { color: var(--good) } .failed, .died { color: var(--bad); font-weight: 600 }
.partial, .untested, .missing, .exempt { color: var(--note) }
form { position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: end; padding: 10px 0;
  background: var(--page); border-bottom: 1px solid var(--line) }
label { display: flex; flex-direction: column; font-size: 12px; color: var(--soft) }
input, select, button { font: inherit; color: var(--text); background: var(--head); border: 1px solid var(--soft);
  border-radius: 5px; padding: 4px 8px }
:focus-visible { outline: 2px solid var(--link); outline-offset: 1px }
.scroll { overflow: auto; max-height: 80vh; border: 1px solid var(--line) }
table { border-collapse: collapse } caption { text-align: left; padding: 4px 0; color: var(--soft) }
th, td { padding: 2px 9px; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top }
thead th { position: sticky; top: 0; background: var(--head); vertical-align: bottom; white-space: nowrap }
.grid td, .short { white-space: nowrap } .grid td + td { text-align: right } .grid tbody th { font-weight: 500; white-space: nowrap }
.chapter th { background: var(--head); color: var(--soft) } td.reason { min-width: 320px; overflow-wrap: anywhere }
[hidden] { display: none !important }
"""

SCRIPT = """
"use strict";
(function () {
  const form = document.getElementById("filter"), told = document.getElementById("told");
  const rows = Array.from(document.querySelectorAll("tr[data-state]"), row => (
    { row, text: row.textContent.toLowerCase(), state: row.dataset.state.split(" "), check: row.dataset.check.split(" "),
      dtype: row.dataset.dtype, backend: row.dataset.backend }));
  const chapters = document.querySelectorAll("tr.chapter"), sections = document.querySelectorAll("section[data-backend]");
  const columns = document.querySelectorAll("[data-column]");
  form.hidden = false;
  function apply() {
    const want = Object.fromEntries(new FormData(form)), words = want.text.toLowerCase().split(/\\s+/).filter(Boolean);
    let shown = 0;
    for (const r of rows) {
      const keep = words.every(w => r.text.includes(w)) && (!want.state || r.state.includes(want.state))
        && (!want.check || r.check.includes(want.check)) && (!want.dtype || r.dtype === want.dtype) && (!want.backend || r.backend === want.backend);
      r.row.hidden = !keep;
      shown += keep;
    }
    for (const cell of columns) cell.hidden = Boolean(want.check) && cell.dataset.column !== want.check;
    for (const s of sections) s.hidden = Boolean(want.backend) && s.dataset.backend !== want.backend;
    for (const c of chapters) {
      let next = c.nextElementSibling;
      while (next && next.hidden) next = next.nextElementSibling;
      c.hidden = !next || next.classList.contains("chapter");
    }
    told.textContent = shown + " of " + rows.length + " rows";
  }
  form.addEventListener("input", apply);
  form.addEventListener("reset", () => setTimeout(apply));
  form.addEventListener("submit", event => event.preventDefault());
  apply();
})();
"""


def write(results: Results, path: Path) -> None:
    path.write_text(html_of(results), encoding="utf-8")


def html_of(results: Results) -> str:
    """Return the page."""
    backends = results["backends"]
    title = f"multigrad conformance: {', '.join(backends)}"
    parts = [
        "<!doctype html>\n"
        '<html lang="en">\n'
        "<head>\n"
        '<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">""",
        f"<title>{html(title)}</title>\n"
        f"<style>{STYLE}</style>\n"
        "</head>\n"
        "<body>\n"
        f"<h1>{html(title)}</h1>",
        f"<p>multigrad {html(results['multigrad'])}, {html(results['samples'])} samples.</p>",
        *_overview(results),
        *_form(results),
        *(line for number, name in enumerate(backends) for line in _section(results, name, number)),
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n",
    ]
    return "\n".join(parts)


def _overview(results: Results) -> Iterator[str]:
    """Yield one row per backend: its verdict and its counts."""
    states = list(
        counts(
            {
                f"{name} {i}": s
                for name, b in results["backends"].items()
                for i, s in b["tests"].items()
            }
        )
    )
    rows = []
    for number, (name, backend) in enumerate(results["backends"].items()):
        word, why = verdict(results, name)
        numbers = counts(backend["tests"])
        cells = "".join(
            f"<td>{n}</td>"
            for n in (*(numbers.get(s, 0) for s in states), len(backend.get("not run", ())))
        )
        rows.append(
            f'<tr><th scope="row"><a href="#b{number}">{html(name)}</a></th><td class="{word}">{word}</td>'
            f"<td>{html(why)}</td>{cells}</tr>"
        )
    rows += [
        f'<tr><th scope="row">{html(name)}</th><td>not tested</td><td '
        f'colspan="{len(states) + 2}">{html(why)}</td></tr>'
        for name, why in results["left out"].items()
    ]
    yield from _table(
        ["backend", "verdict", "why", *states, "not run"],
        rows,
        "Each backend, with the number of its tests in each state",
    )
    problems = [
        f"<tr><td>{html(test)}</td><td>{html(reason)}</td></tr>"
        for test, reason in results.get("problems", {}).items()
    ]
    if problems:
        yield '<h2 class="failed">Problems of the suite</h2>'
        yield from _table(
            ["test", "error"], problems, "Tests that concern no single operation of a backend"
        )


def _form(results: Results) -> Iterator[str]:
    """Yield the filters; they are hidden until the script runs."""
    tests = [(b, i, s) for b in results["backends"].values() for i, s in b["tests"].items()]
    choices = {
        "state": list(counts({str(n): s for n, (_, _, s) in enumerate(tests)})),
        "check": sorted({i.split("/")[1] for _, i, _ in tests}),
        "dtype": sorted({dtype_of(b, i) for b, i, _ in tests} - {""}),
        "backend": list(results["backends"]),
    }
    yield '<form id="filter" role="search" aria-label="Filter the rows of all tables" hidden>'
    yield (
        '<label>search<input name="text" type="search" placeholder="operation, test or '
        'reason" autocomplete="off"></label>'
    )
    for name, values in choices.items():
        options = "".join(f'<option value="{html(v)}">{html(v)}</option>' for v in values)
        yield (
            f'<label>{name}<select name="{name}"><option '
            f'value="">all</option>{options}</select></label>'
        )
    yield '<button type="reset">show all</button><span id="told" role="status"></span></form>'
    yield "<noscript><p>Without JavaScript there is no filter; everything is shown.</p></noscript>"


def _section(results: Results, name: str, number: int) -> Iterator[str]:
    """Yield everything about one backend."""
    backend = results["backends"][name]
    word, why = verdict(results, name)
    yield f'<section data-backend="{html(name)}" id="b{number}" aria-labelledby="h{number}">'
    yield (
        f'<h2 id="h{number}">{html(name)}: <span class="{word}">{word}</span></h2>\n'
        f"<p>{html(why)}</p>"
    )
    keys = [k for k in RUN if any(run.get(k) for run in backend.get("runs", []))]
    if keys:
        rows = [
            "<tr>" + "".join(f"<td>{html(run.get(k, ''))}</td>" for k in keys) + "</tr>"
            for run in backend["runs"]
        ]
        yield from _table(keys, rows, "Where, when and of what this was made")
    lacks = [
        f'<tr><th scope="row">{html(c)}</th><td>{html(reason)}</td></tr>'
        for c, reason in lacking(backend).items()
    ]
    if lacks:
        yield "<h3>Missing capabilities</h3>"
        yield from _table(["capability", "reason"], lacks, "What the library cannot do")
    others = {i: s for i, s in backend["tests"].items() if s[0] != "passed"}
    if others:
        yield "<h3>Tests that did not pass, with reasons</h3>"
        yield from _table(
            ["test", "state", "dtype", "reason"],
            [_test(name, backend, i, s) for i, s in others.items()],
            "Failed tests, what the library lacks, and exemptions",
            "scroll",
        )
    yield "<h3>Operations by checks and dtypes</h3>"
    yield from _grid(results, name)
    left = backend.get("not run")
    if left:
        shown = ", ".join(map(html, left[:200])) + (
            f" and {len(left) - 200} more, which the JSON names" if len(left) > 200 else ""
        )
        yield f"<details><summary>{len(left)} tests were not run</summary><p>{shown}</p></details>"
    yield "</section>"


def _test(name: str, backend: Results, test_id: str, state: Sequence[str]) -> str:
    dtype, reason = dtype_of(backend, test_id), state[1] if len(state) > 1 else "no reason given"
    return (
        f"<tr {_data(name, [state[0]], [test_id.split('/')[1]], dtype)}><td "
        f'class="short">{html(test_id)}</td><td '
        f'class="{_class(state[0])}">{html(state[0])}</td><td>{html(dtype)}</td><td '
        f'class="reason">{html(reason)}</td></tr>'
    )


def _grid(results: Results, name: str) -> Iterator[str]:
    """Yield a table with a row for each operation and dtype, and a column for each check."""
    backend = results["backends"][name]
    cells: dict[tuple[str, str, str], dict[str, dict[str, Sequence[str]]]] = {}
    for test_id, state in backend["tests"].items():
        operation, check, _ = test_id.split("/", 2)
        chapter = results["operations"].get(operation, {}).get("chapter", "kernels of the engine")
        cells.setdefault((chapter, operation, dtype_of(backend, test_id)), {}).setdefault(
            check, {}
        )[test_id] = state
    checks = sorted({check for row in cells.values() for check in row})
    rows, last = [], ""
    for (chapter, operation, dtype), row in sorted(cells.items()):
        if chapter != last:
            rows.append(
                f'<tr class="chapter"><th colspan="{len(checks) + 2}" '
                f'scope="rowgroup">{html(chapter.replace("_", " "))}</th></tr>'
            )
            last = chapter
        states = sorted({s[0] for tests in row.values() for s in tests.values()})
        tds = "".join(
            f'<td data-column="{html(check)}">{_counted(row.get(check, {}))}</td>'
            for check in checks
        )
        rows.append(
            f"<tr {_data(name, states, list(row), dtype)}><th "
            f'scope="row">{html(operation)}</th><td>{html(dtype)}</td>{tds}</tr>'
        )
    head = [("operation", ""), ("dtype", ""), *((check, check) for check in checks)]
    yield from _table(
        [h for h, _ in head],
        rows,
        "A number alone counts tests that passed",
        "scroll grid",
        columns=[c for _, c in head],
    )


def _counted(tests: dict[str, Sequence[str]]) -> str:
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
        f'data-backend="{html(backend)}" data-state="{html(" ".join(states))}" '
        f'data-check="{html(" ".join(checks))}" data-dtype="{html(dtype)}"'
    )


def _table(
    head: Sequence[str],
    rows: Sequence[str],
    caption: str,
    kind: str = "",
    columns: Sequence[str] = (),
) -> Iterator[str]:
    marked = columns or [""] * len(head)
    cells = "".join(
        f'<th scope="col"{f" data-column={chr(34)}{html(c)}{chr(34)}" if c else ""}>{html(h)}</th>'
        for h, c in zip(head, marked, strict=True)
    )
    scrolls = kind.startswith("scroll")
    if scrolls:
        yield f'<div class="{kind}" role="region" aria-label="{html(caption)}" tabindex="0">'
    yield f"<table><caption>{html(caption)}</caption><thead><tr>{cells}</tr></thead><tbody>"
    yield from rows
    yield "</tbody></table>" + ("</div>" if scrolls else "")
