"""Certificates: the results of a run of the suite, as JSON.

Tables, pages, badges and comparisons present a certificate.

    {"format": 2, "multigrad": version, "samples": level, "operations": {name: {"chapter", "kind"}},
     "left out": {backend: why it was not tested},
     "problems": {test: reason}            failures of tests that concern no single operation of a
                                           backend
     "backends": {name: {
         "tests": {id: [state] or [state, reason]},
         "not run": [id],                  tests of that level without a result
         "runs": [{"date", "multigrad", "library", "python", "platform", "device", ...}],
         "dtypes": {operation: {label: dtype}},
         "lacks": {capability: reason},
         "died": how its process ended before the tests did}}}

The states are "passed", "failed", "exempt", "missing", and any that a later suite adds.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

FORMAT = 2
STATES = ("failed", "missing", "exempt", "passed")
"""The known states, in the order of the reports."""

Results = dict[str, Any]


class CertificateError(Exception):
    """A file is not a certificate, or has a later format."""


def read(path: Path) -> Results:
    """Read the certificate in a file.

    Raises CertificateError if the file is not a certificate that this version can read.
    """
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CertificateError(
            f"no such file: {path}"
            if isinstance(error, FileNotFoundError)
            else f"cannot read {path}: {error}"
        ) from error
    except ValueError as error:
        raise CertificateError(f"{path} is not a certificate: it is not JSON ({error})") from error
    if not isinstance(results, dict):
        raise CertificateError(f"{path} is not a certificate: it holds no JSON object")
    number = results.get("format", 1)
    if type(number) is not int or number > FORMAT:
        raise CertificateError(
            f"{path} is a certificate of format {number!r}, and this version reads up to {FORMAT}: "
            "pip install --upgrade multigrad-conformance"
        )
    wrong = _wrong(results)
    if wrong:
        raise CertificateError(f"{path} is not a certificate: {wrong}")
    return results


PARTS = {"multigrad": str, "samples": str, "operations": dict, "left out": dict, "backends": dict}


def _wrong(results: Results) -> str:
    """Return the reason why a JSON object is not a certificate, or ""."""
    for key, kind in PARTS.items():
        if key not in results:
            return f"{key!r} is missing"
        if not isinstance(results[key], kind):
            return f"{key!r} is not a {kind.__name__}"
    for operation, record in results["operations"].items():
        if not isinstance(record, dict) or not isinstance(record.get("chapter"), str):
            return f"the operation {operation!r} has no chapter"
    for name, backend in results["backends"].items():
        if not isinstance(backend, dict) or not isinstance(backend.get("tests"), dict):
            return f"the backend {name!r} has no tests"
        for test_id, state in backend["tests"].items():
            readable = isinstance(state, list) and state and all(isinstance(s, str) for s in state)
            if test_id.count("/") < 2 or not readable:
                return (
                    f"the test {test_id!r} of {name!r} reads {state!r}, where [state, "
                    "reason] was expected"
                )
    return ""


def write(results: Results, path: Path) -> None:
    """Write the JSON in a fixed order of tests, so that equal results give equal text."""
    path.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")


# ----- several runs as one -----


def merged(certificates: Iterable[Results]) -> Results:
    """Merge several certificates.

    If two contain the same backend, the result has the tests of both; for a test in both, the later
    result counts.
    """
    total: Results = {}
    for results in certificates:
        if not total:
            total = {
                **results,
                "format": FORMAT,
                "problems": dict(results.get("problems", {})),
                "backends": dict(results["backends"]),
            }
            continue
        total["operations"] = total["operations"] | results["operations"]
        total["problems"] |= results.get("problems", {})
        total["left out"] = results["left out"] | total["left out"]
        for name, backend in results["backends"].items():
            total["backends"][name] = (
                _joined(total["backends"][name], backend) if name in total["backends"] else backend
            )
        if results["samples"] not in total["samples"].split(", "):
            total["samples"] += f", {results['samples']}"
    tested = total.get("backends", {})
    total["left out"] = {
        name: why for name, why in total.get("left out", {}).items() if name not in tested
    }
    return total


def _joined(old: Results, new: Results) -> Results:
    both = {**old, **new, "tests": old["tests"] | new["tests"]}
    if "not run" in old and "not run" in new:
        both["not run"] = sorted({*old["not run"], *new["not run"]} - both["tests"].keys())
    else:
        both.pop("not run", None)
    both["runs"] = [*old.get("runs", []), *new.get("runs", [])]
    both["dtypes"] = {
        o: old.get("dtypes", {}).get(o, {}) | new.get("dtypes", {}).get(o, {})
        for o in old.get("dtypes", {}) | new.get("dtypes", {})
    }
    for backend in (old, new):
        if backend.get("died"):
            both["died"] = backend["died"]
    return both


# ----- evaluation -----


def counts(outcomes: Iterable[Sequence[str]]) -> dict[str, int]:
    """Return the number of tests in each state, in the order of STATES, after unknown states."""
    numbers = Counter(state for state, *_ in outcomes)
    return {s: numbers[s] for s in (*sorted(set(numbers) - set(STATES)), *STATES) if s in numbers}


def counts_by(part: int, tests: Mapping[str, Sequence[str]]) -> dict[str, dict[str, int]]:
    """Return the counts of the tests of each operation, or, with part 1, of each check."""
    groups: dict[str, list[Sequence[str]]] = {}
    for test_id, outcome in tests.items():
        groups.setdefault(parts(test_id)[part], []).append(outcome)
    return {name: counts(outcomes) for name, outcomes in groups.items()}


def outcomes(results: Results) -> list[Sequence[str]]:
    """Return the outcomes of the tests of all backends."""
    return [o for backend in results["backends"].values() for o in backend["tests"].values()]


def verdict(results: Results, name: str) -> tuple[str, str]:
    """Return the verdict on a backend and the reason.

    The verdict is conformant, failed, died, partial (some tests have no result) or untested.
    """
    backend = results["backends"][name]
    states = counts(backend["tests"].values())
    bad = {s: n for s, n in states.items() if s not in ("passed", "exempt", "missing")}
    if backend.get("died"):
        return "died", backend["died"]
    if bad:
        return "failed", ", ".join(f"{n} {s}" for s, n in bad.items())
    if results.get("problems"):
        return "failed", f"the suite has problems: {', '.join(results['problems'])}"
    if "not run" not in backend:
        return "partial", "the certificate does not say which tests were left out"
    if backend["not run"]:
        return (
            "partial",
            f"{len(backend['not run'])} of {len(backend['not run']) + len(backend['tests'])} "
            "tests were not run",
        )
    if not states.get("passed"):
        return "untested", "no test has passed"
    return "conformant", ", ".join(f"{n} {s}" for s, n in reversed(states.items()))


def failed(results: Results) -> bool:
    """Return whether a test failed, a backend died, or the suite itself has a problem."""
    return any(verdict(results, name)[0] in ("failed", "died") for name in results["backends"])


def lacking(backend: Results) -> dict[str, str]:
    """Return the capabilities that a backend lacks, with the reasons."""
    lacks = backend.get("lacks", {})
    return dict(lacks) if isinstance(lacks, Mapping) else dict.fromkeys(lacks, "")


def chapter_of(results: Results, operation: str) -> str:
    """Return the chapter of the standard to which an operation belongs."""
    record: dict[str, str] = results["operations"].get(operation, {})
    return record.get("chapter", "kernels of the engine")


def dtype_of(backend: Results, test_id: str) -> str:
    """Return the dtype that a test is about, "" if it is unknown."""
    operation, _, label = parts(test_id)
    dtype: str = backend.get("dtypes", {}).get(operation, {}).get(label, "")
    return dtype


def parts(test_id: str) -> list[str]:
    """Return the operation, the check and the label of the sample."""
    return test_id.split("/", 2)
