/** What stands around the picture of the spans: search, the sums of a window, the words on a span, changes as switches. */

import { bind, data, make, number, percent } from "./frame.js";
import { enhance, tableOf } from "./tables.js";
import { CLASSES, after, spansOf, spansWhere, sumsOf } from "./spans.js";
import { View } from "./view.js";

/** Rows that stand behind a number, jobs and layers with a row of their own, segments of the path that are named. */
const LISTED = 50, NAMED = 200, SEGMENTS = 6;

const timeline = data("timeline");
const place = document.getElementById("explorer");
if (timeline && place) explore(timeline).catch((error) => place.append(make("p", { class: "note" }, `This browser draws no spans: ${error.message}`)));
const changes = data("what-if");
if (changes) whatIf(changes, document.getElementById("switches"));

async function explore(given) {
  const spans = await spansOf(given);
  const { kinds } = spans, level = spans.levels[0];
  spans.mean = ((spans.last - spans.first) * spans.rows.length) / Math.max(1, level.start.length);
  const stateName = (kind) => spans.states[kinds.state[kind]][0];
  const jobName = (job) => (job < 0 ? "no job" : spans.jobs[job]);
  const where = (at) => {
    const kind = level.kind[at], layer = kinds.layer[kind];
    return [kinds.job[kind] < 0 ? "" : jobName(kinds.job[kind]), layer < 0 ? "" : `layer ${layer}`, level.step[at] < 0 || spans.bin > 1 ? "" : `step ${level.step[at]}`].filter(Boolean).join(", ");
  };
  spans.label = (at, letters) => {
    const kind = level.kind[at], busy = stateName(kind) === "busy";
    const text = busy ? where(at) || "work" : stateName(kind);
    return text.length <= letters ? text : text.slice(0, Math.max(1, Math.floor(letters) - 1)) + "…";
  };

  const field = make("input", { type: "search", placeholder: "Search: job, reason, layer 0, step 3", "aria-label": "Search spans", keydown: (event) => { if (event.key === "Enter") search(event.shiftKey ? -1 : 1); if (event.key === "Escape") field.blur(); }, input: () => { found = null; hits.textContent = ""; } });
  const hits = make("span", { class: "note", role: "status" });
  const from = make("input", { type: "number", "aria-label": "First cycle", change: typed }), to = make("input", { type: "number", "aria-label": "Cycle behind the last", change: typed });
  const sums = make("div", { id: "selection" }), words = make("div", { id: "span", "aria-live": "polite" });
  let asked = 0;
  const view = new View(spans, (window) => {
    [from.value, to.value] = window ?? ["", ""];
    clearTimeout(asked);
    asked = setTimeout(() => showSums(window), 40);
  }, showSpan);
  const button = (text, title, click) => make("button", { title, click }, text);
  const tools = make("div", { class: "choices" },
    button("+", "Zoom in (w)", () => view.zoom(0.5)), button("−", "Zoom out (s)", () => view.zoom(2)),
    button("◀", "Go left (a)", () => view.pan(-0.4)), button("▶", "Go right (d)", () => view.pan(0.4)),
    button("Whole run", "Key 0", () => view.show(spans.first, spans.last)),
    make("label", {}, "cycles ", from), make("label", {}, "to ", to),
    button("Sum the view", "Select what the picture shows", () => view.select(view.low, view.high)), field, hits);
  const hint = "Drag: select. Shift and drag, or a finger: move. Ctrl and wheel, or two fingers: zoom. Click: what a span is. Keys: ?";
  place.append(make("p", { class: "note hint" }, hint), tools, view.element, words, sums);
  for (const row of document.querySelectorAll("#jobs tbody th, [data-reason]")) lead(row);
  bind("/", "search", () => field.focus());
  bind("n", "the next span found", () => search(1));
  document.getElementById("timeline").classList.add("explored");
  let found = null;
  await view.start();

  function typed() {
    if (from.value !== "" && to.value !== "") view.select(Number(from.value), Number(to.value));
  }

  /** A name in another table leads to its spans. */
  function lead(cell) {
    const text = (cell.dataset.reason ?? cell.textContent).replace(/…$/, "");
    const button = make("button", { class: "link", title: "Find in the timeline", click: () => { field.value = text; found = null; search(1); place.scrollIntoView({ block: "nearest" }); } }, ...cell.childNodes);
    cell.append(button);
  }

  /** Whether a span is what a search asks for: each word is in its row, state or job, or `layer 1`, `step 3` fit. */
  function asks(text) {
    const numbers = { layer: null, step: null };
    const rest = text.toLowerCase().replace(/\b(layer|step) (\d+)/g, (_, what, value) => { numbers[what] = Number(value); return ""; }).trim();
    // the name of a job means that job only, and not all whose names begin like it
    const exact = spans.jobs.findIndex((name) => name.toLowerCase() === rest);
    const fits = Array.from({ length: kinds.count }, (_, kind) => (exact >= 0 ? kinds.job[kind] === exact : `${stateName(kind)}\n${kinds.job[kind] < 0 ? "" : jobName(kinds.job[kind])}`.toLowerCase().includes(rest)));
    const inRow = spans.rows.map(([name]) => exact < 0 && name.toLowerCase().includes(rest));
    return (kind, group, row, at) => (fits[kind] || inRow[row]) && (numbers.layer === null || kinds.layer[kind] === numbers.layer) && (numbers.step === null || level.step[at] === numbers.step);
  }

  function search(by) {
    const text = field.value.trim();
    if (!text) return field.focus();
    if (!found) {
      const { count, longest } = spansWhere(spans, spans.first, spans.last, asks(text), 10000);
      found = { count, list: longest, at: by > 0 ? -1 : 0 };
    }
    if (!found.count) return void (hits.textContent = "no span");
    found.at = (found.at + by + found.list.length) % found.list.length;
    hits.textContent = `${number(found.at + 1)} of ${number(found.count)} spans, the longest first`;
    view.pick(found.list[found.at].slice(0, 2), true);
  }

  /** The tables of a window: by what units did or waited for, by layer, by job. */
  function showSums(window) {
    if (!window) return sums.replaceChildren();
    const [low, high] = window, whole = sumsOf(spans, low, high);
    const present = [0, 1, 2, 3].filter((group) => spans.rows.some(([, each]) => each === group));
    const heads = [`${spans.unit}s`, "share", "threads", "other units", "critical path"].filter((_, at) => present.includes([0, 0, 1, 2, 3][at]));
    const mains = spans.rows.filter(([, group]) => group === 0).length * (high - low);
    const behind = make("div", { id: "behind" });
    const rows = (name, of) => {
      const sorted = new Map();
      for (let kind = 0; kind < kinds.count; kind++)
        for (let group = 0; group < CLASSES; group++) {
          const key = of(kind, group), cycles = whole[kind * CLASSES + group];
          if (key === null || !cycles) continue;
          if (!sorted.has(key)) sorted.set(key, [0, 0, 0, 0]);
          sorted.get(key)[group] += cycles;
        }
      const kept = [...sorted].sort((a, b) => b[1][0] - a[1][0] || b[1][1] - a[1][1]);
      const link = (key, sum, group) => sum[group] ? make("button", { class: "link", title: "The spans behind this number", click: () => list(`${name(key)}: ${number(sum[group])} cycles`, (kind, each) => each === group && of(kind, each) === key) }, number(sum[group])) : "–";
      const lines = kept.slice(0, NAMED).map(([key, sum]) => [name(key), ...present.flatMap((group) => (group === 0 ? [link(key, sum, 0), percent(sum[0], mains)] : [link(key, sum, group)]))]);
      if (kept.length > NAMED) lines.push([`and ${number(kept.length - NAMED)} more`, ...heads.map(() => "")]);
      return lines;
    };
    function list(what, holds) {
      const { count, longest } = spansWhere(spans, low, high, holds, LISTED);
      const lines = longest.map(([row, at, cycles]) => [
        make("button", { class: "link", click: () => view.pick([row, at], true) }, spans.rows[row][0]), number(level.start[at]), number(level.end[at]), number(cycles), stateName(level.kind[at]), where(at)]);
      const more = count > lines.length ? `; the longest ${number(lines.length)}` : "";
      const table = tableOf(`${what}, in ${number(count)} spans${more}`, ["row", "from", "to", "in the window", "what", "of"], lines);
      behind.replaceChildren(make("div", { class: "scroll" }, table));
      enhance(table);
      behind.scrollIntoView({ block: "nearest" });
    }
    // work by layer and job; of the path all
    const counts = (kind, group) => group === 3 || stateName(kind) === "busy";
    const parts = [
      ["By what they did or waited for", (kind) => kinds.state[kind]],
      ["Work by layer", (kind, group) => (counts(kind, group) && kinds.layer[kind] >= 0 ? kinds.layer[kind] : null)],
      ["Work by job", (kind, group) => (counts(kind, group) && kinds.job[kind] >= 0 ? kinds.job[kind] : null)],
    ];
    const names = [(state) => spans.states[state][0], (layer) => `layer ${layer}`, jobName];
    const tables = parts.map(([title, of], at) => tableOf(title, [["what", "layer", "job"][at], ...heads], rows(names[at], of)));
    const title = `Cycles ${number(low)} to ${number(high)}: ${number(high - low)} cycles, ${number((high - low) / spans.mhz)} µs`;
    const said = spans.bin > 1 ? ` The window ends where bins of ${number(spans.bin)} cycles do.` : "";
    sums.replaceChildren(make("h3", {}, title), make("p", { class: "note" }, `Sums over rows, exact.${said} A number leads to its spans.`), make("div", { class: "trio" }, ...tables.map((each) => make("div", {}, make("div", { class: "scroll" }, each)))), behind);
    tables.forEach(enhance);
  }

  /** What a span is, what went on meanwhile, and whether it is on the critical path. */
  function showSpan(span) {
    if (!span) return words.replaceChildren();
    const [row, at] = span, kind = level.kind[at], start = level.start[at], end = level.end[at];
    const [name, meaning] = spans.states[kinds.state[kind]], [rowName, group, core] = spans.rows[row];
    const pairs = [["where", rowName], ["when", `cycles ${number(start)} to ${number(end)}: ${number(end - start)} cycles, ${number((end - start) / spans.mhz)} µs`]];
    if (spans.bin > 1) pairs.push(["bin", `a part of a bin of ${number(spans.bin)} cycles: within a bin the order is not kept`]);
    if (where(at)) pairs.push(["of", where(at)]);
    if (kinds.held[kind] >= 0) pairs.push(["next waited for", spans.held[kinds.held[kind]]]);
    if (group < 2 && name !== "busy") pairs.push(["until", at + 1 < level.offset[row + 1] && level.start[at + 1] === end ? `${stateName(level.kind[at + 1])} ${where(at + 1)}` : "its row has nothing next"]);
    if (group < 3) pairs.push(["meanwhile", meanwhile(row, group, core, kinds.job[kind], start, end)], ["critical path", onPath(group, core, kinds.job[kind], start, end)]);
    words.replaceChildren(make("h3", {}, `${name}${meaning ? `: ${meaning}` : ""}`), make("dl", {}, ...pairs.filter(([, text]) => text).flatMap(([term, text]) => [make("dt", {}, term), make("dd", {}, text)])));
  }

  /** What other rows of the core did in that time: those of the job, or of a main unit all. */
  function meanwhile(row, group, core, job, start, end) {
    const said = [];
    spans.rows.forEach(([name, each, other], place) => {
      if (place === row || other !== core || each === 3 || said.length >= SEGMENTS) return;
      const sums = new Map();
      for (let at = after(level, place, start); at < level.offset[place + 1] && level.start[at] < end; at++) {
        const kind = level.kind[at];
        if (group > 0 && kinds.job[kind] !== job) continue;
        if (stateName(kind) === "idle") continue;
        const key = `${stateName(kind)}${where(at) ? ` (${where(at)})` : ""}`;
        sums.set(key, (sums.get(key) ?? 0) + Math.min(level.end[at], end) - Math.max(level.start[at], start));
      }
      const [longest] = [...sums].sort((a, b) => b[1] - a[1]);
      if (longest) said.push(`${name}: ${longest[0]} for ${number(longest[1])} of ${number(end - start)} cycles${sums.size > 1 ? ", and else" : ""}`);
    });
    return said.join("; ");
  }

  /** How much of a span the path takes: of its job, or of its core where it has no job. */
  function onPath(group, core, job, start, end) {
    const path = spans.rows.findIndex(([, each]) => each === 3);
    if (path < 0) return "not worked out: simulate with --explain";
    let on = 0;
    const said = [];
    for (let at = after(level, path, start); at < level.offset[path + 1] && level.start[at] < end; at++) {
      const kind = level.kind[at], cycles = Math.min(level.end[at], end) - Math.max(level.start[at], start);
      if (job >= 0 ? kinds.job[kind] !== job : kinds.core[kind] !== core) continue;
      on += cycles;
      if (said.length < SEGMENTS) said.push(`${stateName(kind)}, ${where(at)} (${number(cycles)}; next waits for ${spans.held[kinds.held[kind]]})`);
    }
    return on ? `${number(on)} of ${number(end - start)} cycles are on it, as ${said.join("; ")}` : "not on it: the path is with other work then";
  }
}

/** Changes as switches: what one or two of them came to, all simulated beforehand. */
function whatIf({ base, changes, pairs }, place) {
  const on = new Set(), said = make("p", { class: "answer", role: "status" }), bars = make("div", { class: "bars" });
  const boxes = changes.map((each) => {
    const box = make("input", { type: "checkbox", disabled: each.cycles === null, change: () => { box.checked ? on.add(each.name) : on.delete(each.name); show(); } });
    return make("label", {}, box, ` ${each.name}`, make("small", {}, ` ${each.cycles === null ? each.refused : each.detail}`));
  });
  const bar = (name, cycles, most) => {
    const length = make("i");
    length.style.width = `${(100 * cycles) / most}%`;
    return make("div", {}, make("span", {}, `${name}: ${number(cycles)} cycles`), length);
  };
  function show() {
    const names = [...on];
    const result = names.length === 1 ? changes.find((each) => each.name === names[0]) : pairs.find((each) => names.length === 2 && names.every((name) => each.pair.includes(name)));
    bars.replaceChildren();
    if (!names.length) return void (said.textContent = "Switch one or two changes on.");
    if (!result) return void (said.textContent = `${names.join(" + ")}: not simulated. ${names.length > 2 ? "Only single changes and pairs are." : "Only the most promising pairs are."}`);
    const most = Math.max(base.cycles, result.cycles), slow = result.slowest === null ? "" : ` Slowest requests: ${number(result.slowest)} cycles (${number(base.slowest)} as it is).`;
    said.textContent = `${names.join(" + ")}: ${number(result.cycles)} cycles instead of ${number(base.cycles)} (${(base.cycles / result.cycles).toFixed(2)} times as fast), utilization ${percent(result.utilization, 1)} instead of ${percent(base.utilization, 1)}.${slow}`;
    bars.replaceChildren(bar("as it is", base.cycles, most), bar(names.join(" + "), result.cycles, most));
  }
  place.replaceChildren(make("div", { class: "switches", role: "group", "aria-label": "Changes" }, ...boxes), said, bars);
  show();
}
