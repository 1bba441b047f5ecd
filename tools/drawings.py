"""Write the drawings of docs/ as SVG: `python tools/drawings.py`.

`--check` writes no file, and exits with status 1 if one differs.
"""

from __future__ import annotations

import linecache
import sys
from html import escape
from importlib import import_module
from pathlib import Path

from writing import write_or_check

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "img"
INK, PAPER, GREY = "#1c2333", "#ffffff", "#6b7280"
BLUE, GREEN, AMBER, RED, PLAIN = "#dbe7ff", "#d9f2e1", "#fdeecb", "#fbdcdc", "#f1f3f7"
ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
    'markerHeight="7" orient="auto-start-reverse"><path d="M0 0 10 5 0 10z" '
    f'fill="{INK}"/></marker></defs>'
)


class Drawing:
    """A picture built from boxes, lines and words."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.parts: list[str] = []

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        words: str = "",
        fill: str = PLAIN,
        *,
        mono: bool = False,
        dashed: bool = False,
    ) -> None:
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" '
            f'stroke="{INK}"{dash}/>'
        )
        lines = words.split("\n") if words else []
        for i, line in enumerate(lines):
            self.words(
                x + width / 2,
                y + height / 2 + 18 * (i - (len(lines) - 1) / 2) + 5,
                line,
                size=13,
                mono=mono,
            )

    def words(
        self,
        x: float,
        y: float,
        text: str,
        anchor: str = "middle",
        size: int = 14,
        *,
        mono: bool = False,
        bold: bool = False,
        ink: str = INK,
    ) -> None:
        family = (
            "ui-monospace, Menlo, Consolas, monospace"
            if mono
            else "system-ui, Helvetica, Arial, sans-serif"
        )
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-family="{family}" '
            f'font-size="{size}" fill="{ink}"{weight} xml:space="preserve">{escape(text)}</text>'
        )

    def code(self, x: float, y: float, text: str, size: int = 12) -> None:
        for i, line in enumerate(text.split("\n")):
            self.words(x, y + 18 * i, line, "start", size, mono=True)

    def arrow(self, *points: tuple[float, float], dashed: bool = False) -> None:
        path = "M" + " L".join(f"{x} {y}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="1.5"{dash} '
            'marker-end="url(#arrow)"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        self.parts.append(f'<path d="M{x1} {y1} L{x2} {y2}" stroke="{GREY}" fill="none"/>')

    def svg(self) -> str:
        size = (
            f'width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
        )
        body = "\n".join(self.parts)
        title = escape(self.title)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">\n'
            f"<title>{title}</title>\n"
            f"{ARROW}\n"
            f'<rect width="{self.width}" height="{self.height}" rx="8" fill="{PAPER}"/>\n'
            f"{body}\n"
            "</svg>\n"
        )


def home() -> Drawing:
    d = Drawing(
        860, 300, "One function of the Array API, differentiated on the arrays of every library"
    )
    d.words(150, 32, "your function", bold=True)
    d.box(20, 46, 262, 116, fill=BLUE)
    d.code(
        34,
        74,
        "def f(x):\n    xp = x.__array_namespace__()\n    s = xp.sin(x)\n    return xp.sum(s * x)",
    )
    d.words(430, 32, "multigrad", bold=True)
    for i, words in enumerate(("grad", "hessian", "jvp", "vmap", "compile", "backward()")):
        d.box(340 + 92 * (i % 2), 46 + 42 * (i // 2), 86, 32, words, GREEN, mono=True)
    d.words(712, 32, "the arrays of your user", bold=True)
    for i, words in enumerate(
        ("NumPy", "JAX, under jit", "CuPy, on a GPU", "Dask", "PyTorch", "yours, by a plugin")
    ):
        d.box(578 + 138 * (i % 2), 46 + 42 * (i // 2), 130, 32, words, AMBER, dashed=i == 5)
    d.arrow((282, 104), (336, 104))
    d.arrow((574, 104), (528, 104))
    d.arrow((431, 172), (431, 204))
    d.box(200, 208, 462, 68, fill=PLAIN)
    d.words(431, 236, "func.grad(f)(x)  =  sin(x) + x cos(x)", mono=True)
    d.words(431, 260, "an array of the same library, on the same device", ink=GREY)
    return d


def levels() -> Drawing:
    d = Drawing(860, 330, "jvp(grad(f)): a Tensor holds a Dual, which holds raw arrays")
    d.words(20, 32, "func.jvp(func.grad(f), (x,), (v,))", "start", mono=True)
    d.box(20, 50, 400, 256, fill=BLUE)
    d.words(36, 78, "Tensor    level 6, made by grad", "start", mono=True)
    d.words(36, 100, "records a graph", "start", ink=GREY)
    d.box(50, 116, 340, 172, fill=GREEN)
    d.words(66, 144, "Dual      level 3, made by jvp", "start", mono=True)
    d.words(66, 166, "carries a tangent", "start", ink=GREY)
    d.box(80, 184, 130, 84, "raw array\nx", AMBER)
    d.box(230, 184, 130, 84, "raw array\ntangent v", AMBER)
    steps = (
        ("x * y", "the highest level handles it"),
        ("Tensor", "records multiply, and calls"),
        ("Dual", "x·y and its tangent, and calls"),
        ("raw", "numpy.multiply"),
    )
    for i, (left, right) in enumerate(steps):
        d.box(460, 60 + 62 * i, 90, 40, left, (PLAIN, BLUE, GREEN, AMBER)[i], mono=True)
        d.words(566, 85 + 62 * i, right, "start")
        if i < 3:
            d.arrow((505, 100 + 62 * i), (505, 120 + 62 * i))
    return d


def versions() -> Drawing:
    d = Drawing(860, 300, "A version counter that an array and its views share")
    rows = {"y": 70, "row = y[0, :]": 130, "version": 190, "saved by the graph": 250}
    for words, y in rows.items():
        d.words(160, y + 5, words, "end", mono=words.startswith(("y", "row")))
        d.line(180, y, 840, y)
    times = {
        "y = x * 1.0": 240,
        "row = y[0, :]": 370,
        "z = y * y": 500,
        "row += 1.0": 630,
        "z.backward()": 770,
    }
    for words, x in times.items():
        d.words(x, 34, words, mono=True, size=13)
        d.line(x, 44, x, 270)
    d.box(218, 54, 44, 32, "", BLUE)
    d.box(348, 114, 44, 32, "view", GREEN)
    d.box(608, 114, 44, 32, "write", RED)
    d.arrow((630, 114), (630, 90))
    d.words(664, 104, "y sees it", "start", size=13, ink=GREY)
    for x, number in ((240, 0), (370, 0), (500, 0), (630, 1), (770, 1)):
        d.box(x - 16, 174, 32, 32, str(number), AMBER if number else PLAIN)
    d.box(462, 234, 76, 32, "y, at 0", BLUE)
    d.arrow((538, 250), (712, 250), dashed=True)
    d.box(714, 234, 130, 32, "0 is not 1: raise", RED)
    return d


def rules() -> Drawing:
    d = Drawing(860, 320, "One declaration of an operation, and what follows from it")
    d.words(200, 32, "one declaration", bold=True)
    d.box(20, 46, 380, 92, fill=BLUE)
    d.code(
        34,
        76,
        'elementwise("tanh(x, /)",\n'
        "    x=lambda xp, ans: 1 - ans * ans,\n"
        '    doc="The hyperbolic tangent.")',
    )
    d.words(34, 162, "The name ans tells what is saved: the output.", "start", ink=GREY)
    d.words(34, 182, "The body uses only the standard, so it can be", "start", ink=GREY)
    d.words(34, 202, "differentiated, batched and jitted itself.", "start", ink=GREY)
    d.words(640, 32, "what follows", bold=True)
    outcomes = (
        ("mg.tanh, xp.tanh, t.tanh()", PLAIN),
        ("backward(), func.grad", GREEN),
        ("jvp, forward mode", GREEN),
        ("second derivatives", GREEN),
        ("vmap", GREEN),
        ("conformance tests, docstring, stubs", AMBER),
    )
    for i, (words, fill) in enumerate(outcomes):
        d.box(500, 46 + 42 * i, 320, 32, words, fill)
        d.arrow((400, 92), (450, 92), (450, 62 + 42 * i), (496, 62 + 42 * i))
    return d


def backends() -> Drawing:
    d = Drawing(860, 300, "How an operation finds its library")
    d.box(20, 60, 150, 44, "mg.sum(x)", BLUE, mono=True)
    d.arrow((170, 82), (216, 82))
    d.box(220, 50, 180, 64, "the type of x\nin one dictionary", PLAIN)
    d.arrow((400, 82), (446, 82))
    d.box(450, 50, 160, 64, 'Backend\n"numpy"', GREEN)
    d.arrow((610, 82), (656, 82))
    d.box(660, 50, 180, 64, "numpy.sum\non the raw array", AMBER)
    d.arrow((310, 114), (310, 166), dashed=True)
    d.words(322, 146, "a new type", "start", ink=GREY)
    d.box(220, 170, 180, 64, "entry points of the\ngroup multigrad", PLAIN)
    d.arrow((400, 202), (446, 202), dashed=True)
    d.box(450, 170, 160, 64, "the plugin of its\nlibrary", GREEN, dashed=True)
    d.arrow((530, 170), (530, 118), dashed=True)
    d.box(660, 170, 180, 64, "kernels: faster forms,\nor the defaults", AMBER, dashed=True)
    d.arrow((610, 202), (656, 202), dashed=True)
    d.words(
        20,
        276,
        "A plugin is imported when its library is. A backend without kernels is complete.",
        "start",
        ink=GREY,
    )
    return d


def classes() -> Drawing:
    rows = (
        ("core.level", "Layer", "stands for an array, at a level"),
        ("core.surface", "Surface", "has the operators and methods of the table"),
        ("core.array_protocols", "ArrayProtocols", "describes the array and lets its values out"),
        ("core.tensor", "Tensor", "records a graph"),
        ("core.tensor", "View", "shares the memory of a base"),
        ("core.tensor", "Data", "x.data where arrays are immutable"),
        ("layers.value_layer", "ValueLayer", "takes a new value in the place of a write"),
        ("layers.dual", "Dual", "carries a tangent: jvp"),
        ("layers.batched", "Batched", "holds all examples at once: vmap"),
        ("extend", "Layer", "base of layers that others write"),
        ("compiling.recorded", "Recorded", "a value of a program: compile"),
        ("layers.dual", "Unknown", "the tangent of what a Function computed"),
    )
    d = Drawing(860, 26 + 38 * len(rows), "The class tree of array objects")
    places: dict[type, tuple[float, float]] = {}
    for i, (module, name, words) in enumerate(rows):
        cls = getattr(import_module(f"multigrad.{module}"), name)
        y, base = 16.0 + 38 * i, places.get(cls.__bases__[0])
        x = 20.0 if base is None else base[0] + 32
        fill = (
            (BLUE if "core" in module else GREEN)
            if any(c.__name__ in ("Tensor", "ValueLayer") for c in cls.__mro__)
            else PLAIN
        )
        if base is not None:
            d.arrow((base[0] + 14, base[1] + 28), (base[0] + 14, y + 14), (x, y + 14))
        elif i:
            raise AssertionError(f"{name} of {module}: its base is none of the rows above")
        places[cls] = x, y
        d.box(x, y, 130, 28, f"extend.{name}" if module == "extend" else name, fill, mono=True)
        d.words(
            310 if x < 170 else x + 142,
            y + 19,
            f"{module.replace('.', '/')}.py",
            "start",
            12,
            mono=True,
            ink=GREY,
        )
        d.words(545, y + 19, words, "start", 13)
    return d


def multiply() -> Drawing:
    """Draw lines of the function that multigrad generates and of a runner, with explanations."""
    import multigrad as mg

    x = mg.asarray([1.0], requires_grad=True)
    _ = x * mg.asarray([2.0], requires_grad=True)  # its runner is written
    files = [n for n in linecache.cache if n.startswith("<multigrad runner of multiply")]
    files.append(mg.multiply.__code__.co_filename)
    text = {line.strip() for name in files for line in linecache.getlines(name)}
    parts = (
        (
            "gate",
            PLAIN,
            "read the gate once",
            "observers are told here, if there are any",
            "def multiply(x1, x2, /):\n"
            "_mode = _gate()\nif _mode is not True and _told and _mode.operations:",
        ),
        (
            "key",
            BLUE,
            "what kinds the operands are of",
            "the Kind of its Element for each array object, the type of anything else",
            "_kind0 = x1._elem.kind\n_kind1 = x2._elem.kind\n_key = (_kind0, _kind1)",
        ),
        (
            "look up",
            BLUE,
            "take the runner of the key",
            "the first call of a key takes the general path, and its runner is written",
            "_runner = _find(_key)\nif _runner is not None:\nreturn _runner(_mode, x1, x2)\n"
            "return _missed(_key, _general, (x1, x2, ))",
        ),
        (
            "call",
            AMBER,
            "run the library's function",
            "this is the runner of two Tensors of float64; on layers it calls our own function",
            "def _run(_mode, x1, x2):\n"
            "_value0 = x1._array\n"
            "_node0 = x1._node\n"
            "_value1 = x2._array\n"
            "_node1 = x2._node\n"
            "_ans = _fn(_value0, _value1)",
        ),
        (
            "wrap",
            GREEN,
            "make the result",
            "without a node if no operand has one",
            "_result = _new(_Tensor)\n"
            "_result._array = _ans\n"
            "_result._elem = _elem\n"
            "_result._cell = _cell = []\n"
            "if _node0 is None and _node1 is None:",
        ),
        (
            "record",
            RED,
            "make the node",
            "a number, the rule, the arrays that it takes, their version cells, the parents",
            "_result._node = _node = _Node()\n"
            "_node.seq = _tick()\n"
            "_node.saved = (_value1, _value0, )\n"
            "_node.cells = (x2._cell, x1._cell, )\n"
            "_node.next = (_node0, _node1, )",
        ),
    )
    heights = [max(18 * code.count("\n") + 32, 52) for *_, code in parts]
    d = Drawing(
        860, 24 + sum(heights) + 8 * len(parts), "multiply and one of its runners, in excerpts"
    )
    y = 20
    for (name, fill, words, more, code), height in zip(parts, heights, strict=True):
        wrong = [line for line in code.split("\n") if line not in text]
        assert not wrong, f"multiply and its runner have no such line: {wrong}"
        d.box(20, y, 500, height, "", fill)
        d.code(34, y + height / 2 - 9 * code.count("\n") + 4, code)
        d.words(540, y + 21, name, "start", bold=True)
        d.words(620, y + 21, words, "start", 13)
        for i, line in enumerate(split(more, 46)):
            d.words(540, y + 41 + 17 * i, line, "start", 12, ink=GREY)
        y += height + 8
    return d


def split(text: str, width: int) -> list[str]:
    """Split a text into lines of at most `width` characters."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def clock() -> Drawing:
    """Draw the clock. The readings come from running the program, counted from its first line."""
    import multigrad as mg
    from multigrad.core import graph

    x = mg.asarray([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    for warm in (True, False):  # the first run of an operation takes other paths
        start = graph.tick()
        y = x * 1.0
        row = y[0, :]
        z = y * y
        nodes = {
            "y = x * 1.0": y._node.seq - start,
            "row = y[0, :]": row._node.seq - start,
            "z = y * y": z._node.seq - start,
        }
        assert (
            (warm or y._cell == []) and z._node.cells == (y._cell, y._cell) and row._cell is y._cell
        )
        row += 1.0
    (write,) = (reading - start for reading in y._cell)
    d = Drawing(
        860,
        300,
        "The clock: it numbers nodes and writes, and a version cell lists the writes to one memory",
    )
    rows = {"clock": 80, "nodes": 130, "cell of y and row": 190, "saved by z": 250}
    for words, at in rows.items():
        d.words(150, at + 5, words, "end", bold=words == "clock")
        d.line(166, at, 840, at)
    columns = {
        **dict(zip(nodes, (240, 370, 500), strict=True)),
        "row += 1.0": 630,
        "z.sum().backward()": 770,
    }
    for words, at in columns.items():
        d.words(at, 34, words, mono=True, size=13)
        d.line(at, 44, at, 270)
    for words, reading in (*nodes.items(), ("row += 1.0", write)):
        d.box(
            columns[words] - 16, 64, 32, 32, str(reading), RED if words == "row += 1.0" else PLAIN
        )
    for words, reading in nodes.items():
        d.box(columns[words] - 34, 114, 68, 32, f"node {reading}", GREEN)
    for words, at in columns.items():
        now = words in ("row += 1.0", "z.sum().backward()")
        d.box(
            at - 22, 174, 44, 32, f"[{write}]" if now else "[ ]", AMBER if now else PLAIN, mono=True
        )
    d.box(columns["z = y * y"] - 56, 234, 112, 32, "y and its cell", BLUE)
    d.arrow((556, 250), (678, 250), dashed=True)
    d.box(682, 234, 168, 32, f"{write} > {nodes['z = y * y']}: raise", RED)
    return d


def observers() -> Drawing:
    """Draw which observer receives which events, according to their classes."""
    events = (
        "operation",
        "write",
        "function",
        "pass",
        "step",
        "conversion",
        "tangent",
        "node",
        "saved",
        "label",
    )
    rows = (
        ("tools.profiler.recorder", "Recorder", "profile"),
        ("tools.profiler.nvtx", "_Ranges", "emit_nvtx"),
        ("tools.report.watch", "RunObserver", "the report of a run"),
        ("tools.breaks.watch", "BreakObserver", "detect_breaks"),
        ("autograd.anomaly_mode", "_Anomaly", "anomaly mode"),
        ("tools.graphs.provenance", "_Notes", "record_lines, label"),
        ("memory.saved", "HookPair", "saved-tensor hooks"),
        ("func.checkpoint", "_Call", "checkpoint"),
        ("memory.old_values", "OldValues", "allow_mutation_on_saved_tensors"),
    )
    d = Drawing(
        860,
        94 + 34 * len(rows),
        "Who observes what: an observer is told of the events that it names",
    )
    columns = {event: 300 + 56 * i for i, event in enumerate(events)}
    for i, (event, x) in enumerate(columns.items()):
        d.words(x, 30 if i % 2 else 50, event, size=12, mono=True)
        d.line(x, 36 if i % 2 else 56, x, 60 + 34 * len(rows))
    for i, (module, name, words) in enumerate(rows):
        cls, y = getattr(import_module(f"multigrad.{module}"), name), 80 + 34 * i
        assert cls.events <= set(events)
        d.words(20, y + 5, words, "start", 13)
        d.line(20, y + 17, 840, y + 17)
        for event in sorted(cls.events):
            d.box(columns[event] - 11, y - 11, 22, 22, "", GREEN)
    d.words(
        20,
        84 + 34 * len(rows),
        "An observer is entered in a context and is told of what happens there.",
        "start",
        12,
        ink=GREY,
    )
    return d


DRAWINGS = {
    "home": home,
    "levels": levels,
    "versions": versions,
    "rules": rules,
    "backends": backends,
    "classes": classes,
    "multiply": multiply,
    "clock": clock,
    "observers": observers,
}


def texts() -> dict[Path, str]:
    return {FOLDER / f"{name}.svg": draw().svg() for name, draw in DRAWINGS.items()}


if __name__ == "__main__":
    sys.exit(write_or_check(__doc__, texts))
