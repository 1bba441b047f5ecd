"""Run the Python examples of a Markdown page, with everything that they print, return and draw.

`make docs` shows the outputs on the site; tests/project/test_pages.py runs every page and writes
none. All blocks of a page share one namespace, like the cells of a notebook. A page that needs a
library on which multigrad does not depend names it in a comment:

    <!-- needs: jax, multigrad_dask -->
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import os
import re
import sys
import tempfile
import types
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
NEEDS = re.compile(r"<!-- needs: (.*?) -->")


@dataclass
class Output:
    """The output of one block: printed text, the repr of its last expression, SVG and HTML."""

    text: str = ""
    pictures: list[str] = field(default_factory=list)


def blocks(text: str) -> list[str]:
    return BLOCK.findall(text)


def needs(text: str) -> list[str]:
    """Return the modules that the page's comment names."""
    return [name.strip() for line in NEEDS.findall(text) for name in line.split(",")]


def run_block(source: str, name: str, scope: dict[str, Any]) -> Output:
    """Run one block. The value of a final expression is shown, as in a notebook."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), scope)
        value = eval(compile(ast.Expression(last.value), name, "eval"), scope) if last else None
        if value is not None and not hasattr(value, "_repr_svg_") and not is_drawn(value):
            print(repr(value))
    pictures = [value._repr_svg_()] if hasattr(value, "_repr_svg_") else []
    return Output(printed.getvalue(), pictures + figures())


def is_drawn(value: Any) -> bool:
    """Return whether the value is from matplotlib, whose figures are shown as pictures."""
    first = value[0] if isinstance(value, (list, tuple)) and value else value
    return type(first).__module__.startswith(("matplotlib", "mpl_toolkits"))


def figures() -> list[str]:
    """Return the open figures of matplotlib as SVG, and close them."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    plt = sys.modules["matplotlib.pyplot"]
    pictures = []
    for number in plt.get_fignums():
        picture = io.StringIO()
        plt.figure(number).savefig(
            picture, format="svg", bbox_inches="tight", transparent=True, metadata={"Date": None}
        )
        pictures.append(picture.getvalue())
    plt.close("all")
    return pictures


def run(text: str, name: str, warned: str = "") -> list[Output]:
    """Run all blocks of a page in one namespace, in an empty folder.

    A warning is an error, unless its text begins with `warned`.
    """
    module = types.ModuleType("__page__")
    before, registered = Path.cwd(), dict(sys.modules)
    sys.modules["__page__"] = module  # pickle and dataclasses look up the page's definitions there
    os.environ.setdefault("MPLBACKEND", "agg")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        # deprecation warnings between other libraries are not errors of the page
        for deprecated in (DeprecationWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", deprecated)
            warnings.filterwarnings("error", category=deprecated, module="__page__")
        if warned:
            warnings.filterwarnings("ignore", warned)
        os.chdir(folder)
        try:
            return [
                run_block(block, f"{name}, block {i}", module.__dict__)
                for i, block in enumerate(blocks(text), 1)
            ]
        finally:
            os.chdir(before)
            if "__page__" not in registered:
                del sys.modules["__page__"]


def shown(text: str, name: str) -> str:
    """Return the page, with the output of each block after it."""
    missing = [module for module in needs(text) if not importable(module)]
    if missing:
        raise RuntimeError(f"{name} cannot be run: {', '.join(missing)} is not installed")
    outputs = iter(run(text, name))
    return BLOCK.sub(lambda block: block.group() + html(next(outputs)), text)


def importable(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def html(output: Output) -> str:
    """Return the output of a block as HTML: text in another colour, and pictures."""
    parts = []
    if output.text:
        parts.append(f'\n\n``` {{.text .output title="Output"}}\n{output.text.rstrip()}\n```')
    for picture in output.pictures:
        # an empty line would end the HTML block
        body = re.sub(r"\n\s*\n", "\n", picture[picture.index("<svg") :])
        parts.append(f'\n\n<div class="picture">\n{body}\n</div>')
    return "".join(parts)
