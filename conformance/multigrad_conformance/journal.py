"""The journal of a run: results as they come, so that a process that dies still leaves them.

The journal is the file `PATH.part` beside the certificate, with one JSON value per line: first the
certificate without results, then the name of each test as it begins, and its result. Writing the
certificate removes it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from .certificate import Results

Tests = dict[str, dict[str, Sequence[str]]]


def beside(certificate: Path) -> Path:
    """Return the path of the journal of a certificate."""
    return certificate.with_name(certificate.name + ".part")


class Journal:
    """A file that is written line by line, and flushed before the next test begins."""

    def __init__(self, certificate: Path) -> None:
        self.path = beside(certificate)
        self.file: IO[str] = self.path.open("w", encoding="utf-8")

    def begin(self, document: Results) -> None:
        """Write the certificate without results."""
        self._line({"document": document})

    def started(self, test: str) -> None:
        self._line({"started": test})

    def result(self, backend: str, test_id: str, state: str, reason: str) -> None:
        self._line({"result": [backend, test_id, state, reason]})

    def problem(self, test: str, reason: str) -> None:
        self._line({"problem": [test, reason]})

    def close(self) -> None:
        """Remove the journal, after the certificate was written or given up."""
        self.file.close()
        self.path.unlink(missing_ok=True)

    def _line(self, value: Any) -> None:
        self.file.write(json.dumps(value) + "\n")
        self.file.flush()


def recovered(path: Path, ending: str) -> Results | None:
    """Return the certificate of a run that died; `ending` says how.

    None if the run had not begun.
    """
    document: Results | None = None
    tests: Tests = {}
    last = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            value = json.loads(line)
        except ValueError:  # the last line is incomplete
            break
        document = value.get("document", document)
        last = value.get("started", last)
        if "result" in value:
            backend, test_id, *state = value["result"]
            tests.setdefault(backend, {})[test_id] = state
        if document is not None and "problem" in value:
            document["problems"][value["problem"][0]] = value["problem"][1]
    if document is None:
        return None
    document = with_results(document, tests)
    where = f"in {last}" if last else "before the first test"
    for backend in document["backends"].values():
        backend["died"] = f"{ending}, {where}"
    return document


def with_results(document: Results, tests: Tests) -> Results:
    """Return a certificate with the results of its tests: {backend: {id: (state, reason)}}."""
    backends = {}
    for name, record in document["backends"].items():
        of_backend = {
            i: [state, *([reason] if reason else [])]
            for i, (state, reason) in tests.get(name, {}).items()
        }
        backends[name] = {
            **record,
            "tests": of_backend,
            "not run": [i for i in record["not run"] if i not in of_backend],
        }
    return {**document, "backends": backends}
