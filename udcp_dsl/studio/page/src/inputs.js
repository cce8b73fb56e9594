// Sliders of the inputs per row: what the chosen set costs if the patient lives 12 km away, or 40.

import { change, offline } from "./connection.js";
import { listed, make, number, typed } from "./dom.js";

export class InputSliders {
  constructor(parent) {
    this.element = make("div", { class: "sliders", role: "group", "aria-label": "Inputs of the row" });
    this.element.hidden = true;
    parent.append(this.element);
    this.shown = new Map();
  }

  show(inputs = []) {
    const names = new Set(inputs.map((input) => input.name));
    for (const [key, one] of this.shown) if (!names.has(key)) { one.element.remove(); this.shown.delete(key); }
    for (const input of inputs) {
      if (!this.shown.has(input.name)) this.shown.set(input.name, this.slider(input.name));
      const one = this.shown.get(input.name);
      const costs = input.value === null; // costs per row: one number for each label or category
      one.range.hidden = one.exact.hidden = costs;
      const ranging = `${number(input.low)} to ${number(input.high)}`;
      const entries = (input.entries ?? []).map(([entry, value]) => `${entry} ${number(value)}`);
      const from = costs || input.row === null ? "" : input.value === input.row ? "; as in the row" : `; the row has ${number(input.row)}`;
      one.note.textContent = costs ? `${input.row === null ? `spread over ${ranging}` : "as in the row"}: ${listed(entries, 8)}` : ranging + from;
      if (!costs) {
        one.range.min = input.low;
        one.range.max = input.high;
        one.range.step = (input.high - input.low) / 200 || "any";
        if (document.activeElement !== one.range && document.activeElement !== one.exact) {
          one.range.value = input.value;
          one.exact.value = number(input.value);
        }
      }
      this.element.append(one.element);
    }
    this.element.hidden = inputs.length === 0;
  }

  slider(title) {
    const one = {};
    const send = (value) => change({ input: [title, value] });
    one.range = make("input", { type: "range", "aria-label": `Input ${title}`, "data-key": `input ${title}`, disabled: offline,
      oninput: () => { one.exact.value = number(Number(one.range.value)); send(Number(one.range.value)); } });
    one.exact = make("input", { type: "text", inputmode: "decimal", class: "exact", "aria-label": `Value of input ${title}`, disabled: offline,
      onchange: () => {
        const value = typed(one.exact.value);
        if (!Number.isFinite(value)) return;
        one.range.value = value;
        send(value);
      } });
    one.note = make("span", { class: "muted small" });
    one.element = make("div", { class: "slider" }, make("code", {}, title), one.range, one.exact, make("span", { class: "beside" }, one.note));
    return one;
  }
}
