// One row: bars that can be dragged, the sets of the oracles side by side, the hull of price, why a label is in.

import { change, offline } from "./connection.js";
import { frame, line, mark, oneStop } from "./charts.js";
import { help } from "./help.js";
import { braces, chance, cost, inUnit, listed, make, name, number, refill, signed, swatch } from "./dom.js";

export class RowsPanel {
  constructor(parent, sets, told) {
    this.sets = sets;
    this.told = told;
    this.title = make("p", { class: "row-title" });
    this.back = make("button", { type: "button", "aria-label": "Previous row", disabled: offline, onclick: () => this.go(this.row.row - 1) }, "←");
    this.forth = make("button", { type: "button", "aria-label": "Next row", disabled: offline, onclick: () => this.go(this.row.row + 1) }, "→");
    this.which = make("input", { type: "number", min: 0, class: "which", "aria-label": "Row of the file, counted from 0", disabled: offline, onchange: () => this.goTo(Number(this.which.value)) });
    this.reset = make("button", { type: "button", class: "quiet", onclick: () => change({ drag: null }) }, "Reset");
    this.table = make("table", { class: "sets" });
    this.hull = make("figure");
    this.why = make("div", { class: "why", "aria-live": "polite" });
    this.expect = make("details", { class: "expect" });
    parent.append(
      make("div", { class: "controls" }, this.back, this.which, this.forth, this.reset), this.title,
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The row: probabilities, and the set of each oracle" }, this.table),
      make("div", { class: "pair" }, this.why, this.hull), this.expect);
    this.bars = new Map();
  }

  go(row) {
    if (row >= 0 && row < this.row.rows) change({ row });
  }

  // The row at this place of the file, or the next one that is shown: half of the rows are kept for calibration.
  goTo(place) {
    const at = this.places?.findIndex((one) => one >= place) ?? -1;
    this.go(at < 0 ? this.row.rows - 1 : at);
  }

  show(views, looks) {
    if (views.labels) this.labels = views.labels.labels;
    if (views.row) this.row = views.row;
    this.looks = looks;
    if (views.overall) this.places = views.overall.places;
    if (!views.row || !this.labels) return;
    if (views.row.p.some(([y]) => y >= this.labels.length)) return; // of other labels: the next is on its way
    const row = this.row;
    this.which.value = row.place;
    this.back.disabled = offline || row.row === 0;
    this.forth.disabled = offline || row.row === row.rows - 1;
    this.reset.hidden = !row.dragged || offline;
    refill(this.title, row.id === null ? `Row ${row.place}` : [`Row ${row.place}, `, name(row.id)], ` (${row.row + 1} of ${row.rows} shown): the truth is `, make("b", {}, name(this.labels[row.truth])), row.dragged ? make("span", { class: "muted" }, ", dragged") : "",
      Object.entries(row.inputs).filter(([, value]) => !Array.isArray(value)).map(([input, value]) => [", ", make("code", {}, input), ` ${number(value)}`]).flat());
    this.showTable();
    this.showWhy();
    this.showHull();
    this.showExpectation();
  }

  colour(oracle) {
    return `var(${this.looks[oracle]?.colour ?? "--muted"})`;
  }

  showTable() {
    // A bar in the hand is not replaced under it.
    if (this.holding !== undefined) {
      this.showSets();
      return;
    }
    const { row } = this;
    this.bars.clear();
    const head = make("thead", {},
      make("tr", { class: "over" }, make("td", { colspan: 2 }), make("th", { colspan: row.sets.length, scope: "colgroup" }, "in the set of ", help("oracle"))),
      make("tr", {}, make("th", { scope: "col" }, "label"), make("th", { scope: "col", class: "wide" }, "probability"),
      row.sets.map(({ oracle }) => make("th", { scope: "col", class: "oracle" }, swatch(this.looks[oracle]), make("span", {}, oracle)))));
    this.dots = make("tbody", {}, row.p.map(([y, p]) => this.line(y, p)));
    this.sums = make("tbody", { class: "sums" });
    refill(this.table, make("caption", { class: "hidden" }, "The row: the probability of each label, and which oracles have it in their set"), head, this.dots, this.sums);
    this.showSets();
  }

  line(y, p) {
    const bar = make("input", {
      type: "range", min: 0, max: 1, step: 0.001, class: "p", "--v": `${100 * p}%`, "data-key": `p ${y}`, disabled: offline,
      "aria-label": `Probability of ${this.labels[y]}`, value: p,
      oninput: () => {
        this.holding = y;
        bar.style.setProperty("--v", `${100 * bar.value}%`);
        change({ drag: [y, Number(bar.value)] });
      },
      onchange: () => { this.holding = undefined; if (this.row) this.showTable(); },
    });
    const says = make("span", { class: "says" }, chance(p));
    this.bars.set(y, { bar, says });
    const asked = y === this.row.why.label;
    return make("tr", { class: y === this.row.truth ? "truth" : "", "data-label": y },
      make("th", { scope: "row" },
        make("button", { type: "button", class: asked ? "name asked" : "name", "aria-pressed": asked ? "true" : "false", "data-key": `why ${y}`, disabled: offline, title: "Why is it in, or not?", onclick: () => change({ why: this.labels[y] }) }, name(this.labels[y])),
        y === this.row.truth ? make("span", { class: "tag" }, "truth") : ""),
      make("td", { class: "wide" }, make("div", { class: "drag" }, bar, says)), this.row.sets.map(() => make("td", { class: "dot-cell" })));
  }

  showSets() {
    const { row } = this;
    const p = new Map(row.p);
    const inside = row.sets.map(({ members }) => new Set(members));
    for (const [y, { bar, says }] of this.bars) {
      if (p.has(y)) {
        says.textContent = chance(p.get(y));
        if (y !== this.holding) {
          bar.value = p.get(y);
          bar.style.setProperty("--v", `${100 * p.get(y)}%`);
        }
      }
    }
    for (const line of this.dots.children) {
      const y = Number(line.dataset.label);
      [...line.children].slice(2).forEach((cell, i) => {
        if (!row.sets[i]) return;
        const held = inside[i].has(y);
        cell.replaceChildren(make("span", { class: held ? "dot" : "out", role: "img", "aria-label": held ? `in the set of ${row.sets[i].oracle}` : "not in it" }, held ? swatch(this.looks[row.sets[i].oracle]) : ""));
      });
    }
    const sum = (title, cell) => make("tr", {}, make("th", { scope: "row", colspan: 2 }, title), row.sets.map((set) => make("td", { class: "dot-cell" }, cell(set))));
    refill(this.sums,
      sum(inUnit("cost"), (set) => make("button", { type: "button", class: "quiet figure", "data-key": `take ${set.oracle}`, disabled: offline, title: "Look at this set, term by term", onclick: () => this.sets.choose(set.members) }, number(set.cost))),
      sum("labels", (set) => String(set.members.length)),
      sum(["their mass ", help("mass")], (set) => chance(set.mass)),
      sum("holds the truth", (set) => make("span", { class: set.holds ? "yes" : "no" }, set.holds ? "yes" : "no")));
  }

  showWhy() {
    const { why } = this.row;
    const label = this.labels[why.label];
    const share = why.p < 0.01 ? "under 1 %" : `${Math.round(100 * why.p)} %`;
    const plain = (answer) => {
      if (answer.tau === null) return "in: too few rows were calibrated, so that every label is in";
      const paid = answer.terms.length > 1 ? ` (${answer.terms.map(([term, more]) => `${signed(more)} for ${term}`).join(", ")})` : "";
      return answer.in ? `in: it adds ${cost(answer.adds)}${paid} for a ${share} chance of being right`
        : `left out: it would add ${cost(answer.adds)}${paid} for a ${share} chance of being right`;
    };
    const scores = (answer) => {
      if (answer.tau === null) return "the threshold is infinite";
      const against = `${number(answer.score)} ${answer.in ? "≤" : ">"} ${number(answer.tau)}`;
      return answer.oracle === "price"
        ? `bought at a price of ${number(answer.score)}; the price paid here is ${number(answer.tau)}, which for p = ${chance(why.p)} is worth ${cost(why.p * answer.tau)}`
        : `number ${answer.rank} of the order, score ${against}`;
    };
    const line = (said) => (answer) => make("li", {}, swatch(this.looks[answer.oracle]), make("b", {}, answer.oracle), " ", said(answer));
    const open = this.why.querySelector("details")?.open;
    refill(this.why, make("h3", {}, "Why is ", name(label), " in, or not?"), make("ul", {}, why.answers.map(line(plain))),
      make("details", { open }, make("summary", { "data-key": "why scores" }, "Scores and thresholds"), make("ul", {}, why.answers.map(line(scores)))));
  }

  showHull() {
    const { hull } = this.row;
    this.hull.hidden = hull === null;
    if (!hull) return;
    const last = hull.vertices.findIndex((v) => v.mass > 0.995);
    const until = Math.max(hull.at + 2, last < 0 ? hull.vertices.length : last + 1, 3);
    const shown = hull.vertices.slice(0, until);
    const costs = shown.map((v) => v.cost);
    const y = [Math.min(0, ...costs), Math.max(...costs, 1e-9) * 1.06];
    const { svg, px, py } = frame({ x: [0, 1.02], y, xName: "mass of the set", yName: inUnit("cost"), title: "The hull of the row: what each price of probability buys" });
    const at = (v) => [px(v.mass), py(v.cost)];
    svg.append(line(shown.map(at), { colour: "var(--oracle-price)" }));
    shown.forEach((v, i) => svg.append(mark(at(v), {
      colour: "var(--oracle-price)", big: i === hull.at, hollow: i > hull.at,
      says: `price ${number(v.price)}: ${v.entered.length ? `${listed(v.entered)} enter${v.entered.length === 1 ? "s" : ""}` : "nothing"}${v.left.length ? `, ${listed(v.left)} left` : ""}; mass ${chance(v.mass)}, cost ${number(v.cost)}`,
    })));
    oneStop(svg);
    const now = hull.vertices[hull.at];
    refill(this.hull, make("h3", {}, "The hull: what a price of probability buys ", help("price")), svg,
      make("figcaption", {}, hull.threshold === null ? "The threshold is infinite: every label is in the set."
        : ["With a miss worth ", make("b", {}, cost(hull.threshold)), now ? `, the best set has mass ${chance(now.mass)} and costs ${cost(now.cost)}. Hollow points cost more.` : ", the best set is empty."]));
  }

  // "This row should contain these labels."
  showExpectation() {
    this.expect.hidden = offline;
    if (offline) return;
    const { row } = this;
    const open = this.expect.open;
    const draft = this.draft?.row === row.row ? this.draft : { row: row.row, title: "", oracle: row.sets[0]?.oracle, holds: "yes", labels: null };
    const chosen = draft.labels ?? new Set([row.truth]);
    const title = make("input", { type: "text", "data-key": "row case name", value: draft.title, placeholder: "what is expected", "aria-label": "Name of the case" });
    const oracle = make("select", { "data-key": "row case oracle", "aria-label": "Oracle" }, row.sets.map((set) => make("option", { value: set.oracle, selected: set.oracle === draft.oracle }, set.oracle)));
    const holds = make("select", { "data-key": "row case holds", "aria-label": "Contains or lacks" }, make("option", { value: "yes", selected: draft.holds === "yes" }, "contain"), make("option", { value: "no", selected: draft.holds === "no" }, "not contain"));
    const boxes = row.p.slice(0, 10).map(([y]) => make("label", { class: "pick" },
      make("input", { type: "checkbox", value: y, checked: chosen.has(y), "data-key": `row case ${y}` }), name(this.labels[y])));
    const picked = () => new Set(boxes.map((label) => label.firstChild).filter((box) => box.checked).map((box) => Number(box.value)));
    const keep = () => { this.draft = { row: row.row, title: title.value, oracle: oracle.value, holds: holds.value, labels: picked() }; };
    this.expect.oninput = keep;
    const make_case = async () => {
      const members = [...picked()].map((y) => this.labels[y]);
      if (!members.length) {
        this.told("tick the labels that the set should contain", true);
        return;
      }
      const said = title.value.trim() || `row ${row.place} ${holds.value === "yes" ? "holds" : "lacks"} ${braces(members)}`;
      await this.sets.keepCase({ name: said, row: { oracle: oracle.value, holds: holds.value === "yes", members } });
    };
    refill(this.expect, make("summary", { "data-key": "row expect" }, "Expect: this row should contain …"),
      make("div", { class: "form" }, make("div", {}, "The set of ", oracle, " should ", holds), make("div", { class: "picks" }, boxes), title,
        make("div", {}, make("button", { type: "button", class: "strong", "data-key": "make row case", onclick: make_case }, "Make it a case"))));
    this.expect.open = open;
  }
}
