// All rows: cost against coverage, coverage by quarter of difficulty, before and after an edit.

import { change, offline } from "./connection.js";
import { frame, hideTip, legend, line, mark, oneStop, showTip } from "./charts.js";
import { asked, cost, draw, inUnit, listed, make, name, number, percent, refill, signed, swatch } from "./dom.js";

export class OverallPanel {
  constructor(parent) {
    this.about = make("p", { class: "muted small" });
    this.table = make("table", { class: "overall", "aria-describedby": "overall-note" });
    this.note = make("p", { class: "muted small", id: "overall-note" }, "Costs at the same coverage are read off the curve below; intervals are of 95 %. Greyed: the coverage differs from the target by more than chance.");
    this.cost = make("figure");
    this.quarters = make("figure");
    this.changed = make("div", { class: "changed", id: "changed", tabindex: "-1" });
    parent.append(
      this.about,
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "All rows, by oracle" }, this.table),
      this.note, this.changed, make("div", { class: "pair" }, this.cost, this.quarters));
  }

  show(views, state) {
    if (views.labels) this.labels = views.labels.labels;
    if (views.spec?.ok) this.applies = Object.fromEntries(views.spec.oracles.map((x) => [x.name, x.applies]));
    if (!views.overall) return;
    const data = views.overall;
    this.target = data.target;
    this.places = data.places;
    this.about.textContent = `${data.about}: thresholds from ${data.calibration.toLocaleString("en")}, what is shown from the other ${data.rows.toLocaleString("en")}.${data.repair ? ` Probabilities: ${data.repair}.` : ""}`;
    this.showTable(data);
    this.showCost(data);
    this.showQuarters(data);
    this.showChange(data.change);
  }

  showTable(data) {
    const misses = (x) => x.interval[0] > this.target || x.interval[1] < this.target;
    const hundred = (share) => (100 * share).toFixed(1);
    const range = (text) => make("span", { class: "muted small range" }, text);
    const rows = data.oracles.map((x) => make("tr", { class: misses(x) ? "misses" : "" },
      make("th", { scope: "row" }, swatch(x), x.oracle, x.warnings.length ? make("span", { class: "warned", title: x.warnings.join("\n"), role: "img", "aria-label": x.warnings.join(" ") }, " !") : ""),
      make("td", {}, x.matched ? [number(x.matched[0]), range(`${number(x.matched[1])} to ${number(x.matched[2])}`)] : "–"),
      make("td", {}, hundred(x.coverage), range(x.interval.map(hundred).join(" to "))),
      make("td", {}, x.quarters.length ? hundred(x.quarters[0].coverage) : "–"),
      make("td", {}, number(x.cost)), make("td", {}, number(x.size))));
    // Why one does not apply is told among the oracles of the spec.
    const missing = Object.entries(data.missing).filter(([oracle]) => this.applies?.[oracle] !== false).map(([oracle, why]) => make("tr", { class: "muted" }, make("th", { scope: "row" }, oracle), make("td", { colspan: 5, class: "small left" }, why)));
    const heads = ["oracle", inUnit(`cost at ${asked(this.target)} coverage`), "% covered", "% of hardest quarter", inUnit("mean cost"), "mean size"];
    refill(this.table, make("caption", { class: "small muted" }, "All rows, by oracle"),
      make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, rows, missing));
  }

  showCost(data) {
    const points = data.oracles.flatMap((x) => x.curve);
    // While it is worked out anew the figure stays, greyed.
    this.cost.classList.toggle("stale", points.length === 0);
    if (!points.length) return;
    const costs = points.map((point) => point[2]);
    const covered = points.map((point) => point[1]);
    const x = [Math.min(...covered) - 0.01, Math.min(1, Math.max(...covered) + 0.01)];
    const y = [Math.min(0, ...costs), Math.max(...costs) * 1.05];
    const { svg, px, py, box, valueAt } = frame({ x, y, xName: "coverage", yName: inUnit("mean cost"), title: "Mean cost against coverage, by oracle. Arrow keys go from mark to mark; Enter sets alpha" });
    svg.append(draw("line", { x1: px(this.target), x2: px(this.target), y1: box.top, y2: box.bottom, class: "target" }));
    for (const one of data.oracles) {
      const colour = `var(${one.colour})`;
      svg.append(line(one.curve.map(([, coverage, cost]) => [px(coverage), py(cost)]), { colour }));
      for (const [alpha, coverage, at, worth] of one.curve) {
        const valued = worth === null ? "" : `, a miss is valued at ${cost(worth)}`;
        svg.append(mark([px(coverage), py(at)], {
          colour, path: one.mark, key: `curve ${one.oracle} ${alpha}`, says: `${one.oracle}, alpha ${alpha}: covers ${percent(coverage)}, costs ${cost(at)}${valued}${offline ? "" : "; click to set this alpha"}`,
          act: offline ? null : () => change({ alpha: String(alpha) }),
        }));
      }
    }
    oneStop(svg);
    if (!offline) {
      // Between marks the alpha is that of the coverage which is pointed at.
      const levelAt = (event) => Math.min(0.5, Math.max(0.01, 1 - valueAt(event))).toFixed(2);
      svg.classList.add("act");
      svg.addEventListener("click", (event) => { if (!event.target.closest(".mark")) change({ alpha: levelAt(event) }); });
      svg.addEventListener("pointermove", (event) => {
        if (!event.target.closest(".mark")) showTip(`click: alpha ${levelAt(event)}`, { left: event.clientX, top: event.clientY, width: 0 });
      });
      svg.addEventListener("pointerleave", hideTip);
    }
    refill(this.cost, make("h3", {}, "Cost against coverage"), svg, legend(data.oracles), make("figcaption", {}, `Lower is cheaper, at the same coverage; the dotted line is the target.${offline ? "" : " A click in the figure sets alpha."}`));
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
          mark([at, py(q.coverage)], { colour, path: one.mark, says: `${one.oracle}, highest p ${q.name}: covers ${percent(q.coverage)} of ${q.n} rows (95 %: ${percent(q.interval[0])} to ${percent(q.interval[1])}), costs ${cost(q.cost)}` }));
      });
    });
    oneStop(svg);
    refill(this.quarters, make("h3", {}, "Coverage by difficulty"), svg, legend(data.oracles), make("figcaption", {}, "Rows by their highest probability, with exact 95 % intervals."));
  }

  showChange(data) {
    if (!data || !this.labels) {
      this.changed.replaceChildren();
      return;
    }
    const names = (places) => places.map((y) => this.labels[y] ?? "?");
    const lines = data.listed.map((one) => make("li", {},
      make("button", { type: "button", class: "quiet", disabled: offline, "data-key": `changed ${one.row}`, onclick: () => change({ row: one.row }) }, `row ${this.places[one.row]}`),
      one.entered.length ? [" now holds ", make("b", {}, name(listed(names(one.entered), 4)))] : "",
      one.entered.length && one.left.length ? ", and" : "",
      one.left.length ? [" no longer ", make("s", {}, name(listed(names(one.left), 4)))] : "",
      make("span", { class: "muted" }, ` (saves ${number(one.saved)})`)));
    const told = `${data.changed} of ${data.rows} rows have another set by ${data.oracle}. Mean cost ${number(data.cost_before)} → ${cost(data.cost_after)} by each spec's own measure; by the new one the old sets would cost ${number(data.cost_after + data.saved)}, so ${number(data.saved)} per row is saved. Coverage ${percent(data.coverage_before)} → ${percent(data.coverage_after)}, size ${number(data.size_before)} → ${number(data.size_after)} (${signed(data.size_after - data.size_before)}).`;
    const open = this.changed.querySelector("details")?.open;
    refill(this.changed, make("h3", {}, "Before and after the last edit"), make("p", {}, told),
      lines.length ? make("details", { open }, make("summary", { "data-key": "changed rows" }, `The rows that changed${data.changed > lines.length ? `, the first ${lines.length}` : ""}`), make("ul", {}, lines)) : "");
  }
}
