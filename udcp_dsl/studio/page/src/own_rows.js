// Rows of one's own: files are dropped on the page or chosen, and go to the studio on this machine, nowhere else.

import { ask } from "./connection.js";
import { make, refill } from "./dom.js";

const encoded = async (file) => {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return { name: file.name, content: btoa(text) };
};

export class OwnRows {
  constructor(told) {
    this.told = told;
    this.dialog = make("dialog", { "aria-label": "Rows of your own" });
    addEventListener("dragover", (event) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    });
    addEventListener("drop", (event) => {
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      this.open([...event.dataTransfer.files]);
    });
  }

  open(files = []) {
    const truthFirst = (file) => /truth|label|target|(^|[^a-z])y([^a-z]|$)/i.test(file.name);
    const truth = files.length > 1 ? files.find(truthFirst) ?? files[1] : null;
    let probs = files.find((file) => file !== truth) ?? null;
    let beside = truth;
    const choose = (key, label, set) => make("label", {}, label, " ", make("input", { type: "file", accept: ".npy,.npz,.csv,.parquet,.arrow", "data-key": key, onchange: (event) => { set(event.target.files[0] ?? null); show(); } }));
    const column = make("input", { type: "text", "data-key": "truth column", placeholder: "truth", "aria-label": "Column of true labels" });
    const normalize = make("input", { type: "checkbox", "data-key": "normalize" });
    const said = make("p", { class: "small" });
    const show = () => { said.textContent = `Probabilities: ${probs?.name ?? "none yet"}. True labels: ${beside?.name ?? "a column of the same file"}.`; };
    const load = async () => {
      if (!probs) {
        this.told("choose the file of probabilities first", true);
        return;
      }
      try {
        const answer = await ask("rows", { probs: await encoded(probs), truth: beside ? await encoded(beside) : { column: column.value.trim() || "truth" }, normalize: normalize.checked });
        this.dialog.close();
        this.told(`Loaded: ${answer.about}`);
      } catch (error) {
        this.told(error.message, true);
      }
    };
    refill(this.dialog, make("h2", {}, "Rows of your own"),
      make("p", {}, "One column per label (.npy, .csv, .parquet), and the true labels in another file or in a column. Files can be dropped anywhere on the page. They stay on this machine."), said,
      make("div", { class: "form" },
        choose("probs file", "Probabilities", (file) => { probs = file; }), choose("truth file", "True labels", (file) => { beside = file; }),
        make("label", {}, "or the column of true labels ", column), make("label", {}, normalize, " scores that do not sum to 1: normalize them")),
      make("div", { class: "ends" }, make("button", { type: "button", class: "strong", "data-key": "load rows", onclick: load }, "Load"), " ", make("button", { type: "button", onclick: () => this.dialog.close() }, "Cancel")));
    show();
    if (!this.dialog.open) this.dialog.showModal();
  }
}
