// The page of a graph alone.

showGraph(
  document.querySelector(".graph"),
  document.querySelector(".tools"),
  JSON.parse($("data").textContent),
);
