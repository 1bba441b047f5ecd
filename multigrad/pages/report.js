// The report of a run.

const D = JSON.parse($("data").textContent),
  T = D.trace,
  M = D.memory;
const KIND = { 0: "forward", 1: "backward", 7: "label" },
  HUE = { 0: "var(--forward)", 1: "var(--backward)", 7: "var(--label)" };
const probe = document.body.appendChild(el("i"));
probe.hidden = true;
/* a colour of the style sheet, as a canvas takes it */
const inked = name => {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
};
const scopes = () => ({ 0: inked("forward"), 1: inked("backward"), 7: inked("label") });
const MOST = 500; /* rows that a table shows */
/* columns: [title, "number" | "text", what to show of a value, colour of its bar] */
function table(columns, rows, sorting, limit = MOST) {
  const t = el("table"),
    head = t.appendChild(el("thead")).appendChild(el("tr")),
    body = t.appendChild(el("tbody"));
  const most = columns.map((c, i) => (c[3] ? Math.max(1, ...rows.map(r => Math.abs(r[i]))) : 1));
  let by = sorting === undefined ? -1 : sorting,
    down = true,
    shown = rows;
  function fill() {
    if (by >= 0)
      shown.sort((a, b) => (a[by] < b[by] ? -1 : a[by] > b[by] ? 1 : 0) * (down ? -1 : 1));
    [...head.children].forEach(
      (th, i) => (th.textContent = columns[i][0] + (i === by ? (down ? " ▾" : " ▴") : "")),
    );
    body.replaceChildren(
      ...shown.slice(0, limit).map(r => {
        const tr = el("tr");
        columns.forEach((c, i) => {
          const td = tr.appendChild(el("td", undefined, c[1] + (c[3] ? " bar" : "")));
          if (c[3]) {
            const bar = td.appendChild(el("i"));
            bar.style.width = `${(100 * Math.max(0, r[i])) / most[i]}%`;
            bar.style.background = typeof c[3] === "string" ? c[3] : c[3](r);
          }
          td.appendChild(el("span", c[2] ? c[2](r[i], r) : r[i]));
        });
        return tr;
      }),
    );
    if (shown.length > limit) {
      const td = body
        .appendChild(el("tr"))
        .appendChild(
          el("td", `and ${(shown.length - limit).toLocaleString("en")} more: filter, or sort`),
        );
      td.colSpan = columns.length;
    }
  }
  columns.forEach((c, i) => {
    const th = head.appendChild(el("th", c[0], c[1]));
    if (sorting !== undefined)
      th.onclick = () => {
        down = by === i ? !down : c[1] === "number";
        by = i;
        fill();
      };
  });
  if (sorting !== undefined) t.className = "sortable";
  fill();
  t.only = keep => {
    shown = rows.filter(keep);
    fill();
  };
  return t;
}

for (const [name, value] of D.summary) {
  const box = $("summary").appendChild(el("div"));
  box.appendChild(el("span", name));
  box.append(value);
}
for (const note of D.notes) $("notes").appendChild(el("p", note, "note"));
const count = T.start.length;
if (!count)
  for (const id of ["total", "operations", "by-line", "aggregated", "timeline", "bytes"])
    $(id).style.display = "none";
const self = D.averages.reduce((sum, r) => sum + r[3], 0) || 1;
const averages = table(
  [
    ["operation", "text"],
    ["kind", "text", k => KIND[k]],
    ["calls", "number", n => n.toLocaleString("en")],
    ["self", "number", time, r => HUE[r[1]]],
    ["self %", "number", x => x.toFixed(1)],
    ["total", "number", time, r => HUE[r[1]]],
    ["a call", "number", time],
    ["self memory", "number", bytes],
  ],
  D.averages.map(([name, kind, n, alone, total, memory]) => [
    name,
    kind,
    n,
    alone,
    (100 * alone) / self,
    total,
    total / n,
    memory,
  ]),
  3,
);
$("averages").append(averages);
$("filter").oninput = e => {
  const text = e.target.value.toLowerCase();
  averages.only(r => r[0].toLowerCase().includes(text));
};

/* where the time went */
const PARTS = [
  ["forward", "operations of the forward pass"],
  ["backward", "passes, with all that runs inside"],
  ["python", `the Python of the ${D.subject}, its imports, libraries on raw arrays, waiting`],
  ["recording", "what this report took to note all that"],
];
for (const [part] of PARTS) {
  const box = $("whole").appendChild(el("i"));
  box.style.flex = `${Math.max(0, D.totals[part])} 0 0`;
  box.style.background = `var(--${part})`;
  box.title = part;
}
const percent = ns => `${((100 * ns) / Math.max(1, D.end)).toFixed(1)} %`;
$("parts").append(
  table(
    [
      ["part", "text"],
      ["time", "number", time, r => `var(--${r[0]})`],
      ["of the run", "number"],
      ["what", "text"],
    ],
    [
      ...PARTS.map(([part, what]) => [part, D.totals[part], percent(D.totals[part]), what]),
      ["the run", D.end, percent(D.end), "the sum"],
    ],
  ),
);
$("total-text").textContent =
  "Without recording the run would take about " +
  time(D.end - D.totals.recording) +
  ", an estimate: what recording " +
  "slows down beside its own work counts for what it slows down." +
  (D.totals.elsewhere
    ? ` Calls on other threads took ${time(D.totals.elsewhere)}, beside this.`
    : "");

/* by line */
if (!D.lines.length) $("by-line").style.display = "none";
$("lines").append(
  table(
    [
      ["line", "text"],
      ["forward", "number", time, HUE[0]],
      ["backward", "number", time, HUE[1]],
      ["calls", "number", n => n.toLocaleString("en")],
    ],
    D.lines,
    1,
  ),
);
const some = f => (x, r) => (r[1] + r[2] + r[4] ? f(x) : "");
for (const { file, rows } of D.source) {
  const box = $("source").appendChild(el("details"));
  box.open = D.source.length < 4;
  box.appendChild(el("summary", file));
  const shown = table(
    [
      ["line", "number", x => x || "…"],
      ["forward", "number", some(time), HUE[0]],
      ["backward", "number", some(time), HUE[1]],
      ["source", "code"],
    ],
    rows.map(r => (r.length ? [r[0], r[2], r[3], r[1], r[4]] : [0, 0, 0, "", 0])),
    undefined,
    1e9,
  );
  shown.className = "source";
  box.appendChild(el("div", undefined, "scroll")).append(shown);
}

/* the flame graph: boxes as [depth, start, total, self time, kind, name], each before those inside of it */
if (!D.flame.length || !D.flame[0][2]) $("aggregated").style.display = "none";
else {
  const SHADE = { 0: "var(--forward)", 1: "var(--backward)", 7: "var(--program)" };
  const stacks = $("stacks"),
    F = D.flame,
    STEP = 18;
  const focus = at => {
    const [depth0, start, total] = F[at],
      inside = [];
    let deepest = 0;
    F.forEach(([depth, s, t], i) => {
      const above = depth < depth0 && s <= start && s + t >= start + total;
      if (!above && (s < start || s + t > start + total || depth < depth0 || t < total / 1500))
        return;
      inside.push([i, above ? 0 : (s - start) / total, above ? 1 : t / total]);
      deepest = Math.max(deepest, depth);
    });
    stacks.style.height = `${Math.min(560, (deepest + 1) * STEP + 2)}px`;
    stacks.replaceChildren(
      ...inside.map(([i, left, wide]) => {
        const [depth, , t, alone, kind, name] = F[i],
          box = el("div", name);
        box.style.cssText = `left:${100 * left}%;width:${100 * wide}%;top:${depth * STEP}px`;
        box.style.background = SHADE[kind];
        if (kind === 7) box.style.color = "var(--text)";
        if (depth < depth0) box.style.opacity = 0.6;
        box.onclick = () => {
          tell(null, "");
          focus(i);
        };
        box.onpointermove = e =>
          tell(
            e,
            `${name}\n${time(t)}, ${((100 * t) / F[0][2]).toFixed(1)} % of all calls, self ${time(alone)}`,
          );
        box.onpointerleave = () => tell(null, "");
        return box;
      }),
    );
  };
  $("out-of").onclick = () => focus(0);
  focus(0);
}

/* the trace of these events, in the trace event format: microseconds */
$("save").onclick = () => {
  const out = [{ ph: "M", name: "process_name", pid: 1, tid: 0, args: { name: document.title } }];
  T.rows.forEach((name, i) =>
    out.push({ ph: "M", name: "thread_name", pid: 1, tid: i + 1, args: { name } }),
  );
  const made = new Map();
  for (let i = 0; i < count; i++)
    if (T.scope[i] === 0 && T.sequence[i] >= 0) made.set(T.sequence[i], i);
  for (let i = 0; i < count; i++) {
    const place = { pid: 1, tid: T.row[i] + 1, ts: T.start[i] / 1e3 },
      args = {};
    if (T.shapes[i] >= 0) args.shapes = T.texts[T.shapes[i]];
    if (T.line[i] >= 0) args.line = T.lines[T.line[i]];
    if (T.bytes[i]) args.bytes = T.bytes[i];
    out.push({
      ph: "X",
      cat: KIND[T.scope[i]],
      name: T.names[T.name[i]],
      ...place,
      dur: T.duration[i] / 1e3,
      args,
    });
    const from = T.scope[i] === 1 ? made.get(T.sequence[i]) : undefined;
    if (from !== undefined) {
      const link = { cat: "fwdbwd", name: "fwdbwd", id: i };
      out.push(
        { ph: "s", ...link, pid: 1, tid: T.row[from] + 1, ts: T.start[from] / 1e3 },
        { ph: "f", bp: "e", ...link, ...place },
      );
    }
  }
  for (const [t, total] of M.points)
    out.push({ ph: "C", name: "memory", pid: 1, tid: 0, ts: t / 1e3, args: { bytes: total } });
  const link = el("a");
  link.href = URL.createObjectURL(
    new Blob([JSON.stringify({ traceEvents: out })], { type: "application/json" }),
  );
  link.download = "trace.json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1e3);
};
const dark = matchMedia("(prefers-color-scheme: dark)");
$("dark").onclick = () => {
  const { style } = document.documentElement,
    now = style.colorScheme || (dark.matches ? "dark" : "light");
  style.colorScheme = now === "dark" ? "light" : "dark";
  draw();
};
dark.addEventListener("change", draw);

/* the flame chart: events of one row and depth lie apart, sorted by their starts, so that what is visible is found by bisection */
const ROW = 18,
  HEAD = 18,
  AXIS = 22,
  flame = $("flame"),
  memory = $("memory");
const depths = T.rows.map(() => 0);
for (let i = 0; i < count; i++) depths[T.row[i]] = Math.max(depths[T.row[i]], T.depth[i] + 1);
const tops = [];
let height = AXIS;
for (const d of depths) {
  tops.push(height);
  height += HEAD + d * ROW + 6;
}
flame.style.height = `${height}px`;
const lanes = depths.map(d => Array.from({ length: d }, () => []));
for (let i = 0; i < count; i++) lanes[T.row[i]][T.depth[i]].push(i);
const partners = new Map();
for (let i = 0; i < count; i++)
  if (T.sequence[i] >= 0) {
    if (!partners.has(T.sequence[i])) partners.set(T.sequence[i], []);
    partners.get(T.sequence[i]).push(i);
  }
const WHOLE = Math.max(1, D.end);
let from = 0,
  to = WHOLE,
  hover = -1,
  wanted = "",
  due = false;
if (count) {
  from = Math.max(0, T.start[0] - WHOLE * 0.005);
}
const FIRST = from;
let hits = new Set();
function after(lane, t) {
  /* the first event of the lane that ends after t */
  let a = 0,
    b = lane.length;
  while (a < b) {
    const m = (a + b) >> 1;
    if (T.start[lane[m]] + T.duration[lane[m]] > t) b = m;
    else a = m + 1;
  }
  return a;
}
function prepared(canvas) {
  const r = devicePixelRatio || 1,
    w = canvas.clientWidth,
    h = canvas.clientHeight;
  const across = Math.round(w * r),
    down = Math.round(h * r);
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
  }
  const c = canvas.getContext("2d");
  c.setTransform(r, 0, 0, r, 0, 0);
  c.clearRect(0, 0, w, h);
  c.font = "11px Helvetica, Arial, sans-serif";
  c.textBaseline = "middle";
  return [c, w, h];
}
function axis(c, w, h) {
  const raw = (to - from) / Math.max(2, w / 110),
    power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(k => k * power).find(s => s >= raw) || raw;
  const [size, unit] =
    to < 1e3 ? [1, "ns"] : to < 1e6 ? [1e3, "µs"] : to < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / size)));
  c.strokeStyle = inked("thin");
  c.fillStyle = inked("faint");
  c.lineWidth = 1;
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    const x = Math.round(((t - from) / (to - from)) * w) + 0.5;
    c.beginPath();
    c.moveTo(x, 0);
    c.lineTo(x, h);
    c.stroke();
    if (x < w - 50) c.fillText(`${(t / size).toFixed(digits)} ${unit}`, x + 3, 10);
  }
}
const widths = new Map();
function fits(c, text, room) {
  if (!widths.has(text)) widths.set(text, c.measureText(text).width);
  if (widths.get(text) <= room) return text;
  const n = Math.floor((text.length * room) / widths.get(text)) - 1;
  return n < 2 ? "" : `${text.slice(0, n)}…`;
}
function drawFlame() {
  const [c, w, h] = prepared(flame),
    scale = w / (to - from);
  axis(c, w, h);
  c.fillStyle = inked("look");
  const hues = scopes(),
    soft = inked("soft"),
    ink = inked("on-colour");
  for (const [s, d, row] of T.looks)
    if (s < to && s + d > from && row < tops.length)
      c.fillRect((s - from) * scale, tops[row] + HEAD, Math.max(1, d * scale), depths[row] * ROW);
  const linked = new Set(
    hover >= 0 && T.sequence[hover] >= 0
      ? partners.get(T.sequence[hover])
      : hover >= 0
        ? [hover]
        : [],
  );
  const outlined = [];
  lanes.forEach((found, row) => {
    c.globalAlpha = 1;
    c.fillStyle = soft;
    c.fillText(T.rows[row], 6, tops[row] + HEAD / 2);
    found.forEach((lane, depth) => {
      const y = tops[row] + HEAD + depth * ROW;
      let k = after(lane, from);
      while (k < lane.length && T.start[lane[k]] < to) {
        const i = lane[k],
          x = Math.max(-2, (T.start[i] - from) * scale),
          end = Math.min(w + 2, (T.start[i] + T.duration[i] - from) * scale);
        const wide = end - x;
        c.globalAlpha = wanted && !hits.has(T.name[i]) ? 0.18 : 1;
        c.fillStyle = hues[T.scope[i]] || "#9ca3af";
        if (wide < 1) {
          /* what ends within this pixel is one with it */
          c.globalAlpha *= 0.75;
          c.fillRect(x, y, 1, ROW - 1);
          const next = after(lane, from + (Math.floor(x) + 1) / scale);
          k = Math.max(next, k + 1);
        } else {
          c.fillRect(x, y, wide > 3 ? wide - 0.6 : wide, ROW - 1);
          if (wide > 24) {
            const text = fits(c, T.names[T.name[i]], wide - 6);
            if (text) {
              c.fillStyle = ink;
              c.fillText(text, Math.max(x, 0) + 3, y + ROW / 2);
            }
          }
          k++;
        }
        if (linked.has(i)) outlined.push([x, y, Math.max(1.5, wide)]);
      }
    });
  });
  c.globalAlpha = 1;
  c.strokeStyle = inked("text");
  c.lineWidth = 1.6;
  for (const [x, y, wide] of outlined) c.strokeRect(x, y, wide, ROW - 1);
}
function before(t) {
  /* how many points of memory lie there or earlier */
  let a = 0,
    b = M.points.length;
  while (a < b) {
    const m = (a + b) >> 1;
    if (M.points[m][0] <= t) a = m + 1;
    else b = m;
  }
  return a;
}
function drawMemory() {
  const [c, w, h] = prepared(memory),
    scale = w / (to - from),
    most = Math.max(1, M.peak[1]),
    base = h - 8,
    room = h - 46;
  axis(c, w, h);
  const line = column => {
    const at = n => base - (n / most) * room;
    let k = before(from),
      y = at(k ? M.points[k - 1][column] : 0);
    const path = new Path2D();
    path.moveTo(0, y);
    for (; k < M.points.length && M.points[k][0] <= to; k++) {
      const p = M.points[k],
        x = (p[0] - from) * scale,
        next = at(p[column]);
      path.lineTo(x, y);
      path.lineTo(x, next);
      y = next;
    }
    path.lineTo(w, y);
    return path;
  };
  const total = line(1),
    area = new Path2D(total);
  area.lineTo(w, base);
  area.lineTo(0, base);
  c.fillStyle = inked("area");
  c.fill(area);
  c.strokeStyle = inked("curve");
  c.lineWidth = 1.3;
  c.stroke(total);
  if (M.devices) {
    c.strokeStyle = inked("device");
    c.stroke(line(2));
  }
  const x = (M.peak[0] - from) * scale;
  if (x >= 0 && x <= w) {
    c.strokeStyle = c.fillStyle = inked("peak");
    c.setLineDash([4, 3]);
    c.beginPath();
    c.moveTo(x, 26);
    c.lineTo(x, base);
    c.stroke();
    c.setLineDash([]);
    c.beginPath();
    c.arc(x, base - (room * M.peak[1]) / most, 3.5, 0, 7);
    c.fill();
    const text = `peak ${bytes(M.peak[1])}`,
      wide = c.measureText(text).width;
    c.fillText(text, x + wide + 10 > w ? x - wide - 6 : x + 6, 28);
  }
}
function draw() {
  if (!due) {
    due = true;
    requestAnimationFrame(() => {
      due = false;
      drawFlame();
      drawMemory();
    });
  }
}
function show(a, b) {
  const span = Math.min(WHOLE, Math.max(50, b - a));
  a = Math.max(0, Math.min(a, WHOLE - span));
  from = a;
  to = a + span;
  draw();
}
function zoom(by, share) {
  const t = from + (to - from) * share,
    span = (to - from) * by;
  show(t - span * share, t + span * (1 - share));
}
function at(e) {
  const r = flame.getBoundingClientRect(),
    y = e.clientY - r.top,
    t = from + ((e.clientX - r.left) / r.width) * (to - from);
  for (let row = 0; row < tops.length; row++) {
    const depth = Math.floor((y - tops[row] - HEAD) / ROW);
    if (depth < 0 || depth >= depths[row]) continue;
    const lane = lanes[row][depth],
      pixel = (to - from) / r.width,
      k = after(lane, t - pixel);
    if (k < lane.length && T.start[lane[k]] <= t + pixel) return lane[k];
  }
  return -1;
}
function described(i) {
  const text = [
    `${T.names[T.name[i]]}   (${KIND[T.scope[i]] || ""})`,
    `${time(T.duration[i])}, self ${time(T.self[i])}, from ${time(T.start[i])}`,
  ];
  if (T.shapes[i] >= 0) text.push(`shapes ${T.texts[T.shapes[i]]}`);
  if (T.bytes[i]) text.push(`memory ${bytes(T.bytes[i])}`);
  if (T.sequence[i] >= 0) text.push(`sequence number ${T.sequence[i]}`);
  if (T.line[i] >= 0) text.push(T.lines[T.line[i]]);
  return text.join("\n");
}
for (const canvas of [flame, memory]) {
  let start = null,
    moved = false;
  canvas.addEventListener(
    "wheel",
    e => {
      e.preventDefault();
      const r = canvas.getBoundingClientRect();
      if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
        const by = ((e.deltaX || e.deltaY) / r.width) * (to - from);
        show(from + by, to + by);
      } else zoom(Math.exp(e.deltaY * 0.0015), (e.clientX - r.left) / r.width);
    },
    { passive: false },
  );
  canvas.addEventListener("pointerdown", e => {
    start = [e.clientX, e.clientY, from, to, $("flame-box").scrollTop];
    moved = false;
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener("pointermove", e => {
    if (start) {
      const by = ((start[0] - e.clientX) / canvas.clientWidth) * (start[3] - start[2]);
      if (Math.abs(e.clientX - start[0]) + Math.abs(e.clientY - start[1]) > 3) {
        moved = true;
        canvas.classList.add("moving");
      }
      if (moved) {
        show(start[2] + by, start[3] + by);
        if (canvas === flame) $("flame-box").scrollTop = start[4] + start[1] - e.clientY;
      }
    } else if (canvas === flame) {
      const i = at(e);
      if (i !== hover) {
        hover = i;
        draw();
      }
      tell(e, i < 0 ? "" : described(i));
    } else {
      const r = canvas.getBoundingClientRect(),
        t = from + ((e.clientX - r.left) / r.width) * (to - from);
      const a = before(t),
        [, total, device] = a ? M.points[a - 1] : [0, 0, 0];
      tell(
        e,
        `${time(t)}   ${bytes(total)}${M.devices ? `, ${bytes(device)} of it on devices` : ""}`,
      );
    }
  });
  canvas.addEventListener("pointerup", e => {
    const i = start && !moved && canvas === flame ? at(e) : -1;
    if (i >= 0) {
      const d = Math.max(T.duration[i], 50);
      show(T.start[i] - d * 0.05, T.start[i] + d * 1.05);
    }
    start = null;
    canvas.classList.remove("moving");
  });
  canvas.addEventListener("pointerleave", () => {
    tell(null, "");
    if (hover >= 0) {
      hover = -1;
      draw();
    }
  });
  canvas.addEventListener("dblclick", () => show(FIRST, WHOLE));
}
$("in").onclick = () => zoom(0.6, 0.5);
$("out").onclick = () => zoom(1 / 0.6, 0.5);
$("fit").onclick = () => show(FIRST, WHOLE);
$("find").oninput = e => {
  wanted = e.target.value.toLowerCase();
  hits = new Set();
  T.names.forEach((name, i) => {
    if (name.toLowerCase().includes(wanted)) hits.add(i);
  });
  draw();
};
addEventListener("resize", draw);

/* who holds memory */
$("memory-text").textContent =
  "Arrays that operations and passes of multigrad made, from when they were there until they were freed" +
  (M.devices ? "; green: those on devices" : "") +
  ". Peak " +
  bytes(M.peak[1]) +
  " at " +
  time(M.peak[0]) +
  ", " +
  bytes(M.last) +
  " at the end.";
function section(to, title, content) {
  const box = to.appendChild(el("div"));
  box.appendChild(el("h3", title));
  box.appendChild(el("div", undefined, "scroll")).append(content);
}
const HOLD = [
  ["bytes", "number", bytes, "var(--curve)"],
  ["arrays", "number"],
  ["made by", "text"],
  ["what", "text"],
  ["line", "text"],
];
if (M.at_peak.length) section($("holders"), "Alive at the peak", table(HOLD, M.at_peak));
if (M.at_end.length)
  section($("holders"), `Alive at the end of the ${D.subject}`, table(HOLD, M.at_end));
const S = D.saved;
if (!S) $("saved").style.display = "none";
else {
  const hooks = S.packed ? `; ${S.packed} arrays held by saved-tensor hooks, not counted` : "";
  $("kept").appendChild(
    el(
      "p",
      "The largest of the graphs looked at, " +
        S.which +
        ": " +
        bytes(S.total) +
        " by " +
        S.operations.toLocaleString("en") +
        " operations. Results, for the backward pass only: " +
        bytes(S.intermediates) +
        "; constants (data, masks, indices): " +
        bytes(S.constants) +
        "; leaves, kept anyway: " +
        bytes(S.leaves) +
        hooks +
        ". " +
        S.checkpoint,
    ),
  );
  const pair = $("kept").appendChild(el("div", undefined, "pair"));
  const share = name => [
    ["bytes", "number", bytes, "var(--curve)"],
    ["arrays", "number"],
    [name, "text"],
  ];
  section(pair, "By operation", table(share("operation"), S.by_operation));
  section(pair, "By line", table(share("line"), S.by_line));
  section(
    $("kept"),
    "The largest saved arrays",
    table(
      [
        ["bytes of its memory", "number", bytes, "var(--curve)"],
        ["how many", "number"],
        ["saved as", "text"],
        ["array", "text"],
        ["what", "text"],
        ["kept by", "text"],
        ["line", "text"],
      ],
      S.largest,
    ),
  );
}

/* the graph */
$("graph-text").textContent = D.graph;
if (!D.picture.boxes) {
  if (D.graph) $("graph").style.display = "none";
  else $("picture").style.display = "none";
} else {
  const view = $("graph"),
    [W, H] = showGraph(view, document.querySelector("#picture .tools"), D.picture),
    scale = Math.min(1, (view.clientWidth - 40) / W);
  view.style.height = `${Math.max(180, Math.min(640, H * scale + 40))}px`;
}
draw();
