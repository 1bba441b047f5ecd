"""The journal of a run: what happened so far, so that a process that dies still leaves its results.

If a certificate is wanted, the journal is the file `PATH.part` beside it, with one JSON list per
line: what happened, and to what. Closing the journal removes it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .certificate import Results


def beside(certificate: Path) -> Path:
    """Return the path of the journal of a certificate."""
    return certificate.with_name(certificate.name + ".part")


class Journal:
    """What happened in a run; with a file, each line is there before the next test begins."""

    def __init__(self, certificate: Path | None = None) -> None:
        self.path = None if certificate is None else beside(certificate)
        self.file = None if self.path is None else self.path.open("w", encoding="utf-8")
        self.document: Results | None = None
        self.tests: dict[str, dict[str, list[str]]] = {}
        self.problems: dict[str, str] = {}
        self.last = ""

    def note(self, kind: str, *what: Any) -> None:
        """Note that something happened.

        begun    the certificate without results
        started  the name of a test
        result   backend, id of the test, state, reason
        problem  the name of a test that concerns no single operation, reason
        """
        match kind, what:
            case "begun", (document,):
                self.document = document
            case "started", (test,):
                self.last = test
            case "result", (backend, test_id, state, reason):
                self.tests.setdefault(backend, {})[test_id] = [state, reason]
            case "problem", (test, reason):
                self.problems[test] = reason
        if self.file is not None:
            self.file.write(json.dumps([kind, *what]) + "\n")
            self.file.flush()

    def certificate(self) -> Results | None:
        """Return the certificate with the results so far, None if the run has not begun."""
        if self.document is None:
            return None
        backends = {}
        for name, record in self.document["backends"].items():
            tests = {i: [s for s in o if s] for i, o in self.tests.get(name, {}).items()}
            left = [i for i in record["not run"] if i not in tests]
            backends[name] = {**record, "tests": tests, "not run": left}
        return {**self.document, "problems": self.problems, "backends": backends}

    def close(self) -> None:
        """Remove the file, after the certificate was written or given up."""
        if self.file is not None and self.path is not None:
            self.file.close()
            self.path.unlink(missing_ok=True)


def recovered(path: Path, ending: str) -> Results | None:
    """Return the certificate of a run that died; `ending` says how.

    None if the run had not begun.
    """
    journal = Journal()
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            journal.note(*json.loads(line))
        except ValueError:  # the last line is incomplete
            break
    document = journal.certificate()
    if document is not None:
        where = f"in {journal.last}" if journal.last else "before the first test"
        for backend in document["backends"].values():
            backend["died"] = f"{ending}, {where}"
    return document
