"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const PAGE = 200;

// Tables are sorted by a click on a column's head: numbers by their value, texts as they are read.
for (const table of document.querySelectorAll("table.sortable")) {
  table.tHead.addEventListener("click", (event) => {
    const head = event.target.closest("th");
    const column = [...head.parentNode.children].indexOf(head);
    const way = head.dataset.way === "1" ? -1 : 1;
    for (const other of head.parentNode.children) delete other.dataset.way;
    head.dataset.way = way;
    const value = (row) => {
      const cell = row.cells[column];
      return "v" in cell.dataset ? (cell.dataset.v === "" ? -Infinity : Number(cell.dataset.v)) : cell.textContent;
    };
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      const x = value(a), y = value(b);
      return way * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
    });
    table.tBodies[0].append(...rows);
  });
}

// The runs behind an aggregate: chosen by its group, or one by its name.
const group = document.getElementById("group");
const wanted = document.getElementById("wanted");
const listed = document.getElementById("listed");
const more = document.getElementById("more");
let shown = PAGE;
data.groups.forEach((name, number) => group.append(new Option(name, number)));

function cell(row, text, tag) {
  const made = row.insertCell();
  if (tag) made.append(Object.assign(document.createElement(tag), { textContent: text }));
  else made.textContent = text;
  return made;
}

function list() {
  const text = wanted.value.trim();
  const found = data.runs.filter((run) =>
    (group.value === "" || run[0] === Number(group.value)) && (!text || run[1].includes(text) || run[2] === text));
  document.getElementById("count").textContent = `${found.length.toLocaleString("en")} runs`;
  listed.replaceChildren();
  for (const [of, name, seed, verdict, broken, stale, own] of found.slice(0, shown)) {
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
  more.hidden = found.length <= shown;
}

function show(of, run) {
  group.value = of === undefined || of === "-1" ? "" : of;
  wanted.value = run ?? "";
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
for (const control of [group, wanted]) control.addEventListener("input", () => { shown = PAGE; list(); });
more.addEventListener("click", () => { shown += PAGE; list(); });
list();
