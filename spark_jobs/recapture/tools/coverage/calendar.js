// The form has no fragment, or the browser would not load the same range again.
if (!location.hash && new URLSearchParams(location.search).has("from")) document.getElementById("chosen").scrollIntoView();
// A request that was just made or cancelled is what the reader looks for.
if (location.hash.startsWith("#request-")) document.getElementById(location.hash.slice(1))?.focus();

// Why a slice is in its state: shown under the pointer, and to those who use the keyboard.
const why = document.getElementById("why");
const hideWhy = () => (why.hidden = true);
const showWhy = (cell) => {
  why.textContent = `${cell.getAttribute("aria-label")}. ${cell.getAttribute("aria-description") ?? ""}`;
  why.hidden = false;
  const box = cell.getBoundingClientRect();
  const above = box.bottom + why.offsetHeight + 8 > innerHeight;
  why.style.top = `${above ? box.top - why.offsetHeight - 6 : box.bottom + 6}px`;
  why.style.left = `${Math.max(8, Math.min(box.left, document.documentElement.clientWidth - why.offsetWidth - 8))}px`;
};
for (const cell of document.querySelectorAll(".cell")) {
  if (cell.title) cell.setAttribute("aria-description", cell.title);
  cell.removeAttribute("title");
  cell.addEventListener("pointerenter", () => showWhy(cell));
  cell.addEventListener("pointerleave", (event) => event.relatedTarget !== why && hideWhy());
  cell.addEventListener("focus", () => cell.matches(":focus-visible") && showWhy(cell));
  cell.addEventListener("blur", hideWhy);
}
why.addEventListener("pointerleave", hideWhy);
addEventListener("scroll", hideWhy, true);
addEventListener("keydown", (event) => event.key === "Escape" && hideWhy());

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
    next.focus({ focusVisible: true });
  }
});

// The buttons act with the rights of the reader: through Airflow's public API, or for requests through these pages.
const answer = document.getElementById("answer");
for (const button of document.querySelectorAll("button[data-dialog]")) {
  button.addEventListener("click", () => document.getElementById(button.dataset.dialog).showModal());
}
for (const form of document.querySelectorAll("dialog form")) {
  form.addEventListener("submit", (event) => {
    if (event.submitter.value === "start") (form.dataset.dag ? start : request)(form);
  });
}
for (const button of document.querySelectorAll("button[data-cancel]")) {
  button.addEventListener("click", () => change(button.dataset.cancel, {}, "The request is not cancelled"));
}
async function post(address, body) {
  const response = await fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  let content = {};
  try {
    content = JSON.parse(text);
  } catch {
    if (response.ok) throw new Error("the answer is not JSON");
  }
  if (response.ok) return content;
  throw new Error(typeof content.detail === "string" ? content.detail : JSON.stringify(content.detail ?? response.status));
}
async function start(form) {
  const { airflow, dag, from, to } = form.dataset;
  answer.textContent = "Starting …";
  try {
    const runs = `${airflow}/api/v2/dags/${encodeURIComponent(dag)}/dagRuns`;
    const body = await post(runs, { logical_date: null, conf: { from, to } });
    const link = document.createElement("a");
    link.href = `${airflow}/dags/${encodeURIComponent(dag)}/runs/${encodeURIComponent(body.dag_run_id)}`;
    link.target = "_top";
    link.textContent = body.dag_run_id;
    answer.replaceChildren(`Started a run of ${dag}: `, link);
  } catch (error) {
    answer.textContent = `Airflow did not start the run: ${error.message}`;
  }
}
function request(form) {
  const { from, to, only, requests } = form.dataset;
  const optional = Object.fromEntries(["at", "reason"].map((name) => [name, form.elements[name].value.trim() || null]));
  return change(requests, { from, to, only: only || null, ...optional }, "The request is not made");
}
async function change(address, body, failure) {
  answer.textContent = "Sending …";
  try {
    const { id } = await post(address, body);
    location.hash = `request-${id}`;
    location.reload();
  } catch (error) {
    answer.textContent = `${failure}: ${error.message}`;
    answer.scrollIntoView({ block: "nearest" });
  }
}
