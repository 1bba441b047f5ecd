"""Command line: `python -m multigrad backends | ops | conformance | breaks | profile | new`.

The console script `multigrad` runs the same commands.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from .tools.tables import aligned


def program() -> int:
    """Run one command in a process that exists for it, and return the exit status.

    A script that the command runs may end the process, as it may under `python script.py`.
    """
    return main(leaving=True)


def main(argv: Sequence[str] | None = None, leaving: bool = False) -> int:
    """Run one command and return its exit status."""
    argv = sys.argv[1:] if argv is None else argv
    options = _parser().parse_args(argv)
    options.leaving = leaving
    if hasattr(options, "script"):
        if not Path(options.script).is_file():
            return _refused(f"no such file: {options.script}")
        options.arguments = _after(options.script, options.arguments, argv)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader, such as `head`, closed the pipe: the buffered rest must not raise again at
        # exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _refused(text: str, status: int = 2) -> int:
    print(text, file=sys.stderr)
    return status


def _after(script: str, arguments: Sequence[str], argv: Sequence[str]) -> Sequence[str]:
    """Return all arguments after the script from argv, because argparse drops a leading `--`."""
    first = len(argv) - len(arguments)
    return (
        argv[first - 1 :]
        if argv[first - 1 : first] == ["--"] and argv[first - 2] == script
        else arguments
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "multigrad", description="torch.autograd for every Python array library."
    )
    parser.add_argument(
        "--version",
        action=_Version,
        nargs=0,
        help="show the versions of multigrad, of Python and of the installed array libraries",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    backends = commands.add_parser(
        "backends",
        help="list the known array libraries: origin, state, error",
        description="List the known backends, and the plugins that replace operations of the "
        "standard. The command imports no array library unless --probe is given. The state of a "
        "plugin is 'deferred' until its library is imported, or until the plugin is requested by "
        "name.",
    )
    backends.set_defaults(run=_backends)
    option = partial(_add, backends)
    option("--probe", "import each library and show its devices and dtypes", action="store_true")
    option("--traceback", "show the full traceback of each error", action="store_true")

    ops = commands.add_parser(
        "ops",
        help="list the known operations and their derivatives",
        description="List the operations of the standard, of the derivative rules and of plugins. "
        "The columns are: the kind; the differentiable arguments, each with the arrays that the "
        "backward pass saves for it (ans: the result); the supported modes; the installed backends "
        "with an implementation or a rule of their own; the declaring module. A narrow terminal "
        "leaves out the last columns.",
    )
    ops.set_defaults(run=_ops)
    option = partial(_add, ops)
    option("pattern", "show only names that contain PATTERN", nargs="?", default="")
    option(
        "--grep REGEX",
        "show only operations whose name or description matches (case-insensitive)",
        default="",
    )
    option(
        "--chapter",
        "show only this chapter of the standard (elementwise, statistical, ...)",
        default="",
    )
    option(
        "--runners SCRIPT",
        "run a script with its arguments, then list the operations that it called: for how "
        "many signatures code was written, its bytes, and what the slow general path carried out",
        nargs=argparse.REMAINDER,
    )

    conformance = commands.add_parser(
        "conformance",
        help="test every operation on the installed backends (needs multigrad-conformance)",
        description="Run the conformance suite, each backend in a process of its own, and print "
        "a table of operations by backends. A certificate is the JSON file that --json writes; "
        "the other files present the same results. The exit status is 1 if a test failed or a "
        "backend died.",
    )
    conformance.set_defaults(run=_conformance)
    option = partial(_add, conformance)
    repeatable: dict[str, Any] = {"action": "append", "default": []}
    option(
        "--backend NAME",
        "repeatable; default: every backend that works on this machine",
        **repeatable,
    )
    option(
        "--samples",
        "a few canonical shapes, every sample, or shapes and values that hypothesis draws",
        choices=("short", "full", "random"),
        default="short",
    )
    option(
        "--limit SECONDS",
        "end a backend if one test takes longer, and report the test by name (default: 600; 0: no "
        "limit)",
        type=float,
        default=600.0,
    )
    option(
        "--json PATH",
        "write the certificate: the result of each test, versions, the device, the date",
    )
    option(
        "--report PATH.md", "write the table to a file, or between its markers if the file has them"
    )
    option("--html PATH.html", "write one self-contained page with search and filters")
    option(
        "--badge PATH.svg",
        "write a badge: conformant, failed, died, or partial if some tests were not run",
    )
    option(
        "--limits PATH.json",
        "write the tests that fail into a file that the plugin reads: as missing where the "
        "library lacks a function, else as exemptions, each with a reason to fill in",
    )
    option(
        "--certificate FOLDER", "write all four files there: conformance.json, .md, .html and .svg"
    )
    option(
        "--from PATH",
        "do not run: report an earlier certificate (repeatable; certificates are merged)",
        dest="earlier",
        **repeatable,
    )
    option(
        "--compare OLD NEW",
        "do not run: list the improvements and the regressions from OLD to NEW; the exit "
        "status is 1 if anything got worse",
        nargs=2,
    )
    option("pytest ARGUMENT", "further arguments for pytest, after --", nargs="*")

    breaks = commands.add_parser(
        "breaks",
        help="run a script and report the lines on which a gradient is lost",
        description="Run a script as Python does, then list each line on which a gradient is lost, "
        "and each leaf that no backward pass reached, with the reason. The exit status is that of "
        "the script.",
    )
    breaks.set_defaults(run=_breaks)
    _takes_script(breaks)

    profile = commands.add_parser(
        "profile",
        help="run a script and write a page about its time and memory",
        description="Run a script as Python does, under the profiler, and write one self-contained "
        "HTML page: time by operation, a flame chart, memory over time with the arrays that "
        "hold it, the graph. The exit status is that of the script.",
    )
    profile.set_defaults(run=_profile)
    _add(profile, "--output PATH.html", "default: %(default)s", default="multigrad-profile.html")
    _takes_script(profile)

    new = commands.add_parser(
        "new",
        help="write the folder of a new plugin, with tests that pass from the start",
        description="Write the folder multigrad-NAME into the current directory: a plugin that "
        "can be installed, with tests that pass.",
    )
    kinds = new.add_subparsers(title="plugins", required=True, metavar="PLUGIN")
    backend = kinds.add_parser(
        "backend",
        help="another array library",
        description="Write a plugin with a backend NAME. multigrad tries the arrays of the "
        "library to find out their capabilities.",
    )
    backend.set_defaults(run=_new, kind="backend")
    option = partial(_add, backend)
    option(
        "name NAME",
        "name of the backend: the distribution is multigrad-NAME, the package multigrad_NAME",
    )
    option(
        "--module M",
        "the library's Array API namespace; default: array_api_strict, as a placeholder",
    )
    rules = kinds.add_parser(
        "rules",
        help="operations with derivatives, on every array library",
        description="Write a plugin with two operations, mg.NAME.softplus and mg.NAME.energy, "
        "their rules and samples.",
    )
    rules.set_defaults(run=_new, kind="rules", module=None)
    _add(rules, "name NAME", "the operations are named mg.NAME.<operation>")
    return parser


def _add(
    command: argparse.ArgumentParser, usage: str, help: str, **settings: Any
) -> argparse.Action:
    """Add an option or an argument, written with what it takes: `--json PATH`."""
    name, *values = usage.split()
    if values:
        settings["metavar"] = tuple(values) if len(values) > 1 else values[0]
    return command.add_argument(name, help=help, **settings)


def _takes_script(command: argparse.ArgumentParser) -> None:
    _add(command, "script", "the path of the script")
    arguments = _add(
        command,
        "arguments ARGUMENT",
        "what the script gets as sys.argv[1:]",
        nargs=argparse.REMAINDER,
    )
    arguments.required = False  # an error about a missing script should not name the arguments


def _backends(options: argparse.Namespace) -> int:
    from .plugins import installed, listing

    foreign = installed.foreign_distribution()
    if foreign:
        print(f"warning: {foreign}\n")
    listed = sorted(listing.whole_listing(options.probe), key=lambda b: b.name)
    rows = [
        (
            b.name,
            b.state,
            f"{b.module} {b.library_version}".strip(),
            f"{b.distribution} {b.version}".strip(),
        )
        for b in listed
    ]
    print(table(("backend", "state", "library", "comes with"), rows))
    for b in listed:
        if b.devices or b.dtypes:
            print(
                f"\n{b.name}: devices {', '.join(b.devices) or 'none'}\n"
                f"{' ' * len(b.name)}  dtypes  {', '.join(b.dtypes) or 'none'}"
            )
    for b in listed:
        if b.state == "deferred" and not b.error:
            print(
                f"\n{b.name}: not imported before its library is; `python -m multigrad backends "
                "--probe` imports both and tells what is wrong"
            )
    for b in listed:
        if b.overrides:
            print(f"\n{b.name}: replaces operations of the standard: {', '.join(b.overrides)}")
    for b in listed:
        if b.error:
            print(f"\n{b.name}: {b.error}")
            if options.traceback and b.traceback:
                print(b.traceback.rstrip())
    return 0


def _runners(script_and_arguments: Sequence[str]) -> int:
    """Run a script and show what has become of the signatures of its calls."""
    from . import script
    from .dispatch import runners

    path, *arguments = script_and_arguments or ("",)
    if not Path(path).is_file():
        return _refused(f"no such file: {path}" if path else "--runners takes a script")

    def finish(status: int) -> int:
        rows = [tuple(map(str, row)) for row in runners.report()]
        heads = ("operation", "runners", "bytes", "dropped", "without one", "general calls")
        print(fitted(heads, rows))
        return status

    return script.run(path, arguments, finish)


def _ops(options: argparse.Namespace) -> int:
    if options.runners is not None:
        return _runners(options.runners)

    from . import registry
    from .plugins import loading

    loading.load(everything=True)
    try:
        matches = re.compile(options.grep, re.IGNORECASE).search
    except re.error as error:
        return _refused(f"--grep takes a regular expression, not {options.grep!r}: {error}")
    ops = [
        op
        for op in registry.OPS.values()
        if options.pattern in op.name
        and options.chapter in ("", op.chapter)
        and (matches(op.name) or matches(op.doc))
    ]
    if not ops:
        chapters = ", ".join(sorted({op.chapter for op in registry.OPS.values()}))
        return _refused(f"no operation of that name or chapter. The chapters are {chapters}.", 1)
    ops.sort(key=lambda op: (op.chapter, op.name))
    usable = _usable_backends()
    columns: dict[str, Callable[[Any], str]] = {
        "chapter": lambda op: str(op.chapter),
        "operation": lambda op: f"{op.name}{op.signature}",
        "kind": lambda op: str(op.kind),
        "gradient by: keeps": _keeps,
        "modes": _modes,
        "own form on": lambda op: _own(op, usable),
        "declared in": _declared_in,
    }
    rows = [[text(op) for text in columns.values()] for op in ops]
    print(fitted(list(columns), rows, LEFT_OUT_FIRST))
    return 0


def _keeps(op: Any) -> str:
    """List the differentiable arguments, each with the arrays saved for its gradient."""
    if op.kind == "composite":
        return ", ".join(op.arrays)
    return "; ".join(f"{a}: {', '.join(op.kept(a)) or '-'}" for a in op.differentiable)


def _modes(op: Any) -> str:
    """List the modes of an operation; a composite has the modes of its parts."""
    if op.kind == "composite":
        return "by its parts"
    if not op.differentiable:
        return ""
    jvp = op.jvp is not None or op.kind in ("elementwise", "linear", "multilinear")
    return "vjp jvp" if jvp else "vjp"


def _own(op: Any, usable: Sequence[Any]) -> str:
    """List the backends with an implementation or a derivative rule of their own."""
    forms = op.forward if isinstance(op.forward, dict) else {}
    return " ".join(
        b.name for b in usable if op.name in b.functions or op.name in b.rules or b.name in forms
    )


def _declared_in(op: Any) -> str:
    """Return the declaring module, and the module whose declaration it replaces, if any."""
    from .registry import OVERRIDDEN

    first = OVERRIDDEN.get(op.name, op.module)
    return op.module if first == op.module else f"{op.module}, in place of {first}"


def _usable_backends() -> list[Any]:
    """Return the backends whose libraries are installed and work."""
    from .errors import BackendError
    from .plugins import discovery, listing

    backends = []
    for line in sorted(listing.whole_listing(), key=lambda b: b.name):
        if line.state in ("available", "loaded"):
            try:
                backends.append(discovery.get(line.name))
            except BackendError as error:
                print(f"{line.name}: {error}", file=sys.stderr)
    return backends


def _conformance(options: argparse.Namespace) -> int:
    if importlib.util.find_spec("multigrad_conformance") is None:
        return _refused(
            "the conformance suite is the package multigrad-conformance: run "
            "pip install ./conformance in a checkout of multigrad"
        )
    from multigrad_conformance import commands

    return commands.main(options)


def _breaks(options: argparse.Namespace) -> int:
    from . import script
    from .autograd import detect_breaks

    watch = detect_breaks()
    report = watch.__enter__()
    leave_threads = script.watch_threads()

    def finish(status: int) -> int:
        leave_threads()
        watch.__exit__(None, None, None)
        sys.stdout.flush()
        print(report)
        return status

    return script.run(options.script, options.arguments, finish, options.leaving)


def _profile(options: argparse.Namespace) -> int:
    from . import script
    from .tools.report.run import Run

    output = Path(options.output).absolute()  # the script may change the working directory
    if output.is_dir() or not output.parent.is_dir():
        return _refused(f"cannot write there: {output}")
    command = shlex.join([options.script, *options.arguments])
    run = Run("script", Path(options.script).name, ("command", command))
    run.begin()

    def finish(status: int) -> int:
        stopped = f"ended with exit status {status}" if status else ""
        run.end(("exit status", status), stopped)
        sys.stdout.flush()
        try:
            run.write(output)
        except OSError as error:
            return _refused(f"the report could not be written: {error}", status or 2)
        print(f"report: {output}", file=sys.stderr)
        return status

    return script.run(options.script, options.arguments, finish, options.leaving)


def _new(options: argparse.Namespace) -> int:
    from . import templates

    try:
        folder, notes = templates.write(options.kind, options.name, Path.cwd(), options.module)
    except templates.TemplateError as error:
        return _refused(str(error))
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        print(path.relative_to(folder.parent))
    for note in notes:
        print(f"\n{note}")
    print(
        "\n"
        f'Next: cd {folder.name}; pip install -e ".[test]"; pytest. {folder.name}/README.md '
        "goes on from there."
    )
    return 0


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align columns below their heads."""
    return "\n".join(aligned([head, ["-" * len(h) for h in head], *rows]))


LEFT_OUT_FIRST = ("declared in", "own form on", "kind", "chapter")
"""The columns of the operations that a narrow terminal drops, the first one first."""


def fitted(
    head: Sequence[str], rows: Sequence[Sequence[str]], droppable: Sequence[str] = ()
) -> str:
    """Return the table in lines that fit the terminal, if stdout is one.

    If the table is too wide, columns are dropped, which the last line names, and long cells are
    cut.
    """
    if not sys.stdout.isatty():
        return table(head, rows)
    terminal = shutil.get_terminal_size().columns
    widths = {
        name: max(map(len, column))
        for name, column in zip(head, zip(head, *rows, strict=True), strict=True)
    }
    dropped: list[str] = []
    for name in droppable:
        if sum(widths.values()) + 2 * (len(widths) - 1) <= terminal:
            break
        del widths[name]
        dropped.append(name)
    room = terminal - 2 * (len(widths) - 1)
    most = max(widths.values())
    while most > 8 and sum(min(width, most) for width in widths.values()) > room:
        most -= 1

    def cut(line: Sequence[str]) -> list[str]:
        cells = [cell for name, cell in zip(head, line, strict=True) if name in widths]
        return [cell if len(cell) <= most else cell[: most - 1] + "…" for cell in cells]

    lines = table(cut(head), [cut(row) for row in rows])
    if not dropped:
        return lines
    return f"{lines}\n\n" + textwrap.fill(
        f"Left out for want of width: {', '.join(dropped)}. A file or a pipe gets all.",
        max(terminal, 20),
    )


class _Version(argparse.Action):
    """Print the versions, then exit."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import multigrad

        from .plugins import listing

        print(f"multigrad {multigrad.__version__} (Python {platform.python_version()})")
        for b in sorted(listing.whole_listing(), key=lambda b: b.name):
            if b.library_version:
                print(f"{b.module} {b.library_version}")
        parser.exit()
