// The answer first: what the sets cost at this coverage, what that saves, and whom they fail; with the slider of alpha.

import { change, offline } from "./connection.js";
import { cost, make, name, percent, refill } from "./dom.js";

export class Strip {
  constructor(parent, help) {
    this.says = make("p", { class: "says", "aria-live": "polite" }, make("span", { class: "muted" }, "Rows are being scored …"));
    this.alpha = make("input", {
      type: "range", id: "alpha", min: 0.01, max: 0.5, step: 0.01, "aria-label": "Alpha: the share of truths that may be missed", disabled: offline,
      oninput: () => {
        this.level.textContent = Number(this.alpha.value).toFixed(2);
        change({ alpha: Number(this.alpha.value).toFixed(2) });
      },
    });
    this.level = make("output", { for: "alpha" });
    parent.append(this.says, make("div", { class: "alpha" }, make("label", { for: "alpha" }, "alpha"), help("alpha"), this.alpha, this.level));
  }

  show(views, state) {
    if (views.state && document.activeElement !== this.alpha) {
      this.alpha.value = state.alpha;
      this.level.textContent = state.alpha_text;
    }
    if (views.overall) this.tell(views.overall);
  }

  tell(data) {
    const main = data.oracles.find((x) => x.oracle === data.main) ?? data.oracles[0];
    const rival = data.oracles.find((x) => x.oracle !== main.oracle && x.oracle === "lac") ?? data.oracles.find((x) => x.oracle !== main.oracle);
    const even = main.matched && rival?.matched;
    const [ours, theirs] = even ? [main.matched, rival.matched].map(([mean]) => mean) : [main.cost, rival?.cost];
    const parts = [`At ${percent(data.target).replace(".0", "")} coverage `, make("b", {}, main.oracle), " costs ", make("b", {}, cost(ours)), " per row"];
    if (rival && theirs > 0) {
      const less = (theirs - ours) / theirs;
      const apart = even && (main.matched[2] < rival.matched[1] || rival.matched[2] < main.matched[1]);
      parts.push(", ", make("b", { class: less > 0 ? "yes" : "no" }, `${Math.abs(100 * less).toFixed(0)} % ${less >= 0 ? "less" : "more"}`), ` than ${rival.oracle}${even ? " at the same coverage" : ""}${even && !apart ? " (their intervals overlap)" : ""}`);
    }
    const hardest = main.quarters[0];
    const low = (value) => (value < data.target - 0.02 ? "no" : "");
    const whom = [`Covered: ${main.coverage.toFixed(2)} of all rows`];
    if (hardest) whom.push(", ", make("b", { class: low(hardest.coverage) }, `${hardest.coverage.toFixed(2)} of the hardest quarter`));
    if (main.least) whom.push(", ", make("b", { class: low(main.least.coverage) }, `${main.least.coverage.toFixed(2)} of `, name(main.least.name)), ", the least covered class");
    const waiting = main.oracle !== data.main && !data.missing[data.main] ? make("span", { class: "muted" }, ` ${data.main} is still being worked out.`) : "";
    refill(this.says, ...parts, ". ", ...whom, ".", waiting);
  }
}
