// Small figures in SVG: axes with round numbers, lines and marks; each mark says its values when pointed at.

import { draw, make, number, swatch } from "./dom.js";

const ROUND = "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z";

export const ticks = (low, high, many = 4) => {
  const span = high - low || 1;
  const rough = span / many;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((x) => x * power).find((x) => x >= rough) ?? power;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) found.push(Number(at.toPrecision(12)));
  return found;
};

// A frame with axes; gives the SVG and the functions from values to places.
export const frame = ({ width = 300, height = 200, x, y, xName, yName, title, left = 42 }) => {
  const box = { left, right: width - 12, top: 12, bottom: height - 38 };
  const put = ([low, high], from, to) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);
  const px = put(x, box.left, box.right);
  const py = put(y, box.bottom, box.top);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": title, class: "chart" });
  for (const value of ticks(...y)) {
    svg.append(draw("line", { x1: box.left, x2: box.right, y1: py(value), y2: py(value), class: "grid" }),
      draw("text", { x: box.left - 6, y: py(value) + 3.5, class: "tick end" }, number(value)));
  }
  for (const value of ticks(...x)) {
    svg.append(draw("line", { x1: px(value), x2: px(value), y1: box.bottom, y2: box.bottom + 4, class: "grid" }),
      draw("text", { x: px(value), y: box.bottom + 16, class: "tick middle" }, number(value)));
  }
  svg.append(
    draw("text", { x: (box.left + box.right) / 2, y: height - 4, class: "axis middle" }, xName),
    draw("text", { x: 11, y: (box.top + box.bottom) / 2, class: "axis middle", transform: `rotate(-90 11 ${(box.top + box.bottom) / 2})` }, yName));
  // The value at a place of the pointer, along x.
  const valueAt = (event) => {
    const shown = svg.getBoundingClientRect();
    const at = ((event.clientX - shown.left) * width) / shown.width;
    return x[0] + ((at - box.left) / (box.right - box.left)) * (x[1] - x[0]);
  };
  return { svg, px, py, box, valueAt };
};

// What a mark says, beside it, at once: when it is pointed at and when it has the focus. Escape puts it away.
const tip = make("div", { class: "tip", "aria-hidden": "true", hidden: true });
export const showTip = (text, { left, top, width }) => {
  if (!tip.isConnected) document.body.append(tip);
  tip.textContent = text;
  tip.hidden = false;
  const own = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(left + width / 2 - own.width / 2, innerWidth - own.width - 4))}px`;
  tip.style.top = `${top - own.height - 8 < 0 ? top + 24 : top - own.height - 8}px`;
};
export const hideTip = () => { tip.hidden = true; };
const told = (event) => {
  const one = event.target.closest?.(".mark");
  if (one) showTip(one.getAttribute("aria-label"), one.getBoundingClientRect());
};
for (const kind of ["pointerover", "focusin"]) addEventListener(kind, told);
for (const kind of ["pointerout", "focusout"]) addEventListener(kind, (event) => { if (event.target.closest?.(".mark")) hideTip(); });
addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
addEventListener("scroll", hideTip, true);

export const line = (points, { colour, dashed = false, width = 2 }) =>
  draw("polyline", {
    points: points.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join(" "),
    fill: "none", "--c": colour, class: "line", "stroke-width": width, "stroke-dasharray": dashed ? "4 4" : null,
  });

// A mark can be reached by the keyboard, says its values, and may do something when it is clicked.
export const mark = (at, { colour, path = ROUND, says, big = false, hollow = false, act = null, key = null }) =>
  draw("path", {
    d: path, transform: `translate(${at[0].toFixed(1)} ${at[1].toFixed(1)}) scale(${big ? 1.6 : 1})`,
    "--c": colour, class: `mark${hollow ? " hollow" : ""}${act ? " act" : ""}`, tabindex: act ? "0" : "-1", role: act ? "button" : "img", "aria-label": says, "data-key": key,
    onclick: act ?? (() => {}),
    onkeydown: (event) => {
      if (act && (event.key === "Enter" || event.key === " ")) {
        event.preventDefault();
        act();
      }
      walk(event);
    },
  });

// Arrow keys go from mark to mark; one of them is a stop of Tab.
const walk = (event) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const all = [...event.currentTarget.ownerSVGElement.querySelectorAll(".mark")];
  const next = all[(all.indexOf(event.currentTarget) + step + all.length) % all.length];
  all.forEach((one) => one.setAttribute("tabindex", one === next ? "0" : "-1"));
  next.focus();
};
export const oneStop = (svg) => [...svg.querySelectorAll(".mark")].forEach((one, i) => one.setAttribute("tabindex", i ? "-1" : "0"));

export const legend = (oracles) => make("ul", { class: "legend" }, oracles.map((one) => make("li", {}, swatch(one), one.oracle)));
