// Cases: what the author expects of the spec, tried anew after every edit and every move of a slider.

import { make, name, refill } from "./dom.js";

export class CasesPanel {
  constructor(parent) {
    this.box = make("details", { class: "cases", open: true, hidden: true });
    parent.querySelector(".expect").after(this.box);
  }

  show(views) {
    if (!views.cases) return;
    const { file, fault, cases, more } = views.cases;
    const open = this.box.open;
    const failed = cases.filter((one) => !one.holds).length;
    const told = fault ? "cannot be read" : failed ? `${failed} of ${cases.length} fail` : `all ${cases.length} hold`;
    this.box.hidden = !fault && cases.length === 0;
    refill(this.box, make("summary", { "data-key": "cases" }, "Cases ", make("span", { class: failed || fault ? "no" : "yes", role: "status" }, told), make("span", { class: "muted small" }, ` ${file}`)),
      fault ? make("p", { class: "small" }, name(fault)) : "",
      make("ul", {}, cases.map((one) => make("li", { title: one.text },
        make("span", { class: `verdict ${one.holds ? "yes" : "no"}`, role: "img", "aria-label": one.holds ? "holds" : "fails" }, one.holds ? "✓" : "✗"), " ", name(one.name),
        one.why ? make("div", { class: "small muted" }, name(one.why)) : ""))),
      more > 0 ? make("p", { class: "small muted" }, `and ${more} more, which udcp validate tries`) : "");
    this.box.open = open;
  }
}
