"""The page that shows the picture of a graph: one file, with no resource from outside."""

from __future__ import annotations

import json
from html import escape
from string import Template

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Autograd graph</title>
<style>
html, body { margin: 0; height: 100%; font: 13px Helvetica, Arial, sans-serif; color: #111827; background: #fff; overflow: hidden }
header { position: absolute; left: 0; right: 0; top: 0; height: 40px; display: flex; align-items: center; gap: 14px; padding: 0 14px;
  background: #f9fafb; border-bottom: 1px solid #e5e7eb; box-sizing: border-box; white-space: nowrap; overflow: hidden }
header b { font-size: 14px } header .sum { color: #4b5563; overflow: hidden; text-overflow: ellipsis; flex: 1 }
button, input { font: inherit; border: 1px solid #d1d5db; border-radius: 5px; background: #fff; padding: 3px 9px }
input { width: 150px }
.key { display: inline-block; width: 11px; height: 11px; border-radius: 3px; border: 1px solid; margin-right: 4px; vertical-align: -1px }
#view { position: absolute; top: 40px; left: 0; right: 0; bottom: 0; cursor: grab } #view.moving { cursor: grabbing }
#view > svg { width: 100%; height: 100%; display: block }
.box { cursor: default } .dim { opacity: .2 } .box.hit rect { stroke: #ea580c; stroke-width: 3 }
path.on { stroke: #111827; stroke-width: 2 }
#tip-text { position: absolute; display: none; max-width: 520px; padding: 8px 11px; background: #111827; color: #f9fafb; border-radius: 6px;
  white-space: pre-wrap; font: 12px/1.45 ui-monospace, Menlo, Consolas, monospace; pointer-events: none; z-index: 2 }
</style>
</head>
<body>
<header><b>Autograd graph</b><span class="sum">$summary</span>
<span><i class="key" style="background:#dbeafe;border-color:#3b82f6"></i>leaf</span>
<span><i class="key" style="background:#f3f4f6;border-color:#9ca3af"></i>operation</span>
<span><i class="key" style="background:#ede9fe;border-color:#8b5cf6"></i>folded</span>
<span><i class="key" style="background:#dcfce7;border-color:#22c55e"></i>output</span>
<input id="find" type="search" placeholder="find">
<button id="in">+</button><button id="out">&minus;</button><button id="fit">fit</button></header>
<div id="view"><svg>$style<g id="all">
$drawing
</g></svg></div>
<div id="tip-text"></div>
<script>
const W = $width, H = $height, tips = $tips;
const view = document.getElementById("view"), all = document.getElementById("all"), tip = document.getElementById("tip-text");
const boxes = [...document.querySelectorAll(".box")], ways = [...document.querySelectorAll("#all > path")];
let k = 1, x = 0, y = 0;
function show() { all.setAttribute("transform", `translate($${x} $${y}) scale($${k})`) }
function zoom(by, cx, cy) {
  const next = Math.min(4, Math.max(0.02, k * by));
  x = cx - (cx - x) * next / k; y = cy - (cy - y) * next / k; k = next; show();
}
function fit() {
  const w = view.clientWidth, h = view.clientHeight;
  k = Math.min(1.2, (w - 40) / W, (h - 40) / H);
  if (k < 0.6) { k = Math.min(0.9, Math.max(0.3, (w - 40) / W)); y = 20 } else y = (h - H * k) / 2;
  x = (w - W * k) / 2; show();
}
function middle(by) { zoom(by, view.clientWidth / 2, view.clientHeight / 2) }
document.getElementById("in").onclick = () => middle(1.3);
document.getElementById("out").onclick = () => middle(1 / 1.3);
document.getElementById("fit").onclick = fit;
view.addEventListener("wheel", e => {
  e.preventDefault();
  const r = view.getBoundingClientRect();
  zoom(Math.exp(-e.deltaY * 0.0015), e.clientX - r.left, e.clientY - r.top);
}, { passive: false });
let from = null;
view.addEventListener("pointerdown", e => {
  from = [e.clientX - x, e.clientY - y]; view.classList.add("moving"); view.setPointerCapture(e.pointerId);
});
view.addEventListener("pointermove", e => { if (from) { x = e.clientX - from[0]; y = e.clientY - from[1]; show() } });
view.addEventListener("pointerup", () => { from = null; view.classList.remove("moving") });
for (const box of boxes) {
  const id = box.dataset.box;
  box.querySelector("title").remove();
  box.addEventListener("pointermove", e => {
    tip.textContent = tips[id].join("\\n");
    tip.style.display = "block";
    tip.style.left = Math.max(4, Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(4, Math.min(e.clientY + 14, innerHeight - tip.offsetHeight - 8)) + "px";
  });
  box.addEventListener("pointerenter", () => {
    for (const way of ways) way.classList.toggle("on", way.dataset.from === id || way.dataset.to === id);
  });
  box.addEventListener("pointerleave", () => { tip.style.display = "none"; for (const way of ways) way.classList.remove("on") });
}
document.getElementById("find").addEventListener("input", e => {
  const text = e.target.value.toLowerCase();
  for (const box of boxes) {
    const hit = text && tips[box.dataset.box].join("\\n").toLowerCase().includes(text);
    box.classList.toggle("hit", !!hit); box.classList.toggle("dim", !!text && !hit);
  }
});
addEventListener("resize", fit);
fit();
</script>
</body>
</html>
""")


def page(summary: str, style: str, drawing: str, width: float, height: float, tips: dict[int, list[str]]) -> str:
    """The whole page."""
    data = json.dumps(tips).replace("<", "\\u003c")
    return _PAGE.substitute(summary=escape(summary), style=style, drawing=drawing, width=f"{width:.0f}", height=f"{height:.0f}", tips=data)
