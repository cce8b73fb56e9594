// Small figures in SVG: axes with round numbers, lines and marks; each mark says its values when pointed at.

import { draw, number } from "./dom.js";

const SHAPES = {
  price: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
  greedy: "M-3.6-3.6h7.2v7.2h-7.2z",
  penalized: "M0-4.6L4.4 3.4H-4.4z",
  ratio: "M0-5L4.4 0L0 5L-4.4 0z",
  base: "M0 4.6L4.4-3.4H-4.4z",
  lac: "M-1.4-4.4h2.8v3h3v2.8h-3v3h-2.8v-3h-3v-2.8h3z",
};
export const shape = (oracle) => SHAPES[oracle] ?? SHAPES.price;

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
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title, class: "chart" });
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
  return { svg, px, py, box };
};

export const line = (points, { colour, dashed = false, width = 2 }) =>
  draw("polyline", {
    points: points.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join(" "),
    fill: "none", "--c": colour, class: "line", "stroke-width": width, "stroke-dasharray": dashed ? "4 4" : null,
  });

export const mark = (at, { colour, path = SHAPES.price, says, big = false, hollow = false }) =>
  draw("path", {
    d: path, transform: `translate(${at[0].toFixed(1)} ${at[1].toFixed(1)}) scale(${big ? 1.6 : 1})`,
    "--c": colour, class: hollow ? "mark hollow" : "mark",
  }, draw("title", {}, says));
