/** What every page does: elements made of texts that stay texts, data of the page, keys, theme, help. */

export const root = document.documentElement;
const SHAPES = new Set(["svg", "g", "circle", "line", "polyline", "rect", "text", "title"]);

/**
 * Makes an element. Values of `values` are attributes, or functions that listen; a child that is a text stays a text,
 * and null is no child. Nothing on a page is ever made of markup.
 */
export function make(tag, values = {}, ...children) {
  const element = SHAPES.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(values)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((each) => each !== null));
  return element;
}

/** The plain data that the page holds under a name; null if there are none. */
export function data(name) {
  const element = document.getElementById(`data-${name}`);
  return element && JSON.parse(element.textContent);
}

const wholes = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const digits = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4 });

/** A whole number with commas; another one with up to four digits. */
export function number(value) {
  return (Number.isInteger(value) || Math.abs(value) >= 10000 ? wholes : digits).format(value);
}

/** A share of a whole in percent; a part that is there never reads as 0. */
export function percent(part, whole) {
  if (!part || !whole) return "–";
  const share = (100 * part) / whole;
  return share >= 0.05 ? `${share.toFixed(1)} %` : "<0.1 %";
}

const probe = make("i", { hidden: true });

/** A colour of the style sheet as the page shows it now: the value of a custom property, as `rgb(…)`. */
export function colour(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

/** Round numbers for an axis, so many at most, and `least` apart. */
export function ticks(low, high, most, least = 0) {
  const power = 10 ** Math.floor(Math.log10((high - low) / most));
  const step = Math.max(least, [1, 2, 5, 10].map((each) => each * power).find((each) => (high - low) / each <= most));
  const first = Math.ceil(low / step), last = Math.floor((high / step) * (1 + 1e-12));
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

const keys = new Map();

/** Lets a key do something, and lists it in the help. */
export function bind(key, help, action) {
  keys.set(key, { help, action });
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);

function themed() {
  themeButton.textContent = isDark() ? "Light" : "Dark";
  // whoever draws by hand listens
  dispatchEvent(new Event("theme"));
}

function switchTheme() {
  root.dataset.theme = isDark() ? "light" : "dark";
  themed();
}

function help() {
  const list = [...keys].flatMap(([key, each]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, each.help)]);
  const dialog = make("dialog", { "aria-label": "Keys", close: () => dialog.remove() },
    make("h2", {}, "Keys"), make("dl", {}, ...list), make("button", { click: () => dialog.close() }, "Close"));
  document.body.append(dialog);
  dialog.showModal();
}

/** Whether keys go to a field that is being filled in. */
const typing = (target) => target instanceof Element && target.closest("input, select, textarea, dialog") !== null;

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const known = keys.get(event.key);
  // space and Enter press the button that has the focus
  if (!known || (event.target instanceof HTMLButtonElement && event.key === "Enter")) return;
  event.preventDefault();
  known.action(event);
});

const themeButton = make("button", { click: switchTheme, id: "theme", title: "Change between a light and a dark page" });
const helpButton = make("button", { click: help, title: "Keys of this page" }, "Keys ?");
document.querySelector("header").prepend(make("div", { class: "tools", role: "group", "aria-label": "This page" }, themeButton, helpButton, probe));
root.classList.add("scripted");
bind("?", "this help", help);
bind("t", "light or dark", switchTheme);
dark.addEventListener("change", themed);
themed();
