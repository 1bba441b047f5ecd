"""The page of a graph: what a label holds is a group, in a frame with nothing else in it; colours
by kind and by bytes.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from function_programs import Double
from report_pages import HOSTILE, Page

import multigrad as mg
from multigrad.autograd import graph
from multigrad.pages import source
from multigrad.tools.graphs.drawing import KINDS


def part(n: int, *shape: int) -> Any:
    return mg.asarray(np.random.default_rng(n).normal(size=shape) * 0.1, requires_grad=True)


def network(layers: int) -> tuple[Any, dict[str, Any]]:
    """Residual layers of two labelled parts, in a label of their own."""
    params = {f"layer{i}": {"w": part(i, 4, 4), "v": part(i + 100, 4, 4)} for i in range(layers)}
    h: Any = mg.asarray(np.ones((3, 4)))
    for name, p in params.items():
        with graph.label(name):
            with graph.label("mix"):
                a = mg.softmax(h @ mg.matrix_transpose(p["w"]), axis=-1)
            h = h + a
            with graph.label("act"):
                h = h + mg.tanh(h @ p["v"])
    return mg.mean(h), params


def tree(group: Any, boxes: Any) -> Any:
    return [
        (item.name, tree(item, boxes)) if hasattr(item, "items") else boxes[item].title
        for item in group.items
    ]


def test_labels_are_groups_and_leaves_stand_with_what_alone_uses_them() -> None:
    loss, params = network(2)
    picture = graph.draw(loss, params)
    first, second, *rest = tree(picture.groups, picture.boxes)
    assert first == (
        "layer0",
        [
            ("mix", ["layer0.w", "MatrixTransposeBackward", "MatmulBackward", "SoftmaxBackward"]),
            "AddBackward",
            ("act", ["layer0.v", "MatmulBackward", "TanhBackward", "AddBackward"]),
        ],
    )
    assert second[0] == "layer1" and rest == ["MeanBackward", "output"]


def test_a_leaf_of_two_groups_stands_around_both() -> None:
    w = part(0, 3, 3)
    with graph.label("outer"):
        with graph.label("a"):
            y = mg.tanh(w @ w)
        with graph.label("b"):
            z = mg.tanh(y @ w)
    picture = graph.draw(mg.sum(z), {"w": w})
    both = ["MatmulBackward", "TanhBackward"]
    assert tree(picture.groups, picture.boxes)[0] == ("outer", ["w", ("a", both), ("b", both)])


def test_a_label_of_one_operation_is_no_group() -> None:
    w = part(0, 3)
    with graph.label("alone"):
        y = mg.sin(w)
    assert not list(graph.draw(y).groups.groups())


def rectangle(thing: Any) -> tuple[float, float, float, float]:
    if hasattr(thing, "items"):
        return thing.x, thing.y, thing.x + thing.width, thing.y + thing.height
    return (
        thing.x - thing.width / 2,
        thing.y - thing.height / 2,
        thing.x + thing.width / 2,
        thing.y + thing.height / 2,
    )


def test_a_frame_holds_its_own_boxes_and_no_others() -> None:
    loss, params = network(4)
    picture = graph.draw(loss, params, fold=False)
    lay = picture.layout
    frames = list(picture.groups.groups())
    assert len(frames) == 12 and [f.number for f in frames] == list(range(12))
    for frame in frames:
        own = set(frame.inside())
        left, top, right, bottom = rectangle(frame)
        assert left >= 0 and top >= 0 and right <= lay.width + 1e-6 and bottom <= lay.height + 1e-6
        for number, cell in enumerate(lay.cells):
            a, b, c, d = rectangle(cell)
            if number in own:
                assert left < a and top + 20 < b and c < right and d < bottom
            else:
                assert c <= left or a >= right or d <= top or b >= bottom
    for i, cell in enumerate(lay.cells):
        a, b, c, d = rectangle(cell)
        for other in lay.cells[:i]:
            e, f, g, h = rectangle(other)
            assert c <= e or a >= g or d <= f or b >= h
    for arrow, way in zip(picture.arrows, lay.ways, strict=True):
        start, end = lay.cells[arrow.start], lay.cells[arrow.end]
        assert way[0] == pytest.approx((start.x, start.y + start.height / 2)) and way[
            -1
        ] == pytest.approx((end.x, end.y - end.height / 2))
        assert all(p[1] <= q[1] + 1e-6 for p, q in pairwise(way)), "arrows lead down"
        for x, y in way[1:-1]:
            for number, cell in enumerate(lay.cells):
                a, b, c, d = rectangle(cell)
                assert not (a < x < c and b < y < d), f"an arrow passes behind box {number}"


def test_a_leaf_that_an_early_box_and_a_late_frame_use_stands_above_the_early_box() -> None:
    w = part(0, 3)
    y = mg.sin(w)
    with graph.label("first"):
        for _ in range(20):
            y = mg.tanh(y)
    with graph.label("second"):
        z = mg.exp(y) * w
    picture = graph.draw(mg.sum(z * w), {"w": w})
    boxes = {b.title: cell for b, cell in zip(picture.boxes, picture.layout.cells, strict=True)}
    assert boxes["w"].row == 0 and boxes["SinBackward"].row == 1
    rows = {cell.row for cell in picture.layout.cells}
    assert rows == set(range(len(rows)))


def shown(html: str) -> dict[str, Any]:
    data: dict[str, Any] = Page(html).data
    return data


def test_the_page_tells_kinds_and_bytes() -> None:
    loss, params = network(2)
    picture = graph.draw(loss, params)
    data = shown(picture.html)
    kinds = {b["tip"][0]: b["kind"] for b in data["boxes"]}
    assert (
        kinds["MatmulBackward"] == "linear algebra"
        and kinds["TanhBackward"] == kinds["AddBackward"] == "elementwise"
    )
    assert (
        kinds["MatrixTransposeBackward"] == "shape and indexing"
        and kinds["MeanBackward"] == "reduction"
        and kinds["output"] == "output"
    )
    assert (
        kinds["SoftmaxBackward"] == "other"
        and kinds["layer0.w"] == "leaf"
        and data["kinds"] == [k for k in KINDS if k != "own derivative"]
    )
    for group in data["groups"]:
        assert group["operations"] >= 2 and 0 < group["bytes"] <= sum(
            b["bytes"] for b in data["boxes"]
        )
    assert (
        sum(g["operations"] for g in data["groups"] if g["parent"] == -1)
        == len(picture.graph.operations) - 1
    )
    assert not data["closed"]


def test_what_several_keep_counts_once_in_their_group() -> None:
    w = part(0, 10)
    with graph.label("part"):
        y = mg.exp(w)
        z = y * mg.sin(y)
    data = shown(graph.draw(mg.sum(z)).html)
    assert data["groups"][0]["bytes"] == 160 < sum(b["bytes"] for b in data["boxes"])


def test_functions_of_ones_own_have_a_kind() -> None:
    boxes = shown(graph.draw(Double.apply(part(0, 3))).html)["boxes"]
    assert "own derivative" in {b["kind"] for b in boxes}


def test_every_kind_has_its_colours() -> None:
    slugs = [kind.replace(" ", "-") for kind in KINDS]
    for what in ("fill", "edge"):
        assert re.findall(rf"--{what}-([\w-]+): light-dark\(#", source("page.css")) == slugs


def test_a_folded_graph_opens_in_its_page() -> None:
    loss, params = network(12)
    picture = graph.draw(loss, params)
    assert picture.folded and len(picture.boxes) < 60
    data = shown(picture.html)
    assert (
        data["closed"]
        and len(data["groups"]) == 36
        and len(data["boxes"]) == len(picture.graph.vertices) + 1
    )
    loss, params = network(120)  # too many to be whole
    assert shown(graph.draw(loss, params).html)["closed"] is False


def test_without_labels_nothing_changes() -> None:
    x = w = part(0, 3)
    for _ in range(200):
        x = mg.tanh(mg.sin(x))
    data = shown(graph.draw(mg.sum(x), {"w": w}).html)
    assert data["groups"] == [] and not data["closed"] and len(data["boxes"]) < 10
    assert any(returns for *_, returns in data["ways"]) and data["kinds"] == [
        "leaf",
        "elementwise",
        "reduction",
        "output",
    ]


def test_pictures_have_frames_too() -> None:
    loss, params = network(2)
    picture = graph.draw(loss, params)
    assert picture.svg.count('class="frame"') == 6 and ">mix</text>" in picture.svg
    assert picture.dot.count("subgraph cluster_") == 6 and picture.dot.count(
        "{"
    ) == picture.dot.count("}")
    assert re.search(
        r'subgraph cluster_1 \{ label="mix"; style=rounded; color="#8b5cf6";\n +n\d+; n\d+; '
        r"n\d+; n\d+;",
        picture.dot,
    )


def test_hostile_labels_stay_text() -> None:
    w = part(0, 3)
    with graph.label(HOSTILE + "]]>\x00"):
        y = mg.sin(mg.cos(w))
    picture = graph.draw(y, {HOSTILE: w})
    page = Page(picture.html)
    assert page.scripts == 2 and not any(
        tag in ("img", "b") and name == "src" for tag, name, _ in page.attributes
    )
    assert page.data["groups"][0]["name"] == HOSTILE + "]]>\ufffd" and "<img" not in picture.svg


def test_repeats_within_groups() -> None:
    """A pattern that is drawn once, inside of a label: its arrows lead back around everything."""
    w = part(0, 3)
    with graph.label("before"):
        y = mg.sin(mg.cos(w))
    with graph.label("loop"):
        for _ in range(300):
            y = mg.tanh(mg.exp(-y))
    picture = graph.draw(mg.sum(y), fold=True)
    lay = picture.layout
    assert all(0 <= x <= lay.width + 1e-6 for way in lay.ways for x, _ in way)
    assert json.dumps(picture.data())
