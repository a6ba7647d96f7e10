"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const PAGE = 200;

// A click on a column's head sorts the table: numbers by value, text by locale.
for (const table of document.querySelectorAll("table.sortable")) {
  table.tHead.addEventListener("click", (event) => {
    const head = event.target.closest("th");
    const column = [...head.parentNode.children].indexOf(head);
    const direction = head.dataset.direction === "1" ? -1 : 1;
    for (const other of head.parentNode.children) delete other.dataset.direction;
    head.dataset.direction = direction;
    const value = (row) => {
      const cell = row.cells[column];
      return "v" in cell.dataset ? (cell.dataset.v === "" ? -Infinity : Number(cell.dataset.v)) : cell.textContent;
    };
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      const x = value(a), y = value(b);
      return direction * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
    });
    table.tBodies[0].append(...rows);
  });
}

// The runs of an aggregate: filtered by group, or by name or seed.
const group = document.getElementById("group");
const query = document.getElementById("query");
const listed = document.getElementById("listed");
const more = document.getElementById("more");
let shown = PAGE;
data.groups.forEach((name, number) => group.append(new Option(name, number)));

function cell(row, text, tag) {
  const added = row.insertCell();
  if (tag) added.append(Object.assign(document.createElement(tag), { textContent: text }));
  else added.textContent = text;
  return added;
}

function list() {
  const text = query.value.trim();
  const matches = data.runs.filter((run) =>
    (group.value === "" || run[0] === Number(group.value)) && (!text || run[1].includes(text) || run[2] === text));
  document.getElementById("count").textContent = `${matches.length.toLocaleString("en")} ${matches.length === 1 ? "run" : "runs"}`;
  listed.replaceChildren();
  for (const [of, name, seed, verdict, broken, stale, own] of matches.slice(0, shown)) {
    const row = listed.insertRow();
    row.id = `run=${name}`;
    cell(row, data.groups[of]);
    cell(row, name);
    cell(row, seed);
    cell(row, verdict ?? "no end");
    cell(row, broken || "").className = "n";
    cell(row, stale === null ? "" : stale.toLocaleString("en")).className = "n";
    cell(row, own ?? data.commands[of].replaceAll("{seed}", seed), "code");
  }
  more.hidden = matches.length <= shown;
}

function show(of, run) {
  group.value = of === undefined || of === "-1" ? "" : of;
  query.value = run ?? "";
  shown = PAGE;
  list();
  document.getElementById("runs").scrollIntoView();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-group]");
  if (!link) return;
  event.preventDefault();
  show(link.dataset.group, link.dataset.run);
});
for (const control of [group, query]) control.addEventListener("input", () => { shown = PAGE; list(); });
more.addEventListener("click", () => { shown += PAGE; list(); });
list();
