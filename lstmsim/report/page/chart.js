/** The rows of a result: points of two columns, brushed and pointed at, beside a table of the rows. */

import { bind, data, make, number, ticks } from "./frame.js";
import { enhance, tableOf } from "./tables.js";

/** Rows of the table at most; height of the chart, its margins and the rings of the baseline, in pixels. */
const LISTED = 300, HEIGHT = 380, LEFT = 64, RIGHT = 14, TOP = 26, BOTTOM = 40, RING = 11;
/** The colours of groups, by name. */
const COLOURS = ["accent", "mark", "chart-2", "chart-3", "chart-4", "chart-5", "chart-6", "chart-7"];

const rows = data("rows");
const section = document.getElementById("rows");
const count = rows.values[0].length;
const every = Array.from({ length: count }, (_, at) => at);
const column = (name) => rows.values[rows.columns.indexOf(name)];
/** The different values of a column, with or without that of empty cells. */
const different = (name, empty = false) => new Set(column(name).filter((each) => empty || each !== null)).size;
const numeric = rows.columns.filter((name) => different(name) > 1 && column(name).every((each) => each === null || typeof each === "number"));
/** Nothing is drawn if all rows are alike in what goes up. */
const drawn = numeric.length > 1 && numeric.includes(rows.axes[1]);
const worded = rows.columns.map((name) => column(name).some((each) => typeof each === "string"));
const grouping = rows.columns.filter((name) => different(name, true) > 1 && different(name, true) <= COLOURS.length);
/** The rows with which the others are compared: they stay in every chart, and lines lead from them to the axes. */
const base = new Set(rows.baseline?.rows);
/** A column as people call it, with its unit. */
const called = (name) => rows.labels[name] ?? name;
const written = (value) => (value === null ? "–" : typeof value === "number" ? number(value) : String(value));
let brush = null, kept = every, pointed = -1, pressed = null;

function choice(label, names, chosen, optional) {
  const options = [...(optional ? [""] : []), ...names].map((name) => make("option", { value: name, selected: name === chosen }, name ? called(name) : "one colour"));
  const select = make("select", { change: () => { forget(); draw(); } }, ...options);
  return [make("label", {}, `${label} `, select), select];
}

const [x, y, by] = rows.axes;
const first = numeric.includes(x) ? x : numeric[0];
const [xLabel, xSelect] = choice("across", numeric, first);
const [yLabel, ySelect] = choice("up", numeric, numeric.includes(y) ? y : numeric.find((each) => each !== first) ?? first);
const [byLabel, bySelect] = choice("colour", grouping, grouping.includes(by) ? by : "", true);
const hint = make("title"), box = make("rect", { class: "brush" }), shapes = make("g");
const chart = make("svg", { class: "chart", tabindex: "0", role: "img" }, hint, shapes, box);
/** The points of rows that have one. */
const dots = new Map();
const said = make("p", { class: "note", role: "status" });
const legend = make("ul", { class: "legend" });
const clear = make("button", { click: forget, hidden: true }, "All rows");
const listed = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows" });

/** Values as places between two edges, and places as values. */
function scale(values, from, to) {
  const known = values.filter((each) => each !== null);
  const low = known.reduce((a, b) => Math.min(a, b)), high = known.reduce((a, b) => Math.max(a, b));
  const room = high > low ? 0.04 * (high - low) : Math.abs(high) || 1;
  const least = low >= 0 && low < 0.6 * high ? 0 : low - room, unit = (to - from) / (high + room - least);
  return { low: least, high: high + room, to: (value) => from + (value - least) * unit, of: (at) => least + (at - from) / unit };
}

/** The values of both axes, and their scales. */
function axes() {
  const xs = column(xSelect.value), ys = column(ySelect.value);
  return { xs, ys, x: scale(xs, LEFT, chart.clientWidth - RIGHT), y: scale(ys, HEIGHT - BOTTOM, TOP) };
}

/** Half widths of the 95 % intervals of what goes up, null where there is none; undefined if nothing has intervals. */
const halves = () => rows.values[rows.columns.indexOf(ySelect.value.replace(/(_ms)?$/, "_half_width_ms"))];
/** Whether a row has a point. */
const isDrawn = (at) => column(xSelect.value)[at] !== null && column(ySelect.value)[at] !== null;
/** The values that have a colour. */
const groups = () => (bySelect.value ? [...new Set(every.filter(isDrawn).map((at) => column(bySelect.value)[at]))] : [null]);

function draw() {
  if (!drawn) return;
  const width = chart.clientWidth, { xs, ys, x, y } = axes(), all = groups(), half = halves();
  const point = (at) => [x.to(xs[at]), y.to(ys[at])], joined = (some) => some.map(point).sort((a, b) => a[0] - b[0]).join(" ");
  dots.clear();
  const parts = all.map((group, place) => {
    // points in one place stay visible as rings about each other
    const r = count > 2000 ? 2 : 4 + (all.length - 1 - place) * Math.min(3, 8 / all.length);
    const mine = every.filter((at) => isDrawn(at) && (!bySelect.value || column(bySelect.value)[at] === group));
    const look = (at) => (half && half[at] === null ? "hollow" : null);
    for (const at of mine) dots.set(at, make("circle", { class: look(at), cx: point(at)[0], cy: point(at)[1], r, pointerenter: () => pointAt(at) }));
    const bars = mine.filter((at) => half && half[at] !== null).map((at) => {
      const [y1, y2] = [-1, 1].map((side) => y.to(ys[at] + side * half[at]));
      return make("line", { class: "interval", x1: point(at)[0], x2: point(at)[0], y1, y2 });
    });
    const curve = rows.line ? make("polyline", { points: joined(mine) }) : null;
    return make("g", { fill: `var(--${COLOURS[place]})`, stroke: `var(--${COLOURS[place]})` }, curve, ...bars, ...mine.map((at) => dots.get(at)));
  });
  shapes.replaceChildren(...frameOf(x, y, width), ...parts, ...baseline([...base].filter(isDrawn), point, joined, width));
  mark();
}

/** Rings about the rows of the baseline, and dashed: their curve, or a line wherever all of them have one value. */
function baseline(known, point, joined, width) {
  if (!known.length) return [];
  const [left, top] = point(known[0]), one = (axis) => known.every((at) => Math.abs(point(at)[axis] - point(known[0])[axis]) < 0.5);
  const made = known.map((at) => make("circle", { class: "base", cx: point(at)[0], cy: point(at)[1], r: RING }));
  if (rows.line && known.length > 1) made.push(make("polyline", { class: "base", points: joined(known) }));
  if (one(1)) made.push(make("polyline", { class: "base", points: `${LEFT} ${top} ${width - RIGHT} ${top}` }));
  if (one(0)) made.push(make("polyline", { class: "base", points: `${left} ${TOP} ${left} ${HEIGHT - BOTTOM}` }));
  return made;
}

/** Numbers of both axes with lines across, and their names. */
function frameOf(x, y, width) {
  const words = (x, y, text, anchor) => make("text", { class: "tick", x, y, "text-anchor": anchor }, text);
  const across = ticks(x.low, x.high, Math.max(2, width / 110)).map((tick) => words(x.to(tick), HEIGHT - BOTTOM + 16, number(tick), "middle"));
  const up = ticks(y.low, y.high, 7).flatMap((tick) => [
    words(LEFT - 6, y.to(tick) + 4, number(tick), "end"),
    make("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y.to(tick), y2: y.to(tick) })]);
  return [...across, ...up, words(width - RIGHT, HEIGHT - 6, called(xSelect.value), "end"), words(2, 10, called(ySelect.value))];
}

/** Shows which points are kept. */
function mark() {
  const inside = new Set(kept);
  dots.forEach((dot, at) => dot.classList.toggle("out", !inside.has(at) && !base.has(at)));
  showBox();
}

function showBox() {
  const { x, y } = axes(), [left, right] = brush ? brush.x.map(x.to) : [0, 0], [bottom, top] = brush ? brush.y.map(y.to) : [0, 0];
  for (const [name, value] of Object.entries({ x: left, y: top, width: right - left, height: bottom - top })) box.setAttribute(name, value);
}

/** Points at a row, in the chart or in the table. */
function pointAt(at) {
  dots.get(pointed)?.classList.remove("pointed");
  dots.get(at)?.classList.add("pointed");
  pointed = at;
  hint.textContent = rows.columns.map((name) => `${called(name)}: ${written(column(name)[at])}`).slice(0, 30).join("\n");
}

/** Forgets the box. */
function forget() {
  brush = null;
  update();
}

/** Works out which rows are kept, and shows all. */
function update() {
  if (!drawn) return list();
  const { xs, ys } = axes(), within = (value, [low, high]) => value !== null && value >= low && value <= high;
  kept = brush ? every.filter((at) => within(xs[at], brush.x) && within(ys[at], brush.y)) : every;
  clear.hidden = !brush;
  chart.setAttribute("aria-label", `${called(ySelect.value)} over ${called(xSelect.value)} of ${number(count)} rows; the table below has them`);
  const unknown = every.filter((at) => !isDrawn(at)).length;
  const none = unknown ? ` ${number(unknown)} rows have no point: a number is missing.` : "";
  const more = kept.length > LISTED ? `; the first ${number(LISTED)} are listed` : "";
  said.textContent = brush ? `${number(kept.length)} of ${number(count)} rows are within the box${more}.` :
    `${number(count)} rows${more}. Drag a box over points to keep their rows; point at a row to find its point.${none}`;
  const known = rows.baseline ? [make("li", {}, `${base.size ? "◯ ┄ baseline" : "baseline"}: ${rows.baseline.words}`)] : [];
  const named = bySelect.value ? groups().map((group, place) => {
    const sample = make("span", { class: "dot-sample" });
    sample.style.background = `var(--${COLOURS[place]})`;
    return make("li", {}, sample, ` ${called(bySelect.value)}: ${written(group)}`);
  }) : [];
  const sure = halves() ? [make("li", {}, "bars: 95 % intervals; hollow: too few requests for one")] : [];
  legend.replaceChildren(...known, ...named, ...sure);
  list();
  mark();
}

function list() {
  const lines = kept.slice(0, LISTED);
  const table = tableOf("Rows", rows.columns, lines.map((at) => rows.values.map((each) => written(each[at]))), worded);
  [...table.tBodies[0].rows].forEach((row, place) => row.addEventListener("pointerenter", () => pointAt(lines[place])));
  listed.replaceChildren(table);
  section.querySelector(".filter")?.remove();
  enhance(table);
}

const placeOf = (event, box = chart.getBoundingClientRect()) => [event.clientX - box.left, event.clientY - box.top];

chart.addEventListener("pointerdown", (event) => {
  pressed = placeOf(event);
  chart.setPointerCapture(event.pointerId);
});
chart.addEventListener("pointermove", (event) => {
  if (!pressed) return;
  const { x, y } = axes(), [left, top] = placeOf(event), sorted = (...both) => both.sort((a, b) => a - b);
  brush = { x: sorted(x.of(pressed[0]), x.of(left)), y: sorted(y.of(pressed[1]), y.of(top)) };
  showBox();
});
chart.addEventListener("pointerup", (event) => {
  const [left, top] = placeOf(event);
  if (Math.hypot(left - pressed[0], top - pressed[1]) < 4) brush = null;
  pressed = null;
  update();
});
bind("Escape", "all rows again", forget);
bind("/", "filter the rows", () => section.querySelector(".filter input")?.focus());
addEventListener("resize", draw);
if (drawn) section.append(make("div", { class: "choices" }, xLabel, yLabel, byLabel, clear), chart, legend);
section.append(said, listed);
update();
draw();
