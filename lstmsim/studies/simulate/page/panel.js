/** What stands around the picture of the spans: search, the sums of a window, the words on a span, changes as switches. */

import { bind, data, make, number, percent } from "./frame.js";
import { enhance, tableOf } from "./tables.js";
import { CLASSES, within, spansOf, spansWhere, sumsOf } from "./spans.js";
import { View } from "./view.js";

/** Rows behind a number, jobs and layers with a row of their own, rows and segments named of a span, spans found. */
const LISTED = 50, NAMED = 200, MENTIONED = 6, FOUND = 10_000;
/** How long a window must stay as it is until its sums are shown, in ms. */
const SETTLED = 40;

const button = (text, title, click) => make("button", { title, click }, text);
const link = (text, title, click) => make("button", { class: "link", title, click }, text);
const scrolled = (table) => make("div", { class: "scroll" }, table);

class Explorer {
  constructor(spans, place) {
    Object.assign(this, { spans, place, level: spans.levels[0], kinds: spans.kinds, found: null, waiting: 0 });
    spans.mean = ((spans.last - spans.first) * spans.rows.length) / Math.max(1, this.level.start.length);
    spans.label = (at, letters) => this.label(at, letters);
    spans.hint = (row, at) => `${spans.rows[row][0]}: ${this.state(this.level.kind[at])}\n${this.where(at)}\n${this.when(at)}`.replace("\n\n", "\n");
    const searching = { type: "search", placeholder: "Search: job, reason, layer 0, step 3", "aria-label": "Search spans" };
    const typed = { Enter: (event) => this.search(event.shiftKey ? -1 : 1), Escape: () => this.field.blur() };
    this.field = make("input", { ...searching, keydown: (event) => typed[event.key]?.(event), input: () => this.forget() });
    this.hits = make("span", { class: "note", role: "status" });
    const cycle = (label) => make("input", { type: "number", "aria-label": label, change: () => this.typedWindow() });
    [this.from, this.to] = [cycle("First cycle"), cycle("End cycle (exclusive)")];
    this.sums = make("div", { id: "selection" });
    this.words = make("div", { id: "span", "aria-live": "polite" });
    this.view = new View(spans, (window) => this.selected(window), (span) => this.showSpan(span));
    bind("/", "search", () => this.field.focus());
    bind("n", "the next span found", () => this.search(1));
  }

  async start() {
    const hint = "Drag: select. Shift and drag, or a finger: move. Ctrl and wheel, or two fingers: zoom. Click: what a span is. Keys: ?";
    this.place.append(make("p", { class: "note hint" }, hint), this.tools(), this.view.element, this.words, this.sums);
    document.querySelectorAll("#jobs tbody th, [data-reason]").forEach((cell) => this.lead(cell));
    document.getElementById("timeline").classList.add("explored");
    await this.view.start();
    this.view.recall();
    addEventListener("hashchange", () => this.view.recall());
  }

  tools() {
    const { view } = this;
    return make("div", { class: "choices" },
      button("+", "Zoom in (w)", () => view.zoom(0.5)), button("−", "Zoom out (s)", () => view.zoom(2)),
      button("◀", "Go left (a)", () => view.pan(-0.4)), button("▶", "Go right (d)", () => view.pan(0.4)),
      button("Whole run", "Key 0", () => view.show(this.spans.first, this.spans.last)),
      make("label", {}, "First cycle ", this.from), make("label", {}, "End cycle (exclusive) ", this.to),
      button("Sum the view", "Select what the picture shows", () => view.select(view.low, view.high)), this.field, this.hits);
  }

  state(kind) {
    return this.spans.states[this.kinds.state[kind]][0];
  }

  job(kind) {
    return this.kinds.job[kind] < 0 ? "" : this.spans.jobs[this.kinds.job[kind]];
  }

  /** Job, layer and step of a span, as far as it has them. */
  where(at) {
    const kind = this.level.kind[at], layer = this.kinds.layer[kind], step = this.level.step[at];
    const known = [this.job(kind), layer < 0 ? "" : `layer ${layer}`, step < 0 || this.spans.bin > 1 ? "" : `step ${step}`];
    return known.filter(Boolean).join(", ");
  }

  when(at) {
    const { start: { [at]: start }, end: { [at]: end } } = this.level;
    return `cycles ${number(start)} to ${number(end)}: ${number(end - start)} cycles, ${number((end - start) / this.spans.mhz)} µs`;
  }

  label(at, letters) {
    const state = this.state(this.level.kind[at]), text = state === "busy" ? this.where(at) || "work" : state;
    return text.length <= letters ? text : `${text.slice(0, Math.max(1, Math.floor(letters) - 1))}…`;
  }

  selected(window) {
    [this.from.value, this.to.value] = window ?? ["", ""];
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.showSums(window), SETTLED);
  }

  typedWindow() {
    if (this.from.value !== "" && this.to.value !== "") this.view.select(Number(this.from.value), Number(this.to.value));
  }

  forget() {
    this.found = null;
    this.hits.textContent = "";
  }

  /** Makes the name in a cell of another table lead to its spans. */
  lead(cell) {
    const text = (cell.dataset.reason ?? cell.textContent).replace(/…$/, "");
    const find = () => {
      this.field.value = text;
      this.forget();
      this.search(1);
      this.place.scrollIntoView({ block: "nearest" });
    };
    cell.append(make("button", { class: "link", title: "Find in the timeline", click: find }, ...cell.childNodes));
  }

  /** Whether a span is what a search asks for: its words are in the row, the state or the job; `layer 1`, `step 3` fit. */
  asks(text) {
    const { kinds, level, spans } = this, numbers = { layer: null, step: null };
    const rest = text.toLowerCase().replace(/\b(layer|step) (\d+)/g, (_, what, value) => ((numbers[what] = Number(value)), "")).trim();
    // the name of a job means that job only, and not all whose names begin like it
    const exact = spans.jobs.findIndex((name) => name.toLowerCase() === rest);
    const named = (kind) => `${this.state(kind)}\n${this.job(kind)}`.toLowerCase().includes(rest);
    const fits = Array.from({ length: kinds.count }, (_, kind) => (exact >= 0 ? kinds.job[kind] === exact : named(kind)));
    const inRow = spans.rows.map(([name]) => exact < 0 && name.toLowerCase().includes(rest));
    const equal = (wanted, value) => wanted === null || wanted === value;
    return (kind, group, row, at) =>
      (fits[kind] || inRow[row]) && equal(numbers.layer, kinds.layer[kind]) && equal(numbers.step, level.step[at]);
  }

  /** Goes to the next span that fits the search, or to the one before. */
  search(by) {
    const text = this.field.value.trim(), { spans } = this;
    if (!text) return this.field.focus();
    this.found ??= { ...spansWhere(spans, spans.first, spans.last, this.asks(text), FOUND), at: by > 0 ? -1 : 0 };
    const { count, longest } = this.found;
    if (!count) return void (this.hits.textContent = "no span");
    this.found.at = (this.found.at + by + longest.length) % longest.length;
    this.hits.textContent = `${number(this.found.at + 1)} of ${number(count)} spans, the longest first`;
    this.view.pick(longest[this.found.at].slice(0, 2), true);
  }

  /** The tables of a window: by what units did or waited for, by layer, by job. */
  showSums(window) {
    if (!window) return this.sums.replaceChildren();
    const [low, high] = window, { spans, kinds } = this, whole = sumsOf(spans, low, high);
    // work by layer and job; of the path all
    const counts = (kind, group) => group === 3 || this.state(kind) === "busy";
    const among = (column) => (kind, group) => (counts(kind, group) && column[kind] >= 0 ? column[kind] : null);
    const tables = [
      this.sumTable("By what they did or waited for", "what", window, whole, (kind) => kinds.state[kind], (state) => spans.states[state][0]),
      this.sumTable("Work by layer", "layer", window, whole, among(kinds.layer), (layer) => `layer ${layer}`),
      this.sumTable("Work by job", "job", window, whole, among(kinds.job), (job) => spans.jobs[job]),
    ];
    const title = `Cycles ${number(low)} to ${number(high)}: ${number(high - low)} cycles, ${number((high - low) / spans.mhz)} µs`;
    const said = spans.bin > 1 ? ` The window ends where bins of ${number(spans.bin)} cycles do.` : "";
    const trio = make("div", { class: "trio" }, ...[tables.slice(0, 1), tables.slice(1)].map((each) => make("div", {}, ...each.map(scrolled))));
    const note = make("p", { class: "note" }, `Sums over rows, exact.${said} A number leads to its spans.`);
    this.sums.replaceChildren(make("h3", {}, title), note, trio, make("div", { id: "behind" }));
    tables.forEach(enhance);
  }

  /** A table of sums: `of(kind, class of rows)` gives the key of its row, or null; `name` writes it. */
  sumTable(title, head, window, whole, of, name) {
    const { spans, kinds } = this, sums = new Map();
    for (let kind = 0; kind < kinds.count; kind++)
      for (let group = 0; group < CLASSES; group++) {
        const key = of(kind, group), cycles = whole[kind * CLASSES + group];
        if (key === null || !cycles) continue;
        if (!sums.has(key)) sums.set(key, [0, 0, 0, 0]);
        sums.get(key)[group] += cycles;
      }
    const has = (group) => spans.rows.some(([, each]) => each === group), present = [0, 1, 2, 3].filter(has);
    const heads = present.flatMap((group) => [[`${spans.unit}s`, "share"], ["threads"], ["other units"], ["critical path"]][group]);
    const all = spans.rows.filter(([, group]) => group === 0).length * (window[1] - window[0]);
    const cell = (key, sum, group) => {
      if (!sum[group]) return "–";
      const list = () => this.list(`${name(key)}: ${number(sum[group])} cycles`, window, (kind, each) => each === group && of(kind, each) === key);
      return link(number(sum[group]), "The spans behind this number", list);
    };
    const sorted = [...sums].sort(([, a], [, b]) => b[0] - a[0] || b[1] - a[1]);
    const cells = (key, sum, group) => [cell(key, sum, group), ...(group ? [] : [percent(sum[0], all)])];
    const rows = sorted.slice(0, NAMED).map(([key, sum]) => [name(key), ...present.flatMap((group) => cells(key, sum, group))]);
    if (sorted.length > NAMED) rows.push([`and ${number(sorted.length - NAMED)} more`, ...heads.map(() => "")]);
    return tableOf(title, [head, ...heads], rows);
  }

  /** The spans behind a number. */
  list(what, [low, high], holds) {
    const { level, spans } = this, { count, longest } = spansWhere(spans, low, high, holds, LISTED);
    const rows = longest.map(([row, at, cycles]) => [
      link(spans.rows[row][0], "Show it", () => this.view.pick([row, at], true)),
      number(level.start[at]), number(level.end[at]), number(cycles), this.state(level.kind[at]), this.where(at)]);
    const more = count > rows.length ? `; the longest ${number(rows.length)}` : "";
    const table = tableOf(`${what}, in ${number(count)} spans${more}`, ["row", "from", "to", "in the window", "what", "of"], rows);
    const behind = document.getElementById("behind");
    behind.replaceChildren(scrolled(table));
    enhance(table);
    behind.scrollIntoView({ block: "nearest" });
  }

  /** What a span is, what went on meanwhile, and whether it is on the critical path. */
  showSpan(span) {
    if (!span) return this.words.replaceChildren();
    const { spans, level, kinds } = this, [row, at] = span, kind = level.kind[at], start = level.start[at], end = level.end[at];
    const [name, meaning] = spans.states[kinds.state[kind]], [rowName, group] = spans.rows[row];
    const follows = at + 1 < level.offset[row + 1] && level.start[at + 1] === end;
    const next = follows ? `${this.state(level.kind[at + 1])} ${this.where(at + 1)}` : "its row has nothing next";
    const pairs = [
      ["where", rowName],
      ["when", this.when(at)],
      ["bin", spans.bin > 1 ? `a part of a bin of ${number(spans.bin)} cycles: within a bin the order is not kept` : ""],
      ["of", this.where(at)],
      ["next waited for", spans.held[kinds.held[kind]] ?? ""],
      ["until", group < 2 && name !== "busy" ? next : ""],
      ["meanwhile", group < 3 ? this.meanwhile(row, at) : ""],
      ["critical path", group < 3 ? this.onPath(row, at) : ""],
    ];
    const items = pairs.filter(([, text]) => text).flatMap(([term, text]) => [make("dt", {}, term), make("dd", {}, text)]);
    this.words.replaceChildren(make("h3", {}, meaning ? `${name}: ${meaning}` : name), make("dl", {}, ...items));
  }

  /** What other rows of the core did in the time of a span: those of its job, or of a main unit all. */
  meanwhile(row, at) {
    const { spans, level, kinds } = this, [, group, core] = spans.rows[row], job = kinds.job[level.kind[at]], said = [];
    spans.rows.forEach(([name, each, other], place) => {
      if (place === row || other !== core || each === 3 || said.length >= MENTIONED) return;
      const sums = new Map();
      within(level, place, level.start[at], level.end[at], (span, cycles) => {
        const kind = level.kind[span], state = this.state(kind);
        if ((group > 0 && kinds.job[kind] !== job) || state === "idle") return;
        const key = this.where(span) ? `${state} (${this.where(span)})` : state;
        sums.set(key, (sums.get(key) ?? 0) + cycles);
      });
      const [longest] = [...sums].sort((a, b) => b[1] - a[1]);
      const of = `of ${number(level.end[at] - level.start[at])} cycles${sums.size > 1 ? ", and else" : ""}`;
      if (longest) said.push(`${name}: ${longest[0]} for ${number(longest[1])} ${of}`);
    });
    return said.join("; ");
  }

  /** For how many cycles of a span the path is with its job, or with its core where it has no job. */
  onPath(row, at) {
    const { spans, level, kinds } = this, [, , core] = spans.rows[row], job = kinds.job[level.kind[at]];
    const path = spans.rows.findIndex(([, each]) => each === 3), said = [];
    if (path < 0) return "not worked out: simulate with --explain";
    let on = 0;
    within(level, path, level.start[at], level.end[at], (span, cycles) => {
      const kind = level.kind[span];
      if (job >= 0 ? kinds.job[kind] !== job : kinds.core[kind] !== core) return;
      on += cycles;
      const held = `${number(cycles)}; next waits for ${spans.held[kinds.held[kind]]}`;
      if (said.length < MENTIONED) said.push(`${this.state(kind)}, ${this.where(span)} (${held})`);
    });
    if (!on) return "not on it: the path is with other work then";
    return `${number(on)} of ${number(level.end[at] - level.start[at])} cycles are on it, as ${said.join("; ")}`;
  }
}

/** Changes as switches: what one or two of them came to, all simulated beforehand. */
function whatIf({ utilization, what_if: { base_cycles: cycles, base_latency: latency, alternatives, pairs } }, place) {
  const said = make("p", { class: "answer", role: "status" }), bars = make("div", { class: "bars" });
  const boxes = alternatives.map((each) => make("input", { type: "checkbox", value: each.name, disabled: each.cycles === null, change: show }));
  const labels = alternatives.map((each, at) =>
    make("label", {}, boxes[at], ` ${each.name}`, make("small", {}, ` ${each.cycles === null ? each.refused : each.detail}`)));
  const bar = (name, value, max) => make("label", {}, `${name}: ${number(value)} cycles`, make("progress", { value, max }));
  function show() {
    const names = boxes.filter((each) => each.checked).map((each) => each.value), both = names.join(" + ");
    const isPair = (each) => names.length === 2 && names.every((name) => each.pair.includes(name));
    const result = names.length === 1 ? alternatives.find((each) => each.name === both) : pairs.find(isPair);
    bars.replaceChildren();
    if (!names.length) return void (said.textContent = "Switch one or two changes on.");
    const why = names.length > 2 ? "Only single changes and pairs are." : "Only the most promising pairs are.";
    if (!result) return void (said.textContent = `${both}: not simulated. ${why}`);
    const times = `${number(result.cycles)} cycles instead of ${number(cycles)} (${(cycles / result.cycles).toFixed(2)} times as fast)`;
    const used = `utilization ${percent(result.utilization, 1)} instead of ${percent(utilization, 1)}`;
    const slow = result.latency && ` Slowest requests: ${number(result.latency.slowest)} cycles (${number(latency.slowest)} as it is).`;
    said.textContent = `${both}: ${times}, ${used}.${slow ?? ""}`;
    const most = Math.max(cycles, result.cycles);
    bars.replaceChildren(bar("as it is", cycles, most), bar(both, result.cycles, most));
  }
  place.replaceChildren(make("div", { class: "switches", role: "group", "aria-label": "Changes" }, ...labels), said, bars);
  show();
}

const timeline = data("timeline"), changes = data("what-if"), place = document.getElementById("explorer");
const refuse = (error) => place.append(make("p", { class: "note" }, `This browser draws no spans: ${error.message}`));
if (timeline) spansOf(timeline).then((spans) => new Explorer(spans, place).start()).catch(refuse);
if (changes) whatIf(changes, document.getElementById("switches"));
