"""Pytrees: what counts as a container, how it is taken apart and made anew, and what the errors
say.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, OrderedDict, UserDict, defaultdict, namedtuple
from dataclasses import dataclass, field

import numpy as np
import pytest
from forward_programs import close, raw

import multigrad as mg
from multigrad import func, tree
from multigrad.layers.dual import Dual

Pair = namedtuple("Pair", "a b")


@dataclass
class Point:
    x: object
    y: object = 0.5


@dataclass(frozen=True, slots=True)
class Frozen:
    w: object
    name: str = field(default="w", metadata={"static": True})

    def __post_init__(self):
        assert not isinstance(self.w, str), "made anew without this"


@dataclass
class Derived:
    w: object
    twice: object = field(init=False)

    def __post_init__(self):
        self.twice = self.w * 2


class Ordered(OrderedDict):
    pass


class Default(defaultdict):
    pass


class Tagged(list):
    pass


class Needs(list):
    def __init__(self, items, tag):
        super().__init__(items)
        self.tag = tag


class Drops(dict):
    def __init__(self, *args):
        super().__init__()


class Box:
    def __init__(self, value, tag=None):
        self.value, self.tag = value, tag


@pytest.fixture
def registered():
    """Registration for this test only."""
    classes = []

    def register(cls, *functions):
        func.register_pytree(cls, *functions)
        classes.append(cls)

    yield register
    for cls in classes:
        delattr(cls, tree.KIND)
        tree._kinds.pop(cls, None)


def same(a, b):
    return type(a) is type(b) and (
        a == b
        if not isinstance(a, (Point, Frozen, Derived))
        else dataclasses.astuple(a) == dataclasses.astuple(b)
    )


class TestContainers:
    @pytest.mark.parametrize(
        "make",
        [
            lambda: {"b": 1, "a": (2, [3])},
            lambda: OrderedDict([("b", 1), ("a", 2)]),
            lambda: defaultdict(list, {"b": 1, "a": {"c": 2}}),
            lambda: Pair(1, Pair(2, None)),
            lambda: [(), [], {}, None, 1],
            lambda: Point(1, [2, 3]),
            lambda: Frozen(1, "v"),
            lambda: Derived(3),
            lambda: Ordered([("b", 1), ("a", 2)]),
            lambda: Default(int, {"z": 3}),
            lambda: Counter(b=2, a=1),
            lambda: Tagged([1, 2]),
            lambda: None,
            lambda: 7,
        ],
    )
    def test_round_trips(self, make):
        given = make()
        leaves, structure = tree.flattened(given)
        assert leaves == list(tree.leaves(given))
        assert all(type(x) is int for x in leaves)
        assert same(tree.replaced(lambda x: x, given), given)
        assert same(tree.built(structure, leaves), given)
        assert tree.fitted(structure, given) == tree.fitted(given, given) == leaves
        assert list(tree.prefixed(given, given)) == leaves

    def test_order_and_factories(self):
        found = tree.replaced(lambda x: -x, defaultdict(list, {"b": 1, "a": 2}))
        assert list(found.items()) == [("b", -1), ("a", -2)] and found["c"] == []
        assert list(tree.leaves(OrderedDict([("b", 1), ("a", 2)]))) == [1, 2]

    def test_no_leaf_and_leaves(self):
        assert list(tree.leaves([None, (None,), {"a": None}])) == []
        others = [
            "text",
            1.5,
            np.ones(1),
            mg.asarray(np.ones(1)),
            UserDict(a=1),
            {1, 2},
            range(3),
            Box(1),
            Point,
            Pair,
        ]
        assert [id(x) for x in tree.leaves(others)] == [id(x) for x in others]

    def test_dataclasses(self):
        frozen = tree.replaced(str, Frozen(1))  # __post_init__ would refuse
        assert frozen.w == "1" and frozen.name == "w"
        assert tree.replaced(lambda x: x + 1, Derived(3)).twice == 8  # computed anew
        assert list(tree.leaves(Derived(3))) == [3]
        assert list(tree.leaves(Frozen([1, 2]))) == [1, 2]

        class Sub(Point):
            pass

        assert type(tree.replaced(str, Sub(1, 2))) is Sub

    def test_subclasses_that_cannot_be_made_anew(self):
        for given in (Needs([1], "tag"), Drops()):
            given.__init__([1], "tag") if isinstance(given, list) else dict.update(given, a=1)
            assert list(tree.leaves(given)) == [1]
            name = type(given).__name__
            with pytest.raises(
                TypeError,
                match=rf"a {name} cannot be rebuilt by {name}\(a .*\). Register how to "
                r"rebuild it with multigrad.func.register_pytree",
            ):
                tree.replaced(lambda x: x, given)


class TestMatching:
    def test_kinds_that_go_with_each_other(self):
        assert tree.fitted({"a": 1, "b": 2}, OrderedDict([("b", 20), ("a", 10)])) == [10, 20]
        assert tree.fitted(Pair(1, (2,)), [10, [20]]) == [10, 20]
        assert tree.fitted(defaultdict(int, a=1), {"a": 10}) == [10]

    @pytest.mark.parametrize(
        "given, other, match",
        [
            ((1, 2), (1,), "^expected a tuple of 2, got tuple of 1$"),
            ((1, (2, 3)), (1, (2,)), r"^expected a tuple of 2 at \[1\], got tuple of 1$"),
            (
                {"a": [1, {"b": 2}]},
                {"a": [1, {"c": 2}]},
                r"^expected a dictionary with the keys \['b'\] at \['a'\]\[1\], got dict of 1$",
            ),
            ((1, 2), (1, Point(1)), r"^expected an array at \[1\], got Point$"),
            (1, [1], "^expected an array, got list of 1$"),
            ([Point(1)], [Frozen(1)], r"^expected a Point at \[0\], got Frozen$"),
            (
                Frozen(1, "a"),
                Frozen(1, "b"),
                r"^expected a Frozen of 1 parts and \('a',\), got one of 1 and \('b',\)$",
            ),
            ([None, 1], [2, 1], r"^expected None at \[0\], got int$"),
        ],
    )
    def test_what_does_not_match(self, given, other, match):
        with pytest.raises(ValueError, match=match):
            tree.fitted(given, other)

    def test_none_for_a_part(self):
        given = {"a": (1, [2, 3]), "b": Point(4, 5), "c": None}
        _, structure = tree.flattened(given)
        assert tree.fitted(structure, {"a": (1, None), "b": None, "c": None}, partial=True) == [
            1,
            None,
            None,
            None,
            None,
        ]
        assert tree.fitted(structure, None, partial=True) == [None] * 5
        with pytest.raises(ValueError, match=r"expected a tuple of 2 at \['a'\], got NoneType"):
            tree.fitted(structure, {"a": None, "b": Point(4, 5), "c": None})


class TestPrefixes:
    @pytest.mark.parametrize(
        "given, prefix, expected",
        [
            ((1, [2, {"a": 3}]), 0, [0, 0, 0]),
            ((1, [2, {"a": 3}]), (0, None), [0, None, None]),
            ((1, [2, {"a": 3}]), (None, [1, {"a": -1}]), [None, 1, -1]),
            ({"a": 1, "b": [2, 3]}, {"b": 1, "a": None}, [None, 1, 1]),
            (Point([1, 2], 3), Point(0, None), [0, 0, None]),
            (Pair(None, 1), (0, 1), [1]),
            ((None, 1), (None, 2), [2]),
        ],
    )
    def test_one_value_for_each_leaf(self, given, prefix, expected):
        assert list(tree.prefixed(given, prefix)) == expected

    @pytest.mark.parametrize(
        "given, prefix, match",
        [
            ((1, (2, 3)), (0, (0, 0, 0)), r"^expected a tuple of 2 at \[1\], got tuple of 3$"),
            (
                (1, {"a": 2}),
                (0, (0,)),
                r"^expected a dictionary with the keys \['a'\] at \[1\], got tuple of 1$",
            ),
            ((1, 2), (0, (0,)), r"^expected one value for an array at \[1\], got tuple of 1$"),
            ((1, Point(2, 3)), (0, Frozen(0)), r"^expected a Point at \[1\], got Frozen$"),
            (Point(2, [3]), Point(0, [0, 1]), "^expected a list of 1 at .y, got list of 2$"),
            ((None,), ((0,),), r"^expected None at \[0\], got tuple of 1$"),
        ],
    )
    def test_what_is_no_prefix(self, given, prefix, match):
        with pytest.raises(ValueError, match=match):
            tree.prefixed(given, prefix)


class TestRegistration:
    def test_a_class(self, registered):
        given = [Box(1), Box((2, 3), "t")]
        assert list(tree.leaves(given)) == given  # leaves until it is registered
        registered(
            Box, lambda box: ([box.value], box.tag), lambda tag, children: Box(*children, tag)
        )
        assert list(tree.leaves(given)) == [1, 2, 3]
        found = tree.replaced(lambda x: -x, given)
        assert found[1].value == (-2, -3) and found[1].tag == "t"
        with pytest.raises(
            ValueError, match=r"^expected a Box of 1 parts and 't' at \[1\], got one of 1 and 'u'$"
        ):
            tree.fitted(given, [Box(1), Box((2, 3), "u")])
        with pytest.raises(ValueError, match=r"^expected an array at \[0\]\[0\], got tuple of 2$"):
            tree.fitted(given, [Box((1, 2)), Box((2, 3), "t")])

        class Sub(Box):
            pass

        sub = Sub(1)
        assert list(tree.leaves(sub)) == [sub]

    def test_in_place_of_what_was_known(self, registered):
        assert list(tree.leaves([Point(1, 2), Pair(1, 2), Needs([1], "t")])) == [1, 2, 1, 2, 1]
        registered(Point, lambda p: ((p.x,), p.y), lambda y, children: Point(*children, y))
        registered(Pair, lambda p: ((p.b,), p.a), lambda a, children: Pair(a, *children))
        registered(Needs, lambda x: (tuple(x), x.tag), lambda tag, children: Needs(children, tag))
        assert list(tree.leaves([Point(1, 2), Pair(1, 2), Needs([1], "t")])) == [1, 2, 1]
        assert tree.replaced(str, Needs([1], "t")).tag == "t"
        with pytest.raises(ValueError, match="^expected an array at \\[0\\], got list of 1$"):
            tree.fitted(Point(1, 2), Point([1], 2))

    @pytest.mark.parametrize(
        "cls, error, match",
        [
            (dict, ValueError, "register_pytree: dict is already registered"),
            (
                mg.Tensor,
                TypeError,
                "register_pytree: Tensor cannot be a container: its instances are arrays or "
                "scalars, which are leaves",
            ),
            (Dual, TypeError, "Dual cannot be a container"),
            (str, TypeError, "str cannot be a container"),
            ("Box", TypeError, "register_pytree: expected a class, got 'Box'"),
        ],
    )
    def test_refusals(self, cls, error, match):
        with pytest.raises(error, match=match):
            func.register_pytree(cls, lambda x: ((), None), lambda aux, children: None)

    def test_twice_and_wrongly(self, registered):
        registered(Box, lambda box: [box.value], lambda tag, children: Box(*children))
        with pytest.raises(ValueError, match="Box is already registered"):
            registered(Box, lambda box: ((), box), lambda box, children: box)
        with pytest.raises(
            TypeError,
            match=r"the flatten function of Box must return \(children, aux\), not list of 1",
        ):
            list(tree.leaves(Box(1)))


class TestTransformations:
    """They take what pytrees there are, and give them back."""

    @pytest.fixture
    def xp(self):
        return mg.namespace("numpy")

    def test_dataclasses(self, xp):
        x, y = raw(xp, [1.0, 2.0]), raw(xp, [3.0, 4.0])
        f = lambda p: xp.sum(p.x * p.x * p.y[0])
        g = func.grad(f)(Point(x, [y, None]))
        assert type(g) is Point and g.y[1] is None
        close(g.x, [6, 16])
        close(g.y[0], [1, 4])
        out, t = func.jvp(lambda p: Point(p.x * 2, p.y), (Point(x, y),), (Point(y, x),))
        assert type(out) is type(t) is Point
        close(t.x, [6, 8])
        close(t.y, [1, 2])
        (g,) = func.vjp(lambda p: Frozen(p.w * p.w), Frozen(x))[1](Frozen(y))
        assert type(g) is Frozen and g.name == "w"
        close(g.w, [6, 16])
        _, push = func.linearize(lambda p: p.w * p.w, Frozen(x))
        close(push(Frozen(y)), [6, 16])
        jacobian = func.jacfwd(lambda p: Point(p.w * 3, p.w))(Frozen(x))
        assert type(jacobian) is Point and type(jacobian.x) is Frozen
        close(jacobian.x.w, np.diag([3.0, 3.0]))
        with pytest.raises(
            ValueError,
            match="jvp: tangents must have the structure of primals: expected a Point at .0., "
            "got dict of 1",
        ):
            func.jvp(f, (Point(x, y),), ({"x": x},))

    def test_what_is_no_container(self, xp):
        for given, kind in ((Box(raw(xp, [1.0])), "Box"), (Point(raw(xp, [1.0]), "name"), "str")):
            with pytest.raises(
                TypeError,
                match=f"^grad: cannot differentiate with respect to a {kind}: it is neither an "
                "array nor a container",
            ):
                func.grad(lambda p: p)(given)
            with pytest.raises(TypeError, match="multigrad.func.register_pytree makes a class one"):
                func.jvp(lambda p: p, (given,), (given,))

    def test_registered_classes(self, xp, registered):
        registered(
            Box, lambda box: ((box.value,), box.tag), lambda tag, children: Box(*children, tag)
        )
        x = raw(xp, [1.0, 2.0])
        g = func.grad(lambda box: xp.sum(box.value**2 * box.tag))(Box(x, 3))
        assert type(g) is Box and g.tag == 3
        close(g.value, [6, 12])
        _, aux = func.value_and_grad(lambda x: (xp.sum(x), Box(x * 2)), has_aux=True)(x)[0]
        assert type(aux) is Box and type(aux.value) is type(x)

    def test_dictionaries_keep_their_kind_and_order(self, xp):
        x = raw(xp, [1.0, 2.0])
        g = func.grad(lambda d: xp.sum(d["b"] * 2 + d["a"]))(OrderedDict([("b", x), ("a", x)]))
        assert type(g) is OrderedDict and list(g) == ["b", "a"]
        g = func.grad(lambda d: xp.sum(d["b"] * 2))(defaultdict(list, {"b": x}))
        assert type(g) is defaultdict and g["c"] == []
        close(g["b"], [2, 2])
