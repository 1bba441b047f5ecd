"""Mutation test: mutants of multigrad, and which of them survive the tests.

    make test-mutation      (python tools/mutation.py [rules] [engine] [--count 300] [--seed 17]
                            [--jobs 2] [--only TEXT] [--json PATH] [--compare PATH]
                            [--tests PATH ...] [--deselect PATH ...])

A mutant is one small mistake, of the tables in tools/mistakes.py. Each of a seeded sample is tried
in a process of its own on NumPy, until a test fails.

rules: A wrong sign, a missing conjugate, a dropped term, a wrong axis, another constant. The tests
are the short cells of the operations whose rules contain the line, or call a kernel that does. Each
mutant's membership in the sample depends on that mutant alone, so the sample hardly changes when
rules change elsewhere.

engine: A negated condition, a returned None, exchanged arguments, a dropped statement or lock. The
sample takes the same number of mutants in each room, from as many functions as possible. The tests
are those on NumPy that execute the statement, of the short level: those of the room first, then the
fastest ones of each test function, up to a limit of seconds. Which statements a test executes is
recorded once, in the environment's folder, until multigrad/ or tests/ change. `--tests` takes other
paths than tests/, as `--tests tests/properties -m ""`, `--deselect` leaves paths out, and
`--compare` prints what differs from a run that `--json` has written: together they show what a test
file adds.

Equivalent mutants, which give the same results, are listed with a reason in
tools/mutation_equivalent.txt: `key | reason`, with the key that this command prints for a survivor.
The exit status is 1 if the share of the others that is killed is less than WANTED has, if a listed
mutant is killed, or if a test that killed a mutant fails without one.
"""

from __future__ import annotations

import argparse
import ast
import dis
import functools
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import pickle
import re
import resource
import select
import signal
import subprocess
import sys
import time
import zlib
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name
from types import CodeType, FunctionType, ModuleType
from typing import Any

from mistakes import Mistake, Mutant, in_engine, in_rules, mutants

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("memory", "core", "dispatch", "layers", "backward", "compiling", "custom", "func")
EQUIVALENT = Path(__file__).with_name("mutation_equivalent.txt")
WANTED = {"rules": 0.95, "engine": 0.80}
SECONDS = 600
"""The longest that a mutant may take, as a deadlock does."""
NUMPY = "not slow and not sweep"
"""The markers of the tests to take; with these ones, none on another library is taken."""
FIRST = 40
"""How many tests are tried first."""
FULL = "full level: "

Lines = set[tuple[str, int]]
Place = tuple[str, int]


@dataclass
class Trial:
    """A mutant, the names of its tests or operations in the order to try, and what killed it."""

    mutant: Mutant
    tests: Sequence[str]
    limit: float = SECONDS
    by: str = ""
    seconds: float = 0.0


# ----- the operations of a line -----


def lines_of_rules() -> dict[str, Lines]:
    """Return for each operation the lines of its derivative rules and of the functions they call.

    The functions are those of multigrad. The lines have no particular order.
    """
    from multigrad import extend
    from multigrad.registry import OPS as TABLE
    from multigrad.registry import Rule, fill

    fill()
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


# ----- the tests of a statement -----


@dataclass
class Record:
    """The tests, with the seconds that each takes and the numbers of the places it executes."""

    digest: str
    places: list[Place] = field(default_factory=list)
    imported: set[int] = field(default_factory=set)
    tests: dict[str, tuple[float, array[int]]] = field(default_factory=dict)


class _Counting(ast.NodeTransformer):
    """Puts before each statement of a function a call that notes that it is executed."""

    def __init__(self, path: str, places: list[Place]) -> None:
        self.path, self.places, self.inside = path, places, False

    def generic_visit(self, node: ast.AST) -> ast.AST:
        outer, self.inside = self.inside, self.inside or isinstance(node, ast.FunctionDef)
        super().generic_visit(node)
        if self.inside and not isinstance(node, ast.Lambda):
            for block in ("body", "orelse", "finalbody"):
                if isinstance(statements := getattr(node, block, None), list):
                    setattr(node, block, [s for old in statements for s in self._noted(old)])
        self.inside = outer
        return node

    def _noted(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            call = ast.parse(f"__executed__({len(self.places)})").body[0]
            yield ast.copy_location(call, statement)
            self.places.append((self.path, statement.lineno))
        yield statement


def recorded(paths: Sequence[str], marker: str) -> Record:
    """Return which statements of the rooms each test executes, from the file of the last time."""
    options = hashlib.sha256(repr((paths, marker)).encode())
    file = Path(sys.prefix) / f"mutation-{options.hexdigest()[:8]}.pickle"
    text = hashlib.sha256()
    for folder in ("multigrad", "tests"):
        for source in sorted((ROOT / folder).rglob("*.py")):
            text.update(source.read_bytes())
    digest = text.hexdigest()
    if file.exists():
        found: Record = pickle.loads(file.read_bytes())
        if found.digest == digest:
            return found
    print("recording which statements each test executes", file=sys.stderr)
    run = subprocess.run(
        [sys.executable, __file__, "--record", str(file), digest, "--tests", *paths, "-m", marker],
        env=_environment("engine"),
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if run.returncode:
        raise SystemExit(f"recording failed:\n{run.stdout}{run.stderr}")
    print(run.stdout.splitlines()[-1], file=sys.stderr)
    return pickle.loads(file.read_bytes())  # type: ignore[no-any-return]


def record(file: Path, digest: str, paths: Sequence[str], marker: str) -> None:
    """Run the tests over counting sources, and write the record. A test that fails is left out."""
    import builtins

    import pytest

    made = Record(digest)
    executed: set[int] = set()
    builtins.__executed__ = executed.add  # type: ignore[attr-defined]

    def count(path: str) -> Any:
        name = Path(path).relative_to(ROOT).as_posix()
        tree = _Counting(name, made.places).visit(ast.parse(Path(path).read_text()))
        return compile(ast.fix_missing_locations(tree), path, "exec")

    failed: set[str] = set()

    class Recording:
        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items: list[Any]) -> None:
            if marker == NUMPY:
                items[:] = [item for item in items if _is_on_numpy(item)]

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_protocol(self, item: Any) -> Any:
            made.imported.update(executed)
            executed.clear()
            started = time.process_time()
            result = yield
            made.tests[item.nodeid] = time.process_time() - started, array("I", executed)
            executed.clear()
            return result

        def pytest_runtest_logreport(self, report: Any) -> None:
            if not report.passed:
                failed.add(report.nodeid)

    sys.meta_path.insert(0, _Finder({f"multigrad.{room}" for room in ROOMS}, count))
    away = ("consumers", "conformance", "precision", "plugins", "project")
    ignored = [f"--ignore={ROOT / 'tests' / name}" for name in away]
    status = pytest.main([*_OPTIONS, "-m", marker, *ignored, *paths], plugins=[Recording()])
    if status not in (0, 1):
        raise SystemExit(f"pytest ended with {status}")
    for test in failed:
        made.tests.pop(test, None)
    file.write_bytes(pickle.dumps(made))
    print(f"{len(made.tests)} tests; {len(failed)} that fail or skip are left out")


def _is_on_numpy(item: Any) -> bool:
    """Return whether no parameter of a test is another library."""
    of = getattr(item, "callspec", None)
    texts = {x for x in of.params.values() if isinstance(x, str)} if of else set()
    return not texts & {"jax", "strict", "array_api_strict"}


def tests_of(
    sample: Sequence[Mutant], made: Record, deselected: Sequence[str], limit: float
) -> list[Trial]:
    """Return the mutants with the tests that execute their statements, in the order to try.

    They are tests that together take `limit` seconds.
    """
    number = {place: n for n, place in enumerate(made.places)}
    at: defaultdict[int, list[str]] = defaultdict(list)
    chosen = {name: t for name, t in made.tests.items() if not name.startswith(tuple(deselected))}
    ranks: dict[str, int] = {}
    met: Counter[str] = Counter()
    for name in sorted(chosen, key=lambda name: chosen[name][0]):
        function = name.partition("[")[0]
        ranks[name] = met[function]
        met[function] += 1
    wanted = {number.get((m.path, m.statement), -1) for m in sample}
    for name, (_, executed) in chosen.items():
        for n in wanted.intersection(executed):
            at[n].append(name)
    trials = []
    for mutant in sample:
        n = number.get((mutant.path, mutant.statement), -1)
        executing, own = set(at[n]), f"tests/{mutant.room}/"
        candidates = executing.union(chosen if n in made.imported or n < 0 else ())
        names = sorted(
            candidates,
            key=lambda t: (t not in executing, not t.startswith(own), ranks[t], chosen[t][0]),
        )
        total, kept = 0.0, []
        for name in names:
            total += chosen[name][0]
            kept.append(name)
            if total > limit and len(kept) >= FIRST:
                break
        trials.append(Trial(mutant, kept, 10 + 4 * total))
    return trials


# ----- running a mutant -----

_OPTIONS = ["-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", "--hypothesis-seed=0"]


class _Loader(importlib.machinery.SourceFileLoader):
    code: Callable[[str], Any]

    def get_code(self, fullname: str) -> Any:
        return self.code(self.path)


class _Finder:
    """An import finder that takes the code of some modules, and of packages, from a function."""

    def __init__(self, names: set[str], code: Callable[[str], Any]) -> None:
        self.names, self.code = names, code

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not any(name == own or name.startswith(f"{own}.") for own in self.names):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        assert spec is not None and spec.origin is not None
        loader = _Loader(name, spec.origin)
        loader.code = self.code  # type: ignore[method-assign]
        return importlib.util.spec_from_file_location(
            name,
            spec.origin,
            loader=loader,
            submodule_search_locations=spec.submodule_search_locations,
        )


def worker(part: str, full: bool) -> None:
    """Read mutants with their tests, one per line, and answer each with what killed it, or "".

    Each is tried in a fork, which imports multigrad anew.
    """
    import array_api_compat.numpy  # noqa: F401  what all of them import
    import hypothesis  # noqa: F401
    import pluggy  # noqa: F401
    import pytest  # noqa: F401

    for line in sys.stdin:
        trial = json.loads(line)
        names = trial["tests"]
        # Most mutants fall to the first tests: a process for them alone collects few files.
        batches = [names[:FIRST], names[FIRST:]] if part == "engine" else [names]
        by = ""
        for batch in batches:
            if batch and not by:
                by = _in_fork(lambda: _verdict(part, trial["mutant"], batch, full), trial["limit"])  # noqa: B023
        print(json.dumps(by), flush=True)


def _in_fork(verdict: Callable[[], str], limit: float) -> str:
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
        resource.setrlimit(resource.RLIMIT_AS, (2**34, 2**34))
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(1, 2)
        os.write(sending, verdict().encode()[:4000])
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as pipe:
        if not select.select([pipe], [], [], SECONDS)[0]:
            os.kill(child, signal.SIGKILL)
        by = pipe.read()
    _, status = os.waitpid(child, 0)
    return by if status == 0 else f"the process ended with {status}"


def _verdict(part: str, mutant: dict[str, Any], tests: Sequence[str], full: bool) -> str:
    """Return the test that kills a mutant, or "".

    With `full`, the result for a rule that survives the short level is FULL and the test of the
    full level that kills it.
    """
    import warnings

    if mutant["path"]:
        module = mutant["path"].removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        code = functools.partial(compile, mutant["source"], mode="exec")
        sys.meta_path.insert(0, _Finder({module}, code))  # type: ignore[arg-type]
    if part == "engine":
        return _failing(tests)
    warnings.simplefilter("ignore")
    try:
        from multigrad_conformance import cells

        chosen = cells.selected("numpy", "short", tests)
    except BaseException as error:
        return f"import: {type(error).__name__}: {error}"
    by = _killer(chosen)
    if not by and full:
        tried = {cell.id for cell in chosen}
        by = _killer(c for c in cells.selected("numpy", "full", tests) if c.id not in tried)
        return FULL + by if by else ""
    return by


def _killer(chosen: Iterable[Any]) -> str:
    for cell in chosen:
        try:
            cell.execute()
        except BaseException as error:
            return f"{cell.id}: {type(error).__name__}: {str(error).strip()[:200]}"
    return ""


def _failing(tests: Sequence[str]) -> str:
    """Run tests in their order until one fails, and return it, or ""."""
    import pytest

    order = {name: i for i, name in enumerate(tests)}

    class Chosen:
        by = ""

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items: list[Any]) -> None:
            found = [item for item in items if item.nodeid in order]
            items[:] = sorted(found, key=lambda item: order[item.nodeid])

        def pytest_runtest_logreport(self, report: Any) -> None:
            self._take(report)

        def pytest_collectreport(self, report: Any) -> None:
            self._take(report)

        def _take(self, report: Any) -> None:
            if report.failed and not self.by:
                lines = str(report.longreprtext).splitlines()
                error = next((line for line in lines if line.startswith("E ")), "")
                self.by = f"{report.nodeid}: {error[1:].strip()[:200]}"

    plugin = Chosen()
    files = dict.fromkeys(str(ROOT / name.partition("::")[0]) for name in tests)
    try:
        status = pytest.main([*_OPTIONS, "-x", *files], plugins=[plugin])
    except BaseException as error:
        return f"pytest: {type(error).__name__}: {error}"
    return plugin.by or ("" if status in (0, 5) else f"pytest ended with {status}")


def _environment(part: str) -> dict[str, str]:
    paths = [str(ROOT), str(ROOT / "conformance"), os.environ.get("PYTHONPATH", "")]
    blocked = {"MULTIGRAD_BLOCK": "jax,cupy,strict,special"} if part == "rules" else {}
    return {
        **os.environ,
        **blocked,
        "PYTHONPATH": os.pathsep.join(paths),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


def attempt(part: str, trials: Sequence[Trial], jobs: int, full: bool = False) -> None:
    """Set what killed each mutant, and the seconds it took; "" for a survivor."""
    waiting = deque(trials)

    def serve() -> None:
        command = [sys.executable, __file__, "--worker", part, *(["--full"] if full else [])]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(part),
            cwd=ROOT,
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            while waiting:
                try:
                    trial = waiting.popleft()
                except IndexError:
                    break
                started = time.monotonic()
                print(json.dumps(asdict(trial)), file=process.stdin, flush=True)
                trial.by = json.loads(process.stdout.readline())
                trial.seconds = round(time.monotonic() - started, 1)
                done = f"{len(trials) - len(waiting)} of {len(trials)}, {trial.seconds:4.1f} s"
                print(
                    f"{done}: {trial.mutant.key}: {trial.by.partition(chr(10))[0] or 'survived'}",
                    file=sys.stderr,
                )
            process.stdin.close()

    with ThreadPoolExecutor(jobs) as pool:
        for served in [pool.submit(serve) for _ in range(jobs)]:
            served.result()


# ----- choosing and reporting -----


def in_order(all_of_them: Iterable[Mutant], seed: int, spread: bool) -> list[Mutant]:
    """Return the mutants in an order that the seed gives; to spread: one of each function first."""

    def draw(m: Mutant) -> int:
        return zlib.crc32(f"{seed} {m.key}".encode())

    drawn = sorted(all_of_them, key=draw)
    if not spread:
        return drawn
    met: Counter[tuple[str, str]] = Counter()
    ranks = {}
    for m in drawn:
        ranks[m.key] = met[m.path, m.inside]
        met[m.path, m.inside] += 1
    return sorted(drawn, key=lambda m: ranks[m.key])


def mutants_of(room: str, table: Callable[[ast.AST], Iterator[Mistake]]) -> Iterator[Mutant]:
    for path in sorted((ROOT / "multigrad" / room).rglob("*.py")):
        yield from mutants(path.relative_to(ROOT).as_posix(), path.read_bytes(), table)


def trials_of_rules(options: argparse.Namespace) -> list[Trial]:
    at = touching()
    found = [
        Trial(m, operations)
        for m in mutants_of("ops", in_rules)
        if (operations := at(str(ROOT / m.path), m.line, m.inside))
    ]
    by_key = {trial.mutant.key: trial for trial in found}
    sample = in_order((t.mutant for t in found), options.seed, spread=False)
    return [by_key[m.key] for m in sample[: options.count or None] if options.only in m.key]


def trials_of_engine(options: argparse.Namespace) -> list[Trial]:
    sample: list[Mutant] = []
    for room in ROOMS:
        found = in_order(mutants_of(room, in_engine), options.seed, spread=True)
        sample += found[: -(-options.count // len(ROOMS)) or None]
    sample = [m for m in sample if options.only in m.key]
    return tests_of(sample, recorded(options.tests, options.m), options.deselect, options.limit)


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
    parser.add_argument("parts", nargs="*", metavar="part", help="rules, engine; otherwise both")
    parser.add_argument(
        "--count", type=int, default=300, help="how many mutants of each part to try; 0: all"
    )
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--only",
        default="",
        metavar="TEXT",
        help="only mutants of the sample whose key has that text",
    )
    parser.add_argument(
        "--tests", nargs="+", default=["tests"], metavar="PATH", help="the tests of the engine"
    )
    parser.add_argument(
        "--deselect", nargs="+", default=[], metavar="PATH", help="tests of the engine to leave out"
    )
    parser.add_argument(
        "-m", default=NUMPY, metavar="MARKERS", help="the markers of those tests, as in pytest"
    )
    parser.add_argument(
        "--limit", type=float, default=10, metavar="SECONDS", help="of tests of a mutant"
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="say of each rule that survives which test of the full level kills it",
    )
    parser.add_argument("--json", metavar="PATH", help="write what became of each")
    parser.add_argument("--compare", metavar="PATH", help="print what differs from that --json")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--record", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker or options.record:
        sys.path.remove(str(Path(__file__).parent))  # tools/parity.py would hide tests/parity
    if options.worker:
        worker(options.worker, options.full)
        return 0
    if options.record:
        record(Path(options.record[0]), options.record[1], options.tests, options.m)
        return 0
    known = equivalents()
    status = 0
    everything: list[Trial] = []
    for part in options.parts or WANTED:
        trials = {"rules": trials_of_rules, "engine": trials_of_engine}[part](options)
        attempt(part, trials, options.jobs, options.full)
        everything += trials
        status |= report(part, trials, known) | (part == "engine" and _control(trials))
    outcomes = [
        asdict(trial.mutant)
        | {"room": trial.mutant.room, "by": trial.by, "seconds": trial.seconds}
        | {"tests": len(trial.tests), "source": None}
        for trial in everything
    ]
    if options.json:
        Path(options.json).write_text(json.dumps(outcomes, indent=1) + "\n")
    if options.compare:
        compare(outcomes, json.loads(Path(options.compare).read_text()))
    return status


def _control(trials: Sequence[Trial]) -> int:
    """Run the tests that killed mutants without any, and return 1 if one of them fails."""
    names = {trial.by.partition(": ")[0] for trial in trials}
    killers = sorted(name for trial in trials for name in names.intersection(trial.tests))
    none = Trial(Mutant("", "", "", 0, 0, "", "", "", ""), list(dict.fromkeys(killers)))
    attempt("engine", [none], 1)
    if none.by:
        print(f"fails without a mistake: {none.by}")
    return int(bool(none.by))


def report(part: str, trials: Sequence[Trial], known: dict[str, str]) -> int:
    """Print the survivors, errors in the list of equivalent mutants, and the shares by room."""
    survivors = [t for t in trials if not t.by or t.by.startswith(FULL)]
    alive = [t for t in survivors if t.mutant.key not in known]
    wrong = [t for t in trials if t not in survivors and t.mutant.key in known]
    for t in alive:
        tests = ", ".join(t.tests[:6]) + " ..." * (len(t.tests) > 6) if part == "rules" else ""
        print(
            f"survived: {t.mutant.key}\n    {t.mutant.path}:{t.mutant.line}, {t.mutant.kind}; "
            f"{tests or f'{len(t.tests)} tests'}{f'; {t.by}' if t.by else ''}"
        )
    for t in wrong:
        print(f"killed, yet listed as equivalent: {t.mutant.key}")
    for t in trials:
        if t.by.startswith("the process ended"):
            print(f"killed by the end of its process: {t.mutant.key}: {t.by}")
    for what in ("kind", "room"):
        tried = Counter(getattr(t.mutant, what) for t in trials if t.mutant.key not in known)
        lost = Counter(getattr(t.mutant, what) for t in alive)
        print("; ".join(f"{name}: {n - lost[name]} of {n}" for name, n in sorted(tried.items())))
    others = len(trials) - len(survivors) + len(alive)
    rate = (others - len(alive)) / max(others, 1)
    unseen = sum(not t.tests for t in alive)
    print(
        f"{part}: {len(trials)} mutants: {others - len(alive)} killed, {len(alive)} survived, "
        f"{f'{unseen} of them in statements that no test executes, ' * bool(unseen)}"
        f"{len(survivors) - len(alive)} equivalent; {rate:.1%}; "
        f"{sum(t.seconds for t in trials) / max(len(trials), 1):.1f} s each"
    )
    return int(rate < WANTED[part] or bool(wrong))


def compare(new: Sequence[dict[str, Any]], old: Sequence[dict[str, Any]]) -> None:
    """Print by room how many of the mutants of both runs each has killed, and which differ."""
    before, after = ({o["key"]: o for o in outcomes} for outcomes in (old, new))
    both = [key for key in after if key in before]
    for room in sorted({after[key]["room"] for key in both}):
        keys = [key for key in both if after[key]["room"] == room]
        killed = [sum(bool(run[key]["by"]) for key in keys) for run in (before, after)]
        print(f"{room}: {killed[0]} of {len(keys)} killed before, {killed[1]} now")
    for key in both:
        if bool(before[key]["by"]) != bool(after[key]["by"]):
            print(f"{'killed' if after[key]['by'] else 'survives'} now: {key}")


if __name__ == "__main__":
    sys.exit(main())
