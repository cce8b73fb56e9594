// "A or B?": two sets, which of them should cost more? An answer is a case, and narrows what the parameters can be.

import { ask, change, offline } from "./connection.js";
import { braces, make, name, number, refill } from "./dom.js";

export class QuestionsPanel {
  constructor(parent, keepCase) {
    this.keepCase = keepCase;
    this.seed = 0;
    this.asked = 0; // questions so far: only the answer to the last one is shown
    this.says = make("p", { class: "small muted", role: "status" });
    this.body = make("div", { class: "form" });
    this.box = make("details", { class: "questions", hidden: true, ontoggle: () => this.ask() },
      make("summary", { "data-key": "questions" }, "A or B? Find the parameters by comparing sets"), this.says, this.body);
    parent.querySelector(".expect").after(this.box);
  }

  show(views) {
    if (offline) return;
    if (views.spec?.ok) {
      this.sliders = new Map(views.spec.params.filter((x) => x.read && x.low !== null && x.high !== null).map((x) => [x.name, x]));
      this.spec = [views.spec.loss, views.spec.terms, views.spec.K, [...this.sliders.values()].map((x) => [x.name, x.default, x.low, x.high])];
      this.box.hidden = this.sliders.size === 0;
    }
    if (views.cases) this.cases = [views.cases.cases.map((one) => one.text), views.cases.more];
    // What was found is of this spec and these cases; where the sliders stand does not matter.
    const about = JSON.stringify([this.spec, this.cases]);
    if (about === this.about) return;
    this.about = about;
    this.seed = 0;
    this.stale = true;
    this.ask();
  }

  async ask() {
    if (!this.box.open || this.box.hidden || !this.stale) return;
    this.stale = false;
    const number = (this.asked += 1);
    this.says.textContent = "Looking for the most informative pair …";
    try {
      const found = await ask("question", { seed: this.seed });
      if (number === this.asked) this.tell(found);
    } catch (error) {
      if (number !== this.asked) return;
      this.says.textContent = error.message;
      this.body.replaceChildren();
    }
  }

  async answer({ first, second, inputs }, sign, words) {
    this.says.textContent = "Kept.";
    await this.keepCase({ name: `${braces(first)} costs ${words} ${braces(second)}`, cost: [first, sign, second], at: inputs });
  }

  tell({ cases, agrees, exact, pair, params, contradictions, per_row: lists }) {
    const answers = `${cases} comparison${cases === 1 ? "" : "s"} so far`;
    this.says.textContent = !agrees ? `${answers}: no values of the parameters agree with all of them${exact ? "" : ", as far as a search can tell"}.`
      : pair ? `${answers}. Which set should cost more?`
        : lists.length ? `${answers}. No pair is suggested where a loss reads costs per row (${lists.join(", ")}): write cases yourself.` : `${answers}: no pair of small sets would tell more.`;
    refill(this.body, pair ? this.pair(pair) : null, agrees ? this.found(params) : null,
      contradictions.map((group) => make("div", {}, "These contradict each other; change or delete one of them in the file of cases:", make("ul", {}, group.map((one) => make("li", {}, name(one)))))));
  }

  pair(pair) {
    const set = (letter, labels, sign) => make("button", { type: "button", "data-key": `answer ${letter}`, onclick: () => this.answer(pair, sign, sign === ">" ? "more than" : "less than") },
      make("b", {}, letter), make("span", {}, labels.length ? labels.map((label) => make("span", { class: "member" }, name(label))) : "the empty set"), make("span", { class: "small muted" }, "costs more"));
    const row = Object.entries(pair.inputs).map(([input, value]) => `${input} = ${number(value)}`).join(", ");
    return make("div", { role: "group", "aria-label": "Which set should cost more?" }, row ? make("p", { class: "small" }, `For a row with ${row}:`) : "",
      make("div", { class: "a-or-b" }, set("A", pair.first, ">"), set("B", pair.second, "<")),
      make("div", {}, make("button", { type: "button", "data-key": "answer same", onclick: () => this.answer(pair, "==", "as much as") }, "The same"), " ",
        make("button", { type: "button", class: "quiet", "data-key": "another pair", onclick: () => { this.seed += 1; this.stale = true; this.ask(); } }, "Another pair")));
  }

  // What the answers leave of each range, and the values that agree with them best.
  found(params) {
    const at = (x, value) => `${(100 * (value - x.range[0])) / (x.range[1] - x.range[0])}%`;
    const left = (x) => (x.determined < 0.0005 ? "determined" : `${number(100 * x.determined)} % of its range is left`);
    const use = () => params.forEach((x) => change({ param: [x.name, x.value, this.sliders.get(x.name)?.default ?? x.now] }));
    return make("div", { class: "fitted" }, make("table", {}, make("caption", { class: "small muted" }, "Values of each parameter that agree with the comparisons"),
      make("thead", {}, make("tr", {}, ["parameter", "all values that agree", "best"].map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, params.map((x) => make("tr", {}, make("th", { scope: "row" }, make("code", {}, x.name)),
        make("td", { class: "left" }, x.solutions === null ? "not known" : [make("span", { class: "span", "aria-hidden": "true", "--from": at(x, x.solutions[0]), "--to": at(x, x.solutions[1]) }),
          `${number(x.solutions[0])} to ${number(x.solutions[1])} `, make("span", { class: "muted small" }, left(x))]),
        make("td", {}, number(x.value)))))),
    make("button", { type: "button", "data-key": "use fitted", onclick: use }, "Move the sliders to the best values"));
  }
}
