// Tables of records are sorted by the column whose head is clicked: by numbers where most cells begin with one.
"use strict";

function numberOf(text) {
  const found = text.replace(/[\u2212\u2013]/g, "-").match(/^\W{0,2}?([-+]?\d[\d,]*(?:\.\d+)?)/);
  return found ? Number(found[1].replace(/,/g, "")) : NaN;
}

function sortBy(table, column) {
  const head = table.tHead.rows[0].cells[column];
  const ascending = head.getAttribute("aria-sort") === "descending";
  const rows = Array.from(table.tBodies[0].rows);
  const cells = new Map(rows.map((row) => [row, (row.cells[column]?.textContent ?? "").trim()]));
  const numeric = rows.filter((row) => !isNaN(numberOf(cells.get(row)))).length > rows.length / 2;
  const compare = numeric
    ? (a, b) => numberOf(cells.get(a)) - numberOf(cells.get(b))
    : (a, b) => cells.get(a).localeCompare(cells.get(b));
  const known = rows.filter((row) => (numeric ? !isNaN(numberOf(cells.get(row))) : cells.get(row) !== ""));
  known.sort((a, b) => (ascending ? compare(a, b) : compare(b, a)));
  table.tBodies[0].append(...known, ...rows.filter((row) => !known.includes(row)));
  for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
}

document.querySelectorAll(".sortable-tables table").forEach((table) => {
  if (!table.tHead || table.tBodies[0].rows.length < 2) return;
  Array.from(table.tHead.rows[0].cells).forEach((cell, column) => {
    cell.tabIndex = 0;
    cell.title = "Sort";
    cell.classList.add("sortable");
    cell.addEventListener("click", () => sortBy(table, column));
    cell.addEventListener("keydown", (event) => event.key === "Enter" && sortBy(table, column));
  });
});
