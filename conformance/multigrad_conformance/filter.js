(() => {
  const form = document.getElementById("filter"),
    count = document.getElementById("count");
  const rows = Array.from(document.querySelectorAll("tr[data-state]"), row => ({
    row,
    text: row.textContent.toLowerCase(),
    state: row.dataset.state.split(" "),
    check: row.dataset.check.split(" "),
    dtype: row.dataset.dtype,
    backend: row.dataset.backend,
  }));
  const chapters = document.querySelectorAll("tr.chapter"),
    sections = document.querySelectorAll("section[data-backend]");
  const columns = document.querySelectorAll("[data-column]");
  form.hidden = false;
  function apply() {
    const want = Object.fromEntries(new FormData(form)),
      words = want.text.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const r of rows) {
      const keep =
        words.every(w => r.text.includes(w)) &&
        (!want.state || r.state.includes(want.state)) &&
        (!want.check || r.check.includes(want.check)) &&
        (!want.dtype || r.dtype === want.dtype) &&
        (!want.backend || r.backend === want.backend);
      r.row.hidden = !keep;
      shown += keep;
    }
    for (const cell of columns)
      cell.hidden = Boolean(want.check) && cell.dataset.column !== want.check;
    for (const s of sections)
      s.hidden = Boolean(want.backend) && s.dataset.backend !== want.backend;
    for (const c of chapters) {
      let next = c.nextElementSibling;
      while (next?.hidden) next = next.nextElementSibling;
      c.hidden = !next || next.classList.contains("chapter");
    }
    count.textContent = `${shown} of ${rows.length} rows`;
  }
  form.addEventListener("input", apply);
  form.addEventListener("reset", () => setTimeout(apply));
  form.addEventListener("submit", event => event.preventDefault());
  apply();
})();
