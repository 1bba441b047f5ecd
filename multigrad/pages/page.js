// biome-ignore-all lint/correctness/noUnusedVariables: the scripts that follow in the same element use them

const $ = id => document.getElementById(id);
function el(tag, text, cls) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (cls) e.className = cls;
  return e;
}
function time(ns) {
  const a = Math.abs(ns);
  if (a < 1e3) return `${ns.toFixed(0)} ns`;
  return a < 1e6
    ? `${(ns / 1e3).toFixed(1)} µs`
    : a < 1e9
      ? `${(ns / 1e6).toFixed(2)} ms`
      : `${(ns / 1e9).toFixed(3)} s`;
}
function bytes(n) {
  let unit = 0;
  while (Math.abs(n) >= 1024 && unit < 3) {
    n /= 1024;
    unit++;
  }
  return `${(+n.toFixed(1)).toLocaleString("en")} ${["B", "KiB", "MiB", "GiB"][unit]}`;
}
const tip = document.body.appendChild(el("div"));
tip.id = "tooltip";
/* show a text at the pointer, or nothing */
function tell(e, text) {
  tip.textContent = text;
  tip.style.display = text ? "block" : "none";
  if (!text) return;
  tip.style.left = `${Math.max(4, Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(4, Math.min(e.clientY + 14, innerHeight - tip.offsetHeight - 8))}px`;
}
