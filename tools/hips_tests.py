"""Run HIPS autograd's own tests on multigrad-autograd, for `make test-clients`.

    export AUTOGRAD=<checkout of HIPS/autograd>
    python tools/hips_tests.py
    python tools/hips_tests.py --write    also write the numbers into the README of the plugin

The checkout is not changed. Without a checkout no test runs; a message says so, and the status is
0. tools/clients/hips_autograd.txt lists the expected failures, each with its reason. All other
tests must pass, and at least ENOUGH in total. `--check` runs no test: it compares the README with
that list.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
CLIENTS = ROOT / "tools" / "clients"
sys.path.insert(0, str(CLIENTS))

from expected import listed  # noqa: E402

EXPECTED = CLIENTS / "hips_autograd.txt"
README = ROOT / "plugins" / "multigrad-autograd" / "README.md"
TABLE = re.compile(r"(?<=<!-- HIPS autograd's tests -->\n).*?(?=<!-- end -->)", re.S)
FILES = (
    "numpy",
    "scipy",
    "linalg",
    "fft",
    "scalar_ops",
    "binary_ops",
    "complex",
    "jacobian",
    "wrappers",
    "systematic",
    "logic",
    "builtins",
    "dict",
    "list",
    "tuple",
    "truediv",
    "direct",
    "misc",
)
ENOUGH = 520
HOW = """NOT RUN: HIPS autograd's own tests, because AUTOGRAD names no checkout of them.
To run them:
    git clone https://github.com/HIPS/autograd
    make test-clients AUTOGRAD=$PWD/autograd"""


def run(checkout: Path, report: Path) -> int:
    """Run the tests, with their results in `report`. Return pytest's status."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "hips_autograd",
        "-c",
        os.devnull,
        "--rootdir",
        str(checkout),
        "-W",
        "ignore",
        "-rfE",
        "--tb=short",
        "--expected",
        str(EXPECTED),
        f"--junit-xml={report}",
        *(f"tests/test_{name}.py" for name in FILES),
    ]
    path = os.pathsep.join([str(CLIENTS), "tests", os.environ.get("PYTHONPATH", "")])
    print(f"== HIPS autograd's tests on multigrad-autograd: {checkout}", flush=True)
    return subprocess.run(
        command,
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": path, "MPLBACKEND": "Agg"},
        check=False,
    ).returncode


def counted(report: Path) -> tuple[Counter[str], Counter[str]]:
    """Return the number of tests by file, and the number of passed tests."""
    total: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("classname", "").rpartition(".")[2]
        total[name] += 1
        passed[name] += not len(case)
    return total, passed


def failing() -> str:
    """Return the table of the expected failures."""
    lines = [
        "| test | why it fails here |",
        "|---|---|",
        *(f"| `{name}` | {reason} |" for name, reason in listed(EXPECTED).items()),
    ]
    return "\n".join(lines) + "\n"


def table(total: Counter[str], passed: Counter[str]) -> str:
    return f"{sum(passed.values())} of {sum(total.values())} pass.\n\n{failing()}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Run HIPS autograd's tests on multigrad-autograd.")
    parser.add_argument(
        "--write", action="store_true", help="write the numbers into the README of the plugin"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare the README with the list of failures, and run nothing",
    )
    options = parser.parse_args()
    if options.check:
        match = TABLE.search(README.read_text())
        if match is None or not match.group().endswith(failing()):
            print(
                f"{README}: its table of failures is not that of {EXPECTED}. Run "
                "tools/hips_tests.py --write."
            )
            return 1
        return 0
    place = os.environ.get("AUTOGRAD")
    if not place:
        print(HOW)
        return 0
    checkout = Path(place).expanduser().resolve()
    if not (checkout / "tests" / "test_systematic.py").is_file():
        print(f"{checkout} is not a checkout of HIPS autograd")
        return 1
    report = ROOT / ".venv" / "hips-tests.xml"
    report.parent.mkdir(exist_ok=True)
    status = run(checkout, report)
    total, passed = counted(report)
    if sum(passed.values()) < ENOUGH:
        print(f"{sum(passed.values())} of {sum(total.values())} tests pass; {ENOUGH} are expected")
        return 1
    if options.write:
        README.write_text(TABLE.sub(lambda _: table(total, passed), README.read_text()))
    return status


if __name__ == "__main__":
    sys.exit(main())
