"""Declaring operations: kinds, save plans, joint rules, several outputs, and the text of every
refusal.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from functools import partial

import numpy as np
import pytest
from conftest import values
from leaves import leaf

import multigrad as mg
from multigrad import func, registry
from multigrad.dispatch import codegen
from multigrad.errors import MissingRuleError, RegistrationError
from multigrad.protocols import table as protocols_table
from multigrad.registry import (
    About,
    composite,
    define,
    elementwise,
    linear,
    multilinear,
    nondifferentiable,
)


def _chosen(xp, c, x, y):
    return xp.astype(c, x.dtype) * x + xp.astype(~c, x.dtype) * y


NAMES = (
    *("class", "None", "async", "match", "_", "_y", "__x__", "x__", "1", "a b", "x-y"),
    *("ａ", "ｓｉｎ", "ﬁ", "µ", "μ", "γ", "ª"),
    *("type", "len", "list", "int", "isinstance", "Exception", "print", "object", "slice", "id"),
    *("xp", "g", "t", "ans", "needs", "vjp", "forward", "doc", "keep", "batching", "outputs"),
    *("x_shape", "x_dtype", "t_x", "g_x", "g_other", "copy", "dtype", "axis", "key", "min", "max"),
    *("self", "cls", "args", "kwargs", "call", "run", "mode", "out", "outs", "count", "index"),
    *("shape", "T", "device", "item", "grad", "func", "Tensor", "size", "batched", "ending"),
)
"""Keywords, names that Python reads otherwise, and those of generated code, of rules, of arrays."""


def namespace(x):
    return mg.asarray(x).__array_namespace__()


@pytest.fixture(autouse=True)
def table(operations):
    """Whatever a test declares is gone afterwards."""
    return operations


@pytest.fixture
def xp():
    """The words of refusals are multigrad's own, whatever library is below."""
    return mg.namespace("numpy")


class TestSignatures:
    def test_roles(self):
        op = nondifferentiable(
            "t.roles(x, n: plain, /, y: array, *, axis=None, z: array = None)",
            forward=lambda xp, *a: a,
        )
        assert dict(op.roles) == {
            "x": "array",
            "n": "plain",
            "y": "array",
            "axis": "plain",
            "z": "array",
        }
        assert str(op.signature) == "(x, n, /, y, *, axis=None, z=None)"
        assert op.arrays == ("x", "y", "z")
        assert (
            registry.signature_text(op)
            == "t.roles(x, n: plain, /, y: array, *, axis=None, z: array = None)"
        )

    def test_name_alone(self):
        op = elementwise("t.alone", x1=1, x2=2)
        assert str(op.signature) == "(x1, x2, /)" and op.arrays == ("x1", "x2")

    @pytest.mark.parametrize(
        "text, message",
        [
            ("t.f(x, y=z)", "cannot read the signature"),
            (
                "t.f(x: tensor, /)",
                "parameter 'x' is annotated 'tensor'; choose one of array, arrays, plain",
            ),
            ("a.b.c(x, /)", "is not a valid name for an operation"),
            ("t.f(_x, /)", "a parameter cannot be called '_x'"),
            ("t.f(g, /)", "a parameter cannot be called 'g'"),
            ("_t(x, /)", "is not a valid name for an operation: write an identifier that is no"),
            ("class(x, /)", "is not a valid name for an operation"),
            ("ｓｉｎ(x, /)", "is not a valid name for an operation"),
            ("t.f(x, /): pass\ndef g(x", "cannot read the signature"),
            ("t.f(type, /)", "'type': the code of operations calls Exception, float"),
            ("t.f(x, x_shape, /)", "'x_shape': rules take the shape of x by that name"),
            ("t.f(x, /, t_x=0)", "'t_x': rules take the tangent of x by that name"),
            ("t.f(vjp, /)", "an array cannot be called 'vjp', since a rule for it is passed"),
            ("sin.f(x, /)", "the prefix of 'sin.f' is the name of something else"),
            ("float32(x, /)", "is a prefix of other operations, or a constant or dtype"),
            ("tensor(x, /)", "multigrad.tensor is something else already. Choose another name"),
            ("func(x, /)", "multigrad.func is something else already. Choose another name"),
            ("tools.f(x, /)", "multigrad.tools is something else already. Choose another prefix"),
        ],
    )
    def test_refused(self, text, message):
        with pytest.raises(RegistrationError, match=message):
            elementwise(text, x=1)

    @pytest.mark.parametrize("name", ["class", "_a", "ａ", "a b", "", 3])
    def test_outputs_that_are_refused(self, name):
        with pytest.raises(RegistrationError, match="an output or residual cannot be called"):
            define("t.f(x, /)", outputs=(name, "b"), x=lambda xp, g_b, x: g_b)
        with pytest.raises(RegistrationError, match="an output or residual cannot be called"):
            define("t.f(x, /)", residuals={name: lambda xp, x: x > 0.0}, x=lambda xp, g: g)

    @pytest.mark.parametrize("outputs", ["ab", 5, object()])
    def test_outputs_are_several_names(self, outputs):
        with pytest.raises(RegistrationError, match=r"outputs must be a tuple of names, or None"):
            define("t.f(x, /)", outputs=outputs, x=lambda xp, g: g)

    @pytest.mark.sweep
    @pytest.mark.parametrize("name", NAMES)
    def test_a_name_is_refused_or_works(self, name):
        """As the name of an operation, a prefix, an array, a setting, an output, a residual."""

        def takes(text):
            return eval(f"lambda xp, {text}: g * xp.cos({normal})")

        normal = unicodedata.normalize("NFKC", name)
        one = [lambda xp, x: xp.sin(x), lambda xp, g, x: g * xp.cos(x)]
        two = [lambda xp, x: (xp.sin(x), xp.cos(x)), lambda xp, g_other, x: -g_other * xp.sin(x)]
        sign = {name: lambda xp, x: xp.astype(xp.sign(x), xp.int64)}
        simple = partial(define, batching="elementwise")
        given = [
            lambda: simple(f"{name}(x, /)", forward=one[0], x=one[1]),
            lambda: simple(f"{name}.tf(x, /)", forward=one[0], x=one[1]),
            lambda: simple(f"tp.{name}(x, /)", forward=one[0], x=one[1]),
            lambda: simple(f"tf({name}, /)", forward=one[0], **{normal: takes(f"g, {name}")}),
            lambda: elementwise(
                f"tf({name}, /)",
                forward=one[0],
                **{normal: eval(f"lambda xp, {name}: xp.cos({name})")},
            ),
            lambda: composite(f"tf({name}, /)", one[0]),
            lambda: simple(
                f"tf(x, /, *, {name}=None)", forward=lambda xp, x, setting: xp.sin(x), x=one[1]
            ),
            lambda: simple("tf(x, /)", forward=two[0], outputs=(name, "other"), x=two[1]),
            lambda: simple(
                "tf(x, /)",
                forward=lambda xp, x: xp.abs(x),
                residuals=sign,
                x=eval(f"lambda xp, g, {name}: g * {name}"),
            ),
        ]
        refused = 0
        for declare in given:
            before = dict(registry.OPS)
            try:
                op = declare()
            except (RegistrationError, SyntaxError):
                refused += 1
                continue
            except TypeError as error:
                assert "multiple values for keyword argument" in str(error)
                continue
            try:
                self.use(op)
            finally:
                registry.restore(before, [op])
        assert (
            refused < len(given)
            or not name.isidentifier()
            or keyword.iskeyword(name)
            or (name.startswith("_"))
            or normal != name
        )

    @staticmethod
    def use(op):
        x = np.array([0.5, 0.7])
        function = namespace(x)
        for part in op.name.split("."):
            function = getattr(function, part)
        settings = {n: 3 for n, role in op.roles.items() if role == "plain"}

        def f(t):
            out = function(t, **settings)
            return mg.sum(out if op.outputs == () else out[0] + out[1])

        t = mg.asarray(x, requires_grad=True)
        f(t).backward()
        f(t).backward(create_graph=True)
        assert np.all(np.isfinite(t.grad.detach().numpy()))
        func.vmap(func.grad(f))(np.stack([x, x]))
        compiled = func.compile(f)
        assert compiled(x) == compiled(x) == f(x)
        if op.kind == "elementwise":
            func.jvp(f, (x,), (x,))

    def test_a_rule_does_not_take_a_value_for_a_cotangent(self):
        with pytest.raises(RegistrationError, match="takes 't_end', which begins as the names of"):
            define("t.f(x, /, t_end=0)", x=lambda xp, g, t_end: g * t_end)
        assert define("t.f(x, /, t_end=0)", x=lambda xp, g: g).name == "t.f"

    def test_a_prefix_whose_operations_are_removed_is_free(self):
        x, before = np.array([0.5]), dict(registry.OPS)
        op = composite("pre.f(x, /)", lambda xp, x: xp.sin(x))
        assert namespace(x).pre.f(x) == mg.pre.f(x) == np.sin(x)
        registry.restore(before, [op])
        op = composite("pre(x, /)", lambda xp, x: xp.cos(x))
        try:
            assert namespace(x).pre(x) == mg.pre(x) == np.cos(x)
        finally:
            registry.restore(before, [op])

    def test_a_prefix_is_no_operation(self):
        elementwise("pre.f(x, /)", x=1)
        with pytest.raises(RegistrationError, match="'pre' is a prefix of other operations"):
            elementwise("pre(x, /)", x=1)


class TestRules:
    @pytest.mark.parametrize(
        "rule, message",
        [
            (lambda x: x, "must take xp first, then the names it needs; it takes x"),
            (lambda xp, y: y, "takes 'y', which is not one of .*ans"),
            (
                lambda *a: a,
                "must be a Python function with positional parameters only; wrap others",
            ),
            (np.sin, "must be a Python function with positional parameters only"),
            ("text", "must be a function or a number, not str"),
            (True, "must be a function or a number, not bool|function with positional"),
        ],
    )
    def test_refused(self, rule, message):
        with pytest.raises(RegistrationError, match=message):
            elementwise("t.bad(x, /)", x=rule)
        assert "t.bad" not in registry.OPS

    def test_refused_vjps(self):
        with pytest.raises(RegistrationError, match="must take the cotangent: g"):
            linear("t.bad(x, /)", x=lambda xp, x_shape: 1)
        with pytest.raises(RegistrationError, match="must take the cotangent: g_a or g_b"):
            define("t.bad(x, /)", outputs=("a", "b"), x=lambda xp, x: 1, jvp=lambda xp, t: t)
        with pytest.raises(RegistrationError, match="takes 'g', which"):
            define("t.bad(x, /)", outputs=("a", "b"), x=lambda xp, g: 1)
        with pytest.raises(
            RegistrationError,
            match="there is no array argument 'axis' to write a rule for; it has x",
        ):
            linear("t.bad(x, /, *, axis=None)", axis=lambda xp, g: g)
        with pytest.raises(
            RegistrationError, match="it has none. Parameters before the '/' are arrays"
        ):
            elementwise("t.bad(x)", x=1)
        with pytest.raises(
            RegistrationError, match="give one joint vjp or one per argument, not both"
        ):
            define("t.bad(x, y, /)", vjp=lambda xp, g, needs: g, x=lambda xp, g: g)
        with pytest.raises(
            RegistrationError,
            match="forward must be a function, a string 'module:name', or a dictionary",
        ):
            elementwise("t.bad(x, /)", x=1, forward={"numpy": "scipy.special.erf"})

    @pytest.mark.parametrize(
        "keep, message",
        [
            (
                {"y": ("x",)},
                r"t.bad: keep\['y'\] leaves out 'n', which the rule takes; keep may leave out arrays "
                r"only \(x, y, ans\). Add it: keep=\{'y': \('x', 'n', 'y_shape'\)\}",
            ),
            (
                {"y": ("x", "z", "n", "y_shape")},
                r"t.bad: keep\['y'\] has 'z', which the rule does not take. It takes x, y, n, "
                "y_shape, ans",
            ),
            (
                {"n": ("x", "n", "y_shape")},
                r"t.bad: keep\['n'\] is not the name of an array argument. It has x, y",
            ),
            (
                {"y": "x"},
                r"t.bad: keep\['y'\] must be a tuple of names, as in \('x',\), not the string 'x'",
            ),
            ({"y": None}, r"t.bad: keep\['y'\] must be a tuple of names, not None"),
            (("x", "n"), r"t.bad: keep must be a mapping of arguments to names, not \('x', 'n'\)"),
        ],
    )
    def test_refused_keeps(self, keep, message):
        """Whatever is not an array costs nothing to save, and a rule without it is wrong."""
        with pytest.raises(RegistrationError, match=message):
            define(
                "t.bad(x, y, /, n)",
                vjp=lambda xp, g, x, y, n, y_shape, ans, needs: (g, g),
                keep=keep,
            )
        assert "t.bad" not in registry.OPS

    def test_refused_abouts(self):
        with pytest.raises(RegistrationError, match=r"t.bad: about must be a registry.About, not"):
            elementwise("t.bad(x, /)", x=1, about={"at": "0"})
        for field in ({"gradient": {"y": "g"}}, {"positional": ("y",)}, {"listable": ("y",)}):
            with pytest.raises(
                RegistrationError,
                match=rf"t.bad: about.{next(iter(field))} has 'y', which is not the name of a "
                "parameter. It has x",
            ):
                elementwise("t.bad(x, /)", x=1, about=About(**field))

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            *((f, x) for f in ("at", "example", "arrays") for x in (None, 3, b"0", ["0"])),
            *((f, x) for f in ("dtypes", "returns") for x in (None, True, ("0",))),
            *((f, x) for f in ("any_operands", "method", "numpy_keywords") for x in (None, 1, "x")),
            *((f, x) for f in ("checks", "sized_by_values") for x in (None, 0, ())),
            *((f, x) for f in ("positional", "numpy") for x in (None, 3, "x", b"x", ["x"], {"x"})),
            *((f, x) for f in ("omissible", "listable") for x in (None, 3, "x", {"x": "x"})),
            *((f, ("x", 3)) for f in ("positional", "numpy", "omissible", "listable")),
            *(("gradient", x) for x in (None, 3, b"g", ["x"], ("x",), {"x"}, {"x": 3}, {1: "g"})),
        ],
    )
    def test_fields_of_another_type(self, field, value):
        with pytest.raises(RegistrationError, match=rf"t.bad: about.{field} (must be|has) "):
            elementwise("t.bad(x, /)", x=1, about=About(**{field: value}))

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("numpy", ("fabs",)),
            ("numpy_keywords", True),
            ("omissible", ("x",)),
            ("listable", ("x",)),
        ],
    )
    def test_a_plugin_s_operation_is_no_function_of_numpy(self, field, value):
        with pytest.raises(RegistrationError, match=rf"t.bad: about.{field} is for the operations"):
            elementwise("t.bad(x, /)", x=1, about=About(**{field: value}))
        again = elementwise("sign(x, /)", x=1, about=About(**{field: value}), override=True)
        assert getattr(again.about, field) == value

    def test_numpys_functions_are_those_of_multigrads_operations(self, monkeypatch):
        """An operation of a plugin takes no function of NumPy, also if another one replaces it."""
        monkeypatch.setattr(registry, "OVERRIDDEN", registry.OVERRIDDEN.copy())
        declare = 'elementwise("{}(x, /)", x=1, override={})'
        for module in ("one.operations", "another.operations"):
            names = {"__name__": module, "elementwise": elementwise}
            exec(declare.format("spacing", module != "one.operations"), names)
        exec(declare.format("sign", True), names)
        taken = {name for name, _, _ in protocols_table.operations()}
        assert "sign" in taken and "spacing" not in taken

    def test_an_operation_of_multigrad_is_one_while_it_is_declared_anew(self, monkeypatch):
        """Another thread may make the table of NumPy's functions meanwhile, once and for all."""
        monkeypatch.setattr(registry, "OVERRIDDEN", {})
        found = []
        monkeypatch.setattr(
            registry, "forget_remembered", lambda: found.extend(protocols_table.operations())
        )
        elementwise("sign(x, /)", x=1, override=True)
        assert "sign" in {operation for _, _, operation in found}

    def test_what_an_override_keeps_of_them(self):
        """Names that are no parameters any more are dropped, as is the gradient of other rules."""
        x = mg.asarray([1.0, -2.0])
        composite("where(c: array, x: array, y: array, /)", _chosen, override=True)
        assert mg.where(x > 0, x, 0 * x).tolist() == [1.0, 0.0]
        composite("take(a: array, at: array, /)", lambda xp, a, at: a[at], override=True)
        assert mg.take(x, mg.asarray([1, 1])).tolist() == [-2.0, -2.0]
        elementwise("sign(x, /)", x=lambda xp, g, x: g, override=True)
        assert "0 * g" not in mg.sign.__doc__
        assert np.sign(x).tolist() == [1.0, -1.0]

    @pytest.mark.parametrize("declare", [define, linear, multilinear])
    def test_keep_needs_a_joint_rule(self, declare):
        with pytest.raises(
            RegistrationError,
            match=r"t.bad: keep narrows a joint rule, and there is none: pass vjp=rule, or leave "
            "out keep; a rule for one argument saves exactly the values that it takes",
        ):
            declare("t.bad(x, /)", x=lambda xp, g, x: g, keep={"x": ()})

    def test_redeclaring(self):
        with pytest.raises(
            RegistrationError,
            match=r"operation 'sin' is declared by .*test_registry but was already declared by "
            r"multigrad.ops.elementwise. Choose another name, or pass override=True",
        ):
            elementwise("sin(x, /)", x=1)

    def test_override_reaches_everything(self, xp):
        x = leaf(xp, [0.5, 2.0])
        held = xp.sin
        x.sin()
        xp.sin(x)
        elementwise("sin(x, /)", x=lambda xp, x: 100 + 0 * x, override=True)
        assert registry.OPS["sin"].doc and registry.OPS["sin"].forward is None
        for f in (x.sin, lambda: xp.sin(x), lambda: mg.sin(x)):
            (g,) = mg.autograd.grad(xp.sum(f()), x)
            np.testing.assert_allclose(values(g), [100, 100])
        assert held is not xp.sin

    def test_missing_rule(self, xp):
        elementwise("t.half(x, y, /)", x=1, forward=lambda xp, x, y: x + y)
        x, y = leaf(xp, [1.0]), leaf(xp, [2.0])
        xp.t.half(x, values_const(xp)).backward(xp.ones((1,), dtype=xp.float64))
        z = xp.t.half(x, y)
        with pytest.raises(
            MissingRuleError,
            match=r"the operation 't.half' has no derivative rule for its argument 'y'. Declare "
            r"it with one, as in multigrad.registry.elementwise\('t.half\(x, y, /\)', "
            r"y=rule, override=True\), or detach",
        ):
            z.backward(xp.ones((1,), dtype=xp.float64))
        with pytest.raises(MissingRuleError, match="has no jvp|no derivative rule"):
            define("t.nojvp(x, /)", x=lambda xp, g: g, forward=lambda xp, x: x)
            codegen.jvp(
                registry.OPS["t.nojvp"], x._elem.library.xp, (x.array,), (x.array,), x.array
            )

    def test_no_forward(self, xp):
        elementwise("t.nothing(x, /)", x=1)
        with pytest.raises(
            AttributeError,
            match="has no function for the operation 't.nothing': give one in "
            "Backend.functions, or declare",
        ):
            xp.t.nothing(xp.ones(2))


def values_const(xp):
    return xp.ones((1,), dtype=xp.float64)


class TestWrongResults:
    def test_none(self, xp):
        linear("t.forgot(x, /)", x=lambda xp, g: None, forward=lambda xp, x: x * 1)
        with pytest.raises(
            RuntimeError,
            match="a derivative rule of the operation 't.forgot' returned None; it must return "
            "the gradient",
        ):
            xp.t.forgot(leaf(xp, [1.0])).backward()

    def test_no_array_and_wrong_shape(self, xp):
        linear("t.number(x, /)", x=lambda xp, g: 1.0, forward=lambda xp, x: x * 1)
        with pytest.raises(
            RuntimeError,
            match=r"the derivative rule of the operation 't.number' for the argument 'x' "
            r"returned float; it must return an array of the shape of its argument, \(1,\)",
        ):
            xp.t.number(leaf(xp, [1.0])).backward()
        linear("t.twice(x, /)", x=lambda xp, g: xp.concat([g, g]), forward=lambda xp, x: x * 1)
        with pytest.raises(
            RuntimeError,
            match=r"returned a gradient of shape \(6,\) for an argument of shape \(3,\)",
        ):
            xp.sum(xp.t.twice(leaf(xp, [1.0, 2.0, 3.0]))).backward()

    @pytest.mark.parametrize("kind", ["elementwise", "linear", "define"])
    def test_a_shape_that_broadcasting_does_not_explain(self, xp, kind):
        """It is not summed, although it could be."""
        extra = {"jvp": lambda xp, t: t} if kind == "define" else {}
        getattr(registry, kind)(
            "t.stacked(x, /)",
            x=lambda xp, g: xp.stack([g, g]),
            forward=lambda xp, x: x * 1,
            override=True,
            **extra,
        )
        for shape in ((3,), (2, 2)):
            x = leaf(xp, np.ones(shape))
            for y in (x, x * 2.0):
                message = (
                    "the derivative rule of the operation 't.stacked' for the argument 'x' "
                    f"returned a gradient of shape {(2, *shape)} for an argument of shape "
                    f"{shape}, which broadcasting does not explain"
                )
                with pytest.raises(RuntimeError, match=re.escape(message)):
                    xp.sum(xp.t.stacked(y)).backward()
            with pytest.raises(RuntimeError, match="which broadcasting does not explain"):
                mg.autograd.grad(xp.sum(xp.t.stacked(x)), x, create_graph=True)

    def test_of_one_argument_of_several(self, xp):
        x, y = leaf(xp, np.ones((2, 2))), leaf(xp, np.ones((2, 2)))
        elementwise(
            "t.pair(x, y, /)",
            x=lambda xp, y: y,
            y=lambda xp, g, x: (g * x,),
            forward=lambda xp, x, y: x * y,
        )
        with pytest.raises(
            RuntimeError,
            match="operation 't.pair' for the argument 'y' returned tuple; it must return an array",
        ):
            xp.sum(xp.t.pair(x, y)).backward()

    @pytest.mark.parametrize(
        ("returned", "message"),
        [
            (
                lambda xp, t: 1.0,
                r"returned float; it must return a tangent, an array of the shape of the "
                r"result, \((1, )?2, 3\)",
            ),
            (lambda xp, t: (t, t), "returned tuple; it must return a tangent"),
            (
                lambda xp, t: xp.sum(t),
                r"returned a tangent of shape \(\) for a result of shape \((1, )?2, 3\)",
            ),
            (
                lambda xp, t: xp.stack([t, t]),
                r"returned a tangent of shape \(2, (1, )?2, 3\) for a result of shape \((1, "
                r")?2, 3\)",
            ),
        ],
    )
    def test_tangents(self, xp, returned, message):
        """In forward mode nothing is repeated to the shape of the result but the terms of
        elementwise operations.
        """
        elementwise(
            "t.tangent(x, y, /)",
            x=lambda xp, g, y: returned(xp, g),
            y=lambda xp, x: x,
            forward=lambda xp, x, y: x * y,
            override=True,
        )
        elementwise(
            "t.single(x, /)",
            x=lambda xp, g: returned(xp, g),
            forward=lambda xp, x: x * 1,
            override=True,
        )
        define(
            "t.written(x, /)",
            forward=lambda xp, x: x * 1,
            x=lambda xp, g: g,
            jvp=returned,
            batching="elementwise",
            override=True,
        )
        define(
            "t.several(x, y, /)",
            forward=lambda xp, x, y: x * y,
            vjp=lambda xp, g, x, y: (g * y, g * x),
            jvp=lambda xp, t_x, x, y: returned(xp, t_x),
            batching="elementwise",
            override=True,
        )
        x, y = np.ones((2, 3)), np.ones(3)
        x, y = (xp.asarray(v).array for v in (x, y))
        calls = {
            "t.tangent": lambda x: xp.t.tangent(x, y),
            "t.single": xp.t.single,
            "t.written": xp.t.written,
            "t.several": lambda x: xp.t.several(x, y),
        }
        for name, call in calls.items():
            for function in (
                lambda call=call: func.jvp(call, (x,), (x,)),
                lambda call=call: func.jvp(func.vmap(call), (x[None, ...],), (x[None, ...],)),
                lambda call=call: func.jvp(lambda a: func.jvp(call, (a,), (x,))[1], (x,), (x,)),
            ):
                for _ in range(2):
                    with pytest.raises(
                        RuntimeError,
                        match=f"the derivative rule of the operation '{name}' (for the argument "
                        f"'x' )?{message}",
                    ):
                        function()
        # a term is repeated as its argument was
        assert func.jvp(lambda y: xp.t.tangent(x, y), (y,), (y,))[1].shape == (2, 3)

    def test_along_an_axis(self, xp):
        """The result says of all axes but one how far the argument was repeated; that of three rows
        is no reason for three of anything else.
        """
        define(
            "t.rows(x, y, /, *, axis=-1)",
            forward=lambda xp, x, y, axis: xp.sum(x * y, axis=axis),
            jvp=lambda xp, t_x, t_y, x, y, axis: None,
            vjp=lambda xp, g, x, y, axis: (g[..., None] * y, xp.stack([g[..., None] * x] * 3)),
            override=True,
        )
        x, y = leaf(xp, np.ones((3, 2))), leaf(xp, np.ones(2))
        with pytest.raises(
            RuntimeError,
            match=re.escape(
                "for the argument 'y' returned a gradient of shape (3, 3, 2) for an argument of "
                "shape (2,), which broadcasting does not explain"
            ),
        ):
            xp.sum(xp.t.rows(x, y)).backward()

    def test_the_array_that_a_key_is_for(self, xp):
        """It is never repeated; the value that is written is."""
        define(
            "t.put(x, key: plain, value, /)",
            forward=lambda xp, x, key, value: xp.setitem(x, key, value),
            jvp=lambda xp, t_x, t_value, x, key, value: None,
            vjp=lambda xp, g, x, key, value: (xp.stack([g, g]), g[key]),
            override=True,
        )
        x, value = leaf(xp, np.ones((3, 2))), leaf(xp, np.ones(2))
        xp.sum(xp.t.put(x.detach(), (slice(0, 2), ...), value)).backward()
        assert np.array_equal(np.asarray(value.grad.array), np.full(2, 2.0))
        with pytest.raises(
            RuntimeError,
            match="for the argument 'x' returned a gradient of shape .2, 3, 2. .* which "
            "broadcasting does not explain",
        ):
            xp.sum(xp.t.put(x, (slice(0, 2), ...), value)).backward()

    def test_what_broadcasting_explains_is_summed(self, xp):
        define(
            "t.dots(x, y, /, *, axis=-1)",
            forward=lambda xp, x, y, axis: xp.sum(x * y, axis=axis),
            jvp=lambda xp, t_x, t_y, x, y, axis: None,
            vjp=lambda xp, g, x, y, axis: (g[..., None] * y, g[..., None] * x),
        )
        x, y = leaf(xp, np.ones((2, 3))), leaf(xp, np.ones(3))
        xp.sum(xp.t.dots(x, y)).backward()
        assert y.grad.tolist() == [2.0, 2.0, 2.0]


class TestPlans:
    def plan(self, name, *needs):
        return set(codegen.pullback(registry.OPS[name], needs, False, False).plan)

    def test_joint_rule_and_its_keep(self, xp):
        seen = []

        def vjp(xp, g, x, y, needs):
            seen.append((needs, x is None, y is None))
            return (g * y if needs[0] else None, g * x if needs[1] else None)

        define(
            "t.times(x, y, /)",
            vjp=vjp,
            keep={"x": ("y",), "y": ("x",)},
            forward=lambda xp, x, y: x * y,
            jvp=lambda xp, t_x, t_y, x, y: (
                (0 if t_x is None else t_x * y) + (0 if t_y is None else x * t_y)
            ),
        )
        x, y = leaf(xp, [2.0]), leaf(xp, [3.0])
        xp.sum(xp.t.times(x, values_const(xp) * 5)).backward()
        xp.sum(xp.t.times(x, y)).backward()
        np.testing.assert_allclose(values(x.grad), [5 + 3])
        np.testing.assert_allclose(values(y.grad), [2])
        assert seen == [((True, False), True, False), ((True, True), False, False)]
        assert self.plan("t.times", True, False) == {"y"} and self.plan("t.times", False, True) == {
            "x"
        }

    @pytest.mark.parametrize("on", ["numpy", "strict"])
    def test_the_operators_of_a_composite_meet_no_raw_array(self, on):
        """Whose library may refuse a Tensor on its right side, as array_api_strict does."""
        xp = mg.namespace(on)
        composite("t.plus(x, y, /)", lambda xp, x, y: x + y)
        composite("t.plus_all(arrays: arrays, y: array)", lambda xp, xs, y: xs[0] + y + xs[1])
        x, y = xp.asarray([1.0, 2.0]).array, xp.asarray([3.0, 5.0], requires_grad=True)
        for out in (
            mg.t.plus(x, y),
            mg.t.plus(y, x),
            mg.t.plus_all([x, 0 * x], y),
            mg.t.plus_all((0 * y, x), y),
        ):
            assert out.requires_grad and values(out).tolist() == [4.0, 7.0]
        composite("t.minus(x, y, /)", lambda xp, x, y: y - x)
        assert values(mg.t.minus(y, x)).tolist() == [-2.0, -3.0]
        assert values(mg.func.vmap(mg.t.plus, in_axes=(None, 0))(x, y)).shape == (2, 2)
        assert values(mg.func.jvp(lambda y: mg.t.plus(x, y), (x,), (x,))[1]).tolist() == [1.0, 2.0]

    def test_composite_and_multilinear(self, xp):
        composite("t.cube(x, /)", lambda xp, x: x * x * x)
        multilinear(
            "t.dot(x, y, /)",
            x=lambda xp, g, y: g * y,
            y=lambda xp, g, x: g * x,
            forward=lambda xp, x, y: xp.sum(x * y),
        )
        x = leaf(xp, [1.0, 2.0])
        xp.t.dot(xp.t.cube(x), xp.ones(2, dtype=xp.float64)).backward()
        np.testing.assert_allclose(values(x.grad), [3, 12])
        a, b = x.detach().array, 2 * x.detach().array
        assert float(func.jvp(xp.t.dot, (a, b), (b, a))[1]) == 4 * 5 + 5

    def test_scalar_operands_reach_rules_as_arrays(self, xp):
        seen = []
        elementwise(
            "t.scaled(x, y, /)",
            x=lambda xp, y: seen.append((y.dtype, tuple(y.shape))) or y,
            y=lambda xp, x: x,
            forward=lambda xp, x, y: x * y,
        )
        x = xp.asarray(np.array([1.0, 2.0], dtype=np.float32), requires_grad=True)
        for _ in range(3):
            xp.sum(xp.t.scaled(x, 2.0)).backward()
        assert seen == [(xp.float32, ())] * 3

    def test_methods_and_operators_are_generated(self, xp):
        elementwise("triple(x, /)", x=3, forward=lambda xp, x: 3 * x, doc="Three times.")
        x = leaf(xp, [1.0])
        y = x.triple()
        assert y.grad_fn.name() == "TripleBackward" and xp.triple.__doc__.startswith(
            "Three times.\n\nx: a floating-point array"
        )
        y.triple_()
        y.backward(values_const(xp))
        np.testing.assert_allclose(values(x.grad), [9])


@pytest.mark.parametrize(
    "declare", [elementwise, linear, multilinear, define, nondifferentiable, composite]
)
@pytest.mark.parametrize("given", [lambda x: x, 3, None, b"t.f(x, /)"], ids=lambda x: str(type(x)))
def test_a_declaration_that_is_no_text_is_refused(declare, given):
    more = {composite: (lambda xp, x: x,)}.get(declare, ())
    with pytest.raises(
        RegistrationError,
        match=f"^{declare.__name__}: an operation is declared by the text of its signature, such "
        f"as 'name\\(x, /, \\*, axis=None\\)', not by {type(given).__name__}\\.",
    ):
        declare(given, *more)
