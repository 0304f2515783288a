/** The picture of the spans on a canvas: pan and zoom from the whole run to single cycles, select, choose a span. */

import { bind, colour, make, number, ticks } from "./frame.js";
import { after, levelFor, walk, within, workOutLevels } from "./spans.js";

/** Heights of rows by class, the gap below each, of the axis and of the strip over the whole run, in pixels. */
const HEIGHTS = [22, 16, 11, 22], GAP = 3, AXIS = 24, STRIP = 30;
/** Fewest cycles in view; how near the pointer a span is; a drag is longer than a click. */
const FEWEST = 8, REACH = 3, CLICK = 4;
/** Steps by which a key that is only tapped zooms or moves. */
const TAP = 4;
/** Pixels of rows that are filled within a frame on any machine: more are coarser while they move, and fine after `STILL` ms. */
const SMOOTH = 400_000, STILL = 120;
const FONT = '11px system-ui, "Segoe UI", Roboto, sans-serif';

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** A colour as a pixel of a canvas. */
function pixel(text) {
  const [red, green, blue] = text.match(/\d+/g);
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

export class View {
  /** `selected(low, high)` is called for a window, or without arguments; `chosen(row, span)` for a span. */
  constructor(spans, selected, chosen) {
    Object.assign(this, { spans, selected, chosen, low: spans.first, high: spans.last, window: null, span: null });
    this.canvas = make("canvas", { tabindex: "0", role: "img", "aria-label": `Timeline of ${number(spans.rows.length)} rows` });
    this.strip = make("canvas", { class: "strip", role: "img", "aria-label": "How busy the main units were over the whole run" });
    this.spacer = make("div");
    this.box = make("div", { class: "view", scroll: () => this.move() }, this.canvas, this.spacer);
    this.tip = make("div", { class: "tip", role: "tooltip", hidden: true });
    this.element = make("div", { class: "viewed" }, this.strip, this.box, this.tip);
    this.tops = [0];
    for (const [, group] of spans.rows) this.tops.push(this.tops.at(-1) + HEIGHTS[group] + GAP);
    this.held = new Set();
    this.listen();
  }

  /** Called once the elements are on the page. */
  async start() {
    this.resize();
    await workOutLevels(this.spans);
    this.resize();
  }

  resize() {
    [this.ratio, this.width] = [devicePixelRatio, Math.max(100, this.box.clientWidth)];
    this.left = this.width < 600 ? 104 : 132;
    const all = AXIS + this.tops.at(-1), most = Math.max(220, innerHeight * 0.62);
    this.height = Math.min(all, most);
    this.spacer.style.height = `${Math.max(0, all - this.height)}px`;
    this.box.style.maxHeight = `${most}px`;
    for (const [canvas, height] of [[this.canvas, this.height], [this.strip, STRIP]]) {
      canvas.width = Math.round(this.width * this.ratio);
      canvas.height = Math.round(height * this.ratio);
      canvas.style.height = `${height}px`;
    }
    const wide = Math.max(1, this.canvas.width - Math.round(this.left * this.ratio)), high = this.canvas.height - Math.round(AXIS * this.ratio) || 1;
    const coarse = Math.ceil(Math.sqrt((wide * high) / SMOOTH));
    this.fine = this.layer(1, wide, high);
    this.coarse = coarse > 1 ? this.layer(coarse, wide, high) : this.fine;
    this.scrolled = this.box.scrollTop;
    // colours once: each look into the style sheet costs more than a row
    this.labels = this.spans.looks.map((each) => each && [colour(each[0]), colour(each[0].startsWith("w-") ? "ink" : `${each[0]}-ink`)]);
    this.ink = Object.fromEntries(["page", "ink", "muted", "line", "accent", "mark", "area"].map((name) => [name, colour(name)]));
    this.ground = pixel(this.ink.page);
    this.ask();
  }

  /** A picture of the rows whose pixels are `grain` pixels of the canvas wide and high; `drawn` says what it shows. */
  layer(grain, wide, high) {
    const width = Math.ceil(wide / grain), height = Math.ceil(high / grain), ratio = this.ratio / grain;
    const canvas = make("canvas", { width, height }), image = new ImageData(width, height);
    const tiles = this.spans.looks.map((each) => each && this.tile(ratio, ...each));
    return { grain, ratio, canvas, image, tiles, pixels: new Uint32Array(image.data.buffer), drawn: "" };
  }

  /** A look as pixels that repeat: its fill, and the lines of its hatch. */
  tile(ratio, name, side, path) {
    const ground = pixel(colour(name));
    if (!side) return { side: 1, pixels: Uint32Array.of(ground) };
    const size = Math.max(1, Math.round(side * ratio)), canvas = make("canvas", { width: size, height: size });
    const pen = canvas.getContext("2d");
    pen.fillStyle = colour(name);
    pen.fillRect(0, 0, size, size);
    pen.scale(size / side, size / side);
    pen.strokeStyle = colour(`${name}-ink`);
    pen.stroke(new Path2D(path));
    return { side: size, pixels: new Uint32Array(pen.getImageData(0, 0, size, size).data.buffer) };
  }

  /** Draws with the next frame. */
  ask() {
    this.asked ??= requestAnimationFrame(() => {
      this.asked = undefined;
      this.draw();
    });
  }

  /** Draws what fits into a frame, and the rest once nothing has moved for a while. */
  move() {
    this.moving = true;
    this.scrolled = this.box.scrollTop;
    clearTimeout(this.still);
    this.still = setTimeout(() => {
      this.moving = false;
      this.ask();
    }, STILL);
    this.ask();
  }

  /** Puts what is in view, selected and chosen into the address, once nothing has moved for a while. */
  remember() {
    clearTimeout(this.asides);
    const parts = [["view", [this.low, this.high].map(Math.round)], ["selected", this.window], ["span", this.span]];
    const text = parts.filter(([, pair]) => pair).map(([name, pair]) => `${name}=${pair.join("-")}`).join("&");
    this.asides = setTimeout(() => history.replaceState(null, "", `#${text}`), STILL);
  }

  /** Shows what the address says, as far as it says anything. */
  recall() {
    const given = new URLSearchParams(location.hash.slice(1)), { offset } = this.spans.levels[0];
    const pair = (name) => /^\d+-\d+$/.test(given.get(name) ?? "") && given.get(name).split("-").map(Number);
    const [view, selected, span] = ["view", "selected", "span"].map(pair);
    if (selected) this.select(...selected);
    if (span && span[1] >= offset[span[0]] && span[1] < offset[span[0] + 1]) this.pick(span);
    if (view && view[1] > view[0]) this.show(...view);
  }

  x(cycle) {
    return this.left + ((cycle - this.low) / (this.high - this.low)) * (this.width - this.left);
  }

  cycle(x) {
    return this.low + ((x - this.left) / (this.width - this.left)) * (this.high - this.low);
  }

  /** Shows a window; what lies outside the run is cut off. */
  show(low, high) {
    const { first, last } = this.spans, length = this.within(high - low);
    const from = clamp((low + high - length) / 2, first, last - length);
    if (from === this.low && from + length === this.high) return;
    [this.low, this.high] = [from, from + length];
    this.move();
    this.remember();
  }

  /** The nearest length that can be shown. */
  within(length) {
    const whole = this.spans.last - this.spans.first;
    return clamp(length, Math.min(whole, FEWEST * this.spans.bin), whole);
  }

  /** Zooms about a cycle, which stays where it is. */
  zoom(wanted, at = (this.low + this.high) / 2) {
    const factor = this.within((this.high - this.low) * wanted) / (this.high - this.low);
    this.show(at - (at - this.low) * factor, at + (this.high - at) * factor);
  }

  pan(part) {
    const by = part * (this.high - this.low);
    this.show(this.low + by, this.high + by);
  }

  draw() {
    const layer = this.moving ? this.coarse : this.fine, { grain, canvas } = layer;
    this.drawRows(layer);
    const pen = this.canvas.getContext("2d", { alpha: false });
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.fillStyle = this.ink.page;
    pen.fillRect(0, 0, this.canvas.width, this.canvas.height);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(canvas, Math.round(this.left * this.ratio), Math.round(AXIS * this.ratio), canvas.width * grain, canvas.height * grain);
    pen.scale(this.ratio, this.ratio);
    pen.font = FONT;
    this.drawTexts(pen);
    this.drawMarks(pen);
    this.drawAxis(pen);
    this.drawStrip();
    Object.assign(this.canvas.dataset, { low: this.low, high: this.high });
  }

  /** Fills the pixels of all rows in view, unless they are there: a column is a pixel, a cycle or a bin. */
  drawRows(layer) {
    const { low, high, spans, scrolled } = this, { pixels, image, ratio, tiles, grain } = layer, what = `${low} ${high} ${scrolled}`;
    if (layer.drawn === what) return;
    layer.drawn = what;
    pixels.fill(this.ground);
    const wide = (this.canvas.width - Math.round(this.left * this.ratio)) / grain;
    // a column is at least a cycle or a bin, so that spans end at their edges
    const perPixel = (high - low) / wide, width = Math.max(perPixel, spans.bin), aligned = width === spans.bin;
    const origin = aligned ? spans.first + Math.floor((low - spans.first) / width) * width : low;
    const level = levelFor(spans, perPixel), column = (each) => clamp(Math.round((origin + each * width - low) / perPixel), 0, image.width);
    spans.rows.forEach(([, group], row) => {
      const top = Math.round((this.tops[row] - scrolled) * ratio), bottom = top + Math.round(HEIGHTS[group] * ratio);
      if (bottom <= 0 || top >= image.height) return;
      walk(level, row, origin, high, origin, width, (at, used, shares) => {
        const from = column(at), to = Math.max(column(at + 1), from + 1);
        let sum = 0, base = bottom;
        for (const look of used) {
          sum += shares[look];
          // work that is there has a pixel, however short it is
          const upper = Math.max(top, Math.min(base - 1, Math.round(bottom - Math.min(sum, 1) * (bottom - top))));
          if (tiles[look]) this.fill(layer, from, to, Math.max(0, upper), Math.min(base, image.height), tiles[look]);
          base = upper;
        }
      });
    });
    layer.canvas.getContext("2d", { alpha: false }).putImageData(image, 0, 0);
  }

  fill({ pixels, image: { width } }, from, to, top, bottom, { side, pixels: tile }) {
    if (side === 1 && to - from > 16) {
      for (let y = top; y < bottom; y++) pixels.fill(tile[0], y * width + from, y * width + to);
      return;
    }
    for (let y = top, line = top * width, pattern = (top % side) * side; y < bottom; y++, line += width) {
      for (let x = line + from, end = line + to, at = from % side; x < end; x++) {
        pixels[x] = tile[pattern + at];
        if (++at === side) at = 0;
      }
      pattern += side;
      if (pattern === tile.length) pattern = 0;
    }
  }

  /** Names of rows, lines between them, and names of work where there is room. */
  drawTexts(pen) {
    const { spans } = this, level = spans.levels[0], roomy = (this.high - this.low) / (this.width - this.left) < 4 * spans.mean;
    spans.rows.forEach(([name, group], row) => {
      const top = AXIS + this.tops[row] - this.scrolled, middle = top + HEIGHTS[group] / 2 + 4;
      if (top > this.height || top + HEIGHTS[group] < AXIS) return;
      pen.fillStyle = this.ink.muted;
      pen.textAlign = "right";
      pen.fillText(name, this.left - 6, middle, this.left - 8);
      pen.fillStyle = this.ink.line;
      pen.fillRect(this.left, top + HEIGHTS[group] + 1, this.width - this.left, 0.5);
      if (!roomy || group === 2 || spans.bin > 1) return;
      pen.textAlign = "center";
      pen.lineWidth = 3;
      pen.lineJoin = "round";
      within(level, row, this.low, this.high, (at) => {
        const from = Math.max(this.left, this.x(level.start[at])), to = Math.min(this.width, this.x(level.end[at]));
        const look = this.labels[level.look[at]];
        if (to - from <= 46 || !look) return;
        [pen.strokeStyle, pen.fillStyle] = look;
        for (const write of ["strokeText", "fillText"]) pen[write](spans.label(at, (to - from) / 6.2), (from + to) / 2, middle);
      });
    });
  }

  /** The selected window and the chosen span. */
  drawMarks(pen) {
    if (this.window) {
      const from = Math.max(this.left, this.x(this.window[0])), to = Math.min(this.width, this.x(this.window[1]));
      // beside the axis: rows keep the colours of the legend
      pen.fillStyle = this.ink.accent;
      pen.fillRect(from, AXIS - 3, Math.max(0, to - from), 3);
      for (const edge of this.window.map((each) => this.x(each))) if (edge >= this.left) pen.fillRect(edge - 0.75, 0, 1.5, this.height);
    }
    if (!this.span) return;
    const [row, at] = this.span, level = this.spans.levels[0];
    const from = Math.max(this.left, this.x(level.start[at])), to = Math.min(this.width, this.x(level.end[at]));
    if (to < this.left || from > this.width) return;
    pen.strokeStyle = this.ink.mark;
    pen.lineWidth = 2;
    pen.strokeRect(from - 1, AXIS + this.tops[row] - this.scrolled - 1, Math.max(3, to - from + 2), HEIGHTS[this.spans.rows[row][1]] + 2);
  }

  drawAxis(pen) {
    pen.fillStyle = this.ink.page;
    pen.fillRect(0, 0, this.left, AXIS - 2);
    pen.fillRect(0, 0, this.width, AXIS - 4);
    pen.fillStyle = this.ink.muted;
    pen.textAlign = "center";
    for (const tick of ticks(this.low, this.high, Math.max(2, (this.width - this.left) / 100), 1)) {
      const x = this.x(tick);
      pen.fillRect(x - 0.5, AXIS - 6, 1, 5);
      pen.fillText(number(tick), clamp(x, this.left, this.width - 24), 12);
    }
    pen.textAlign = "left";
    pen.fillText(`${number(Math.round(this.high - this.low))} cycles`, 2, 12, this.left - 4);
  }

  /** The pixel of a cycle in the strip, which begins where rows do. */
  stripped(cycle) {
    const { first, last } = this.spans, left = this.left * this.ratio;
    return left + ((cycle - first) / (last - first)) * (this.strip.width - left);
  }

  /** The strip: of each window of the run the share in which main units work, pale where it is not in view. */
  drawStrip() {
    const pen = this.strip.getContext("2d", { alpha: false }), { width, height } = this.strip, [edges, shares] = this.spans.use;
    const at = edges.map((cycle) => Math.round(this.stripped(cycle))), from = this.stripped(this.low), to = this.stripped(this.high);
    pen.fillStyle = this.ink.page;
    pen.fillRect(0, 0, width, height);
    pen.fillStyle = this.ink.area;
    shares.forEach((share, window) => pen.fillRect(at[window], height * (1 - share / 1000), Math.max(1, at[window + 1] - at[window]), height));
    pen.globalAlpha = 0.65;
    pen.fillStyle = this.ink.page;
    pen.fillRect(0, 0, from, height);
    pen.fillRect(to, 0, width - to, height);
    pen.globalAlpha = 1;
    pen.strokeStyle = this.ink.accent;
    pen.lineWidth = 2 * this.ratio;
    pen.strokeRect(from, 1, Math.max(2, to - from), height - 2);
  }

  /** The span at a place, or the nearest; null: there is none, undefined: there is no row. */
  near(x, y) {
    const at = y - AXIS + this.box.scrollTop, row = this.tops.findLastIndex((top) => top <= at);
    if (row < 0 || row >= this.spans.rows.length || x < this.left) return undefined;
    const level = this.spans.levels[0], low = this.cycle(x - REACH), high = this.cycle(x + REACH), exact = this.cycle(x);
    let best = -1, far = Infinity;
    within(level, row, low, high, (each) => {
      const away = Math.max(level.start[each] - exact, exact - level.end[each], 0);
      if (away < far) [best, far] = [each, away];
    });
    return best < 0 ? null : [row, best];
  }

  /** Says beside the pointer what the span there is. */
  hover({ offsetX: x, offsetY: y }) {
    const span = this.near(x, y);
    this.tip.hidden = !span;
    if (!span) return;
    this.tip.textContent = this.spans.hint(...span);
    const left = Math.min(x + 12, this.width - this.tip.offsetWidth), top = this.canvas.offsetTop - this.box.scrollTop + this.box.offsetTop;
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${top + y + 16}px`;
  }

  /** Chooses a span, and brings it into view if it is outside. */
  pick(span, into = false) {
    this.span = span;
    if (span && into) {
      const [row, at] = span, { start, end } = this.spans.levels[0], length = end[at] - start[at];
      if (start[at] < this.low || end[at] > this.high || this.x(end[at]) - this.x(start[at]) < 12) this.show(start[at] - 8 * length, end[at] + 8 * length);
      const top = this.tops[row] - this.box.scrollTop;
      if (top < 0 || top > this.height - AXIS - 30) this.box.scrollTop = this.tops[row] - this.height / 2;
    }
    this.chosen(span);
    this.remember();
    this.ask();
  }

  /** Selects whole cycles, or whole bins; without arguments nothing. */
  select(low, high) {
    const { first, last, bin } = this.spans;
    const edge = (cycle) => clamp(first + Math.round((cycle - first) / bin) * bin, first, last);
    this.window = low === undefined || edge(low) === edge(high) ? null : [edge(low), edge(high)].sort((a, b) => a - b);
    this.selected(this.window);
    this.remember();
    this.ask();
  }

  listen() {
    const pointers = new Map();
    let pressed = null;
    const spread = () => {
      const xs = [...pointers.values()];
      return { middle: (xs[0] + xs[1]) / 2, apart: Math.max(20, Math.abs(xs[0] - xs[1])) };
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, event.offsetX);
      this.canvas.setPointerCapture(event.pointerId);
      const pans = event.shiftKey || event.button === 1 || event.pointerType === "touch" || event.offsetX < this.left;
      pressed = { x: event.offsetX, y: event.offsetY, low: this.low, high: this.high, pans, moved: false };
      if (pointers.size === 2) pressed = { ...pressed, ...spread(), moved: true };
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!pressed || !pointers.has(event.pointerId)) return this.hover(event);
      this.tip.hidden = true;
      pointers.set(event.pointerId, event.offsetX);
      pressed.moved ||= Math.abs(event.offsetX - pressed.x) > CLICK;
      if (!pressed.moved) return;
      const perPixel = (pressed.high - pressed.low) / (this.width - this.left);
      if (pointers.size === 2 && pressed.apart) {
        const now = spread(), factor = pressed.apart / now.apart, at = pressed.low + (pressed.middle - this.left) * perPixel;
        const low = at - (now.middle - this.left) * perPixel * factor;
        this.show(low, low + (pressed.high - pressed.low) * factor);
      } else if (pressed.pans) {
        const by = (pressed.x - event.offsetX) * perPixel;
        this.show(pressed.low + by, pressed.high + by);
      } else this.select(this.cycle(pressed.x), this.cycle(Math.max(this.left, event.offsetX)));
    });
    for (const type of ["pointerup", "pointercancel"]) this.canvas.addEventListener(type, (event) => {
      pointers.delete(event.pointerId);
      const span = pressed && !pressed.moved && type === "pointerup" ? this.near(event.offsetX, event.offsetY) : undefined;
      if (span !== undefined) this.pick(span);
      if (!pointers.size) pressed = null;
    });
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(clamp(event.deltaY, -100, 100) / 250), this.cycle(event.offsetX));
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) / 1000);
      else return;
      event.preventDefault();
    }, { passive: false });
    for (const type of ["pointerdown", "pointermove"]) this.strip.addEventListener(type, (event) => {
      if (!event.buttons) return;
      const { first, last } = this.spans, half = (this.high - this.low) / 2;
      const at = first + ((event.offsetX - this.left) / (this.width - this.left)) * (last - first);
      this.show(at - half, at + half);
    });
    this.keys();
    addEventListener("resize", () => this.resize());
    addEventListener("theme", () => this.width && this.resize());
  }

  /** Keys move the picture at once, and as long as they are held at one speed, however often the screen is drawn. */
  keys() {
    const moves = {
      w: ["zoom in", (steps) => this.zoom(0.94 ** steps)], s: ["zoom out", (steps) => this.zoom(0.94 ** -steps)],
      a: ["go left", (steps) => this.pan(-0.03 * steps)], d: ["go right", (steps) => this.pan(0.03 * steps)] };
    const go = (before) => requestAnimationFrame((now) => {
      // a step for each 60th of a second
      for (const key of this.held) moves[key][1](0.06 * Math.min(100, Math.max(0, now - before)));
      if (this.held.size) go(now);
    });
    for (const [key, [help, move]] of Object.entries(moves))
      bind(key, help, () => {
        if (this.held.has(key)) return;
        if (!this.held.size) go(performance.now());
        this.held.add(key);
        move(TAP);
      });
    // a key that was pressed without Shift may be let go with it
    addEventListener("keyup", (event) => this.held.delete(event.key.toLowerCase()));
    addEventListener("blur", () => this.held.clear());
    bind("0", "the whole run", () => this.show(this.spans.first, this.spans.last));
    bind("f", "the selected window, or the chosen span, as large as the picture", () => this.focus());
    bind("ArrowRight", "the first span in view, then the next one of the row", () => this.step(1));
    bind("ArrowLeft", "the span before", () => this.step(-1));
    bind("Escape", "nothing selected and nothing chosen", () => { this.select(); this.pick(null); });
  }

  focus() {
    const { start, end } = this.spans.levels[0];
    if (this.window) this.show(...this.window);
    else if (this.span) this.show(start[this.span[1]], end[this.span[1]]);
  }

  step(by) {
    if (!this.span) return this.pick(this.firstInView());
    const [row, at] = this.span, { offset } = this.spans.levels[0];
    this.pick([row, clamp(at + by, offset[row], offset[row + 1] - 1)], true);
  }
  /** The first span in view of the first row that has one there; null: none. */
  firstInView() {
    const level = this.spans.levels[0], rows = this.spans.rows.map((_, row) => [row, after(level, row, this.low)]);
    return rows.find(([row, at]) => this.tops[row] >= this.box.scrollTop && at < level.offset[row + 1] && level.start[at] < this.high) ?? null;
  }
}
