// The page of a graph alone.

const shown = showGraph(
  document.querySelector(".graph"),
  document.querySelector(".tools"),
  JSON.parse($("data").textContent),
);
addEventListener("resize", shown.fit);
