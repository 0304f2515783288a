/** The spans of a run as columns: unpacked, in levels of detail, walked over column by column, added up. */

/** Columns of numbers out of bytes that were split into planes, compressed and written as base64. */
async function unpacked(text, sizes) {
  const packed = atob(text), bytes = new Uint8Array(packed.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = packed.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const raw = new Uint8Array(await new Response(stream).arrayBuffer());
  let from = 0;
  return sizes.map(([length, planes]) => {
    const column = new Float64Array(length);
    for (let plane = 0, unit = 1; plane < planes; plane++, unit *= 256, from += length)
      for (let at = 0; at < length; at++) column[at] += raw[from + at] * unit;
    return column;
  });
}

/**
 * The spans of the page's data. A level has `width` (cycles of its bins; 1: single spans), `offset` (first span of each
 * row, and the end), `start`, `end` and `look`; the finest level also has `kind` and `step`. A kind has `state`,
 * `job`, `layer`, `held` and `core`; -1 stands for none.
 */
export async function spansOf(given) {
  const [counts, gap, length, kind, turn, state, job, layer, held, core, look] = await unpacked(given.columns, given.sizes);
  const count = kind.length, offset = new Int32Array(counts.length + 1);
  const start = new Float64Array(count), end = new Float64Array(count), step = new Int32Array(count);
  const looks = new Uint8Array(count);
  for (let row = 0, at = 0, last = 0; row < counts.length; row++) {
    const behind = (offset[row + 1] = offset[row] + counts[row]);
    for (let cycle = given.first; at < behind; at++) {
      start[at] = cycle + gap[at];
      cycle = end[at] = start[at] + length[at];
      step[at] = last += turn[at] % 2 ? -(turn[at] + 1) / 2 : turn[at] / 2;
      looks[at] = look[kind[at]];
    }
  }
  const none = (column) => Int32Array.from(column, (each) => each - 1);
  const kinds = { state, job: none(job), layer: none(layer), held: none(held), core: none(core), count: state.length };
  const finest = { width: given.bin, offset, start, end, look: looks, kind: Int32Array.from(kind), step };
  return { ...given, kinds, levels: [finest] };
}

/** The first span of a row that ends behind a cycle. */
export function after(level, row, cycle) {
  let low = level.offset[row], high = level.offset[row + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (level.end[middle] > cycle) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Of the column that is walked over: the parts of looks, and which there are. A frame has thousands, and makes none anew. */
const shares = new Float64Array(256), used = [];

/**
 * Walks over a row in columns of `width` cycles from `origin` on. For each column that has a span:
 * `tell(column, looks, shares)`, where `shares[look]` is the part of the column.
 */
export function walk(level, row, low, high, origin, width, tell) {
  const { start, end, look } = level, behind = level.offset[row + 1];
  let at = -1;
  const flush = () => {
    if (!used.length) return;
    if (used.length > 1) used.sort((a, b) => a - b);
    tell(at, used, shares);
    for (const each of used) shares[each] = 0;
    used.length = 0;
  };
  for (let span = after(level, row, low); span < behind && start[span] < high; span++) {
    const from = (Math.max(start[span], low) - origin) / width, to = (Math.min(end[span], high) - origin) / width;
    for (let column = Math.floor(from); column < to; column++) {
      if (column !== at) flush();
      at = column;
      if (!shares[look[span]]) used.push(look[span]);
      shares[look[span]] += Math.min(to, column + 1) - Math.max(from, column);
    }
  }
  flush();
}

/** A level whose bins are `width` cycles wide: within a bin the parts of looks lie one after the other. */
function coarser(level, width, first) {
  const rows = level.offset.length - 1, offset = new Int32Array(rows + 1);
  const start = [], end = [], look = [];
  for (let row = 0; row < rows; row++) {
    const begin = start.length;
    walk(level, row, first, Infinity, first, width, (column, used, part) => {
      let at = first + column * width;
      for (const each of used) {
        const until = at + part[each] * width;
        const joins = start.length > begin && look[look.length - 1] === each && end[end.length - 1] > at - 1e-6 * width;
        if (joins) end[end.length - 1] = until;
        else { start.push(at); end.push(until); look.push(each); }
        at = until;
      }
    });
    offset[row + 1] = start.length;
  }
  return { width, offset, start: Float64Array.from(start), end: Float64Array.from(end), look: Uint8Array.from(look) };
}

/** Spans of a level that a picture walks over without a stutter. */
const FEW = 30_000;

/** Works out the coarser levels, one at a time, so that the page stays alive meanwhile. */
export async function workOutLevels(spans) {
  const whole = spans.last - spans.first;
  for (;;) {
    const level = spans.levels[spans.levels.length - 1], count = level.start.length;
    const mean = (whole * (level.offset.length - 1)) / Math.max(1, count);
    const width = Math.max(4 * level.width, 2 ** Math.ceil(Math.log2(4 * mean)));
    if (count <= FEW || width > whole / 512) return;
    spans.levels.push(coarser(level, width, spans.first));
    await new Promise((done) => setTimeout(done));
  }
}

/** The level for columns of so many cycles. */
export const levelFor = (spans, width) => spans.levels.findLast((level) => level.width <= width) ?? spans.levels[0];

/** The classes of rows: main units, threads, other units, the critical path. */
export const CLASSES = 4;

/** Calls `tell(span, cycles)` for the spans of a row that share cycles with a window. */
export function within(level, row, low, high, tell) {
  for (let at = after(level, row, low); at < level.offset[row + 1] && level.start[at] < high; at++)
    tell(at, Math.min(level.end[at], high) - Math.max(level.start[at], low));
}

/** Cycles of each kind in each class of rows that lie in a window: `sums[kind * CLASSES + class]`. Exact. */
export function sumsOf(spans, low, high) {
  const level = spans.levels[0], sums = new Float64Array(spans.kinds.count * CLASSES);
  spans.rows.forEach(([, group], row) => within(level, row, low, high, (at, cycles) => { sums[level.kind[at] * CLASSES + group] += cycles; }));
  return sums;
}

/** Spans in a window of which something holds, with the longest part in it first, at most `most`; and how many. */
export function spansWhere(spans, low, high, holds, most) {
  const level = spans.levels[0], found = [];
  spans.rows.forEach(([, group], row) => within(level, row, low, high, (at, cycles) => {
    if (holds(level.kind[at], group, row, at)) found.push([row, at, cycles]);
  }));
  const count = found.length;
  return { count, longest: found.sort((a, b) => b[2] - a[2] || a[1] - b[1]).slice(0, most) };
}
