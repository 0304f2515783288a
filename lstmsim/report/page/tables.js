/** Tables: sorted by a click on a head, filtered by a text. */

import { make, number } from "./frame.js";

/** A table with so many rows can be filtered. */
const FILTERED = 9;

/** What a cell is sorted by: its number, else its text; cells without any content come last. */
export function valueOf(text) {
  const plain = text.trim();
  if (plain === "" || plain === "-" || plain === "–") return null;
  const found = /^<?\s*(-?[\d,]*\.?\d+(?:e[-+]?\d+)?)(?![\w])/i.exec(plain);
  return found ? Number(found[1].replaceAll(",", "")) : plain.toLowerCase();
}

function compared(one, other) {
  if (one === null || other === null) return (one === null) - (other === null);
  if (typeof one === "number" && typeof other === "number") return one - other;
  return typeof one === typeof other ? one.localeCompare(other) : typeof one === "number" ? -1 : 1;
}

/** Rows that belong together: one without a name belongs to the row above it. */
function groupsOf(body) {
  const groups = [];
  for (const row of body.rows) {
    if (groups.length && row.cells[0].textContent.trim() === "") groups[groups.length - 1].push(row);
    else groups.push([row]);
  }
  return groups;
}

const isSum = (group) => ["sum", "all"].includes(group[0].cells[0].textContent);

/** Lets a table be sorted and, if it is long, filtered. */
export function enhance(table) {
  const body = table.tBodies[0];
  if (!table.tHead || !body || body.rows.length < 2) return;
  const groups = groupsOf(body);
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => {
    if (!head.textContent) return;
    head.append(make("button", { class: "sort", click: () => sort(at) }, ...head.childNodes));
  });

  function sort(at) {
    // the largest first, unless it is sorted like this already
    const down = heads[at].getAttribute("aria-sort") !== "descending";
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[at].setAttribute("aria-sort", down ? "descending" : "ascending");
    const keyed = groups.map((group) => ({ group, key: isSum(group) ? null : valueOf(group[0].cells[at]?.textContent ?? "") }));
    const empty = (each) => each.key === null;
    keyed.sort((a, b) => (empty(a) || empty(b) || !down ? compared(a.key, b.key) : compared(b.key, a.key)));
    body.append(...keyed.flatMap((each) => each.group));
  }

  if (groups.length < FILTERED) return;
  const count = make("span", { role: "status" });
  const field = make("input", { type: "search", placeholder: "Filter rows", "aria-label": `Filter ${table.caption?.textContent || "rows"}`, input: filter });
  (table.closest(".scroll") ?? table).before(make("div", { class: "filter" }, field, count));

  function filter() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const group of groups) {
      const text = group.map((row) => row.textContent).join(" ").toLowerCase();
      const fits = words.every((word) => text.includes(word));
      group.forEach((row) => row.classList.toggle("filtered", !fits));
      left += fits;
    }
    count.textContent = words.length ? `${number(left)} of ${number(groups.length)} rows` : "";
  }
}

/** Makes a table of texts; a cell may be an element. The first column is to the left, and those of `worded`. */
export function tableOf(caption, heads, rows, worded = []) {
  const left = (at) => (at && !worded[at] ? null : "l");
  const head = heads.map((each, at) => make("th", { scope: "col", class: left(at) }, each));
  const lines = rows.map(([first, ...rest]) =>
    make("tr", {}, make("th", { scope: "row", class: "l" }, first), ...rest.map((each, at) => make("td", { class: left(at + 1) }, each))));
  return make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines));
}

document.querySelectorAll("table").forEach(enhance);
