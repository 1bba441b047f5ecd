"""The limits of a library, as a file that its plugin reads: {"missing": {}, "exemptions": {}}.

A run writes the tests that fail into it. What the library lacks is apart from what it does
otherwise than the standard; of the latter, the author of the plugin fills in the reasons.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from .certificate import CertificateError, Results

Limits = dict[str, dict[str, str]]
LACKING = re.compile(r"has no function for the operation '([^']*)'")
ABSENT = re.compile(r"AttributeError: .*has no (?:attribute )?'([^']*)'")
IDLE = "remove the exemption"
HIDES = "it hides what the library can do"
NO = "the library has no "


def read(path: Path) -> Limits:
    """Read the limits in a file; a file that does not exist has none."""
    if not path.exists():
        return {"missing": {}, "exemptions": {}}
    try:
        limits = json.loads(path.read_text(encoding="utf-8"))
        return {key: dict(limits[key]) for key in ("missing", "exemptions")}
    except (ValueError, KeyError, TypeError) as error:
        raise CertificateError(
            f"{path} has no limits of a library: expected JSON with the objects 'missing' and "
            f"'exemptions' ({type(error).__name__}: {error})"
        ) from error


def write(results: Results, path: Path) -> Iterator[str]:
    """Add the failures of a run, remove what no longer fails; yield what has changed."""
    limits = read(path)
    added: dict[str, list[str]] = {"missing": [], "exemptions": []}
    removed: list[str] = []
    for backend in results["backends"].values():
        for test, (state, *reasons) in backend["tests"].items():
            reason = reasons[0] if reasons else ""
            if state != "failed":
                continue
            if IDLE in reason or HIDES in reason:
                for key in ("missing", "exemptions"):
                    if limits[key].pop(test, None) is not None:
                        removed.append(test)
                continue
            lacking = LACKING.search(reason) or ABSENT.search(reason)
            key = "missing" if lacking else "exemptions"
            told = f"{NO}{lacking[1]}" if lacking else f"fill in the reason: {reason}"
            limits[key][test] = told
            added[key].append(test)
    path.write_text(json.dumps(limits, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    lacks = sorted({limits["missing"][t].removeprefix(NO) for t in added["missing"]})
    if lacks:
        count = len(added["missing"])
        yield f"{path}: {count} tests need what the library lacks: {', '.join(lacks)}"
    if added["exemptions"]:
        yield (
            f"{path}: {len(added['exemptions'])} tests are exempt, because the library does not do "
            "what the standard says, or the plugin is not finished: give each its reason"
        )
    if removed:
        yield f"{path}: {len(removed)} tests pass now, so their entries are removed"
