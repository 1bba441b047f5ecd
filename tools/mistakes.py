"""The mistakes that tools/mutation.py plants: two tables, of derivative rules and of the engine.

A table is a function from a node of a syntax tree to triples: the kind of mistake, the node that is
replaced, and its replacement.
"""

from __future__ import annotations

import ast
import copy
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

Mistake = tuple[str, ast.AST, ast.AST]


@dataclass(frozen=True)
class Mutant:
    """One mistake: place, kind, text before and after, mutated source.

    `statement` is the line on which the innermost statement begins that contains the mistake.
    """

    key: str
    path: str
    inside: str
    line: int
    statement: int
    kind: str
    before: str
    after: str
    source: str

    @property
    def room(self) -> str:
        return self.path.split("/")[1]


# ----- rules -----


# ----- rules -----


def in_rules(node: ast.AST) -> Iterator[Mistake]:
    """Yield mistakes in a formula: signs, terms, axes, conjugates, comparisons, constants."""
    for kind, other in _formulas(node):
        yield kind, node, other


def _formulas(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
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


# ----- engine -----

OTHER: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
TRIVIAL = {"cast", "delattr", "getattr", "hasattr", "isinstance", "issubclass", "setattr", "zip"}
"""Functions whose first two arguments, exchanged, raise at once or make no difference."""


def in_engine(node: ast.AST) -> Iterator[Mistake]:
    """Yield mistakes in a program: conditions, arguments, returned values, left out statements."""
    match node:
        case ast.BoolOp(op, values):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "and, or", node, ast.BoolOp(other, values)
            for rest in (values[1:], values[:-1]):
                dropped = rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
                yield "dropped condition", node, dropped
        case ast.Compare(left, [op], [right]):
            yield "comparison", node, ast.Compare(left, [OTHER[type(op)]()], [right])
        case ast.UnaryOp(ast.Not(), operand):
            yield "negation", node, operand
        case ast.If(test) | ast.While(test) | ast.IfExp(test) | ast.comprehension(ifs=[test]):
            if isinstance(test, ast.Call | ast.Name | ast.Attribute):
                yield "negation", test, ast.UnaryOp(ast.Not(), test)
        case ast.Constant(bool() as value):
            yield "constant", node, ast.Constant(not value)
        case ast.Constant(int() as value):
            yield "constant", node, ast.Constant(value + 1)
        case ast.BinOp(left, ast.Add() | ast.Sub() as op, right):
            other = ast.Sub() if isinstance(op, ast.Add) else ast.Add()
            yield "sign", node, ast.BinOp(left, other, right)
        case ast.Call(func, [first, second, *rest], keywords):
            if ast.unparse(func) not in TRIVIAL and not _starred(first, second):
                yield "swapped arguments", node, ast.Call(func, [second, first, *rest], keywords)
    if isinstance(node, ast.stmt):
        yield from _in_statement(node)


def _in_statement(node: ast.stmt) -> Iterator[Mistake]:
    match node:
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield "returned value", value, ast.Constant(None)
            if isinstance(value, ast.Call) and value.args and not _starred(value.args[0]):
                yield "returned value", value, value.args[0]
        case ast.Assign([ast.Name(target)], ast.Call(_, [ast.Name(argument), *_]) as call):
            if target == argument:
                yield "dropped call", call, call.args[0]
        case (
            ast.Expr(ast.Call()) | ast.AugAssign() | ast.Delete() | ast.Raise() | ast.Break()
            | ast.Continue() | ast.Return(None)
            | ast.Assign([ast.Attribute() | ast.Subscript()])
        ):  # fmt: skip
            yield "dropped statement", node, ast.Pass()
        case ast.With(items, body) if all(item.optional_vars is None for item in items):
            yield "dropped with", node, ast.If(ast.Constant(True), body, [])
        case ast.Try(body, handlers, orelse, finalbody):
            if finalbody:
                inner = [ast.Try(body, handlers, orelse, [])] if handlers else body
                yield "dropped finally", node, ast.If(ast.Constant(True), inner + finalbody, [])
            for i in range(len(handlers) if len(handlers) > 1 or finalbody else 0):
                others = handlers[:i] + handlers[i + 1 :]
                yield "dropped except", node, ast.Try(body, others, orelse, finalbody)
            if handlers and not finalbody:
                yield "dropped except", node, ast.If(ast.Constant(True), body + orelse, [])


def _starred(*arguments: ast.expr) -> bool:
    return any(isinstance(a, ast.Starred) for a in arguments)


# ----- walking -----


def _skipped(node: ast.AST) -> bool:
    """Return whether a node has no effect on the meaning of a program.

    Examples are annotations, assertions, texts, methods without a body, and an inferred length, for
    which NumPy takes any negative number.
    """
    return (
        isinstance(node, ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Tuple) and ast.unparse(node) == "(-1,)")
        or (isinstance(node, ast.keyword) and node.arg == "strict")
        or (isinstance(node, ast.Raise) and ast.unparse(node) == "raise NotImplementedError")
        or (isinstance(node, ast.FunctionDef) and node.name in ("__repr__", "__str__"))
        or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__")
    )


def _walk(
    node: ast.AST, inside: str = "", statement: int = 0
) -> Iterator[tuple[ast.AST, str, int]]:
    """Yield the nodes of a module.

    Each comes with the function or declaration that contains it, and the line of its statement.
    """
    if _skipped(node):
        return
    if isinstance(node, ast.stmt):
        statement = node.lineno
    if isinstance(node, ast.FunctionDef):
        inside = f"{node.name}()"  # this is never the name of an operation
        children: Iterable[ast.AST] = node.body
    elif isinstance(node, ast.Raise):  # the rest of it is a message
        children = []
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
            if k.arg
            not in ("about", "doc", "operator", "forward", "batching", "view", "chapter", "kind")
        ]
    else:
        children = ast.iter_child_nodes(node)
    yield node, inside, statement
    for child in children:
        yield from _walk(child, inside, statement)


def mutants(
    path: str, text: bytes, table: Callable[[ast.AST], Iterator[Mistake]]
) -> Iterator[Mutant]:
    """Yield all mutants of a file with that text, in its order."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    seen: Counter[str] = Counter()
    for place, inside, statement in _walk(ast.parse(text)):
        for kind, node, other in table(place):
            begin = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
            end = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
            before = ast.unparse(node)
            after = ast.unparse(ast.fix_missing_locations(copy.deepcopy(other)))
            if before == after:  # x @ x
                continue
            key = f"{path}:{inside}: {_short(before)} -> {_short(after)}"
            seen[key] += 1
            if seen[key] > 1:
                key += f" ({seen[key]})"
            if isinstance(node, ast.stmt):
                put = after.replace("\n", "\n" + " " * node.col_offset)
            else:
                put = f"({after})"
            source = (text[:begin] + put.encode() + text[end:]).decode()
            line = node.lineno  # type: ignore[attr-defined]
            yield Mutant(key, path, inside, line, statement, kind, before, after, source)


def _short(text: str) -> str:
    first, *rest = text.split("\n", 1)
    return first + " ..." * bool(rest)
