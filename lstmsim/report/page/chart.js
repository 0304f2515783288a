/** The rows of a result: points of two columns, brushed and pointed at, beside a table of the rows. */

import { bind, colour, data, make, number, onTheme, ticks } from "./frame.js";
import { enhance, tableOf } from "./tables.js";

/** Rows of the table at most; height of the chart, its margins, and the reach of the pointer, in pixels. */
const LISTED = 300, HEIGHT = 380, LEFT = 64, RIGHT = 14, TOP = 26, BOTTOM = 40, REACH = 9;
const GROUPS = 8;

const rows = data("rows");
const section = document.getElementById("rows");
const count = rows.values[0].length;
const every = Array.from({ length: count }, (_, at) => at);
const column = (name) => rows.values[rows.columns.indexOf(name)];
/** The different values of a column, with or without that of empty cells. */
const different = (name, empty = false) => new Set(column(name).filter((each) => empty || each !== null)).size;
const numeric = rows.columns.filter((name) => different(name) > 1 && column(name).every((each) => each === null || typeof each === "number"));
/** Nothing is drawn if all rows are alike in what goes up. */
const drawn = numeric.includes(rows.axes[1]);
const worded = rows.columns.map((name) => column(name).some((each) => typeof each === "string"));
const grouping = rows.columns.filter((name) => different(name, true) > 1 && different(name, true) <= GROUPS);
/** The rows with which the others are compared: they stay in every chart, and lines lead from them to the axes. */
const base = new Set(rows.baseline?.rows), DASHES = [7, 4], RING = 11;
const written = (value) => (value === null ? "–" : typeof value === "number" ? number(value) : String(value));
let brush = null, kept = every, pointed = -1, pressed = null;

function choice(label, names, chosen, optional) {
  const options = [...(optional ? [""] : []), ...names].map((name) => make("option", { value: name, selected: name === chosen }, name || "one colour"));
  const select = make("select", { change: () => { brush = null; update(); } }, ...options);
  return [make("label", {}, `${label} `, select), select];
}

const [x, y, by] = rows.axes;
const first = numeric.includes(x) ? x : numeric[0];
const [xLabel, xSelect] = choice("across", numeric, first);
const [yLabel, ySelect] = choice("up", numeric, numeric.includes(y) ? y : numeric.find((each) => each !== first) ?? first);
const [byLabel, bySelect] = choice("colour", grouping, grouping.includes(by) ? by : "", true);
const canvas = make("canvas", { class: "chart", tabindex: "0", role: "img" });
const said = make("p", { class: "note", role: "status" });
const legend = make("ul", { class: "legend" });
const clear = make("button", { click: () => { brush = null; update(); }, hidden: true }, "All rows");
const listed = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows" });

function scale(values, from, to) {
  let low = Infinity, high = -Infinity;
  for (const each of values) if (each !== null) { low = Math.min(low, each); high = Math.max(high, each); }
  if (low > 0 && low < 0.6 * high) low = 0;
  const room = high > low ? 0.04 * (high - low) : Math.abs(high) || 1;
  const [a, b] = [low === 0 ? 0 : low - room, high + room];
  return { low: a, high: b, to: (value) => from + ((value - a) / (b - a)) * (to - from), of: (at) => a + ((at - from) / (to - from)) * (b - a) };
}

const scales = () => ({
  x: scale(column(xSelect.value), LEFT, canvas.clientWidth - RIGHT),
  y: scale(column(ySelect.value), HEIGHT - BOTTOM, TOP),
});

/** Whether a row has a point. */
const isDrawn = (at) => column(xSelect.value)[at] !== null && column(ySelect.value)[at] !== null;
/** The values that have a colour. */
const groups = () => (bySelect.value ? [...new Set(every.filter(isDrawn).map((at) => column(bySelect.value)[at]))] : [null]);
const colourOf = (at) => colour(["accent", "mark", "chart-2", "chart-3", "chart-4", "chart-5", "chart-6", "chart-7"][at]);

function draw() {
  const ratio = devicePixelRatio, width = canvas.clientWidth;
  canvas.width = width * ratio;
  canvas.height = HEIGHT * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = "11.5px system-ui, sans-serif";
  const { x, y } = scales();
  axes(pen, x, y, width);
  const xs = column(xSelect.value), ys = column(ySelect.value), inside = new Set(kept);
  const all = groups();
  all.forEach((group, place) => {
    // points in one place stay visible as rings about each other
    const size = count > 2000 ? 2 : 4 + (all.length - 1 - place) * Math.min(3, 8 / all.length);
    const mine = every.filter((at) => isDrawn(at) && (!bySelect.value || column(bySelect.value)[at] === group));
    pen.strokeStyle = pen.fillStyle = colourOf(place);
    if (rows.line) line(pen, mine.toSorted((a, b) => xs[a] - xs[b]).map((at) => [x.to(xs[at]), y.to(ys[at])]));
    for (const at of mine) {
      pen.globalAlpha = inside.has(at) || base.has(at) ? 0.85 : 0.15;
      pen.beginPath();
      pen.arc(x.to(xs[at]), y.to(ys[at]), at === pointed ? size + 3 : size, 0, 7);
      pen.fill();
    }
    pen.globalAlpha = 1;
  });
  baseline(pen, x, y, width);
  if (!brush) return;
  pen.strokeStyle = colour("ink");
  pen.strokeRect(x.to(brush.x[0]), y.to(brush.y[0]), x.to(brush.x[1]) - x.to(brush.x[0]), y.to(brush.y[1]) - y.to(brush.y[0]));
}

function line(pen, points, alpha = 0.5) {
  pen.globalAlpha = alpha;
  pen.beginPath();
  points.forEach(([left, top]) => pen.lineTo(left, top));
  pen.stroke();
}

/** Rings about the rows of the baseline, and dashed: their curve, or a line wherever all of them have one value. */
function baseline(pen, x, y, width) {
  const points = [...base].filter(isDrawn).map((at) => [x.to(column(xSelect.value)[at]), y.to(column(ySelect.value)[at])]);
  if (!points.length) return;
  const one = (axis) => points.every((each) => Math.abs(each[axis] - points[0][axis]) < 0.5), [[left, top]] = points;
  pen.strokeStyle = pen.fillStyle = colour("ink");
  pen.lineWidth = 1.5;
  for (const point of points) {
    pen.beginPath();
    pen.arc(...point, RING, 0, 7);
    pen.stroke();
  }
  pen.setLineDash(DASHES);
  if (rows.line && points.length > 1) line(pen, points.toSorted((a, b) => a[0] - b[0]), 1);
  if (one(1)) line(pen, [[LEFT, top], [width - RIGHT, top]], 1);
  if (one(0)) line(pen, [[left, TOP], [left, HEIGHT - BOTTOM]], 1);
  pen.setLineDash([]);
}

function axes(pen, x, y, width) {
  pen.fillStyle = colour("muted");
  pen.strokeStyle = colour("line");
  pen.textAlign = "center";
  for (const tick of ticks(x.low, x.high, Math.max(2, width / 110))) pen.fillText(number(tick), x.to(tick), HEIGHT - BOTTOM + 16);
  pen.textAlign = "right";
  for (const tick of ticks(y.low, y.high, 7)) {
    pen.fillText(number(tick), LEFT - 6, y.to(tick) + 4);
    pen.beginPath();
    pen.moveTo(LEFT, y.to(tick));
    pen.lineTo(width - RIGHT, y.to(tick));
    pen.stroke();
  }
  pen.fillText(xSelect.value, width - RIGHT, HEIGHT - 6);
  pen.textAlign = "left";
  pen.fillText(ySelect.value, 2, 10);
}

/** Works out which rows are kept, and shows all. */
function update() {
  if (!drawn || numeric.length < 2) return list();
  const xs = column(xSelect.value), ys = column(ySelect.value);
  const within = (value, [low, high]) => value !== null && value >= low && value <= high;
  kept = brush ? every.filter((at) => within(xs[at], brush.x) && within(ys[at], brush.y)) : every;
  pointed = -1;
  clear.hidden = !brush;
  const what = `${ySelect.value} over ${xSelect.value}`;
  canvas.setAttribute("aria-label", `${what} of ${number(count)} rows; the table below has them`);
  const unknown = every.filter((at) => !isDrawn(at)).length;
  const none = unknown ? ` ${number(unknown)} rows have no point: a number is missing.` : "";
  const more = kept.length > LISTED ? `; the first ${number(LISTED)} are listed` : "";
  const inBox = `${number(kept.length)} of ${number(count)} rows are within the box${more}.`;
  said.textContent = brush ? inBox : `${number(count)} rows${more}. Drag a box over points to keep their rows; point at a row to find its point.${none}`;
  const known = rows.baseline && make("li", {}, `${base.size ? "◯ ┄ baseline" : "baseline"}: ${rows.baseline.words}`);
  legend.replaceChildren(...(known ? [known] : []), ...(bySelect.value ? groups().map((group, place) => {
    const sample = make("span", { class: "dot-sample" });
    sample.style.background = colourOf(place);
    return make("li", {}, sample, ` ${bySelect.value}: ${written(group)}`);
  }) : []));
  list();
  draw();
}

function list() {
  const lines = kept.slice(0, LISTED);
  const table = tableOf("Rows", rows.columns, lines.map((at) => rows.columns.map((name) => written(column(name)[at]))), worded);
  [...table.tBodies[0].rows].forEach((row, place) => row.addEventListener("pointerenter", () => { pointed = lines[place]; draw(); }));
  listed.replaceChildren(table);
  section.querySelector(".filter")?.remove();
  enhance(table);
}

const place = (event) => [event.offsetX, event.offsetY];

canvas.addEventListener("pointerdown", (event) => {
  pressed = place(event);
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  const { x, y } = scales(), [left, top] = place(event);
  if (pressed) {
    const sorted = (a, b) => (a < b ? [a, b] : [b, a]);
    brush = { x: sorted(x.of(pressed[0]), x.of(left)), y: sorted(y.of(pressed[1]), y.of(top)) };
    draw();
    return;
  }
  const xs = column(xSelect.value), ys = column(ySelect.value);
  const far = (at) => (!isDrawn(at) ? Infinity : Math.hypot(x.to(xs[at]) - left, y.to(ys[at]) - top));
  const nearest = every.reduce((best, at) => (far(at) < (best < 0 ? REACH : far(best)) ? at : best), -1);
  if (nearest === pointed) return;
  pointed = nearest;
  canvas.title = pointed < 0 ? "" : rows.columns.map((name) => `${name}: ${written(column(name)[pointed])}`).slice(0, 30).join("\n");
  draw();
});
canvas.addEventListener("pointerup", (event) => {
  const [left, top] = place(event);
  if (Math.hypot(left - pressed[0], top - pressed[1]) < 4) brush = null;
  pressed = null;
  update();
});
bind("Escape", "all rows again", () => clear.click());
bind("/", "filter the rows", () => section.querySelector(".filter input")?.focus());
addEventListener("resize", draw);
onTheme(update);
if (drawn && numeric.length > 1) section.append(make("div", { class: "choices" }, xLabel, yLabel, byLabel, clear), canvas, legend);
section.append(said, listed);
update();
