"""Run the examples of docstrings, and write them with rounded results into the examples files,
with the gradients that can be read from the rules, and new names into docs/differences.md.

    make stubs        python tools/examples.py [--check]

The files are multigrad/ops/examples.py and that of multigrad-special; results are rounded to four
digits. Declarations name the examples, by `About.example`; without one, an elementwise operation
is shown at two points. tests/ops/test_docstrings.py runs them all again.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from formatting import formatted
from formulas import readable
from writing import write_or_check

import multigrad as mg
from multigrad.ops.words import call
from multigrad.registry import OPS, About, Op

ROOT = Path(__file__).resolve().parent.parent
HEADER = '''"""{}

Written by `make stubs` from the declarations.
"""

from __future__ import annotations

from collections.abc import Mapping
'''
SPECIAL = {
    **dict.fromkeys(("bdtr", "bdtrc", "bdtri", "nbdtr", "nbdtrc", "nbdtri"), "1, 3, X"),
    **dict.fromkeys(("betainc", "betaincc", "betaincinv", "betainccinv"), "2.0, 3.0, X"),
    **dict.fromkeys(("fdtr", "fdtrc", "fdtri"), "4.0, 5.0, X"),
    **dict.fromkeys(("gdtr", "gdtrc"), "2.0, 1.5, X"),
    **dict.fromkeys(
        ("pdtr", "pdtrc", "pdtri", "jv", "yv", "yn", "iv", "kv", "ive", "kve", "expn", "polygamma"),
        "2, X",
    ),
    **dict.fromkeys(
        (
            "gammainc",
            "gammaincc",
            "gammaincinv",
            "gammainccinv",
            "chdtr",
            "chdtrc",
            "chdtri",
            "stdtr",
            "stdtrit",
        ),
        "3.0, X",
    ),
    **dict.fromkeys(("huber", "pseudo_huber"), "1.0, mg.asarray([0.5, 3.0])"),
    **dict.fromkeys(("zetac", "riemann_zeta"), "mg.asarray([2.0, 4.0])"),
    "binom": "mg.asarray([4.0, 5.0]), 2.0",
    "poch": "mg.asarray([4.0, 5.0]), 2.0",
    "zeta": "mg.asarray([2.0, 4.0])",
    "hurwitz_zeta": "mg.asarray([2.0, 4.0]), 1.5",
    "zeta_derivative": "1, mg.asarray([2.0, 4.0]), 1.5",
    "hyp1f1": "1.0, 2.0, X",
    "lpmv": "1, 2, X",
    "multigammaln": "mg.asarray([3.0, 4.0]), 2",
    "radian": "mg.asarray([90.0, 180.0]), 30.0, 0.0",
    "psi": "X",
    **dict.fromkeys(("sindg", "cosdg", "tandg", "cotdg"), "mg.asarray([30.0, 45.0])"),
}
"""The arguments of special functions for which the two points of elementwise operations do not fit.
"""


def shown(x: Any) -> str:
    """Return a result as docstrings show it: the rounded values."""
    if isinstance(x, mg.Tensor):
        return repr(_rounded(x.tolist()))
    if isinstance(x, (tuple, list)):
        inner = ", ".join(map(shown, x))
        return f"({inner})" if isinstance(x, tuple) else f"[{inner}]"
    return repr(x)


def _rounded(x: Any) -> Any:
    if isinstance(x, list):
        return [_rounded(y) for y in x]
    if isinstance(x, complex):
        return complex(_rounded(x.real), _rounded(x.imag))
    return round(x, 4) + 0.0 if isinstance(x, float) else x


def results(package: str) -> Iterator[tuple[Op, str, Any]]:
    """Yield each operation of a package that has an example, its call, and the result."""
    for op in sorted(OPS.values(), key=lambda op: op.name):
        if op.public and op.module.partition(".")[0] == package:
            arguments = SPECIAL.get(op.name.partition("special.")[2], "") or op.about.example
            made = call(replace(op, about=About(example=arguments or usual(op))))
            if made:
                yield op, made, eval(made, {"mg": mg})


def usual(op: Op) -> str:
    """Return the arguments of operations whose declaration gives no example."""
    n = len(op.arrays)
    if op.chapter == "elementwise" or (op.kind == "elementwise" and op.public):
        return ("", "X", "X, Y")[n] if n < 3 else ""
    if op.name.startswith("nan"):
        return "mg.asarray([1.0, mg.nan, 3.0])"
    if "axis" in op.roles and "keepdims" in op.roles and n == 1:
        return "A, axis=0"
    if op.chapter == "linalg" and n in (1, 2):
        return "S"
    return "P" if op.chapter == "fft" else ""


def own() -> Iterator[str]:
    """Yield the lines of multigrad's own file."""
    yield HEADER.format("An example of each operation, its result, and gradients of rules.")
    yield "\n# fmt: off\n_OPERATIONS: Mapping[str, tuple[str, str, Mapping[str, str]]] = {\n"
    for op, made, result in examples("multigrad"):
        yield f'    "{op.name}": ("{made}", "{result}", {json.dumps(formulas(op))}),\n'
    yield "}\n# fmt: on\n"
    yield "EXAMPLES = {name: row[:2] for name, row in _OPERATIONS.items()}\n"
    yield "FORMULAS = {name: row[2] for name, row in _OPERATIONS.items()}\n"
    yield '"""The gradients that are read from the text of the rules."""\n'


def special() -> Iterator[str]:
    """Yield the lines of the file of multigrad-special."""
    yield HEADER.format("An example of each operation and its result, rounded.")
    yield "\nEXAMPLES: Mapping[str, tuple[str, str]] = {\n"
    for op, made, result in examples("multigrad_special"):
        yield f'    "{op.name}": ("{made}", "{result}"),\n'
    yield "}\n"


def examples(package: str) -> Iterator[tuple[Op, str, str]]:
    """Yield each operation of a package that has an example, its call, and the result, as shown."""
    for op, made, x in results(package):
        yield op, made + ".tolist()" * isinstance(x, mg.Tensor), shown(x)


def formulas(op: Op) -> dict[str, str]:
    """Return the gradients that the rules of an operation say, and its declaration does not."""
    stated = op.about.gradient
    if isinstance(stated, str) and stated:
        return {}
    return {name: text for name, text in readable(op).items() if name not in stated}


FILES = {
    "multigrad/ops/examples.py": own,
    "plugins/multigrad-special/multigrad_special/examples.py": special,
}


def texts() -> dict[Path, str]:
    """Return the expected text of each file."""
    mg.extend.load_plugins()
    mg.zeros(1)
    page = ROOT / "docs" / "differences.md"
    return {
        **{ROOT / file: formatted("".join(lines()), file) for file, lines in FILES.items()},
        page: with_names(page.read_text(encoding="utf-8")),
    }


def with_names(page: str) -> str:
    """Return docs/differences.md with every elementwise name beyond the standard in its table.

    A name that no row has goes into the row of elements.
    """
    _, title, section = page.partition("\n## Names beyond the standard\n")
    listed = re.findall(r"`(\w+)`", section.partition("\n\nExcept ")[0])
    row = re.search(r"\| elements \| (.*) \|", section)
    assert title and row, "the page has no table of names beyond the standard"
    known = row[1].split()
    more = {
        f"`{op.name}`"
        for op in OPS.values()
        if op.builtin and op.public and op.beyond and op.kind == "elementwise"
        if op.name not in listed
    }
    return page.replace(row[0], f"| elements | {' '.join(sorted({*known, *more}))} |")


if __name__ == "__main__":
    sys.exit(write_or_check(__doc__, texts))
