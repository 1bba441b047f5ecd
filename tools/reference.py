"""Generate the pages of the API reference from signatures, docstrings and the operations table.

`make docs` adds them to the site.
"""

from __future__ import annotations

import argparse
import html
import importlib
import inspect
import re
from typing import Any

import multigrad as mg
from multigrad import cli, extend
from multigrad.registry import OPS, Op

DEFINED = re.compile(r"([*\w][\w., *]*?)(?:  +|: )(\S.*)")  # a name and its explanation
COLUMNS = re.compile(r"\s|[-*] |.*\S   +\S")  # a preformatted line
CHAPTERS = {
    "elementwise": "Elementwise functions",
    "statistical": "Statistical functions",
    "manipulation": "Manipulation",
    "indexing": "Indexing",
    "searching": "Searching",
    "sorting": "Sorting",
    "set": "Sets",
    "creation": "Creation",
    "data_type": "Data types",
    "utility": "Utility",
    "linear_algebra": "Linear algebra",
    "linalg": "The extension linalg",
    "fft": "The extension fft",
    "conversion": "Conversion",
    "beyond": "Names beyond the standard",
    "special": "Special functions",
    "kernels": "Kernels for rules",
}
AUTOGRAD = (
    "functional",
    "forward_ad",
    "graph",
    "function",
    "grad_mode",
    "anomaly_mode",
    "profiler",
    "gradcheck",
)
MODULES = {
    "multigrad": ("multigrad", "What `import multigrad as mg` gives besides the operations."),
    "func": ("multigrad.func", "Transformations of functions."),
    "tree": ("multigrad.func.tree", "Functions of nested structures of arrays."),
    "autograd": ("multigrad.autograd", "The names of `torch.autograd`."),
    "extend": ("multigrad.extend", "Layers, transformations and observers of your own."),
    "registry": ("multigrad.registry", "Declarations of operations and their derivatives."),
    "errors": ("multigrad.errors", "The exceptions."),
    "scipy": ("multigrad_scipy", "SciPy's solvers, from the distribution multigrad-scipy."),
    "hips": (
        "multigrad_autograd",
        "HIPS autograd's operators, from the distribution multigrad-autograd.",
    ),
    "conformance": (
        "multigrad_conformance",
        "Tests on every backend, from the distribution multigrad-conformance.",
    ),
}


def pages() -> dict[str, str]:
    """Return the text of each page by its address in the site."""
    mg.zeros(1)  # loads the plugins that registered operations
    extend.load_plugins()
    texts = {f"reference/{name}.md": module_page(*about) for name, about in MODULES.items()}
    texts["reference/tensor.md"] = tensor_page()
    texts |= {
        f"reference/autograd/{name}.md": module_page(f"multigrad.autograd.{name}", "")
        for name in AUTOGRAD
    }
    texts |= {f"reference/operations/{chapter}.md": chapter_page(chapter) for chapter in CHAPTERS}
    texts["reference/command-line.md"] = command_page()
    texts["reference/index.md"] = index()
    return texts


def index() -> str:
    modules = "\n".join(
        f"- [`{module}`]({name}.md): {about}" for name, (module, about) in MODULES.items()
    )
    chapters = "\n".join(
        f"- [{title}](operations/{chapter}.md): {len(operations(chapter))}"
        for chapter, title in CHAPTERS.items()
    )
    return (
        "# Reference\n"
        "\n"
        "These pages are written from signatures, docstrings and the table of operations. The "
        "search field finds every name.\n"
        "\n"
        "## Modules\n"
        "\n"
        f"{modules}\n"
        "- [`Tensor`](tensor.md): the array with a gradient\n"
        "- [`python -m multigrad`](command-line.md): the command line\n"
        "\n"
        "## Operations\n"
        "\n"
        "Each operation is a function of `multigrad` and of the namespace of every backend.\n"
        "\n"
        f"{chapters}\n"
    )


def operations(chapter: str) -> list[Op]:
    return sorted(
        (op for op in OPS.values() if op.chapter == chapter and op.module.startswith("multigrad")),
        key=lambda op: op.name,
    )


def chapter_page(chapter: str) -> str:
    entries = "\n\n".join(
        entry(op.name, operation(op.name), op.doc, str(op.signature)) for op in operations(chapter)
    )
    return f"# {CHAPTERS[chapter]}\n\n{entries}\n"


def operation(name: str) -> Any:
    """Return the public function of an operation, or None for a kernel, which only rules call."""
    value: Any = mg
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def public(module: Any) -> list[str]:
    names = getattr(module, "__all__", None)
    if names is not None:
        return sorted(names)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    )


def module_page(name: str, about: str) -> str:
    module = importlib.import_module(name)
    parts = [f"# {name}", about or prose(first_paragraph(module))]
    for each in public(module):
        value = getattr(module, each)
        if inspect.ismodule(value):
            continue
        parts.append(entry(each, value, inspect.getdoc(value) or ""))
        if (
            inspect.isclass(value)
            and value.__module__.startswith("multigrad")
            and value is not mg.Tensor
        ):
            parts += [
                entry(f"{each}.{method}", attribute, inspect.getdoc(attribute) or "", level=3)
                for method, attribute in methods(value)
            ]
    return "\n\n".join(parts) + "\n"


def methods(cls: type) -> list[tuple[str, Any]]:
    """Return the methods that the class itself defines, with a docstring."""
    kinds = (property, classmethod, staticmethod)
    named = sorted(
        (name, value)
        for name, value in vars(cls).items()
        if not name.startswith("_") and not isinstance(value, type)
    )
    return [
        (name, value)
        for name, value in named
        if inspect.getdoc(value) and (callable(value) or isinstance(value, kinds))
    ]


def tensor_page() -> str:
    named = {
        name: inspect.getattr_static(mg.Tensor, name)
        for name in sorted(dir(mg.Tensor))
        if not name.startswith("_")
    }
    own = {
        name: value
        for name, value in named.items()
        if name not in OPS and name.rstrip("_") not in OPS and inspect.getdoc(value)
    }
    same = ", ".join(f"`{name}`" for name in named if name not in own)
    entries = "\n\n".join(
        entry(name, value, inspect.getdoc(value) or "") for name, value in own.items()
    )
    return (
        "# Tensor\n"
        "\n"
        f"{prose(inspect.getdoc(mg.Tensor) or '')}\n"
        "\n"
        "These methods are operations, which the pages of operations describe. A name that "
        f"ends in `_` works in place: {same}.\n"
        "\n"
        f"{entries}\n"
    )


def command_page() -> str:
    """Return the page with the --help text of each command of `python -m multigrad`."""
    parts = ["# The command line"]
    waiting = [("multigrad", cli._parser())]
    while waiting:
        name, parser = waiting.pop(0)
        parts.append(f"## `{name}`\n\n```text\n{parser.format_help().rstrip()}\n```")
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += [(f"{name} {word}", command) for word, command in action.choices.items()]
    return "\n\n".join(parts) + "\n"


def entry(name: str, value: Any, doc: str, signature: str = "", level: int = 2) -> str:
    """Return the entry of one name: its heading, its signature, its docstring."""
    text = inspect.getdoc(value) if callable(value) else doc
    head = f"{'#' * level} `{name}`"
    call = signature or parameters(value)
    return (
        f"{head}\n\n"
        + (f"``` {{.python .signature}}\n{name.rpartition('.')[2]}{call}\n```\n\n" if call else "")
        + prose(text or doc)
    )


def parameters(value: Any) -> str:
    if not callable(value):
        return ""
    try:
        signature = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    plain = re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)  # annotations are strings
    return "" if " at 0x" in plain else plain  # the repr of a default contains an address


def first_paragraph(module: Any) -> str:
    return (inspect.getdoc(module) or "").partition("\n\n")[0]


def prose(doc: str) -> str:
    """Convert a docstring to HTML.

    Names with an explanation become a definition list; examples and other columns are preformatted.
    """
    parts = []
    for paragraph in re.split(r"\n\s*\n", doc.strip("\n")):
        lines = paragraph.splitlines()
        if defined := definitions(lines):
            parts.append(
                "<dl>"
                + "".join(
                    f"<dt><code>{html.escape(name)}</code></dt><dd>{marked(text)}</dd>"
                    for name, text in defined
                )
                + "</dl>"
            )
        elif any(COLUMNS.match(line) for line in lines):
            parts.append(
                "```text\n"
                f"{inspect.cleandoc(paragraph) if lines[0].startswith(' ') else paragraph}\n"
                "```"
            )
        else:
            parts.append(f"<p>{marked(' '.join(lines))}</p>")
    return "\n\n".join(parts)


def definitions(lines: list[str]) -> list[tuple[str, str]]:
    """Return the names and explanations of a paragraph that consists of them, otherwise [].

    An entry is `name   text` or `name: text`, with continuation lines.
    """
    lines = inspect.cleandoc("\n".join(["", *lines])).splitlines()
    entries: list[tuple[str, str]] = []
    for line in lines:
        if match := DEFINED.fullmatch(line):
            entries.append((match[1], match[2]))
        elif entries and line.startswith("  "):
            entries[-1] = (entries[-1][0], f"{entries[-1][1]} {line.strip()}")
        else:
            return []
    return entries


def marked(text: str) -> str:
    """Convert text to HTML, with text between backquotes as code."""
    return re.sub(r"`+([^`]+)`+", r"<code>\1</code>", html.escape(text))
