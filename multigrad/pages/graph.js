// The interactive picture of a graph, in the page that `draw` writes and in the report of a run.

/* view: the element around the `<svg>` with the group `#graph-all`; tools: the element for buttons; G: GraphPicture.data; returns its width and height */
// biome-ignore lint/correctness/noUnusedVariables: called by the script that follows
function showGraph(view, tools, G) {
  const all = view.querySelector("#graph-all"),
    GAP = 40,
    PAD = 12,
    HEAD = 26;
  const boxes = [...all.querySelectorAll(".box")],
    frames = [...all.querySelectorAll(".frame")],
    ways = [...all.querySelectorAll(":scope > path")];
  const slug = kind => kind.replaceAll(" ", "-");
  const paint = (e, fill, edge) => {
    e.style.setProperty("--fill", fill);
    e.style.setProperty("--edge", edge);
  };
  const make = (tag, text, to) => to.appendChild(el(tag, text));
  const home = new Map(),
    closed = new Set(G.closed ? G.groups.map((_, i) => i) : []);
  G.groups.forEach((g, i) => g.boxes.forEach(b => home.set(b, i)));
  const inside = i =>
    G.groups.flatMap((g, j) => {
      for (let k = j; k >= 0; k = G.groups[k].parent) if (k === i) return g.boxes;
      return [];
    });
  const around = from => {
    let out = null;
    for (let k = from; k >= 0; k = G.groups[k].parent) if (closed.has(k)) out = k;
    return out;
  };
  const shut = box =>
    home.has(box) ? around(home.get(box)) : null; /* the outermost closed group around it */
  let k = 1,
    x = 0,
    y = 0,
    W = G.width,
    H = G.height;
  const place = () => all.setAttribute("transform", `translate(${x} ${y}) scale(${k})`);

  /* what a group is when it is closed: its size, and what it tells */
  const small = G.groups.map((g, i) => {
    const rows = [
      g.operations.toLocaleString("en") + (g.operations === 1 ? " operation" : " operations"),
    ];
    if (g.bytes) rows.push(`keeps ${bytes(g.bytes)}`);
    return {
      boxes: inside(i),
      rows,
      w: Math.max(90, g.name.length * 7.2 + 44, ...rows.map(r => r.length * 6.2 + 20)),
      h: 24 + 13 * rows.length,
    };
  });

  /* Gaps that closing leaves are narrowed: what stands on `solid` intervals keeps its size, and the order stays. */
  function narrowed(solid) {
    solid.sort((a, b) => a[0] - b[0]);
    const stops = [];
    let end = -Infinity,
      lost = 0;
    for (const [a, b] of solid) {
      if (a > end) {
        if (end === -Infinity) lost = a;
        else if (a - end > GAP) {
          stops.push([end, lost]);
          lost += a - end - GAP;
          stops.push([a, lost]);
        }
      }
      end = Math.max(end, b);
    }
    return v => {
      let from = null;
      for (const s of stops) {
        if (s[0] <= v) from = s;
        else if (from) return v - from[1] - ((v - from[0]) / (s[0] - from[0])) * (s[1] - from[1]);
        else break;
      }
      return v - (from ? from[1] : solid.length ? solid[0][0] : 0);
    };
  }
  function curve(p) {
    let text = `M${p[0][0]} ${p[0][1]}`;
    for (let i = 1; i < p.length; i++) {
      const [x1, y1] = p[i - 1],
        [x2, y2] = p[i],
        half = (y1 + y2) / 2;
      text += ` C${x1} ${half} ${x2} ${half} ${x2} ${y2}`;
    }
    return text;
  }
  function arrange() {
    const shown = G.boxes.map((_, b) => shut(b) === null),
      up = G.groups.map(g => around(g.parent) !== null);
    const across = [],
      down = [],
      middle = i => [G.groups[i].x + G.groups[i].w / 2, G.groups[i].y + G.groups[i].h / 2];
    G.boxes.forEach(({ x, y, w, h }, b) => {
      if (shown[b]) {
        across.push([x - w / 2, x + w / 2]);
        down.push([y - h / 2, y + h / 2]);
      }
    });
    G.groups.forEach((g, i) => {
      if (up[i]) return;
      if (closed.has(i)) {
        const [cx, cy] = middle(i),
          { w, h } = small[i];
        across.push([cx - w / 2, cx + w / 2]);
        down.push([cy - h / 2, cy + h / 2]);
      } else {
        across.push(
          [g.x, g.x + Math.min(g.w, g.name.length * 7 + 34)],
          [g.x + g.w - PAD, g.x + g.w],
        );
        down.push([g.y, g.y + HEAD], [g.y + g.h - PAD, g.y + g.h]);
      }
    });
    const same = v => v,
      fx = closed.size ? narrowed(across) : same,
      fy = closed.size ? narrowed(down) : same;
    const at = G.boxes.map(({ x, y, w, h }) => ({ x: fx(x), y: fy(y), w, h }));
    const folded = G.groups.map((_, i) => {
      const [cx, cy] = middle(i);
      return { x: fx(cx), y: fy(cy), w: small[i].w, h: small[i].h };
    });
    for (const box of boxes) {
      const b = +box.dataset.box;
      box.classList.toggle("gone", !shown[b]);
      box.setAttribute(
        "transform",
        `translate(${at[b].x - G.boxes[b].x} ${at[b].y - G.boxes[b].y})`,
      );
    }
    frames.forEach((frame, i) => {
      const g = G.groups[i],
        c = closed.has(i),
        rect = frame.querySelector("rect"),
        [name, ...more] = frame.querySelectorAll("text");
      const left = c ? folded[i].x - folded[i].w / 2 : fx(g.x),
        top = c ? folded[i].y - folded[i].h / 2 : fy(g.y);
      frame.classList.toggle("gone", up[i]);
      frame.classList.toggle("closed", c);
      frame.setAttribute("aria-expanded", !c);
      const width = c ? folded[i].w : fx(g.x + g.w) - left,
        height = c ? folded[i].h : fy(g.y + g.h) - top;
      for (const [key, v] of Object.entries({ x: left, y: top, width, height }))
        rect.setAttribute(key, v);
      name.textContent = (c ? "▸ " : "▾ ") + g.name;
      name.setAttribute("x", c ? folded[i].x : left + PAD);
      name.setAttribute("y", top + 17);
      name.style.textAnchor = c ? "middle" : "start";
      more.forEach(t => t.remove());
      if (c)
        small[i].rows.forEach((row, n) => {
          const t = frame.appendChild(document.createElementNS(frame.namespaceURI, "text"));
          t.textContent = row;
          t.setAttribute("class", "row");
          t.setAttribute("x", folded[i].x);
          t.setAttribute("y", top + 30 + 13 * n);
        });
    });
    const ends = [
      ...at.filter((_, b) => shown[b]),
      ...folded.filter((_, i) => !up[i] && closed.has(i)),
    ];
    W = Math.max(fx(G.width), ...ends.map(c => c.x + c.w / 2));
    H = Math.max(...ends.map(c => c.y + c.h / 2));
    const drawn = new Set();
    let back = false;
    G.ways.forEach(([a, b, points, returns], n) => {
      const s = shut(a),
        e = shut(b),
        key = `${s === null ? `b${a}` : `g${s}`}>${e === null ? `b${b}` : `g${e}`}`,
        way = ways[n];
      const hidden = (s !== null && s === e) || ((s !== null || e !== null) && drawn.has(key));
      way.classList.toggle("gone", hidden);
      drawn.add(key);
      if (hidden) return;
      const p = s === null ? at[a] : folded[s],
        q = e === null ? at[b] : folded[e];
      if (returns) {
        const side = W + 30,
          [x1, y1, x2, y2] = [p.x + p.w / 2 + 6, p.y, q.x + q.w / 2 + 6, q.y];
        way.setAttribute("d", `M${x1} ${y1} C${side} ${y1} ${side} ${y2} ${x2} ${y2}`);
        back = true;
        return;
      }
      const low = s === null ? -Infinity : G.groups[s].y + G.groups[s].h,
        high = e === null ? Infinity : G.groups[e].y;
      const passed = points
        .slice(1, -1)
        .filter(t => t[1] > low && t[1] < high)
        .map(t => [fx(t[0]), fy(t[1])]);
      way.setAttribute("d", curve([[p.x, p.y + p.h / 2], ...passed, [q.x, q.y - q.h / 2]]));
    });
    if (back) W += 50;
  }
  function fit() {
    const w = view.clientWidth,
      h = view.clientHeight;
    k = Math.min(1.2, (w - 40) / W, (h - 40) / H);
    if (k < 0.6) {
      k = Math.min(0.9, Math.max(0.35, (w - 40) / W));
      y = 20;
    } else y = (h - H * k) / 2;
    x = (w - W * k) / 2;
    place();
  }
  function zoom(by, cx, cy) {
    const next = Math.min(4, Math.max(0.02, k * by));
    x = cx - ((cx - x) * next) / k;
    y = cy - ((cy - y) * next) / k;
    k = next;
    place();
  }
  function toggle(i) {
    const rect = frames[i].querySelector("rect"),
      was = rect.getBoundingClientRect();
    if (closed.has(i)) closed.delete(i);
    else closed.add(i);
    arrange();
    const is = rect.getBoundingClientRect(); /* what was clicked stays where it is */
    x += was.left + was.width / 2 - is.left - is.width / 2;
    y += was.top - is.top;
    place();
    tell(null, "");
  }

  /* colours */
  const most = Math.max(1, ...G.boxes.map(b => b.bytes), ...G.groups.map(g => g.bytes));
  const heat = n =>
    n
      ? `color-mix(in srgb, var(--hot) ${Math.round(10 + 90 * Math.sqrt(n / most))}%, var(--cold))`
      : "var(--back)";
  const legend = el("span", "", "graph-legend");
  function colour(by) {
    const key = (text, fill, edge) => {
      const e = make("span", "", legend),
        i = e.appendChild(el("i", "", "key"));
      i.style.background = fill;
      i.style.borderColor = edge;
      e.append(text);
    };
    legend.replaceChildren();
    const hue = kind => [`var(--fill-${slug(kind)})`, `var(--edge-${slug(kind)})`];
    for (const box of boxes) {
      const { kind, bytes: n } = G.boxes[box.dataset.box];
      paint(box, ...(by === "bytes" ? [heat(n), "var(--way)"] : hue(kind)));
    }
    frames.forEach((frame, i) =>
      paint(
        frame,
        ...(by === "bytes" ? [heat(G.groups[i].bytes), "var(--edge-group)"] : hue("group")),
      ),
    );
    if (by === "bytes")
      for (const n of [0, most / 4, most])
        key(n ? bytes(Math.round(n)) : "keeps nothing", heat(n), "var(--way)");
    else for (const kind of G.kinds) key(kind, ...hue(kind));
  }
  const find = make("input", "", tools),
    switched = make("select", "", tools);
  find.type = "search";
  find.placeholder = "find";
  switched.ariaLabel = "colour by";
  for (const [value, text] of [
    ["kind", "colour: kind"],
    ["bytes", "colour: bytes kept"],
  ])
    make("option", text, switched).value = value;
  switched.onchange = () => colour(switched.value);
  for (const [text, does] of [
    ["+", () => zoom(1.3, view.clientWidth / 2, view.clientHeight / 2)],
    ["−", () => zoom(1 / 1.3, view.clientWidth / 2, view.clientHeight / 2)],
    ["fit", fit],
  ])
    make("button", text, tools).onclick = does;
  if (G.groups.length) {
    make("button", "open all", tools).onclick = () => {
      closed.clear();
      arrange();
      fit();
    };
    make("button", "close all", tools).onclick = () => {
      G.groups.forEach((_, i) => closed.add(i));
      arrange();
      fit();
    };
  }
  tools.append(legend);
  find.oninput = () => {
    const text = find.value.toLowerCase(),
      hits = new Set();
    if (text)
      G.boxes.forEach((b, i) => {
        if (b.tip.join("\n").toLowerCase().includes(text)) hits.add(i);
      });
    for (const box of boxes) {
      const hit = hits.has(+box.dataset.box);
      box.classList.toggle("hit", hit);
      box.classList.toggle("dim", !!text && !hit);
    }
    frames.forEach((frame, i) =>
      frame.classList.toggle(
        "hit",
        small[i].boxes.some(b => hits.has(b)),
      ),
    );
  };

  /* the pointer */
  view.addEventListener(
    "wheel",
    e => {
      e.preventDefault();
      const r = view.getBoundingClientRect();
      zoom(Math.exp(-e.deltaY * 0.0015), e.clientX - r.left, e.clientY - r.top);
    },
    { passive: false },
  );
  const held = new Map();
  let moved = 0;
  view.addEventListener("pointerdown", e => {
    if (!held.size) moved = 0;
    held.set(e.pointerId, [e.clientX, e.clientY]);
  });
  view.addEventListener("pointermove", e => {
    const was = held.get(e.pointerId);
    if (!was) return;
    const [dx, dy] = [e.clientX - was[0], e.clientY - was[1]],
      r = view.getBoundingClientRect();
    moved += Math.abs(dx) + Math.abs(dy);
    if (moved > 4 && !view.hasPointerCapture(e.pointerId)) {
      view.setPointerCapture(e.pointerId);
      view.classList.add("moving");
    }
    if (held.size === 2) {
      /* two fingers: zoom */
      const [, other] = [...held].find(([id]) => id !== e.pointerId),
        apart = (u, v) => Math.hypot(u[0] - v[0], u[1] - v[1]) || 1;
      zoom(
        apart([e.clientX, e.clientY], other) / apart(was, other),
        (e.clientX + other[0]) / 2 - r.left,
        (e.clientY + other[1]) / 2 - r.top,
      );
    } else if (moved > 4) {
      x += dx;
      y += dy;
      place();
    }
    held.set(e.pointerId, [e.clientX, e.clientY]);
  });
  const release = e => {
    held.delete(e.pointerId);
    if (!held.size) view.classList.remove("moving");
  };
  view.addEventListener("pointerup", release);
  view.addEventListener("pointercancel", release);
  view.addEventListener("pointerleave", e => {
    if (!view.hasPointerCapture(e.pointerId)) release(e);
  });
  const light = keep =>
    G.ways.forEach(([a, b], n) => ways[n].classList.toggle("on", keep(a) !== keep(b)));
  for (const box of boxes) {
    const b = +box.dataset.box;
    box.querySelector("title").remove();
    box.addEventListener("pointermove", e => tell(e, G.boxes[b].tip.join("\n")));
    box.addEventListener("pointerenter", () => light(i => i === b));
    box.addEventListener("pointerleave", () => {
      tell(null, "");
      light(() => false);
    });
  }
  frames.forEach((frame, i) => {
    const members = new Set(small[i].boxes);
    frame.tabIndex = 0;
    frame.setAttribute("role", "button");
    frame.onclick = () => {
      if (moved < 5) toggle(i);
    };
    frame.onkeydown = e => {
      if (e.key === "Enter" || e.key === " ") {
        e.preventDefault();
        toggle(i);
      }
    };
    const text = () =>
      [G.groups[i].name, ...small[i].rows, closed.has(i) ? "click: open" : "click: close"].join(
        "\n",
      );
    frame.addEventListener("pointermove", e => tell(e, text()));
    frame.addEventListener("pointerenter", () => {
      if (closed.has(i)) light(b => members.has(b));
    });
    frame.addEventListener("pointerleave", () => {
      tell(null, "");
      light(() => false);
    });
  });
  arrange();
  colour("kind");
  fit();
  new ResizeObserver(fit).observe(view);
  return [W, H];
}
