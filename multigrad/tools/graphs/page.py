"""The web page with the picture of a graph: one file without external resources."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

from .viewer import DARK, LIGHT, SCRIPT, STYLES

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Autograd graph</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { @LIGHT@; color-scheme: light }
@media (prefers-color-scheme: dark) { :root { @DARK@; color-scheme: dark } }
html, body { margin: 0; height: 100%; font: 13px Helvetica, Arial, sans-serif; color: var(--ink); background: var(--paper); overflow: hidden }
body { display: flex; flex-direction: column }
header { padding: 7px 14px; border-bottom: 1px solid var(--way) } header p { margin: 0 0 6px; color: var(--ink-soft) }
header b { font-size: 14px; color: var(--ink); margin-right: 10px }
.graph { flex: 1; min-height: 0 }
#tip-text { position: absolute; display: none; max-width: min(520px, 90vw); padding: 8px 11px; background: #111827; color: #f9fafb;
  border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere; font: 12px/1.45 ui-monospace, Menlo, Consolas, monospace;
  pointer-events: none; z-index: 2 }
@STYLES@</style>
</head>
<body>
<header><p><b>Autograd graph</b>@SUMMARY@</p><div class="graph-tools"></div></header>
<div class="graph"><svg>@DRAWING@</svg></div>
<div id="tip-text"></div>
<script type="application/json" id="data">@DATA@</script>
<script>
"use strict";
@SCRIPT@
const tip = document.getElementById("tip-text");
function tell(e, text) {
  if (!text) { tip.style.display = "none"; return }
  tip.textContent = text; tip.style.display = "block";
  tip.style.left = Math.max(4, Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.max(4, Math.min(e.clientY + 14, innerHeight - tip.offsetHeight - 8)) + "px";
}
const shown = showGraph(document.querySelector(".graph"), document.querySelector(".graph-tools"),
  JSON.parse(document.getElementById("data").textContent), tell);
addEventListener("resize", shown.fit);
</script>
</body>
</html>
"""


def embedded(data: Any) -> str:
    """Return JSON that is safe inside a `<script>` element."""
    return (
        json.dumps(data, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
    )


def page(summary: str, drawing: str, data: dict[str, Any]) -> str:
    """Return the whole page. `data`: the argument of `showGraph`."""
    parts = {
        "SUMMARY": escape(summary),
        "DRAWING": drawing,
        "DATA": embedded(data),
        "SCRIPT": SCRIPT,
        "STYLES": STYLES,
        "LIGHT": LIGHT,
        "DARK": DARK,
    }
    return re.sub(f"@({'|'.join(parts)})@", lambda m: parts[m[1]], _PAGE)
