"""Reads the gradient of an operation from the text of its rules, as docstrings state it.

A rule is readable if it is a number, or a lambda over the arguments, the result, the cotangent and
public functions. `lambda xp, g, ans: g / (2.0 * ans)` of sqrt is read as `g / (2 * sqrt(x))`.
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache, reduce
from pathlib import Path
from typing import Any

from multigrad.registry import OPS, Op, Rule

NUMBERS = {"LN2": "log(2)", "LN10": "log(10)", "DEGREE": "pi / 180", "RADIAN": "180 / pi"}
"""The constants that rules of multigrad name, as formulas write them."""


class UnreadableError(Exception):
    """The text of a rule is no formula."""


def readable(op: Op) -> dict[str, str]:
    """Return the gradient with respect to each argument whose rule is a formula."""
    found = {}
    if op.kind in ("elementwise", "linear", "multilinear", "define"):
        for argument, rule in op.vjp.items() if not isinstance(op.vjp, Rule) else ():
            try:
                found[argument] = _formula(op, rule)
            except UnreadableError:
                continue
    # a part of them would look like the whole
    return found if len(found) == len(op.differentiable) else {}


def _formula(op: Op, rule: Rule) -> str:
    if callable(rule.fn):
        product = _Reader(op).visit(_body(rule.fn))
        if "g" not in rule.takes:  # a partial derivative
            product = ast.BinOp(ast.Name("g"), ast.Mult(), product)
    else:
        product = ast.BinOp(ast.Constant(rule.fn), ast.Mult(), ast.Name("g"))
    return ast.unparse(_simple(product)).replace(" ** ", "**")


def _body(fn: Any) -> ast.expr:
    """The expression of a lambda: the one in its file that compiles to the same code."""
    code, found = fn.__code__, {}
    for node in ast.walk(_parsed(code.co_filename)):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            (same, *_) = compile(ast.Expression(node), "", "eval").co_consts
            if all(getattr(same, a) == getattr(code, a) for a in _TEXT):
                found[ast.unparse(node)] = node
    if len(found) != 1:
        raise UnreadableError
    (text,) = found  # a new tree, since reading changes it
    return ast.parse(text, mode="eval").body.body  # type: ignore[attr-defined, no-any-return]


_TEXT = ("co_code", "co_names", "co_varnames", "co_consts")


@cache
def _parsed(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text(encoding="utf-8"))


class _Reader(ast.NodeTransformer):
    """Replaces what only rules write: `xp.`, `ans`, floats that are integers."""

    def __init__(self, op: Op) -> None:
        self.op = op

    def visit_Name(self, node: ast.Name) -> ast.expr:
        name, roles = node.id, self.op.roles
        if name == "ans" and len(roles) == 1:
            return _parse(f"{self.op.name}({next(iter(roles))})")
        if name in NUMBERS:
            return _parse(NUMBERS[name])
        array, _, metadata = name.rpartition("_")
        if array in roles and metadata == "shape":
            return _parse(f"{array}.shape")
        if name not in ("g", "ans", *roles):
            raise UnreadableError
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        x = node.value
        return ast.Constant(int(x)) if isinstance(x, float) and x == int(x) else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        path = ast.unparse(node.func)
        name = path.removeprefix("xp.")
        if name == path or name not in (*(n for n, op in OPS.items() if op.public), "scaled"):
            raise UnreadableError
        arguments = [self.visit(a) for a in node.args]
        if name == "scaled":  # by a number
            return ast.BinOp(arguments[0], ast.Mult(), arguments[1])
        keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
        return ast.Call(_parse(name), arguments, keywords)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        raise UnreadableError


def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _simple(e: ast.expr) -> ast.expr:
    """The expression with each product in one order: sign, number, factors, divisors."""
    if isinstance(e, ast.Call):
        return ast.Call(e.func, [_simple(a) for a in e.args], e.keywords)
    if isinstance(e, ast.BinOp) and isinstance(e.op, ast.Add | ast.Sub):
        return ast.BinOp(_simple(e.left), e.op, _simple(e.right))
    if not isinstance(e, ast.BinOp | ast.UnaryOp) or isinstance(e.op, ast.Pow):
        return e
    sign, above, below = _factors(e)
    if not below:  # `2 * g * x`, but `g * 180 / pi`
        above.sort(key=lambda f: not isinstance(f, ast.Constant))
    top, bottom = _powers(above) or [ast.Constant(1)], _powers(below)
    if sign < 0:
        top[0] = ast.UnaryOp(ast.USub(), top[0])
    product = reduce(lambda x, y: ast.BinOp(x, ast.Mult(), y), top)
    if not bottom:
        return product
    return ast.BinOp(product, ast.Div(), reduce(lambda x, y: ast.BinOp(x, ast.Mult(), y), bottom))


def _factors(e: ast.expr) -> tuple[int, list[ast.expr], list[ast.expr]]:
    """The sign of a product, its factors and its divisors."""
    if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
        sign, above, below = _factors(e.operand)
        return -sign, above, below
    if isinstance(e, ast.BinOp) and isinstance(e.op, ast.Mult | ast.Div):
        sign, above, below = _factors(e.left)
        other, more, less = _factors(e.right)
        if isinstance(e.op, ast.Div):
            more, less = less, more
        return sign * other, above + more, below + less
    if isinstance(e, ast.Constant) and isinstance(e.value, int | float) and abs(e.value) == 1:
        return int(e.value), [], []
    return 1, [_simple(e)], []


def _powers(factors: list[ast.expr]) -> list[ast.expr]:
    """The factors, each once; `x * x` as `x**2`."""
    count = Counter(map(ast.unparse, factors))
    return [
        _parse(text) if n == 1 else ast.BinOp(_parse(text), ast.Pow(), ast.Constant(n))
        for text, n in count.items()
    ]
