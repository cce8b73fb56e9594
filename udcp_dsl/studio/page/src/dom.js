// Elements and numbers. Every text of the user's goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

const fill = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("--")) element.style.setProperty(name, value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && (name === "checked" || name === "disabled" || name === "value")) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
};

export const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
export const name = (text) => make("bdi", {}, text);

export const number = (value) => {
  if (value === null || value === undefined) return "∞";
  const size = Math.abs(value);
  if (size >= 1000 && size < 1e9) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(size >= 100 ? 4 : 3)));
};
// A number that was typed, or shown by `number` and left as it is; NaN where it is none.
export const typed = (text) => (text.trim() === "" ? NaN : Number(text.replaceAll(",", "")));
export const signed = (value) => (value > 0 ? `+${number(value)}` : value < 0 ? `−${number(-value)}` : "0");
export const percent = (share) => `${(100 * share).toFixed(1)} %`;
// A share that was asked for, which has no more digits than it needs.
export const asked = (share) => `${Number((100 * share).toPrecision(6))} %`;
export const chance = (p) => (p > 0 && p < 0.0005 ? "< 0.001" : p.toFixed(3));
export const listed = (labels, most = 6) =>
  labels.slice(0, most).join(", ") + (labels.length > most ? ` and ${labels.length - most} more` : "");
export const braces = (labels, most = 6) => (labels.length ? `{ ${listed(labels, most)} }` : "{ }");

// The unit of costs, of the loss that is chosen: `loss triage in hours = ...`.
let unit = null;
export const setUnit = (now) => { unit = now ?? null; };
export const unitNow = () => unit;
export const inUnit = (text) => (unit ? `${text} (${unit})` : text);
export const cost = (value) => (unit ? `${number(value)} ${unit}` : number(value));

// The mark of an oracle: its colour and its shape, as in the charts.
export const swatch = ({ colour, mark } = {}) =>
  draw("svg", { viewBox: "-6 -6 12 12", class: "swatch", "aria-hidden": "true", "--c": colour ? `var(${colour})` : "var(--muted)" }, draw("path", { d: mark ?? "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z" }));

let last = 0;
export const unique = (lead) => `${lead}-${(last += 1)}`;

// Replaces what an element holds, and gives the focus back to what had it, by its key.
export const refill = (element, ...children) => {
  const key = document.activeElement && element.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  element.replaceChildren(...children.flat().filter(Boolean));
  if (key) element.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
};
