// Sorts tables by a column and filters the rows of questions. The page is complete without it.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.tHead.querySelectorAll("th").forEach((head, column) => {
    head.querySelector("button")?.addEventListener("click", () => {
      const rises = head.getAttribute("aria-sort") !== "ascending";
      table.tHead.querySelectorAll("th").forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", rises ? "ascending" : "descending");
      const rows = [...body.rows].map((row, place) => [row, place, valueOf(row.cells[column])]);
      rows.sort(([, first, a], [, second, b]) => compare(a, b) * (rises ? 1 : -1) || first - second);
      body.append(...rows.map(([row]) => row));
    });
  });
}

function valueOf(cell) {
  const given = cell.dataset.value;
  return given === undefined ? cell.textContent.trim() : given === "" ? null : Number(given);
}

function compare(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}

for (const form of document.querySelectorAll("form.filters")) {
  const rows = [...document.getElementById(form.dataset.table).tBodies[0].rows];
  const count = form.querySelector("output");
  const filter = () => {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kind = form.elements.kind?.value ?? "";
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden =
        !words.every((word) => text.includes(word)) ||
        (form.elements.wrong.checked && row.dataset.wrong !== "yes") ||
        (form.elements.differs?.checked && row.dataset.differs !== "yes") ||
        (kind !== "" && row.dataset.kind !== kind);
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = `${shown} of ${rows.length}`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
}
