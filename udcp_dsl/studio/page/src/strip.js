// The answer first: what the sets cost at this coverage, what that saves, and which rows are covered too rarely; with the slider of alpha.

import { change, offline } from "./connection.js";
import { asked, cost, make, name, number, refill, typed, unitNow } from "./dom.js";

export class Strip {
  constructor(parent, help) {
    this.says = make("p", { class: "says", "aria-live": "polite" }, make("span", { class: "muted" }, "Rows are being scored …"));
    this.alpha = make("input", {
      type: "range", id: "alpha", min: 0.01, max: 0.5, step: 0.01, "aria-label": "Alpha: the share of true labels that may be missed", disabled: offline,
      oninput: () => {
        this.level.textContent = Number(this.alpha.value).toFixed(2);
        change({ alpha: Number(this.alpha.value).toFixed(2) });
      },
    });
    this.level = make("output", { for: "alpha" });
    this.worth = make("input", { type: "text", inputmode: "decimal", id: "worth", class: "exact", disabled: offline, onchange: () => this.setWorth(typed(this.worth.value)) });
    this.unit = make("span", { class: "muted" });
    this.valued = make("div", { class: "valued", hidden: true }, make("label", { for: "worth" }, "a miss is worth"), this.worth, this.unit, help("worth of a miss"));
    parent.append(this.says, make("div", { class: "asks" }, make("div", { class: "alpha" }, make("label", { for: "alpha" }, "alpha"), help("alpha"), this.alpha, this.level), this.valued));
  }

  // The alpha at which a miss is valued so, between the points of the curve of price.
  setWorth(value) {
    const points = (this.price?.curve ?? []).filter((point) => point[3] !== null && point[3] > 0).map(([alpha, , , worth]) => [worth, alpha]).sort((a, b) => a[0] - b[0]);
    if (!(value > 0) || !points.length) {
      this.worth.value = this.price?.worth ? number(this.price.worth) : "";
      return;
    }
    const at = points.findIndex(([worth]) => worth >= value);
    const [low, high] = [points[Math.max(0, (at < 0 ? points.length : at) - 1)], points[at < 0 ? points.length - 1 : at]];
    const part = high[0] > low[0] ? (Math.log(value) - Math.log(low[0])) / (Math.log(high[0]) - Math.log(low[0])) : 0;
    const alpha = low[1] + Math.min(1, Math.max(0, part)) * (high[1] - low[1]);
    change({ alpha: Math.min(0.5, Math.max(0.01, alpha)).toFixed(2) });
  }

  show(views, state) {
    if (views.state && document.activeElement !== this.alpha) {
      this.alpha.value = state.alpha;
      this.level.textContent = state.alpha_text;
    }
    if (views.overall) this.tell(views.overall);
    if (views.overall) this.showWorth(views.overall);
  }

  // The threshold of price is what a missed truth is valued at.
  showWorth(data) {
    const price = data.oracles.find((x) => x.oracle === "price");
    // While it is being worked out the field stays, as it was.
    if (!price && data.main === "price" && !data.missing.price) return;
    this.price = price;
    const worth = this.price?.worth ?? null;
    this.valued.hidden = worth === null;
    this.unit.textContent = unitNow() ?? "";
    if (worth !== null && document.activeElement !== this.worth) this.worth.value = number(worth);
  }

  tell(data) {
    const main = data.oracles.find((x) => x.oracle === data.main) ?? data.oracles[0];
    const rival = data.oracles.find((x) => x.oracle !== main.oracle && x.oracle === "lac") ?? data.oracles.find((x) => x.oracle !== main.oracle);
    const even = main.matched && rival?.matched;
    const [ours, theirs] = even ? [main.matched, rival.matched].map(([mean]) => mean) : [main.cost, rival?.cost];
    const parts = [`At ${asked(data.target)} coverage `, make("b", {}, main.oracle), " costs ", make("b", {}, cost(ours)), " per row"];
    if (even) parts.push(make("span", { class: "muted" }, ` (95 %: ${number(main.matched[1])} to ${number(main.matched[2])})`));
    const saved = even ? rival.saved : null;
    if (saved) {
      const [share, low, high] = saved;
      const certain = low > 0 || high < 0;
      parts.push(", ", make("b", { class: low > 0 ? "yes" : high < 0 ? "no" : "" }, `${Math.abs(100 * share).toFixed(0)} % ${share >= 0 ? "less" : "more"}`), ` than ${rival.oracle} at the same coverage`,
        make("span", { class: "muted" }, certain ? ` (${(100 * low).toFixed(0)} to ${(100 * high).toFixed(0)} %)` : " (no more than chance)"));
    } else if (rival && theirs > 0) parts.push(`, against ${cost(theirs)} for ${rival.oracle}`);
    const hardest = main.quarters[0];
    const low = (value) => (value < data.target - 0.02 ? "no" : "");
    const whom = [`Covered: ${main.coverage.toFixed(2)} of all rows`];
    if (hardest) whom.push(", ", make("b", { class: low(hardest.coverage) }, `${hardest.coverage.toFixed(2)} of the hardest quarter`));
    if (main.least) whom.push(", ", make("b", { class: low(main.least.coverage) }, `${main.least.coverage.toFixed(2)} of `, name(main.least.name)), ", the least covered class");
    const waiting = main.oracle !== data.main && !data.missing[data.main] ? make("span", { class: "muted" }, ` ${data.main} is still being worked out.`) : "";
    refill(this.says, ...parts, ". ", ...whom, ".", waiting);
  }
}
