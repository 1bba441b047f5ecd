"""Write docs/consumers.md from the tables in tests/consumers.

`make consumers` first tries every call.

    python tools/consumers.py                    write the page from the recorded outcomes
    python tools/consumers.py --check            check that the page matches these outcomes
    python tools/consumers.py --update [STEM...] first try the calls of these tables, or of all, and
                                                 record the outcomes

tools/consumers/page.template has the other text; its lines `<!-- totals -->`, `<!-- reasons -->`
and `<!-- calls: LIBRARY -->` are replaced by tables. A call whose value or gradient is wrong, or
whose error matches no known reason, is never recorded.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "consumers.md"
TEMPLATE = Path(__file__).parent / "consumers" / "page.template"
CALLS = ROOT / "tests" / "consumers"
WIDTH = 160

os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(ROOT / "tests"))

import consumer_tables as kept  # noqa: E402


def stems() -> list[str]:
    return [path.stem.removeprefix("test_calls_") for path in sorted(CALLS.glob("test_calls_*.py"))]


def load(stem: str) -> Any:
    """Return the table of a file."""
    path = CALLS / f"test_calls_{stem}.py"
    spec = importlib.util.spec_from_file_location(f"consumer_calls_{stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    assert module.TABLE.stem == stem, f"{path.name} has the stem {module.TABLE.stem!r}"
    return module.TABLE


# ----- running the calls -----


def tried(names: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Try the calls of some tables in this process.

    Returns their outcomes, by stem, call and setting, and a list of errors.
    """
    outcomes: dict[str, Any] = {}
    wrong = []
    for stem in names:
        table = load(stem)
        rows = outcomes.setdefault(stem, {})
        for call, key in table.tried():
            try:
                rows.setdefault(call.name, {})[key] = astuple(table.outcome(call, key))
            except Exception as error:
                said = next((line for line in str(error).splitlines() if line.strip()), "")
                detail = re.search(r"Max (?:absolute|relative) difference.*", str(error))
                wrong.append(
                    f"{stem}: {call.name} ({key}): {type(error).__name__}: {said} "
                    f"{detail.group() if detail else ''}"[:400]
                )
    return outcomes, wrong


def update(names: list[str]) -> list[str]:
    """Try the calls with SciPy's switch off and on, and record the outcomes."""
    outcomes: dict[str, Any] = {stem: {} for stem in names}
    wrong = []
    # SciPy treats even "0" as on
    unswitched = {name: value for name, value in os.environ.items() if name != "SCIPY_ARRAY_API"}
    for environment in (unswitched, unswitched | {"SCIPY_ARRAY_API": "1"}):
        command = [sys.executable, "-W", "ignore", __file__, "--try", *names]
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        some, said = json.loads(done.stdout.splitlines()[-1])
        wrong += said
        for stem, rows in some.items():
            for name, row in rows.items():
                outcomes[stem].setdefault(name, {}).update(row)
    for stem in names:
        order = [call.name for call in load(stem).calls]
        rows = outcomes[stem]
        lines = [
            f"{json.dumps(name)} = {{ "
            f"{', '.join(f'{key} = {json.dumps(pair)}' for key, pair in rows[name].items())} }}"
            for name in order
            if name in rows
        ]
        head = (
            "# What each call does, by setting: its values and its gradient. Written by "
            "`make consumers`; see consumer_tables.Outcome.\n"
        )
        path = CALLS / "outcomes" / f"{stem}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(head + "\n".join(lines) + "\n")
    return wrong


# ----- the page -----


class Library:
    """The tables of one library, in the order of their parts, with the outcomes of their calls."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tables: list[Any] = []
        self.outcomes: dict[str, dict[str, Any]] = {}

    def rows(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        for table in self.tables:
            recorded = self.outcomes[table.stem]
            for call in table.calls:
                yield call, recorded.get(call.name, {})

    def count(self, what: Any) -> int:
        """Return the number of calls with that property in some setting."""
        return sum(any(what(outcome) for outcome in row.values()) for _, row in self.rows())

    def in_setting(self, key: str) -> tuple[int, int]:
        """Return how many gradients are checked in a setting, and how many calls were tried."""
        outcomes = [row[key] for _, row in self.rows() if key in row]
        return sum(o.checked for o in outcomes), len(outcomes)

    def settings(self) -> dict[str, Any]:
        return {key: setting for table in self.tables for key, setting in table.settings.items()}

    def totals(self) -> dict[str, int]:
        rows = list(self.rows())
        checked = self.count(lambda o: o.checked)
        none = sum(
            not any(o.checked for o in row.values())
            and any(o.gradient == "none" for o in row.values())
            for _, row in rows
        )
        return {
            "calls": len(rows),
            "values": self.count(lambda o: o.right),
            "checked": checked,
            "none": none,
            "refused": len(rows) - checked - none,
            "context": sum(context_only(row) for _, row in rows),
            "special": sum(special_only(row) for _, row in rows),
        }

    def why(self) -> dict[str, int]:
        """Return the number of refused calls by reason, in the setting that is tried last.

        For SciPy that is the setting with dispatch on.
        """
        counted: dict[str, int] = {}
        for _, row in self.rows():
            if row and all(outcome.refused for outcome in row.values()):
                reason = row.get("on", next(iter(row.values()))).gradient
                counted[reason] = counted.get(reason, 0) + 1
        return counted


def context_only(row: dict[str, Any]) -> bool:
    gradients = [outcome.gradient for outcome in row.values() if outcome.checked]
    return bool(gradients) and all("in the context" in gradient for gradient in gradients)


def special_only(row: dict[str, Any]) -> bool:
    gradients = [outcome.gradient for outcome in row.values() if outcome.checked]
    return bool(gradients) and all("multigrad-special" in gradient for gradient in gradients)


def read() -> dict[str, Library]:
    libraries: dict[str, Library] = {}
    for stem in stems():
        table = load(stem)
        library = libraries.setdefault(table.library, Library(table.library))
        library.tables.append(table)
        library.outcomes[stem] = kept.read_outcomes(stem)
    return libraries


def totals(libraries: dict[str, Library]) -> list[str]:
    columns = {
        "calls": "calls",
        "values": "values correct",
        "checked": "gradient checked",
        "context": "only in the context",
        "special": "only by multigrad-special",
        "none": "nothing to differentiate",
        "refused": "refused",
    }
    lines = [f"| library | {' | '.join(columns.values())} |", "|---|" + "---|" * len(columns)]
    for library in libraries.values():
        counted = library.totals()
        lines.append(
            f"| {library.name} | {' | '.join(str(counted[column]) for column in columns)} |"
        )
    lines += ["", "Gradients checked, of the calls tried there:", ""]
    for library in libraries.values():
        settings = {
            setting.title: library.in_setting(key) for key, setting in library.settings().items()
        }
        counts = (f"{title} {n} of {of}" for title, (n, of) in settings.items() if of)
        lines.append(f"- {library.name}: {'; '.join(counts)}")
    return lines


def reasons(libraries: dict[str, Library]) -> list[str]:
    known = {
        name: reason.says
        for library in libraries.values()
        for table in library.tables
        for name, reason in table.reasons.items()
    }
    known["warned"] = "calls `float()`, with a warning that the gradient is dropped"
    counts = {library.name: library.why() for library in libraries.values()}
    used = [name for name in known if any(name in counted for counted in counts.values())]
    lines = [
        f"| reason | the function | {' | '.join(counts)} |",
        "|---|---|" + "---|" * len(counts),
    ]
    for name in sorted(
        used, key=lambda name: -sum(counted.get(name, 0) for counted in counts.values())
    ):
        lines.append(
            f"| {name} | {known[name]} | "
            f"{' | '.join(str(counted.get(name, 0)) for counted in counts.values())} |"
        )
    return lines


def shown(outcome: Any) -> str:
    """Return the text of an outcome in a cell of the table."""
    if outcome.checked or outcome.gradient == "none":
        return outcome.gradient
    said = "refused" if outcome.gradient != "warned" else "lost"
    values = "" if outcome.right else ", values too"
    return f"{said}: {outcome.gradient}{values}"


def calls(library: Library) -> list[str]:
    """Return the lines for the calls of each part; calls with equal outcomes share a row."""
    lines: list[str] = []
    for table in library.tables:
        recorded = library.outcomes[table.stem]
        keys = list(table.settings)
        groups: dict[tuple[str, ...], list[str]] = {}
        for call in table.calls:
            row = recorded.get(call.name, {})
            shows = tuple(shown(row[key]) if key in row else "-" for key in keys)
            groups.setdefault(shows, []).append(
                f"`{call.name}`{f' ({call.note})' if call.note else ''}"
            )
        if len(library.tables) > 1:
            lines += ["", f"### {table.part}", ""]
        lines += [
            f"| {' | '.join(table.settings[key].title for key in keys)} | calls |",
            "|" + "---|" * (len(keys) + 1),
        ]
        first = sorted(
            groups,
            key=lambda shows: [
                not any(s.startswith("checked") for s in shows),
                "none" not in shows,
            ],
        )
        lines += [f"| {' | '.join(shows)} | {' '.join(groups[shows])} |" for shows in first]
    return lines[1:] if lines and not lines[0] else lines


def render(libraries: dict[str, Library] | None = None) -> str:
    """Return the page."""
    libraries = read() if libraries is None else libraries
    lines: list[str] = []
    placed = set()
    for line in TEMPLATE.read_text().splitlines():
        mark = re.fullmatch(r"<!-- (totals|reasons|calls: (.+)) -->", line)
        if mark is None:
            lines.append(line)
        elif mark[2]:
            placed.add(mark[2])
            lines += calls(libraries[mark[2]])
        else:
            lines += totals(libraries) if mark[1] == "totals" else reasons(libraries)
    absent = sorted(set(libraries) - placed)
    assert not absent, f"{TEMPLATE.name} has no place for the calls of {', '.join(absent)}"
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Write docs/consumers.md from the tables in tests/consumers."
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the page is another"
    )
    parser.add_argument(
        "--update", action="store_true", help="try the calls first, and record what they do"
    )
    parser.add_argument("--try", dest="attempt", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("stems", nargs="*", help=f"the tables: {' '.join(stems())}")
    options = parser.parse_args()
    names = options.stems or stems()
    if options.attempt:
        print(json.dumps(tried(names)))
        return 0
    wrong = update(names) if options.update else []
    print("\n".join(wrong), end="\n" * bool(wrong))
    if options.check:
        same = PAGE.read_text() == render()
        print(
            "docs/consumers.md is up to date"
            if same
            else "docs/consumers.md is not what the tables make: python tools/consumers.py"
        )
        return int(not same)
    PAGE.write_text(render())
    print(
        "wrote "
        f"{PAGE.relative_to(ROOT)}{f'; {len(wrong)} calls are wrong or unknown' if wrong else ''}"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
