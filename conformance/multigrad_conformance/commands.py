"""The command `python -m multigrad conformance`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from . import badge, certificate, limits, page, report, running
from .certificate import CertificateError, Results
from .comparison import compare

Writer = Callable[[Results, Path], None]
FORMS: dict[str, tuple[str, Writer]] = {
    "json": ("conformance.json", certificate.write),
    "report": ("conformance.md", report.write),
    "html": ("conformance.html", page.write),
    "badge": ("conformance.svg", badge.write),
}
"""The options that write a file: its name in the folder of --certificate, and what writes it."""


def main(options: argparse.Namespace) -> int:
    """Run the suite, or read earlier certificates, and write the requested files.

    Returns the exit status.
    """
    try:
        if options.compare:
            return _compare(*map(Path, options.compare))
        outputs = list(_outputs(options))
        limits_of = _writable(Path(options.limits)) if options.limits else None
        status, results = _results(options)
        if not results:
            return status
    except CertificateError as error:
        print(error, file=sys.stderr)
        return 2
    print(report.text(results))
    for form, path in outputs:
        _, write = FORMS[form]
        write(results, path)
    if limits_of is not None:
        try:
            for line in limits.write(results, limits_of):
                print(line)
        except CertificateError as error:
            print(error, file=sys.stderr)
            return 2
        return 1 if _beyond_limits(results) else 0
    return status or (1 if certificate.failed(results) else 0)


def _beyond_limits(results: Results) -> bool:
    """Return whether there is something that no limit of a library can say."""
    died = any(backend.get("died") for backend in results["backends"].values())
    return bool(results.get("problems")) or died


def _results(options: argparse.Namespace) -> tuple[int, Results]:
    """Return the exit status and the certificate.

    Without a run the status is 0; if there was nothing to run, the certificate is empty.
    """
    if options.earlier:
        return 0, certificate.merged(certificate.read(Path(p)) for p in options.earlier)
    with tempfile.TemporaryDirectory() as folder:
        outcome = running.run(
            options.backend, options.samples, options.pytest, Path(folder), options.limit
        )
    if outcome.status == running.NO_TESTS or not outcome.certificates:
        return outcome.status, {}
    return outcome.status, certificate.merged(outcome.certificates)


def _outputs(options: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """Yield the requested output formats with their paths."""
    if options.certificate:
        folder = Path(options.certificate)
        if folder.parent.is_dir() and not folder.exists():
            folder.mkdir()
        yield from ((form, _writable(folder / name)) for form, (name, _) in FORMS.items())
    yield from (
        (form, _writable(Path(getattr(options, form)))) for form in FORMS if getattr(options, form)
    )


def _writable(path: Path) -> Path:
    if path.is_dir() or not path.parent.is_dir():
        raise CertificateError(f"cannot write there: {path}")
    return path


def _compare(old: Path, new: Path) -> int:
    comparison = compare(certificate.read(old), certificate.read(new))
    print(comparison.text())
    return 1 if comparison.worse else 0
