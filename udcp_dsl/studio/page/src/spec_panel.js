// The spec: its editor, a slider for each parameter, what is wrong with it, and which oracles take it.

import { change, offline } from "./connection.js";
import { cost, make, name, number, percent, refill, typed } from "./dom.js";
import { Editor } from "./editor.js";
import { inline } from "./markdown.js";

export class SpecPanel {
  constructor(parent) {
    const place = make("div", { class: "editor" });
    this.sliders = make("div", { class: "sliders" });
    this.faults = make("ul", { class: "faults", "aria-label": "Errors and warnings", "aria-live": "polite" });
    this.choice = make("div", { class: "choice" });
    this.effect = make("p", { class: "effect small", "aria-live": "polite" });
    this.oracles = make("details", { class: "oracles" });
    parent.append(this.choice, place, make("p", { class: "muted small editor-help" }, "Tab leaves the editor. Hover a word to see what it means."), this.faults, this.sliders, this.effect, this.oracles);
    this.editor = new Editor(place);
    this.inputs = new Map();
  }

  show(views, state) {
    if (views.words) this.editor.learn(views.words);
    if (views.overall) this.change = views.overall.change;
    if (views.spec) this.showSpec(views.spec, state);
    if (views.spec || views.overall) this.showEffect(this.change);
  }

  showSpec(spec, state) {
    this.editor.diagnose(spec.diagnostics);
    this.showFaults(spec);
    this.showSliders(spec.params.filter((param) => param.read));
    if (spec.ok) {
      this.showLosses(spec);
      this.showOracles(spec.oracles, state);
    }
  }

  showFaults(spec) {
    refill(this.faults, spec.diagnostics.map((d) =>
      make("li", { class: d.severity },
        make("button", { type: "button", class: "place", "data-key": `fault ${d.from}`, onclick: () => this.editor.goTo(d.from), "aria-label": `Go to line ${d.line}` }, `${d.line}:${d.column}`),
        make("span", {}, make("b", {}, d.code), " ", name(d.message), d.help ? make("span", { class: "muted" }, `; ${d.help}`) : ""),
        this.fixes(d))));
    this.faults.hidden = spec.diagnostics.length === 0;
  }

  // Buttons that mend a fault, as soon as they are known.
  fixes(d) {
    const place = make("span", { class: "fixes" });
    if (offline) return place;
    this.editor.fixes(d).then((found) => place.replaceChildren(...found.slice(0, 3).map(({ title, mend }) =>
      make("button", { type: "button", class: "quiet", onclick: mend }, title))), () => {});
    return place;
  }

  showLosses(spec) {
    if (spec.losses.length < 2) {
      this.choice.replaceChildren();
      return;
    }
    const choice = make("select", { "data-key": "loss", disabled: offline, onchange: () => change({ loss: choice.value }) },
      spec.losses.map((loss) => make("option", { value: loss, selected: loss === spec.loss }, loss)));
    refill(this.choice, make("label", {}, "Loss ", choice));
  }

  // Kept from one view to the next, so that one that is being moved is not taken out of the hand.
  showSliders(params) {
    const shown = new Set(params.map((param) => param.name));
    for (const [key, row] of this.inputs) {
      if (!shown.has(key)) {
        row.element.remove();
        this.inputs.delete(key);
      }
    }
    for (const param of params) {
      if (!this.inputs.has(param.name)) this.inputs.set(param.name, this.slider(param));
      const row = this.inputs.get(param.name);
      row.param = param;
      this.sliders.append(row.element);
      const bounded = param.low !== null && param.high !== null;
      row.range.hidden = !bounded;
      if (bounded) {
        row.range.min = param.low;
        row.range.max = param.high;
        row.range.step = (param.high - param.low) / 200 || "any";
      }
      if (document.activeElement !== row.range && document.activeElement !== row.exact) {
        row.range.value = param.value;
        row.exact.value = number(param.value);
      }
      const moved = param.value !== param.default;
      row.note.textContent = moved ? `the spec says ${number(param.default)}` : param.about;
      row.back.hidden = row.write.hidden = !moved || offline;
    }
    this.sliders.hidden = params.length === 0;
  }

  // What the last edit or move of a slider did, where the hand is; the rows are listed with all rows.
  showEffect(data) {
    if (!data) {
      this.effect.textContent = offline || this.inputs.size === 0 ? "" : "Move a slider to see its effect here.";
      return;
    }
    refill(this.effect, make("b", {}, `${data.changed} of ${data.rows} rows`), ` have another set by ${data.oracle}. Mean cost ${number(data.cost_before)} → `, make("b", {}, cost(data.cost_after)),
      `, labels ${number(data.size_before)} → ${number(data.size_after)}, coverage ${percent(data.coverage_before)} → ${percent(data.coverage_after)}. `, make("a", { href: "#changed" }, "Which rows"));
  }

  slider(param) {
    const row = { param };
    const set = (value) => change({ param: [row.param.name, value, row.param.default] });
    row.range = make("input", {
      type: "range", "aria-label": `Parameter ${param.name}`, disabled: offline,
      oninput: () => {
        row.exact.value = number(Number(row.range.value));
        set(Number(row.range.value));
      },
    });
    row.exact = make("input", {
      type: "text", inputmode: "decimal", class: "exact", "aria-label": `Value of parameter ${param.name}`, disabled: offline,
      onchange: () => {
        const value = typed(row.exact.value);
        if (Number.isFinite(value)) {
          row.range.value = value;
          set(value);
        }
      },
    });
    row.note = make("span", { class: "muted small" });
    row.back = make("button", { type: "button", class: "quiet", onclick: () => {
      row.range.value = row.param.default;
      row.exact.value = number(row.param.default);
      set(row.param.default);
    } }, "Undo");
    row.write = make("button", { type: "button", class: "quiet", onclick: () => this.editor.write(...row.param.at, String(row.param.value)) }, "Write into the spec");
    row.element = make("div", { class: "slider" },
      make("code", {}, param.name), row.range, row.exact, make("span", { class: "beside" }, row.note, row.back, row.write));
    return row;
  }

  showOracles(oracles, state) {
    const open = this.oracles.open;
    const boxes = oracles.map((oracle) => {
      const box = make("input", {
        type: "checkbox", checked: oracle.applies && state.oracles.includes(oracle.name), disabled: !oracle.applies || offline,
        "data-key": `oracle ${oracle.name}`,
        onchange: () => change({ oracles: [...boxesOf().filter((x) => x.checked).map((x) => x.value)] }),
        value: oracle.name,
      });
      const speed = oracle.time ? `${oracle.time}${oracle.exact ? ", exact" : ""}` : "";
      return make("li", { class: oracle.applies ? "" : "muted" },
        make("label", {}, box, " ", make("b", {}, oracle.name), speed ? make("span", { class: "muted small" }, ` ${speed}`) : ""),
        make("div", { class: "small muted" }, inline(oracle.applies ? oracle.why : `does not apply: ${oracle.why}`)));
    });
    const boxesOf = () => [...this.oracles.querySelectorAll("input")];
    refill(this.oracles, make("summary", { "data-key": "oracles" }, "Oracles"), make("ul", {}, boxes));
    this.oracles.open = open;
  }
}
