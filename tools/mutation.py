"""Mutation test: mutants of multigrad's rules, and which survive the short conformance level.

    make test-mutation      (python tools/mutation.py [--count 300] [--seed 17] [--jobs 2]
                            [--only TEXT] [--json PATH])

A mutant is one small mistake in one rule: a wrong sign, a missing conjugate or real part, a dropped
term, a wrong axis, swapped arguments, a comparison of another strictness, another constant. A
seeded sample is tried, each mutant in its own process on NumPy. The tests are the short cells of
the operations whose rules contain the line, or call a kernel that does, until one fails. Each
mutant's membership in the sample depends on that mutant alone, so the sample hardly changes when
rules change elsewhere. Equivalent mutants, which give the same derivative, are listed with a reason
in tools/mutation_equivalent.txt: `key | reason`, with the key that this command prints for a
survivor. The exit status is 1 if less than 95 % of the others are killed, or if a listed mutant is
killed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import dis
import functools
import importlib.machinery
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name
from types import CodeType, FunctionType, ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OPS = ROOT / "multigrad" / "ops"
EQUIVALENT = Path(__file__).with_name("mutation_equivalent.txt")
WANTED = 0.95
SECONDS = 120
FULL = "full level: "

Lines = set[tuple[str, int]]


@dataclass(frozen=True)
class Mutant:
    """One mistake: place, kind, text before and after, affected operations, and mutated source."""

    key: str
    path: str
    line: int
    kind: str
    before: str
    after: str
    operations: tuple[str, ...]
    source: str


# ----- mistakes -----


def _replacements(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the kinds of mistakes at a node, with the replaced node."""
    if isinstance(node, ast.BinOp):
        yield from _in_sum(node)
        if isinstance(node.op, ast.Sub | ast.Div | ast.MatMult | ast.Pow):
            yield "swapped arguments", ast.BinOp(node.right, node.op, node.left)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "sign", node.operand
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}.get(
            type(node.ops[0])
        )
        if other is not None:
            yield "strictness", ast.Compare(node.left, [other()], node.comparators)
    elif isinstance(node, ast.Call):
        yield from _in_call(node)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield "constant", ast.Constant(node.value + 1)


def _in_sum(node: ast.BinOp) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node.op, ast.Add | ast.Sub):
        yield (
            "sign",
            ast.BinOp(
                node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right
            ),
        )
        yield "dropped term", node.left
        yield (
            "dropped term",
            node.right if isinstance(node.op, ast.Add) else ast.UnaryOp(ast.USub(), node.right),
        )


def _in_call(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    name = (
        node.func.attr
        if isinstance(node.func, ast.Attribute)
        else node.func.id
        if isinstance(node.func, ast.Name)
        else ""
    )
    arrays = node.args[1:] if node.args and ast.unparse(node.args[0]) == "xp" else node.args
    if name in ("conj", "adjoint", "real") and len(arrays) == 1:
        yield (
            "conj",
            ast.Call(ast.Attribute(ast.Name("xp"), "matrix_transpose"), arrays, [])
            if name == "adjoint"
            else arrays[0],
        )
    if name in (
        "where",
        "subtract",
        "divide",
        "atan2",
        "pow",
        "take",
        "take_along_axis",
        "tensordot",
        "outer",
        "cross",
        "solve",
        "vecdot",
    ):
        first = 1 if name == "where" else 0
        if len(node.args) >= first + 2 and not any(isinstance(a, ast.Starred) for a in node.args):
            args = [
                *node.args[:first],
                node.args[first + 1],
                node.args[first],
                *node.args[first + 2 :],
            ]
            yield "swapped arguments", ast.Call(node.func, args, node.keywords)
    for i, keyword in enumerate(node.keywords):
        if keyword.arg == "axis" and not isinstance(keyword.value, ast.Tuple):
            other: ast.expr = (
                ast.Constant(0) if ast.unparse(keyword.value) == "-1" else ast.Constant(-1)
            )
            yield (
                "wrong axis",
                ast.Call(
                    node.func,
                    node.args,
                    [*node.keywords[:i], ast.keyword("axis", other), *node.keywords[i + 1 :]],
                ),
            )


def _skipped(node: ast.AST) -> bool:
    """Return whether a node has no effect on the meaning of a rule.

    Examples are messages, annotations, assertions, and an inferred length, for which NumPy takes
    any negative number.
    """
    return isinstance(
        node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom
    ) or (isinstance(node, ast.Tuple) and ast.unparse(node) == "(-1,)")


def _walk(node: ast.AST, inside: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Yield the expressions of a module, each with the function or declaration that contains it."""
    if _skipped(node):
        return
    if isinstance(node, ast.FunctionDef):
        inside = f"{node.name}()"  # this is never the name of an operation
        children: Iterable[ast.AST] = node.body
    elif isinstance(node, ast.AnnAssign):
        children = [node.value] if node.value else []
    elif (
        isinstance(node, ast.Call)
        and not inside
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    ):
        inside = re.split(r"\W", node.args[0].value.replace(".", "_"))[0]
        children = [
            k.value
            for k in node.keywords
            if k.arg not in ("doc", "operator", "forward", "batching", "view", "chapter", "kind")
        ]
    else:
        children = ast.iter_child_nodes(node)
    yield node, inside
    for child in children:
        yield from _walk(child, inside)


def mutants(operations_at: Callable[[str, int, str], tuple[str, ...]]) -> Iterator[Mutant]:
    """Yield all mutants of the rules, in the order of the text."""
    for path in sorted(OPS.rglob("*.py")):
        text = path.read_text()
        lines = text.encode().splitlines(keepends=True)
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line))
        seen: Counter[str] = Counter()
        name = path.relative_to(ROOT).as_posix()
        for node, inside in _walk(ast.parse(text)):
            if not hasattr(node, "lineno"):
                continue
            touched = operations_at(str(path), node.lineno, inside)  # type: ignore[attr-defined]
            for kind, other in _replacements(node) if touched else ():
                begin, end = (
                    starts[node.lineno - 1] + node.col_offset,
                    starts[node.end_lineno - 1] + node.end_col_offset,
                )  # type: ignore[attr-defined]
                before, after = (
                    ast.unparse(node),
                    ast.unparse(ast.fix_missing_locations(copy.deepcopy(other))),
                )
                if before == after:  # x @ x
                    continue
                key = f"{name}:{inside}: {before} -> {after}"
                seen[key] += 1
                if seen[key] > 1:
                    key += f" ({seen[key]})"
                source = (
                    text.encode()[:begin] + f"({after})".encode() + text.encode()[end:]
                ).decode()
                yield Mutant(key, name, node.lineno, kind, before, after, touched, source)  # type: ignore[attr-defined]


# ----- the operations of a line -----


def lines_of_rules() -> dict[str, Lines]:
    """Return for each operation the lines of its derivative rules and of the functions they call.

    The functions are those of multigrad. The lines have no particular order.
    """
    from multigrad import extend
    from multigrad.namespace import load
    from multigrad.registry import OPS as TABLE
    from multigrad.registry import Rule

    load()
    kernels = {op.name: _forms(op.forward) for op in TABLE.values() if op.chapter == "kernels"}
    elsewhere = set(extend.backend("numpy").functions)  # the suite compares them with these forms
    called = {name: forms for name, forms in kernels.items() if name not in elsewhere}
    lines: dict[str, Lines] = {}
    for op in TABLE.values():
        rules = [op.vjp] if isinstance(op.vjp, Rule) else list(op.vjp.values())
        rules += [op.jvp] if op.jvp is not None else []
        rules += [r for rule in rules for r in rule.residuals.values()]
        functions = [rule.fn for rule in rules if callable(rule.fn)]
        lines[op.name] = _lines([*functions, *kernels.get(op.name, ())], called)
    return lines


def _forms(forward: Any) -> list[Any]:
    """Return the functions that carry a kernel out."""
    form = forward.get("*") if isinstance(forward, dict) else forward
    return [resolve_name(form) if isinstance(form, str) else form]


def _lines(functions: Iterable[Any], kernels: dict[str, list[Any]]) -> Lines:
    lines: Lines = set()
    seen: set[int] = set()
    waiting = deque(functions)
    while waiting:
        f = waiting.popleft()
        f = f.func if isinstance(f, functools.partial) else getattr(f, "__wrapped__", f)
        if (
            not isinstance(f, FunctionType)
            or id(f) in seen
            or not f.__module__.startswith("multigrad.ops")
        ):
            continue
        seen.add(id(f))
        names = _take(f.__code__, lines)
        waiting += [
            cell.cell_contents for cell in f.__closure__ or () if callable(cell.cell_contents)
        ]
        waiting += [
            form for name, kernel in names if name == "xp" for form in kernels.get(kernel, ())
        ]
        known = [
            (f.__globals__[name], attribute) for name, attribute in names if name in f.__globals__
        ]
        waiting += [
            getattr(x, attribute, None) if isinstance(x, ModuleType) else x
            for x, attribute in known
        ]
    return lines


def _take(code: CodeType, lines: Lines) -> set[tuple[str, str]]:
    """Record the lines of a code object and of the code objects inside it.

    Returns the global names that they use, and xp, each with the attribute that is read from it, or
    "".
    """
    lines |= {(code.co_filename, line) for _, _, line in code.co_lines() if line is not None}
    steps = [
        step
        for step in dis.get_instructions(code)
        if step.opname not in ("CACHE", "PUSH_NULL", "PRECALL")
    ]
    names = {
        (str(a.argval), str(b.argval) if b.opname in ("LOAD_ATTR", "LOAD_METHOD") else "")
        for a, b in pairwise(steps)
        if a.opname in ("LOAD_GLOBAL", "LOAD_NAME") or a.argval == "xp"
    }
    return names.union(*(_take(c, lines) for c in code.co_consts if isinstance(c, CodeType)))


def touching() -> Callable[[str, int, str], tuple[str, ...]]:
    """Return a function from a line of a file to the operations that it is part of.

    The operations with the fewest lines come first.
    """
    rules = lines_of_rules()
    by_line: dict[tuple[str, int], list[str]] = {}
    for operation in sorted(rules, key=lambda o: len(rules[o])):
        for place in rules[operation]:
            by_line.setdefault(place, []).append(operation)
    declared = {name.replace(".", "_"): name for name in rules}

    def operations_at(path: str, line: int, inside: str) -> tuple[str, ...]:
        own = (declared[inside],) if inside in declared and _declares(path, inside) else ()
        return tuple(by_line.get((path, line), ())) or own

    return operations_at


@functools.cache
def _declares(path: str, inside: str) -> bool:
    """Return whether the file declares an operation of that name.

    Code outside functions is then part of that operation.
    """
    return (
        re.search(rf'^\w+\("{inside.replace("_", "[._]")}\(', Path(path).read_text(), re.MULTILINE)
        is not None
    )


# ----- running a mutant -----


class _Loader(importlib.machinery.SourceFileLoader):
    source = ""

    def get_code(self, fullname: str) -> Any:
        return compile(self.source, self.path, "exec")


class _Finder:
    """An import finder that gives one module another source."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.source = module, source

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        assert spec is not None and spec.origin is not None
        loader = _Loader(name, spec.origin)
        loader.source = self.source
        return importlib.util.spec_from_file_location(
            name,
            spec.origin,
            loader=loader,
            submodule_search_locations=spec.submodule_search_locations,
        )


def worker(full: bool) -> None:
    """Read mutants, one per line, and answer each with the test that killed it, or "".

    Each is tried in a fork, which imports multigrad anew.
    """
    import array_api_compat.numpy  # noqa: F401  what all of them import
    import pluggy  # noqa: F401

    for line in sys.stdin:
        mutant = json.loads(line)
        receiving, sending = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            os.write(sending, _verdict(mutant, full).encode()[:4000])
            os._exit(0)
        os.close(sending)
        with os.fdopen(receiving) as pipe:
            verdict = pipe.read()
        _, status = os.waitpid(child, 0)
        print(
            json.dumps(verdict if status == 0 else f"the process ended with {status}"), flush=True
        )


def _verdict(mutant: dict[str, Any], full: bool) -> str:
    """Return the test that kills a mutant, "" if none does at the short level.

    With `full`, the result for a survivor is FULL and the test of the full level that kills it.
    """
    import warnings

    warnings.simplefilter("ignore")
    if mutant["path"]:
        module = mutant["path"].removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        sys.meta_path.insert(0, _Finder(module, mutant["source"]))  # type: ignore[arg-type]
    try:
        from multigrad_conformance import cells

        chosen = cells.selected("numpy", "short", mutant["operations"])
    except BaseException as error:
        return f"import: {type(error).__name__}: {error}"
    by = _killer(chosen)
    if not by and full:
        tried = {cell.id for cell in chosen}
        by = _killer(
            c for c in cells.selected("numpy", "full", mutant["operations"]) if c.id not in tried
        )
        return FULL + by if by else ""
    return by


def _killer(chosen: Iterable[Any]) -> str:
    for cell in chosen:
        try:
            cell.execute()
        except BaseException as error:
            return f"{cell.id}: {type(error).__name__}: {str(error).strip()[:200]}"
    return ""


def attempt(sample: Sequence[Mutant], jobs: int, full: bool) -> list[str]:
    """Return what killed each mutant, "" for a survivor."""
    paths = [str(ROOT), str(ROOT / "conformance"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "MULTIGRAD_BLOCK": "jax,cupy,strict,special",
        "OPENBLAS_NUM_THREADS": "1",
    }
    waiting = deque(enumerate(sample))
    verdicts = [""] * len(sample)
    started = time.monotonic()

    def serve() -> None:
        command = [sys.executable, __file__, "--worker", *(["--full"] if full else [])]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            while waiting:
                try:
                    i, mutant = waiting.popleft()
                except IndexError:
                    break
                print(json.dumps(asdict(mutant)), file=process.stdin, flush=True)
                verdicts[i] = json.loads(process.stdout.readline())
                if sys.stderr.isatty():
                    print(
                        f"\r{len(sample) - len(waiting)} of {len(sample)}, "
                        f"{time.monotonic() - started:.0f} s",
                        end="",
                        file=sys.stderr,
                    )
            process.stdin.close()

    with ThreadPoolExecutor(jobs) as pool:
        for served in [pool.submit(serve) for _ in range(jobs)]:
            served.result()
    return verdicts


def equivalents() -> dict[str, str]:
    """Return the mutants that give the same derivative, with the reasons."""
    lines = (
        [
            line
            for line in EQUIVALENT.read_text().splitlines()
            if line.strip() and not line.startswith("#")
        ]
        if EQUIVALENT.exists()
        else []
    )
    return {
        key.strip(): reason.strip() for key, _, reason in (line.rpartition(" | ") for line in lines)
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=300, help="how many mutants to try; 0: all")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--only",
        default="",
        metavar="TEXT",
        help="only mutants of the sample whose key has that text",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="say of each survivor which test of the full level kills it",
    )
    parser.add_argument("--json", metavar="PATH", help="write what became of each")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.full)
        return 0
    everything = list(mutants(touching()))
    sample = sorted(everything, key=lambda m: zlib.crc32(f"{options.seed} {m.key}".encode()))[
        : options.count or None
    ]
    sample = [m for m in sample if options.only in m.key]
    known = equivalents()
    verdicts = attempt(sample, options.jobs, options.full)
    if options.json:
        outcomes = [
            {"key": m.key, "kind": m.kind, "line": m.line, "operations": m.operations, "by": v}
            for m, v in zip(sample, verdicts, strict=True)
        ]
        Path(options.json).write_text(json.dumps(outcomes, indent=1) + "\n")
    return _report(sample, verdicts, known, len(everything))


def _report(
    sample: Sequence[Mutant], verdicts: Sequence[str], known: dict[str, str], total: int
) -> int:
    """Print the survivors, and errors in the list of equivalent mutants."""
    later = {
        m.key: verdict
        for m, verdict in zip(sample, verdicts, strict=True)
        if verdict.startswith(FULL)
    }
    verdicts = ["" if verdict.startswith(FULL) else verdict for verdict in verdicts]
    survivors = [m for m, verdict in zip(sample, verdicts, strict=True) if not verdict]
    alive = [m for m in survivors if m.key not in known]
    wrong = [m for m, verdict in zip(sample, verdicts, strict=True) if verdict and m.key in known]
    others = len(sample) - (len(survivors) - len(alive))
    for m in alive:
        print(
            f"survived: {m.key}\n"
            f"    line {m.line}, {m.kind}; "
            f"{', '.join(m.operations[:6])}{' ...' * (len(m.operations) > 6)}"
        )
        if m.key in later:
            print(f"    {later[m.key]}")
    for m in wrong:
        print(f"killed, yet listed as equivalent: {m.key}")
    kinds = Counter(m.kind for m in sample)
    lost = Counter(m.kind for m in alive)
    print("; ".join(f"{kind}: {n - lost[kind]} of {n}" for kind, n in sorted(kinds.items())))
    rate = (others - len(alive)) / max(others, 1)
    print(
        f"{len(sample)} of {total} mutants: {others - len(alive)} killed, {len(alive)} "
        f"survived, {len(survivors) - len(alive)} equivalent; {rate:.1%}"
    )
    return int(rate < WANTED or bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
