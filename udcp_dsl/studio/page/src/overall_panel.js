// All rows: cost against coverage, the slider of alpha, coverage by quarter of difficulty, before and after an edit.

import { change, offline } from "./connection.js";
import { frame, line, mark, shape } from "./charts.js";
import { draw, listed, make, name, number, percent, refill, signed } from "./dom.js";

export class OverallPanel {
  constructor(parent) {
    this.alpha = make("input", { type: "range", min: 0.01, max: 0.5, step: 0.01, "aria-label": "Alpha: the share of truths that may be missed", disabled: offline, oninput: () => {
      this.level.textContent = Number(this.alpha.value).toFixed(2);
      change({ alpha: Number(this.alpha.value).toFixed(2) });
    } });
    this.level = make("output");
    this.about = make("p", { class: "muted small" });
    this.table = make("table", { class: "overall" });
    this.cost = make("figure");
    this.quarters = make("figure");
    this.changed = make("div", { class: "changed", "aria-live": "polite" });
    parent.append(
      make("label", { class: "alpha" }, "alpha ", this.alpha, this.level), this.about,
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All rows, by oracle" }, this.table),
      this.changed, make("div", { class: "pair" }, this.cost, this.quarters));
  }

  show(views, state) {
    if (views.labels) this.labels = views.labels.labels;
    if (views.spec?.ok) this.applies = Object.fromEntries(views.spec.oracles.map((x) => [x.name, x.applies]));
    if (views.state && document.activeElement !== this.alpha) {
      this.alpha.value = state.alpha;
      this.level.textContent = state.alpha_text;
    }
    if (!views.overall) return;
    const data = views.overall;
    this.target = 1 - state.alpha;
    this.about.textContent = `${data.about}: thresholds from ${data.calibration.toLocaleString("en")}, what is shown from the other ${data.rows.toLocaleString("en")}.${data.repair ? ` Probabilities: ${data.repair}.` : ""}`;
    this.showTable(data);
    this.showCost(data);
    this.showQuarters(data);
    this.showChange(data.change);
  }

  showTable(data) {
    const rows = data.oracles.map((x) => make("tr", {},
      make("th", { scope: "row" }, make("span", { class: "swatch", "--c": `var(${x.colour})` }), x.oracle, x.warnings.length ? make("span", { class: "warned", title: x.warnings.join("\n"), role: "img", "aria-label": x.warnings.join(" ") }, " !") : ""),
      make("td", {}, number(x.cost)), make("td", {}, number(x.size)), make("td", {}, percent(x.coverage))));
    // Why one does not apply is told among the oracles of the spec.
    const missing = Object.entries(data.missing).filter(([oracle]) => this.applies?.[oracle] !== false).map(([oracle, why]) => make("tr", { class: "muted" }, make("th", { scope: "row" }, oracle), make("td", { colspan: 3, class: "small left" }, why)));
    refill(this.table, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "oracle"), make("th", { scope: "col" }, "mean cost"), make("th", { scope: "col" }, "mean size"), make("th", { scope: "col" }, "covered"))), make("tbody", {}, rows, missing));
  }

  showCost(data) {
    const points = data.oracles.flatMap((x) => x.curve);
    this.cost.hidden = points.length === 0;
    if (!points.length) return;
    const costs = points.map(([, , cost]) => cost);
    const covered = points.map(([, coverage]) => coverage);
    const x = [Math.min(...covered) - 0.01, Math.min(1, Math.max(...covered) + 0.01)];
    const y = [Math.min(0, ...costs), Math.max(...costs) * 1.05];
    const { svg, px, py, box } = frame({ x, y, xName: "coverage", yName: "mean cost", title: "Mean cost against coverage, by oracle" });
    svg.append(draw("line", { x1: px(this.target), x2: px(this.target), y1: box.top, y2: box.bottom, class: "target" }));
    for (const one of data.oracles) {
      const colour = `var(${one.colour})`;
      svg.append(line(one.curve.map(([, coverage, cost]) => [px(coverage), py(cost)]), { colour }));
      for (const [alpha, coverage, cost] of one.curve) {
        svg.append(mark([px(coverage), py(cost)], { colour, path: shape(one.oracle), says: `${one.oracle}, alpha ${alpha}: covers ${percent(coverage)}, costs ${number(cost)}` }));
      }
    }
    refill(this.cost, make("h3", {}, "Cost against coverage"), svg, make("figcaption", {}, "Lower is cheaper, at the same coverage; the line is the coverage that is asked for."));
  }

  showQuarters(data) {
    const main = data.oracles.find((x) => x.oracle === data.main) ?? data.oracles[0];
    const many = main.quarters.length;
    const lows = data.oracles.flatMap((x) => x.quarters.map((q) => q.coverage));
    const low = Math.min(this.target, ...lows, ...main.quarters.map((q) => q.interval[0]));
    const { svg, px, py, box } = frame({ x: [0.5, many + 0.5], y: [Math.max(0, low - 0.05), 1.01], xName: "quarters of the rows, the hardest first", yName: "coverage", title: "Coverage by quarter of difficulty" });
    svg.querySelectorAll(".tick.middle").forEach((tick) => { if (!Number.isInteger(Number(tick.textContent))) tick.remove(); });
    svg.append(draw("line", { x1: box.left, x2: box.right, y1: py(this.target), y2: py(this.target), class: "target" }));
    data.oracles.forEach((one, k) => {
      const colour = `var(${one.colour})`;
      one.quarters.forEach((q, i) => {
        const at = px(i + 1 + (k - (data.oracles.length - 1) / 2) * 0.13);
        svg.append(draw("line", { x1: at, x2: at, y1: py(Math.max(0, q.interval[0])), y2: py(q.interval[1]), "--c": colour, class: "whisker" }),
          mark([at, py(q.coverage)], { colour, path: shape(one.oracle), says: `${one.oracle}, highest p ${q.name}: covers ${percent(q.coverage)} of ${q.n} rows (95 %: ${percent(q.interval[0])} to ${percent(q.interval[1])}), costs ${number(q.cost)}` }));
      });
    });
    refill(this.quarters, make("h3", {}, "Coverage by difficulty"), svg, make("figcaption", {}, "Rows by their highest probability, with exact 95 % intervals."));
  }

  showChange(data) {
    if (!data || !this.labels) {
      this.changed.replaceChildren();
      return;
    }
    const names = (places) => places.map((y) => this.labels[y] ?? "?");
    const lines = data.listed.map((one) => make("li", {},
      make("button", { type: "button", class: "quiet", disabled: offline, "data-key": `changed ${one.row}`, onclick: () => change({ row: one.row }) }, `row ${one.row + 1}`),
      one.entered.length ? [" now holds ", make("b", {}, name(listed(names(one.entered), 4)))] : "",
      one.entered.length && one.left.length ? ", and" : "",
      one.left.length ? [" no longer ", make("s", {}, name(listed(names(one.left), 4)))] : "",
      make("span", { class: "muted" }, ` (saves ${number(one.saved)})`)));
    const told = `${data.changed} of ${data.rows} rows have another set by ${data.oracle}. Mean cost ${number(data.cost_before)} → ${number(data.cost_after)} by each spec's own measure; by the new one the old sets would cost ${number(data.cost_after + data.saved)}, so ${number(data.saved)} a row is saved. Coverage ${percent(data.coverage_before)} → ${percent(data.coverage_after)}, size ${number(data.size_before)} → ${number(data.size_after)} (${signed(data.size_after - data.size_before)}).`;
    const open = this.changed.querySelector("details")?.open;
    refill(this.changed, make("h3", {}, "Before and after the last edit"), make("p", {}, told),
      lines.length ? make("details", { open }, make("summary", { "data-key": "changed rows" }, `The rows that changed${data.changed > lines.length ? `, the first ${lines.length}` : ""}`), make("ul", {}, lines)) : "");
  }
}
