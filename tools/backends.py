"""Measure how well a library works as a backend with a minimal plugin: docs/backends.md's table.

    python tools/backends.py [library ...] [--packages FOLDER] [--minutes 5]
                             [--write docs/backends.md]

A minimal plugin gives only the name, the namespace and the array type. Each library is installed
with pip into its own folder below `--packages`, unless it is there. Its plugin is written beside
it, and the short level of the conformance suite runs on it in a subprocess, without the special
functions.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- made by tools/backends.py -->", "<!-- end -->"


class Library(NamedTuple):
    requirement: str  # what pip installs
    module: str  # whose import wakes the plugin
    lines: str  # of `make`, which define `xp` and `types`
    more: str = ""  # arguments of Backend


# Its creation functions take no `device`, and its sums no `dtype`. Without these wrappers, none of
# its arrays could be made.
MLX = """\
import mlx.core as xp
types = (xp.array,)
def placed(f):
    return lambda *args, device=None, **kwargs: f(*args, **kwargs)
def summed(f):
    return lambda x, dtype=None, **kwargs: f(x if dtype is None else x.astype(dtype), **kwargs)
making = ("asarray", "astype", "arange", "empty_like", "eye", "full", "full_like", "linspace",
          "ones", "ones_like", "zeros", "zeros_like")
functions = {name: placed(getattr(xp, name)) for name in making if hasattr(xp, name)}
functions |= {name: summed(getattr(xp, name)) for name in ("sum", "prod")}"""

# Each import of `marray.numpy` makes another class of arrays. Nothing in the rules knows of a mask.
MARRAY = """\
import abc, marray, numpy
xp = marray.masked_namespace(numpy)
class MArray(abc.ABC):
    @classmethod
    def __subclasshook__(cls, other):
        return (other.__module__, other.__name__) == ("marray", "MArray")
types = (MArray,)
def admit(xp, x):
    if x.mask.any():
        raise mg.errors.BackendError("backend 'marray': this array has masked elements, of which "
            "derivative rules would count every one. Pass the values and the mask apart, as in "
            "multigrad.sum(multigrad.where(x.mask, 0.0, x.data)).")"""

LIBRARIES = {
    "sparse": Library(
        "sparse",
        "sparse",
        "import sparse as xp\ntypes = (xp.SparseArray,)",
        "capabilities=mg.Capabilities(mutable=False)",
    ),
    "ndonnx": Library(
        "ndonnx",
        "ndonnx",
        "import ndonnx as xp\ntypes = (xp.Array,)",
        "capabilities=mg.Capabilities(complex=False)",
    ),
    "cubed": Library(
        "cubed",
        "cubed",
        "import cubed.array_api as xp\ntypes = (type(xp.asarray(0)),)",
        "capabilities=mg.Capabilities(mutable=False, data_dependent=False)",
    ),
    "marray": Library("marray", "marray", MARRAY, "kernels={'admit': admit}"),
    "blosc2": Library(
        "blosc2",
        "blosc2",
        "import blosc2 as xp\ntypes = (xp.NDArray, xp.LazyArray)",
        "capabilities=mg.Capabilities(mutable=False)",
    ),
    "mlx": Library("mlx[cpu]", "mlx.core", MLX, "functions=functions"),
}

PLUGIN = """\
import multigrad as mg

@mg.hookimpl
def multigrad_backends():
    return [mg.BackendSpec({name!r}, {module!r}, "multigrad_trial_{name}:make")]

def make():
{body}
    return mg.Backend({name!r}, xp, types{more})
"""

# Runs in the subprocess of the library: every test within the time limit, then the outcomes as one
# line of JSON.
RUN = """
import json, signal, sys, time, warnings
warnings.simplefilter("ignore")
name, seconds = sys.argv[1], float(sys.argv[2])
from multigrad import extend
extend.load_plugins()
from multigrad_conformance import cells
chosen = [c for c in cells.selected(name, "short") if "special." not in c.id]
def late(*_):
    raise TimeoutError("more than 10 seconds")
signal.signal(signal.SIGALRM, late)
outcomes, end = {}, time.monotonic() + seconds
for cell in chosen[::7] + [c for i, c in enumerate(chosen) if i % 7]:
    if time.monotonic() > end:
        break
    signal.alarm(10)
    try:
        cell.execute()
        outcomes[cell.id] = ""
    except Exception as error:
        outcomes[cell.id] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    finally:
        signal.alarm(0)
print("\\n@" + json.dumps({"tests": len(chosen), "outcomes": outcomes}))
"""


def plugin(name: str) -> str:
    """Return the source of the plugin."""
    library = LIBRARIES[name]
    body = "\n".join(f"    {line}" for line in library.lines.splitlines())
    return PLUGIN.format(
        name=name, module=library.module, body=body, more=library.more and f", {library.more}"
    )


def installed(name: str, packages: Path) -> Path:
    """Return the folder in which the library is installed; install it if necessary."""
    folder = packages / name
    if not folder.is_dir():
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                "-q",
                "--target",
                str(folder),
                LIBRARIES[name].requirement,
            ],
            check=True,
        )
    return folder


def version(name: str, folder: Path) -> str:
    return next(
        (d.version for d in distributions(path=[str(folder)]) if d.metadata["Name"] == name), "?"
    )


def measured(name: str, packages: Path, minutes: float) -> dict[str, Any]:
    """Return the outcome of each test."""
    folder = installed(name, packages)
    with tempfile.TemporaryDirectory() as made:
        site = Path(made)
        (site / f"multigrad_trial_{name}.py").write_text(plugin(name))
        info = site / f"multigrad_trial_{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: multigrad-trial-{name}\nVersion: 1.0\n"
        )
        (info / "entry_points.txt").write_text(f"[multigrad]\n{name} = multigrad_trial_{name}\n")
        # The environment's own NumPy precedes one that pip installed beside the library.
        path = os.pathsep.join(
            [
                made,
                os.environ.get("PYTHONPATH", ""),
                *(p for p in sys.path if p.endswith("site-packages")),
                str(folder),
            ]
        )
        start = time.monotonic()
        ran = subprocess.run(
            [sys.executable, "-c", RUN, name, str(60 * minutes)],
            env=os.environ | {"PYTHONPATH": path},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    lines = [line for line in ran.stdout.splitlines() if line.startswith("@")]
    if not lines:
        last = (
            ran.stderr.strip().splitlines()[-1]
            if ran.stderr.strip()
            else f"exit status {ran.returncode}"
        )
        return {"version": version(name, folder), "tests": 0, "outcomes": {}, "error": last}
    return json.loads(lines[-1][1:]) | {
        "version": version(name, folder),
        "seconds": time.monotonic() - start,
    }


CAUSES = (
    (
        "arguments of the standard that its functions lack",
        r"incompatible function arguments|unexpected keyword|positional argument",
    ),
    (
        "operations that it lacks",
        r"has no function|has no attribute|not implemented|NotImplemented|not supported|no "
        r"implementation",
    ),
    ("dtypes that it lacks", r"no dtype|dtype.*(unknown|not understood)|complex"),
    ("cannot be brought to or from NumPy", r"to_numpy|from_numpy|__array__|DLPack"),
    ("other values", r"Not equal to tolerance|Re<g"),
    ("another dtype or shape", r"dtype|shape"),
    ("too slow", r"TimeoutError"),
)


def causes(outcomes: dict[str, str]) -> Counter[str]:
    """Return the number of failed tests by cause."""
    failed = filter(None, outcomes.values())
    return Counter(
        next(
            (label for label, pattern in CAUSES if re.search(pattern, text)), text.partition(":")[0]
        )
        for text in failed
    )


def row(name: str, result: dict[str, Any]) -> str:
    """Return the row of a library in the table."""
    lines = len([line for line in plugin(name).splitlines() if line.strip()])
    if "error" in result:
        return f"| {name} | {result['version']} | {lines} | | | none ran: {result['error'][:120]} |"
    failed = sum(map(bool, result["outcomes"].values()))
    ran = len(result["outcomes"])
    some = (
        "" if ran == result["tests"] else f" of {ran} of {result['tests']} tests, in the time given"
    )
    why = ", ".join(
        f"{label} {count}" for label, count in causes(result["outcomes"]).most_common(4)
    )
    return f"| {name} | {result['version']} | {lines} | {ran - failed}{some} | {failed} | {why} |"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "libraries",
        nargs="*",
        metavar="library",
        help=f"of {', '.join(LIBRARIES)}; all, if none is named",
    )
    parser.add_argument(
        "--packages",
        type=Path,
        default=ROOT / ".venv" / "backends",
        help="the folder that they are installed in",
    )
    parser.add_argument("--minutes", type=float, default=5, help="for each library")
    parser.add_argument(
        "--write", type=Path, help="a file with markers, between which the table goes"
    )
    parser.add_argument("--json", type=Path, help="a file for the outcome of each test")
    options = parser.parse_args()
    unknown = set(options.libraries) - set(LIBRARIES)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: none of {', '.join(LIBRARIES)}")
    results: dict[str, Any] = (
        json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    )
    for name in options.libraries or LIBRARIES:
        results[name] = measured(name, options.packages, options.minutes)
        print(row(name, results[name]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    if options.write:
        before, _, rest = options.write.read_text().partition(BEGIN)
        head = (
            "| library | version | lines | passed | failed | by cause |\n"
            "| --- | --- | ---: | ---: | ---: | --- |"
        )
        table = "\n".join([head, *(row(name, results[name]) for name in sorted(results))])
        options.write.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
