"use strict";
// Airflow frames the page. Its theme, if the reader chose one, is that of the page.
const theme = localStorage.getItem("theme");
if (theme === "light" || theme === "dark") {
  document.documentElement.style.colorScheme = theme;
  for (const rule of [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])) {
    if (rule.media?.mediaText.includes("prefers-color-scheme: dark")) rule.media.mediaText = theme === "dark" ? "screen" : "not all";
  }
}

// The form has no fragment, or the browser would not load the same range again.
if (!location.hash && new URLSearchParams(location.search).has("from")) document.getElementById("chosen").scrollIntoView();

// A framed page cannot lead the whole window elsewhere, but Airflow's own page around it can.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[target=_top]");
  if (!link || window.parent === window || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const outer = window.parent.document.createElement("a");
  outer.href = link.href;
  outer.click();
});

// Arrow keys move between slices; Shift extends the chosen range.
const slices = document.getElementById("slices");
const cells = [...slices.querySelectorAll(".cell")];
const focusable = (cell) => cells.forEach((other) => (other.tabIndex = other === cell ? 0 : -1));
if (cells.length) focusable(cells.find((cell) => cell.classList.contains("chosen")) ?? cells[0]);
const extend = (cell) => {
  const chosen = cells.filter((other) => other.classList.contains("chosen"));
  const all = [...chosen, cell];
  const address = new URL(cell.href);
  address.searchParams.set("from", all.map((one) => one.dataset.from).sort()[0]);
  address.searchParams.set("to", all.map((one) => one.dataset.to).sort().at(-1));
  location.assign(address);
};
slices.addEventListener("click", (event) => {
  const cell = event.target.closest(".cell");
  if (cell && event.shiftKey) {
    event.preventDefault();
    extend(cell);
  }
});
slices.addEventListener("keydown", (event) => {
  const cell = event.target.closest(".cell");
  if (!cell) return;
  if (event.key === "Enter" && event.shiftKey) {
    event.preventDefault();
    extend(cell);
    return;
  }
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (!step) return;
  event.preventDefault();
  const td = cell.closest("td");
  const row = slices.rows[td.parentElement.rowIndex + step[1]];
  const next = row?.cells[td.cellIndex + step[0]]?.querySelector(".cell");
  if (next) {
    focusable(next);
    next.focus();
  }
});

// The buttons start runs through Airflow's public API, with the rights of the reader.
const answer = document.getElementById("answer");
for (const button of document.querySelectorAll("button[data-dialog]")) {
  button.addEventListener("click", () => document.getElementById(button.dataset.dialog).showModal());
}
for (const form of document.querySelectorAll("dialog form")) {
  form.addEventListener("submit", (event) => {
    if (event.submitter.value === "start") start(form.dataset);
  });
}
async function start({ airflow, dag, from, to }) {
  answer.textContent = "Starting …";
  try {
    const response = await fetch(`${airflow}/api/v2/dags/${encodeURIComponent(dag)}/dagRuns`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ logical_date: null, conf: { from, to } }),
    });
    const body = await response.json();
    if (!response.ok) throw new Error(typeof body.detail === "string" ? body.detail : JSON.stringify(body.detail));
    const link = document.createElement("a");
    link.href = `${airflow}/dags/${encodeURIComponent(dag)}/runs/${encodeURIComponent(body.dag_run_id)}`;
    link.target = "_top";
    link.textContent = body.dag_run_id;
    answer.replaceChildren(`Started a run of ${dag}: `, link);
  } catch (error) {
    answer.textContent = `Airflow did not start the run: ${error.message}`;
  }
}
