"""The table of operations, and the functions that declare operations.

An operation is declared once, with its signature and its derivative rules:

    elementwise("tanh(x, /)", x=lambda xp, ans: 1 - ans * ans)
    linear("permute_dims(x, /, axes)", x=lambda xp, g, axes: xp.permute_dims(g, inverse(axes)))

multigrad generates everything else from the table: the namespaces, the operators and methods of
Tensor, the pullbacks, the conformance suite, the listing of the command line.

**Signatures** are those of the standard. A positional-only parameter is an array, and any other
parameter is plain. An annotation changes this: `array`, `arrays` (one parameter that takes a list
of arrays) or `plain`. `*arrays` is a list of arrays.

**Rules** take `xp` and then, by name, exactly the values that they need:

- the cotangent `g`; for several outputs `g_<output>`, for a variable number of outputs a tuple `g`;
- an input, or a plain parameter;
- the output `ans`, or one of several outputs by its name;
- metadata, which keeps no array alive: `<array>_shape`, `<array>_dtype`, `<array>_device`,
  `<array>_order` (the memory order of the last two axes: "C", "F" or None) and `<array>_scalar`
  (the Python scalar that the caller passed as this argument, else None).

A node saves only the values that some rule names. A jvp rule takes tangents instead of cotangents:
`t`, or `t_<parameter>` if the operation has several arrays.

If an output was not used, its cotangent is zeros. If an argument does not change, its tangent is
zeros. These zeros are allocated only if the rule takes them. A rule declared with
`materialize=False` gets None instead of zeros.

**Residuals** are other values that rules need: `residuals={"order": f}`. The function f takes `xp`
and then, by name, anything that a rule may take except cotangents and tangents. It runs when the
operation is recorded, and the node saves the array that it returns if a rule takes its name. The
array must have an integer or boolean dtype, such as the permutation of a sort. A residual with a
floating dtype would be wrong: second derivatives would treat it as a constant.

**Batching** says how an operation computes many examples at once. It is one of

- "elementwise";
- "axis": the operation has one array and reduces or arranges it along `axis` or `axes`; None means
  all axes;
- "leading": the operation has one array, and its leading axes are a batch already;
- "form": the batch runs the standard-only form of the operation;
- a batching rule `rule(xp, ...)`, a function that takes by name the values that it needs. Arrays
  come with the batch as their first axis, of length `size`, or of length 1 if all examples have the
  same array. Other values come unchanged. `batched` is a dictionary that says for each parameter
  whether it is batched; for a list or a key, it says so for each part. The rule returns the outputs
  with the batch as their first axis, of length `size`.

Only arrays and keys may be batched. Without `batching`, examples are computed one by one.

**Words.** `about=About(...)` has what the declaration says beside the rules: the gradient as a
formula where the rule's own text is none, an example, the names of NumPy's functions that it stands
for. Docstrings and stubs, the methods of arrays and NumPy's protocols are made of it.

**Memory.** If the result lies in the memory of the first argument, `view` says so: True for a part
of it, "layout" for a part if its strides allow that, "same" for the argument itself, or a function
of all arguments that returns one of these. Any other result must be a new array; otherwise an
in-place operation on it would change the argument, and the graph would not notice.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from keyword import iskeyword
from operator import index
from types import FrameType
from typing import Any, ParamSpec, TypeVar, cast
from unicodedata import normalize

from . import locks
from .errors import RegistrationError
from .provided import wanted
from .tracebacks import entry

__all__ = [
    "OPS",
    "About",
    "Op",
    "Rule",
    "behind_batch",
    "composite",
    "define",
    "elementwise",
    "linear",
    "multilinear",
    "nondifferentiable",
    "on_declaration",
]

# fmt: off
OPERATORS = (
    "abs", "add", "and", "eq", "floordiv", "ge", "gt", "invert", "le", "lshift", "lt", "matmul",
    "mod", "mul", "ne", "neg", "or", "pos", "pow", "rshift", "sub", "truediv", "xor",
)
# fmt: on
BATCHINGS = ("elementwise", "axis", "leading", "form")
ROLES = ("array", "arrays", "plain")
RESERVED = ("xp", "g", "t", "ans", "needs")
METADATA = ("shape", "dtype", "device", "order", "scalar")
IN_CODE = ("Exception", "float", "int", "isinstance", "list", "tuple", "type")
"""The functions of Python that generated code calls, whose names parameters must not have.

The standard's `finfo(type, /)` does not need them.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A derivative rule and the names that it takes, in the rule's own order.

    A number as `fn` is a constant partial derivative.

    `keep` narrows the values that a joint rule saves, by the argument whose gradient is wanted.
    `materialize` says what the rule gets for the cotangent of an unused output and for the tangent
    of an unchanged argument: zeros (True) or None (False). `residuals` holds the residuals that it
    takes.
    """

    fn: Callable[..., Any] | complex
    takes: tuple[str, ...]
    keep: Mapping[str, tuple[str, ...]] | None = None
    materialize: bool = True
    residuals: Mapping[str, Rule] = field(default_factory=dict)

    @property
    def keeps(self) -> tuple[str, ...]:
        """The names of the values that a node must save in the forward pass for this rule."""
        return tuple(
            n
            for n in self.takes
            if n not in ("xp", "g", "needs") and not n.startswith(("g_", "t_")) and n != "t"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class About:
    """What a declaration says of an operation beside its rules. Everything may be left out.

    With override=True, what is left out stays as it was, but for `gradient` and `at`: those were
    said of the former rules.

    For its docstring:

    gradient         the gradient: words, or for each array argument an expression of the arguments,
                     the cotangent `g` and the result `ans`. It is for rules whose own text is no
                     such expression; `make stubs` reads that of the others
    at               the gradient at kinks and singular points, or the case that the expression
                     holds for
    example          the call that is shown, or only its arguments. A, P, Q, S, V, X and Y stand for
                     arrays, those of ops/words.py
    arrays           the arrays in words, such as "matrices (..., M, N)"; "(..., M, M)" makes
                     errors about shapes say that matrices must be square
    dtypes           the dtypes that it takes: "floating dtypes", "any numeric dtype"
    returns          "booleans" or "integers", if all elements of its result are such

    For callers:

    any_operands     whether it takes other objects than arrays and numbers, such as lists
    method           whether arrays have it as a method, if it is beyond the standard
    positional       keyword-only parameters that may be passed by position too, in this order

    For NumPy's functions, of operations of multigrad itself:

    numpy            those that it carries out for Tensors, besides the one that has its name
    numpy_keywords   whether it takes the further keywords of the one that has its name
    omissible        arguments that may be left out, all together, as there
    listable         arrays that may be a list or a number, as there

    For recorded programs:

    checks           whether it raises for some values, so that its call stays although nothing
                     needs the result
    sized_by_values  whether the shape of its result depends on values
    """

    gradient: str | Mapping[str, str] = ""
    at: str = ""
    example: str = ""
    arrays: str = ""
    dtypes: str = ""
    returns: str = ""
    any_operands: bool = False
    method: bool = False
    positional: tuple[str, ...] = ()
    numpy: tuple[str, ...] = ()
    numpy_keywords: bool = False
    omissible: tuple[str, ...] = ()
    listable: tuple[str, ...] = ()
    checks: bool = False
    sized_by_values: bool = False


NOTHING = About()
NAMING = ("positional", "omissible", "listable")
"""The fields of `About` that name parameters."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Op:
    """One operation of the table.

    `vjp` is either one rule per array parameter, or one joint rule that returns a gradient for each
    array parameter.
    """

    name: str
    chapter: str
    kind: str
    signature: inspect.Signature
    roles: Mapping[str, str]  # parameter -> "array" | "arrays" | "plain"
    # () for one output, names for several, None for a variable number
    outputs: tuple[str, ...] | None
    vjp: Mapping[str, Rule] | Rule
    jvp: Rule | None
    batching: Any  # "elementwise", "axis", "leading", "form", a rule, or None: a loop
    # How the output shares memory with the first argument. True: the output is a part of it.
    # "layout": a part if its strides allow that. "same": the argument itself. False: no shared
    # memory. A function of all arguments may return one of these.
    view: Any
    # the stem of the Python operators it serves: "add" for __add__, __radd__, __iadd__
    operator: str
    # The implementation. None: the library's function of that name. A function (xp, *arguments):
    # this function on every backend. A dictionary {backend: function or "module:name"}: one
    # implementation per backend; the entry "*" runs if the library has no function of that name.
    forward: Any
    doc: str
    module: str
    # Declared by multigrad itself, not by a plugin or a program: the engine relies on what its
    # rules and its `view` say.
    builtin: bool = False
    about: About = NOTHING

    @property
    def beyond(self) -> bool:
        """Whether the operation is beyond the standard: a name from NumPy, SciPy or PyTorch.

        A `strict` backend hides these names.
        """
        return self.chapter == "beyond"

    @property
    def public(self) -> bool:
        """Whether users call the operation.

        The building blocks of rules and methods are private.
        """
        return self.chapter not in ("kernels", "conversion") and self.name not in (
            "getitem",
            "setitem",
        )

    @property
    def arrays(self) -> tuple[str, ...]:
        """The array parameters, lists of arrays included, in order."""
        return tuple(p for p, role in self.roles.items() if role != "plain")

    @property
    def differentiable(self) -> tuple[str, ...]:
        """The array parameters that have a gradient.

        For a composite these are all its array parameters; its parts decide.
        """
        if self.kind == "composite" or isinstance(self.vjp, Rule):
            return self.arrays
        return tuple(a for a in self.arrays if a in self.vjp)

    @entry
    def kept(self, argument: str) -> tuple[str, ...]:
        """The names of the arrays that the gradient of an argument keeps alive until backward.

        These are arguments, outputs and residuals.
        """
        if argument not in self.differentiable:
            raise ValueError(
                f"{self.name}: {argument!r} is no differentiable argument. It has "
                f"{', '.join(self.differentiable) or 'none'}."
            )
        rule = self.vjp if isinstance(self.vjp, Rule) else self.vjp[argument]
        names = (rule.keep or {}).get(argument, rule.keeps)
        return tuple(
            n
            for n in names
            if n in self.arrays or n == "ans" or n in (self.outputs or ()) or n in rule.residuals
        )

    def __repr__(self) -> str:
        return f"<Op {self.name}{self.signature} {self.kind}>"


OPS: dict[str, Op] = {}
"""Every known operation by name; names of extensions have a prefix: `linalg.solve`."""


@wanted
def fill() -> bool:
    """Fill the table once: the operations of the standard, then those of plugins.

    Returns whether that is done: False for a plugin that asks meanwhile, other threads wait.
    Provided by plugins/loading.py.
    """
    raise NotImplementedError


@wanted
def import_standard() -> None:
    """Declare the operations of the standard, if they are not.

    Provided by namespace.py.
    """


OVERRIDDEN: dict[str, str] = {}
"""Operations that another module has redeclared, with the module of the first declaration."""


def is_own(op: Op) -> bool:
    """Whether an operation is one of multigrad itself, also if another module has redeclared it."""
    return op.builtin or OVERRIDDEN.get(op.name, "").startswith("multigrad.")


_P = ParamSpec("_P")
_T = TypeVar("_T")
_remembered: list[Callable[[], None]] = []


def per_operation(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Cache the results of `function` per operation, until some operation is replaced.

    Without this, the cache would keep the replaced operation alive.
    """
    cached: Any = lru_cache(maxsize=1024)(function)  # some entries take 10 kB
    when_replaced(cached.cache_clear)
    return cast("Callable[_P, _T]", cached)


def when_replaced(forget: Callable[[], None]) -> None:
    """Call `forget()` whenever an operation has been replaced or removed."""
    _remembered.append(forget)


def is_prefix(name: str) -> bool:
    """Whether `name` is a prefix of operations."""
    # One search takes a tenth of the time of a loop. It needs a list: other threads may declare
    # operations meanwhile.
    return f"\n{name}." in "\n".join(["", *list(OPS)])


def is_declared(name: str) -> bool:
    """Whether `name` is an operation or a prefix of operations."""
    return name in OPS or is_prefix(name)


@wanted
def is_ours(name: str) -> bool:
    """Whether `multigrad.<name>` is something else than an operation: a function or a module.

    Provided by multigrad/__init__.py.
    """
    raise NotImplementedError


def forget_remembered() -> None:
    """Clear the caches of `per_operation` and `when_replaced`, after a replacement or removal."""
    for clear in list(_remembered):
        clear()


keeping = locks.new_lock()
"""The lock for caches of objects that were generated from an operation.

A thread holds it while it stores such an object, after it has checked that the operation is still
in the table, and while it drops the objects of a replaced operation. The check calls nothing, since
a signal handler may run after each call, and replace the operation.
"""

_parsing = locks.new_lock()
"""CPython 3.11 raises SystemError where several threads make trees of syntax at once."""

listeners: list[Callable[[Op], None]] = []


def on_declaration(listener: Callable[[Op], None]) -> None:
    """Call `listener(op)` for each operation that is declared from now on.

    The engine drops what it has generated from an earlier declaration.
    """
    listeners.append(listener)


def restore(before: Mapping[str, Op], own: Iterable[Op] | None = None) -> None:
    """Restore an earlier state of the table, for all operations or for those in `own`.

    The engine drops what it has generated from the operations declared in between.
    """
    operations = list(OPS.values()) if own is None else own
    changed = [op for op in operations if OPS.get(op.name) is op and before.get(op.name) is not op]
    for op in changed:
        del OPS[op.name]
        if op.name in before:
            OPS[op.name] = before[op.name]
    forget_remembered()
    for op in changed:
        for listener in listeners:
            listener(before.get(op.name, op))


@entry
def elementwise(
    signature: str,
    /,
    *,
    doc: str = "",
    operator: str = "",
    forward: Any = None,
    chapter: str = "",
    about: About | None = None,
    override: bool = False,
    **partials: Any,
) -> Op:
    """Declare an operation that acts on each element.

    multigrad derives its vjp and jvp from the partial derivatives. A partial derivative is

    - a number;
    - a function of `xp` and saved names that returns the partial derivative;
    - a function that takes `g` as well and returns the product, for partials where `g * partial`
      would be less accurate or slower.

    It is the holomorphic derivative; for complex arrays the engine conjugates it, as PyTorch does.
    The gradient of an argument without a partial derivative raises MissingRuleError.
    """
    if isinstance(signature, str) and "(" not in signature:
        signature = f"{signature}({', '.join(partials)}, /)"
    options = locals()
    vjps = options.pop("partials")
    return _declare("elementwise", **options, vjps=vjps, batching="elementwise")


@entry
def linear(
    signature: str,
    /,
    *,
    doc: str = "",
    operator: str = "",
    forward: Any = None,
    chapter: str = "",
    vjp: Any = None,
    outputs: Iterable[str] | None = (),
    batching: Any = None,
    view: Any = False,
    keep: Any = None,
    materialize: bool = True,
    about: About | None = None,
    override: bool = False,
    **vjps: Any,
) -> Op:
    """Declare an operation that is jointly linear in all array arguments that have a rule.

    Its jvp is the operation itself, applied to the tangents. If it has several outputs,
    `materialize=False` gives its rules None instead of zeros for the cotangent of an unused output.
    """
    return _declare("linear", **locals())


@entry
def multilinear(
    signature: str,
    /,
    *,
    doc: str = "",
    operator: str = "",
    forward: Any = None,
    chapter: str = "",
    vjp: Any = None,
    batching: Any = None,
    keep: Any = None,
    about: About | None = None,
    override: bool = False,
    **vjps: Any,
) -> Op:
    """Declare an operation that is linear in each of its array arguments.

    Its jvp is a sum over the arguments.
    """
    return _declare("multilinear", **locals())


@entry
def define(
    signature: str,
    /,
    *,
    jvp: Any = None,
    vjp: Any = None,
    doc: str = "",
    operator: str = "",
    forward: Any = None,
    chapter: str = "",
    outputs: Iterable[str] | None = (),
    batching: Any = None,
    view: Any = False,
    keep: Any = None,
    materialize: bool = True,
    residuals: Mapping[str, Any] | None = None,
    about: About | None = None,
    override: bool = False,
    **vjps: Any,
) -> Op:
    """Declare an operation with explicit vjp and jvp rules.

    Pass either one vjp per array parameter, by keyword, or one joint `vjp(xp, g, ..., needs)`. A
    joint vjp returns the gradients of the array parameters in their order, with None where a
    gradient is not needed.

    `keep={parameter: names}` narrows the values that a joint rule saves for the gradient of that
    parameter. The rule gets None for the arrays that are not named; anything else that it takes
    must be named.

    `materialize=False` gives the rules None instead of zeros for the cotangent of an unused output
    and for the tangent of an unchanged argument. A rule with several outputs or arguments may then
    skip the terms that are zero.

    `residuals={name: f(xp, ...)}` declares further values that rules may take: arrays of integers
    or booleans, computed when the operation is recorded.
    """
    return _declare("define", **locals())


OPTIONS = frozenset(inspect.signature(define).parameters) - {"signature", "vjps"}
"""The words of a declaration that are no names of arrays."""


@entry
def nondifferentiable(
    signature: str,
    /,
    *,
    doc: str = "",
    operator: str = "",
    forward: Any = None,
    chapter: str = "",
    outputs: Iterable[str] | None = (),
    batching: Any = None,
    about: About | None = None,
    override: bool = False,
) -> Op:
    """Declare an operation whose results have no gradient."""
    return _declare("nondifferentiable", **locals())


@entry
def composite(
    signature: str,
    /,
    forward: Callable[..., Any],
    *,
    doc: str = "",
    operator: str = "",
    chapter: str = "",
    outputs: Iterable[str] | None = (),
    about: About | None = None,
    override: bool = False,
) -> Op:
    """Declare an operation by `forward(xp, *arguments)`, written in terms of other operations.

    It needs no rule. `forward` gets all arguments by position, in the order of the signature.
    """
    return _declare("composite", **locals())


def _declaring() -> str:
    """The name of the module that declares an operation."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in (__name__, entry.__module__):
        frame = frame.f_back
    return "?" if frame is None else str(frame.f_globals.get("__name__", "?"))


def _declare(
    kind: str,
    *,
    signature: Any,
    doc: str,
    operator: str,
    forward: Any,
    about: About | None,
    override: bool,
    chapter: str,
    vjp: Any = None,
    jvp: Any = None,
    outputs: Iterable[str] | None = (),
    batching: Any = None,
    view: Any = False,
    keep: Any = None,
    materialize: bool = True,
    residuals: Mapping[str, Any] | None = None,
    vjps: Mapping[str, Any] | None = None,
) -> Op:
    """Check a declaration and enter it in the table."""
    if not isinstance(signature, str):
        raise RegistrationError(
            f"{kind}: an operation is declared by the text of its signature, such as "
            f"'name(x, /, *, axis=None)', not by {type(signature).__name__}. Pass functions as "
            "rules or as forward=."
        )
    module = _declaring()
    builtin = module.startswith("multigrad.")
    if not builtin:
        # A plugin's operations are checked against those of the standard, so the standard is loaded
        # first.
        import_standard()
    name, parameters, roles = parse(signature, () if kind == "composite" else RESERVED)
    if not builtin:
        for parameter in roles:
            if parameter in IN_CODE:
                raise RegistrationError(
                    f"{name}: a parameter cannot be called {parameter!r}: the code of operations "
                    f"calls {', '.join(IN_CODE)} of Python. Choose another name."
                )
    for argument in roles if kind not in ("composite", "nondifferentiable") else ():
        if argument in OPTIONS and roles[argument] != "plain":
            raise RegistrationError(
                f"{name}: an array cannot be called {argument!r}, since a rule for it is passed by "
                "this name, which is an option of the declaration. Choose another name."
            )
    if outputs is not None and (isinstance(outputs, str) or not isinstance(outputs, Iterable)):
        raise RegistrationError(
            f"{name}: outputs must be a tuple of names, or None for a variable number, not "
            f"{outputs!r}."
        )
    outs = None if outputs is None else tuple(outputs)
    arrays = tuple(p for p, role in roles.items() if role != "plain")
    _check_name(name)
    root = name.partition(".")[0]
    if not builtin and is_ours(root):
        raise RegistrationError(
            f"{name!r} cannot be declared: multigrad.{root} is something else already. Choose "
            f"another {'name' if root == name else 'prefix'}."
        )
    if not isinstance(materialize, bool):
        raise RegistrationError(f"{name}: materialize must be True or False, not {materialize!r}.")
    _check_values(name, roles, outs or (), residuals or ())
    former = OPS.get(name)
    if former is not None and not override:
        raise RegistrationError(
            f"operation {name!r} is declared by {module} but was already declared by "
            f"{former.module}. Choose another name, or pass override=True to replace it."
        )
    _check_about(name, about, roles, builtin or (former is not None and is_own(former)))
    if former is not None:  # an override keeps the parts that it does not give
        doc, operator = doc or former.doc, operator or former.operator
        chapter = chapter or former.chapter
        about = _kept_about(former.about, about, roles)
        forward = former.forward if forward is None else forward
    _check_forward(name, forward)
    _check_operator(name, operator)
    if vjp is not None and vjps:
        raise RegistrationError(f"{name}: give one joint vjp or one per argument, not both.")
    for argument in vjps or ():
        if argument not in arrays:
            raise RegistrationError(
                f"{name}: there is no array argument {argument!r} to write a rule for; it has "
                f"{', '.join(arrays) or 'none'}. Parameters before the '/' are arrays; others "
                "need an annotation, as in 'x: array'."
            )
    more = {
        n: checked_rule(name, n, fn, roles, outs, kind="residual")
        for n, fn in (residuals or {}).items()
    }

    def rule(what: str, fn: Any, kind: str) -> Rule:
        checked = checked_rule(name, what, fn, roles, outs, kind=kind, more=tuple(more))
        taken = {n: r for n, r in more.items() if n in checked.takes}
        return replace(checked, materialize=materialize, residuals=taken)

    rules: Any
    if vjp is not None:
        rules = rule("vjp", vjp, "joint")
        rules = replace(rules, keep=_keep(name, keep, rules, arrays, outs or ()))
    elif keep:
        raise RegistrationError(
            f"{name}: keep narrows a joint rule, and there is none: pass vjp=rule, or leave out "
            "keep; a rule for one argument saves exactly the values that it takes."
        )
    else:
        of_one = "partial" if kind == "elementwise" else "vjp"
        rules = {a: rule(a, fn, of_one) for a, fn in (vjps or {}).items()}
    if module.startswith("multigrad.ops.beyond."):
        own = "beyond"
    else:
        own = (name.rpartition(".")[0] if builtin else "") or module.rpartition(".")[2]
    op = Op(
        name=name,
        chapter=chapter or own,
        kind=kind,
        signature=parameters,
        roles=roles,
        outputs=outs,
        vjp=rules,
        jvp=None if jvp is None else rule("jvp", jvp, "jvp"),
        batching=_batching(name, batching, roles),
        view=view,
        operator=operator,
        forward=forward,
        doc=doc,
        module=module,
        builtin=builtin,
        about=about or NOTHING,
    )
    if former is not None and former.module != module:  # before `op` is in the table: see is_own
        OVERRIDDEN.setdefault(name, former.module)
    OPS[name] = op
    try:
        _note(op, former)
    except BaseException:  # an interrupt; nothing that was generated from `former` may stay
        _note(op, former)
        raise
    return op


def _note(op: Op, former: Op | None) -> None:
    """Notify listeners of a declaration that is in the table, and has replaced `former`."""
    if former is not None:
        forget_remembered()
    for listener in listeners:
        listener(op)


def _keep(
    name: str, keep: Any, rule: Rule, arrays: tuple[str, ...], outputs: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    """Check the `keep` of a declaration.

    It may leave out arrays only: without a flag, a rule would compute another derivative.
    """
    if not isinstance(keep or {}, Mapping):
        raise RegistrationError(
            f"{name}: keep must be a mapping of arguments to names, not {keep!r}."
        )
    large = {*arrays, *outputs, "ans", *rule.residuals}
    checked = {}
    for argument, names in (keep or {}).items():
        entry = f"{name}: keep[{argument!r}]"
        if argument not in arrays:
            raise RegistrationError(
                f"{entry} is not the name of an array argument. It has {', '.join(arrays)}."
            )
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise RegistrationError(
                f"{entry} must be a tuple of names, as in ({names!r},), not the string {names!r}."
                if isinstance(names, str)
                else f"{entry} must be a tuple of names, not {names!r}."
            )
        checked[argument] = tuple(names)
        for n in checked[argument]:
            if n not in rule.keeps:
                raise RegistrationError(
                    f"{entry} has {n!r}, which the rule does not take. It takes "
                    f"{', '.join(rule.keeps) or 'no such values'}."
                )
        for n in rule.keeps:
            if n not in large and n not in checked[argument]:
                full = tuple(m for m in rule.keeps if m in checked[argument] or m not in large)
                raise RegistrationError(
                    f"{entry} leaves out {n!r}, which the rule takes; keep may leave out arrays "
                    f"only ({', '.join(m for m in rule.keeps if m in large)}). Add it: "
                    f"keep={{{argument!r}: {full!r}}}."
                )
    return checked


def _batching(name: str, batching: Any, roles: Mapping[str, str]) -> Any:
    """Check the `batching` of a declaration: a word, or a function that becomes a rule."""
    if batching is None or (isinstance(batching, str) and batching in BATCHINGS):
        return batching
    takes = _positional(batching)
    if takes is None or takes[:1] != ("xp",):
        raise RegistrationError(
            f"{name}: batching must be one of {', '.join(BATCHINGS)}, or a Python function that "
            f"takes xp and then, by name, what it needs, not {batching!r}."
        )
    values = ["xp", "size", "batched", *roles]
    for n in takes:
        if n not in values:
            raise RegistrationError(
                f"{name}: the batching rule takes {n!r}, which is not one of {', '.join(values)}."
            )
    return Rule(batching, takes)


@entry
def behind_batch(axis: Any, ndim: int) -> Any:
    """Shift the axes of an example to those after the batch axis, for batching rules.

    `axis` is an axis or a tuple of axes of an example with `ndim` dimensions; None means all axes.
    """
    if isinstance(axis, (tuple, list)):
        return tuple(behind_batch(a, ndim) for a in axis)
    try:
        a, ndim = index(0 if axis is None else axis), index(ndim)
    except TypeError:
        raise TypeError(
            "behind_batch: axis must be an integer, a tuple of integers or None, and ndim an "
            f"integer, not {type(axis).__name__} and {type(ndim).__name__}"
        ) from None
    if axis is None:
        return tuple(range(1, ndim + 1))
    if not -ndim <= a < ndim:
        raise IndexError(f"axis {a} is out of bounds for an array of dimension {ndim}")
    return a % ndim + 1


def _check_name(name: str) -> None:
    """Raise unless a name is an identifier with at most one prefix, itself not an operation."""
    prefix, dot, last = name.rpartition(".")
    if not all(_is_word(part) for part in ([prefix, last] if dot else [last])):
        raise RegistrationError(
            f"{name!r} is not a valid name for an operation: write {WORD}, with at most one "
            "prefix, as in 'special.erf'."
        )
    if dot and (prefix in OPS or prefix in _RESERVED):
        raise RegistrationError(
            f"the prefix of {name!r} is the name of something else in the namespace: choose "
            "another prefix."
        )
    if not dot and (name in _RESERVED or is_prefix(name)):
        raise RegistrationError(
            f"{name!r} is a prefix of other operations, or a constant or dtype of the standard: "
            "choose another name."
        )


# fmt: off
_RESERVED = frozenset((
    "e", "inf", "nan", "newaxis", "pi", "bool", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128",
))
# fmt: on


WORD = "an identifier that is no keyword of Python, does not begin with an underscore, and is NFKC"


def _is_word(name: Any) -> bool:
    """Whether a program can use a name as it is written: Python reads identifiers as NFKC."""
    return (
        isinstance(name, str)
        and name.isidentifier()
        and not iskeyword(name)
        and not name.startswith("_")
        and (name.isascii() or normalize("NFKC", name) == name)
    )


def _check_values(
    name: str, roles: Mapping[str, str], outputs: tuple[str, ...], residuals: Iterable[str]
) -> None:
    """Raise if an output or residual has the name of another value: rules take values by name."""
    values = [*outputs, *residuals]
    for i, value in enumerate(values):
        if not _is_word(value):
            raise RegistrationError(
                f"{name}: an output or residual cannot be called {value!r}: write {WORD}."
            )
        if value in roles or value in RESERVED or value in values[:i]:
            raise RegistrationError(
                f"{name}: an output or residual cannot be called {value!r}: that is the name of a "
                "parameter, of another output, or a reserved word of rules. Choose another name."
            )
    arrays = [p for p, role in roles.items() if role != "plain"]
    derived = {f"{a}_{m}": f"the {m} of {a}" for a in arrays for m in METADATA}
    derived |= {f"t_{a}": f"the tangent of {a}" for a in arrays}
    derived |= {f"g_{o}": f"the cotangent of {o}" for o in outputs}
    for value in (*roles, *values):
        if value in derived:
            raise RegistrationError(
                f"{name}: nothing can be called {value!r}: rules take {derived[value]} by that "
                "name. Choose another name."
            )


def _check_operator(name: str, operator: str) -> None:
    """Raise unless the operator exists in Python and no other operation has it."""
    if operator and operator not in OPERATORS:
        raise RegistrationError(
            f"{name}: {operator!r} is not a Python operator that arrays have; choose one of "
            f"{', '.join(OPERATORS)}."
        )
    for op in list(OPS.values()) if operator else ():
        if op.operator == operator and op.name != name:
            raise RegistrationError(
                f"{name}: the operator {operator!r} already belongs to the operation {op.name!r}. "
                f"Declare {op.name!r} with override=True to change it."
            )


def _check_about(name: str, about: Any, roles: Mapping[str, str], own: bool) -> None:
    """Raise unless what a declaration says beside its rules fits the operation.

    Only `own` operations, those of multigrad itself, carry out functions of NumPy.
    """
    if about is None:
        return
    if not isinstance(about, About):
        raise RegistrationError(f"{name}: about must be a registry.About, not {about!r}.")
    for f in fields(About):
        what, value, kind = f"{name}: about.{f.name}", getattr(about, f.name), type(f.default)
        by_argument = f.name == "gradient" and isinstance(value, Mapping)
        if not (by_argument or isinstance(value, kind)):
            words = {str: "a string", bool: "True or False", tuple: "a tuple of strings"}[kind]
            more = ", or a mapping of strings by argument" * (f.name == "gradient")
            raise RegistrationError(f"{what} must be {words}{more}, not {value!r}.")
        for x in value.values() if by_argument else value if kind is tuple else ():
            if not isinstance(x, str):
                raise RegistrationError(f"{what} has {x!r}, which is no string.")
        for parameter in value if by_argument or f.name in NAMING else ():
            if parameter not in roles:
                raise RegistrationError(
                    f"{what} has {parameter!r}, which is not the name of a parameter. It has "
                    f"{', '.join(roles) or 'none'}."
                )
        if value and not own and f.name in ("numpy", "numpy_keywords", "omissible", "listable"):
            raise RegistrationError(
                f"{what} is for the operations of multigrad itself, which carry out NumPy's "
                "functions. Leave it out."
            )


def _kept_about(former: About, about: About | None, roles: Mapping[str, str]) -> About:
    """What the former declaration says, with what another one gives.

    The gradient that was stated is that of the former rules. Parameters may have other names now.
    """
    parts: dict[str, Any] = {"gradient": "", "at": ""}
    parts |= {what: tuple(p for p in getattr(former, what) if p in roles) for what in NAMING}
    for f in fields(About) if about is not None else ():
        if (value := getattr(about, f.name)) != f.default:
            parts[f.name] = value
    return replace(former, **parts)


def _check_forward(name: str, forward: Any) -> None:
    for target in forward.values() if isinstance(forward, dict) else (forward,):
        if target is None or callable(target) or (isinstance(target, str) and ":" in target):
            continue
        raise RegistrationError(
            f"{name}: forward must be a function, a string 'module:name', or a dictionary of "
            f"these by backend, not {target!r}."
        )


def signature_text(op: Op) -> str:
    """The text of a declaration: the signature with the annotations that it needs."""
    kinds = inspect.Parameter
    usual: dict[Any, str] = {kinds.POSITIONAL_ONLY: "array", kinds.VAR_POSITIONAL: "arrays"}
    parameters = []
    for p in op.signature.parameters.values():
        role = op.roles[p.name]
        if role != usual.get(p.kind, "plain"):
            # inspect writes a class of builtins as its name
            p = p.replace(annotation=type(role, (), {"__module__": "builtins"}))
        parameters.append(p)
    return op.name + str(op.signature.replace(parameters=parameters))


def call_form(op: Op) -> list[tuple[Any, ...]]:
    """The part of a signature that decides which calls it accepts, and how.

    Two operations with equal call forms accept the same calls. Names of positional-only parameters
    do not matter.
    """
    return [
        (p.kind, op.roles[p.name], p.default, "" if p.kind is p.POSITIONAL_ONLY else p.name)
        for p in op.signature.parameters.values()
    ]


def parse(
    text: str, reserved: tuple[str, ...] = RESERVED
) -> tuple[str, inspect.Signature, dict[str, str]]:
    """Parse `name(x, /, *, axis=None)` into a name, a signature and the role of each parameter.

    `reserved` lists the names that a parameter cannot have.
    """
    name, paren, rest = text.partition("(")
    try:
        if not paren:
            raise SyntaxError
        with _parsing:
            (tree,) = ast.parse(f"def f({rest}: ...").body
        assert isinstance(tree, ast.FunctionDef)
        signature, roles = _read_arguments(tree.args)
    except (SyntaxError, ValueError) as error:
        raise RegistrationError(
            f"cannot read the signature {text!r}: write it as 'name(x, /, *, axis=None)'."
        ) from error
    for parameter, role in roles.items():
        if parameter.startswith("_") or parameter in reserved:
            raise RegistrationError(
                f"{name}: a parameter cannot be called {parameter!r}: rules reserve "
                f"{', '.join(RESERVED)} and names that begin with an underscore."
            )
        if role not in ROLES:
            raise RegistrationError(
                f"{name}: parameter {parameter!r} is annotated {role!r}; choose one of "
                f"{', '.join(ROLES)}."
            )
    return name, signature, roles


def _read_arguments(args: ast.arguments) -> tuple[inspect.Signature, dict[str, str]]:
    kinds = inspect._ParameterKind
    nodes = [(n, kinds.POSITIONAL_ONLY, "array") for n in args.posonlyargs]
    nodes += [(n, kinds.POSITIONAL_OR_KEYWORD, "plain") for n in args.args]
    defaults: list[ast.expr | None] = [None] * (len(nodes) - len(args.defaults))
    defaults += args.defaults
    if args.vararg is not None:
        nodes.append((args.vararg, kinds.VAR_POSITIONAL, "arrays"))
        defaults.append(None)
    nodes += [(n, kinds.KEYWORD_ONLY, "plain") for n in args.kwonlyargs]
    defaults += args.kw_defaults
    parameters, roles = [], {}
    for (node, kind, role), default in zip(nodes, defaults, strict=True):
        value = inspect.Parameter.empty if default is None else ast.literal_eval(default)
        parameters.append(inspect.Parameter(node.arg, kind, default=value))
        roles[node.arg] = role if node.annotation is None else ast.unparse(node.annotation)
    return inspect.Signature(parameters), roles


def _positional(fn: Any) -> tuple[str, ...] | None:
    """The parameters of a Python function, None unless all are positional."""
    code = getattr(fn, "__code__", None)
    if code is None or code.co_flags & 0x0C or code.co_kwonlyargcount:
        return None
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount]
    return names


def checked_rule(
    op: str,
    what: str,
    fn: Any,
    roles: Mapping[str, str],
    outputs: tuple[str, ...] | None,
    *,
    kind: str = "vjp",
    more: tuple[str, ...] = (),
) -> Rule:
    """Check a rule and make its record; the names of its parameters say what it saves.

    An unknown name raises here, at registration. `kind` is "vjp", "partial", "joint", "jvp" or
    "residual"; `more` holds the names of residuals.
    """
    if isinstance(fn, (int, float, complex)) and not isinstance(fn, bool):
        if kind not in ("vjp", "partial") or outputs != ():
            raise RegistrationError(
                f"{op}: the rule {what!r} must be a function, not the number {fn!r}."
            )
        return Rule(fn, ())
    if not callable(fn):
        raise RegistrationError(
            f"{op}: the rule {what!r} must be a function or a number, not {type(fn).__name__}."
        )
    takes = _positional(fn)
    if takes is None:
        raise RegistrationError(
            f"{op}: the rule {what!r} must be a Python function with positional parameters only; "
            "wrap others: lambda xp, g, x: ..."
        )
    if takes[:1] != ("xp",):
        raise RegistrationError(
            f"{op}: the rule {what!r} must take xp first, then the names it needs; it takes "
            f"{', '.join(takes) or 'nothing'}."
        )
    arrays = [p for p, role in roles.items() if role != "plain"]
    cotangents = {f"g_{o}" for o in outputs} if outputs else {"g"}
    names = {"xp", "ans", *roles, *(outputs or ()), *more}
    names |= {f"{a}_{m}" for a in arrays for m in METADATA}
    if kind != "residual":
        names |= {"t", *(f"t_{a}" for a in arrays)} if kind == "jvp" else cotangents
        names |= {"needs"} if kind == "joint" or "arrays" in roles.values() else set()
    unknown = [n for n in takes if n not in names]
    if unknown:
        raise RegistrationError(
            f"{op}: the rule {what!r} takes {unknown[0]!r}, which is not one of "
            f"{', '.join(sorted(names))}."
        )
    for n in takes:
        if n.startswith(("g_", "t_")) and (n in roles or n in (outputs or ()) or n in more):
            raise RegistrationError(
                f"{op}: the rule {what!r} takes {n!r}, which begins as the names of cotangents "
                "(g_) and tangents (t_) do. Choose another name for this value."
            )
    if kind in ("vjp", "joint") and not cotangents & set(takes):
        raise RegistrationError(
            f"{op}: the rule {what!r} must take the cotangent: {' or '.join(sorted(cotangents))}."
        )
    if getattr(fn, "__name__", "") == "<lambda>":
        fn.__name__ = f"{op}_{what}_{kind}" if kind in ("vjp", "partial") else f"{op}_{what}"
        fn.__qualname__ = fn.__name__
    return Rule(fn, takes)
