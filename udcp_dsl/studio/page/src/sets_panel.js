// Sets: the labels in their tree, a set clicked together, what it costs and what each label adds; what is proved.

import { ask, change, offline } from "./connection.js";
import { braces, cost, make, name, number, refill, signed } from "./dom.js";
import { InputSliders } from "./inputs.js";

const OPEN = 60; // labels up to which all nodes begin open
const FOUND = 40; // labels that a search shows

export class SetsPanel {
  constructor(parent, told) {
    this.told = told;
    this.search = make("input", { type: "search", placeholder: "Find a label", "aria-label": "Find a label", oninput: () => this.showTree() });
    this.clear = make("button", { type: "button", onclick: () => this.choose([]), disabled: offline }, "Empty set");
    this.total = make("p", { class: "total", "aria-live": "polite" });
    this.terms = make("table", { class: "terms" });
    this.tree = make("div", { class: "tree", role: "group", "aria-label": "Labels of the set" });
    this.expect = make("details", { class: "expect" });
    this.facts = make("details", { class: "facts", open: matchMedia("(min-width: 48rem)").matches }); // long on a telephone
    this.inputs = new InputSliders(parent);
    parent.append(
      make("div", { class: "chosen" }, this.total, this.clear), make("div", { class: "scroll" }, this.terms),
      this.expect, this.search, this.tree, this.facts);
    this.nodes = new Map(); // whether a node is open, by its place
    this.kept = null;
  }

  show(views) {
    if (views.labels) {
      this.labels = views.labels.labels;
      this.above = views.labels.tree;
      this.nodes.clear();
    }
    if (views.set) {
      this.set = views.set;
      this.inputs.show(views.set.inputs);
    }
    if (views.spec?.ok) this.showFacts(views.spec);
    if ((views.labels || views.set) && this.labels && this.set && this.set.adds.length === this.labels.length) {
      this.members = new Set(this.set.members);
      this.showCost();
      this.showTree();
      this.showExpectation();
    }
  }

  choose(places) {
    change({ members: places.map((y) => this.labels[y]) });
  }

  toggle(places, inside) {
    const next = new Set(this.members);
    for (const y of places) inside ? next.add(y) : next.delete(y);
    this.members = next;
    this.choose([...next]);
  }

  showCost() {
    const { terms, total, members } = this.set;
    const names = members.map((y) => this.labels[y]);
    refill(this.total, make("span", { class: "figure" }, cost(total)), " ", make("span", { class: "muted" }, "for ", name(braces(names, 4))));
    const most = Math.max(...terms.map(([, cost]) => Math.abs(cost)), 1e-12);
    refill(this.terms, make("caption", { class: "hidden" }, "The cost of the set, term by term"), make("tbody", {}, terms.map(([text, cost], i) =>
      make("tr", {},
        make("th", { scope: "row" }, make("code", {}, text)),
        make("td", { class: "wide" }, make("span", { class: "bar", "aria-hidden": "true", "--v": `${(100 * Math.abs(cost)) / most}%`, "--c": `var(--term-${i % 6})` })),
        make("td", {}, number(cost))))));
  }

  showTree() {
    if (!this.labels || !this.members) return;
    const wanted = this.search.value.trim().toLowerCase();
    if (wanted) {
      const all = this.labels.flatMap((label, y) => (label.toLowerCase().includes(wanted) ? [y] : []));
      refill(this.tree, make("ul", {}, all.slice(0, FOUND).map((y) => this.leaf(y))),
        all.length ? make("p", { class: "muted small" }, all.length > FOUND ? `${all.length - FOUND} more: type more of the name` : "") : make("p", { class: "muted" }, "No label has that in its name."));
      return;
    }
    const scale = this.set.adds.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-12);
    this.scale = scale;
    refill(this.tree, this.list(-1, 0));
  }

  children(parent) {
    if (!this.below || this.belowOf !== this.above || this.belowFor !== this.labels) {
      this.belowOf = this.above;
      this.belowFor = this.labels;
      this.below = new Map();
      const at = (key) => {
        if (!this.below.has(key)) this.below.set(key, { nodes: [], labels: [] });
        return this.below.get(key);
      };
      this.above?.nodes.forEach(([, up], i) => at(up).nodes.push(i));
      this.labels.forEach((_, y) => {
        const nodes = this.above ? this.above.above[y] : [];
        for (const node of nodes.length ? nodes : [-1]) at(node).labels.push(y);
      });
    }
    return this.below.get(parent) ?? { nodes: [], labels: [] };
  }

  leaves(node) {
    const { nodes, labels } = this.children(node);
    return [...labels, ...nodes.flatMap((child) => this.leaves(child))];
  }

  list(node, depth) {
    const { nodes, labels } = this.children(node);
    const items = [...nodes.map((child) => this.branch(child, depth)), ...labels.slice(0, 400).map((y) => this.leaf(y))];
    if (labels.length > 400) items.push(make("li", { class: "muted small" }, `${labels.length - 400} more: find them by name`));
    return make("ul", {}, items);
  }

  branch(node, depth) {
    const [title] = this.above.nodes[node];
    const all = this.leaves(node);
    const inside = all.filter((y) => this.members.has(y)).length;
    const open = this.nodes.get(node) ?? (this.labels.length <= OPEN || inside > 0);
    const box = make("input", {
      type: "checkbox", checked: inside === all.length, disabled: offline, "data-key": `node ${node}`,
      "aria-label": `All ${all.length} of ${title}`, onchange: () => this.toggle(all, box.checked),
    });
    box.indeterminate = inside > 0 && inside < all.length;
    const details = make("details", { open, ontoggle: () => {
      this.nodes.set(node, details.open);
      if (details.open && details.children.length === 1) details.append(this.list(node, depth + 1));
    } }, make("summary", { "data-key": `open ${node}` }, name(title), make("span", { class: "muted small" }, ` ${inside ? `${inside} of ` : ""}${all.length}`)),
      open ? this.list(node, depth + 1) : null);
    return make("li", { class: "branch" }, box, details);
  }

  leaf(y) {
    const inside = this.members.has(y);
    const adds = this.set.adds[y];
    const box = make("input", { type: "checkbox", checked: inside, disabled: offline, "data-key": `label ${y}`, onchange: () => this.toggle([y], box.checked) });
    const says = inside ? `costs ${number(adds)} of it` : `would add ${number(adds)}`;
    return make("li", { class: inside ? "leaf in" : "leaf" },
      make("label", {}, box, name(this.labels[y])),
      make("span", { class: "adds", title: says },
        make("span", { class: "bar", "aria-hidden": "true", "--v": `${(100 * Math.abs(adds)) / (this.scale || 1)}%`, "--c": inside ? "var(--link)" : "var(--muted)" }),
        make("span", { class: "hidden" }, says), make("span", { "aria-hidden": "true" }, inside ? number(adds) : signed(adds))));
  }

  // "This set should cost more than that one."
  showExpectation() {
    this.expect.hidden = offline;
    if (offline) return;
    const open = this.expect.open;
    const names = this.set.members.map((y) => this.labels[y]);
    const draft = this.draft ?? { sign: ">", number: "", title: "" };
    const title = make("input", { type: "text", "data-key": "case name", value: draft.title, placeholder: "what is expected", "aria-label": "Name of the case" });
    const sign = make("select", { "data-key": "case sign", "aria-label": "Comparison" },
      [[">", "more than"], [">=", "at least"], ["<", "less than"], ["<=", "at most"], ["==", "exactly"]].map(([value, text]) =>
        make("option", { value, selected: value === draft.sign }, text)));
    const value = make("input", { type: "text", inputmode: "decimal", "data-key": "case number", value: draft.number, placeholder: "a number", "aria-label": "A cost" });
    const keep = () => { this.draft = { sign: sign.value, number: value.value, title: title.value }; };
    [title, sign, value].forEach((field) => field.addEventListener("input", keep));
    const make_case = async () => {
      const other = value.value.trim() === "" ? this.kept : Number(value.value);
      if (other === null || Number.isNaN(other)) {
        this.told("keep a set first (Keep this set), then choose another; or give a number", true);
        return;
      }
      const said = title.value.trim() || `${braces(names)} costs ${sign.selectedOptions[0].textContent} ${Array.isArray(other) ? braces(other) : number(other)}`;
      await this.keepCase({ name: said, cost: [names, sign.value, other] });
    };
    refill(this.expect, make("summary", { "data-key": "expect" }, "Expect: this set should cost …"),
      make("div", { class: "form" },
        make("div", {}, "This set should cost ", sign, " ", value, this.kept ? make("span", {}, " or ", name(braces(this.kept, 3))) : ""),
        title,
        make("div", {},
          make("button", { type: "button", "data-key": "keep set", onclick: () => { this.kept = names; this.showExpectation(); } }, "Keep this set to compare with"), " ",
          make("button", { type: "button", class: "strong", "data-key": "make case", onclick: make_case }, "Make it a case"))));
    this.expect.open = open;
  }

  async keepCase(body) {
    try {
      const answer = await ask("case", body);
      this.told(`${answer.written}: ${answer.cases} case${answer.cases === 1 ? "" : "s"}. It ${answer.holds ? "holds" : `does not hold yet: ${answer.why}`}`, !answer.holds);
    } catch (error) {
      this.told(error.message, true);
    }
  }

  showFacts(spec) {
    const open = this.facts.open;
    const words = { proved: "proved", refuted: "refuted", unknown: "unknown" };
    refill(this.facts, make("summary", { "data-key": "facts" }, "Proved facts", make("span", { class: "muted small" }, ` values in [${spec.interval.map(number).join(", ")}]`)),
      make("ul", {}, Object.entries(spec.facts).map(([fact, found]) =>
        make("li", {},
          make("span", { class: `badge ${found.state}` }, words[found.state]), " ", make("b", {}, fact.replace("_", " ")),
          make("div", { class: "small muted" }, name(found.reason), found.blame ? [" ", make("code", {}, found.blame.text)] : ""),
          found.sets.length ? make("div", { class: "tries" }, "See ", found.sets.map((set, i) =>
            make("button", { type: "button", class: "quiet", disabled: offline, "data-key": `${fact} ${i}`, onclick: () => change({ members: set }) }, name(braces(set, 4))))) : ""))));
    this.facts.open = open;
  }
}
