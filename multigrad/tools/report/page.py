"""The page of a report: one file without external resources.

It embeds its content as JSON, and inserts it as text.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from ..graphs import viewer
from ..graphs.page import embedded
from .script import SCRIPT

_DARK = f"""{viewer.DARK};
  --text: #e5e7eb; --soft: #9ca3af; --faint: #9ca3af; --back: #111318; --panel: #1b1f27; --line: #2b313c; --thin: #1f242d; --edge: #4b5563;
  --note: #422006; --note-text: #fde68a; --recording: #6b7280; --look: #2b313c; --area: #1e3a5f; --curve: #60a5fa; --peak: #f87171; --device: #4ade80;
  --on: #f9fafb; color-scheme: dark"""
_MEDIA = f"""@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {_DARK} }} }}
:root[data-theme=dark] {{ {_DARK} }}"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>@TITLE@: profile</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { @LIGHT@; --text: #111827; --soft: #4b5563; --faint: #6b7280; --back: #fff; --panel: #f9fafb; --line: #e5e7eb; --thin: #f3f4f6;
  --edge: #d1d5db;
  --note: #fef9c3; --note-text: #713f12; --forward: #60a5fa; --backward: #fb923c; --label: #c4b5fd; --python: #6ee7b7; --recording: #d1d5db;
  --look: #e5e7eb; --area: #dbeafe; --curve: #2563eb; --peak: #dc2626; --device: #16a34a; --on: #111827; color-scheme: light }
@MEDIA@
body { margin: 0 auto; max-width: 1360px; padding: 0 20px 60px; font: 13px/1.45 Helvetica, Arial, sans-serif; color: var(--text);
  background: var(--back) }
h1 { font-size: 21px; margin: 22px 0 10px; overflow-wrap: anywhere }
h2 { font-size: 16px; margin: 34px 0 8px; border-bottom: 1px solid var(--line); padding-bottom: 5px }
h3 { font-size: 13px; margin: 18px 0 4px; overflow-wrap: anywhere } p { margin: 6px 0; color: var(--soft) }
.note { background: var(--note); padding: 8px 12px; border-radius: 6px; color: var(--note-text) }
#summary { display: flex; flex-wrap: wrap; gap: 8px }
#summary div { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 6px 12px; overflow-wrap: anywhere }
#summary span { display: block; color: var(--faint); font-size: 11px }
.tools { display: flex; gap: 10px; align-items: center; margin: 6px 0; flex-wrap: wrap } .hint { color: var(--faint) }
button, input { font: inherit; color: inherit; border: 1px solid var(--edge); border-radius: 5px; background: var(--back); padding: 3px 9px }
button { cursor: pointer }
.key { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 4px; vertical-align: -1px }
#whole { display: flex; height: 26px; border-radius: 6px; overflow: hidden; margin: 8px 0 } #whole i { display: block; min-width: 1px }
table { border-collapse: collapse; width: 100% } th { text-align: left; background: var(--panel); white-space: nowrap }
th { position: sticky; top: 0; z-index: 1 }
th, td { padding: 3px 9px; border-bottom: 1px solid var(--thin); vertical-align: top }
td.text { overflow-wrap: anywhere; min-width: 72px }
td.code { white-space: pre; font: 12px/1.45 ui-monospace, Menlo, Consolas, monospace; width: 99% }
details { margin-top: 10px } summary { cursor: pointer; padding: 3px 0; overflow-wrap: anywhere }
.source td { border: 0; padding-top: 0; padding-bottom: 0 } .source tr.hot td.code { background: var(--panel) }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.sortable th { cursor: pointer; user-select: none } .sortable th:hover { background: var(--line) }
td.bar { position: relative } td.bar i { position: absolute; left: 0; top: 3px; bottom: 3px; opacity: .3; border-radius: 2px }
td.bar span { position: relative }
.scroll { max-height: 300px; overflow: auto; border: 1px solid var(--line); border-radius: 6px } #source .scroll { max-height: 460px }
#parts { max-height: none }
#flame-box, #stacks { max-height: 560px; overflow-y: auto; overflow-x: hidden; border: 1px solid var(--line); border-radius: 6px }
#stacks { position: relative }
#stacks div { position: absolute; height: 17px; overflow: hidden; white-space: nowrap; font-size: 11px; line-height: 17px; padding: 0 3px;
  box-sizing: border-box; border-radius: 2px; border-right: 1px solid var(--back); color: #111827; cursor: pointer }
canvas { display: block; width: 100%; cursor: grab; touch-action: pan-y } canvas.moving { cursor: grabbing }
#memory { border: 1px solid var(--line); border-radius: 6px; margin-top: 8px }
.pair { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 0 22px }
@STYLES@#graph { height: 640px; border: 1px solid var(--line); border-radius: 6px; margin-top: 8px }
#tooltip { position: fixed; display: none; max-width: min(620px, 92vw); padding: 8px 11px; background: #111827; color: #f9fafb; border-radius: 6px;
  z-index: 3; white-space: pre-wrap; overflow-wrap: anywhere; font: 12px/1.45 ui-monospace, Menlo, Consolas, monospace; pointer-events: none }
@media (max-width: 900px) { .pair { grid-template-columns: minmax(0, 1fr) } }
@media (max-width: 600px) { body { padding: 0 10px 40px } th, td { padding: 3px 5px } td.text { min-width: 0; white-space: nowrap }
  #parts td.text:last-child { min-width: 150px; white-space: normal }
  #graph { max-height: 420px } .wide { display: none } }
</style>
</head>
<body>
<h1>@TITLE@</h1>
<noscript><p class="note">Tables and charts are drawn by JavaScript, which is off here: there is only the picture of the graph.</p></noscript>
<div id="summary"></div>
<div class="tools"><button id="dark">dark or light</button><button id="save">Chrome trace</button>
<span class="hint">The trace opens in chrome://tracing and in Perfetto.</span></div>
<div id="notes"></div>
<section id="total"><h2>Where the time went</h2><div id="whole"></div><div class="scroll" id="parts"></div><p id="total-text"></p></section>
<section id="operations"><h2>Time by operation</h2>
<p>Self time is without the operations inside. Click a header to sort.</p>
<div class="tools"><input id="filter" type="search" placeholder="filter by name"></div><div class="scroll" id="averages"></div></section>
<section id="by-line"><h2>Time by line</h2>
<p>The time of operations, and of the nodes that they made, at the innermost line of the program. Plain Python in between is not measured by line.</p>
<div class="scroll" id="lines"></div><div id="source"></div></section>
<section id="aggregated"><h2>Flame graph</h2>
<p>All calls with the same lines around them are one box, as wide as they took together. A node stands on the lines of its operation.</p>
<div class="tools"><button id="out-of">all</button><span class="hint">click a box: zoom to it</span></div><div id="stacks"></div></section>
<section id="timeline"><h2>Forward and backward</h2>
<div class="tools"><span><i class="key" style="background:var(--forward)"></i>forward</span>
<span><i class="key" style="background:var(--backward)"></i>backward</span>
<span><i class="key" style="background:var(--label)"></i>label</span>
<span><i class="key" style="background:var(--recording)"></i>this report looking at a graph</span>
<input id="find" type="search" placeholder="find"><button id="in">+</button><button id="out">&minus;</button><button id="fit">all</button>
<span class="hint wide">wheel: zoom, drag: move, click: zoom to an event, double click: all.
An event and its node are outlined together.</span></div>
<div id="flame-box"><canvas id="flame"></canvas></div></section>
<section id="bytes"><h2>Memory over time</h2><p id="memory-text"></p><canvas id="memory" height="190"></canvas>
<div id="holders"></div></section>
<section id="saved"><h2>Kept for the backward pass</h2><div id="kept"></div></section>
<section id="picture"><h2>The graph</h2><p id="graph-text"></p><div class="graph-tools"></div>
<div class="graph" id="graph"><svg>@DRAWING@</svg></div></section>
<div id="tooltip"></div>
<script type="application/json" id="data">@DATA@</script>
<script>
"use strict";
@SCRIPT@
</script>
</body>
</html>
"""


def page(title: str, data: dict[str, Any], drawing: str) -> str:
    """Return the whole page. `drawing`: the content of the graph's `<svg>` element."""
    parts = {
        "TITLE": escape(title),
        "DATA": embedded(data),
        "DRAWING": drawing,
        "SCRIPT": viewer.SCRIPT + SCRIPT,
        "MEDIA": _MEDIA,
        "LIGHT": viewer.LIGHT,
        "STYLES": viewer.STYLES,
    }
    return re.sub(f"@({'|'.join(parts)})@", lambda m: parts[m[1]], _PAGE)
