// The page: a bar with what can be done, three panels, and what the studio is doing now.

import { CasesPanel } from "./cases_panel.js";
import { ask, change, client, follow, offline, onFailure } from "./connection.js";
import { draw, make, name, number, refill, setUnit } from "./dom.js";
import { glossary, help, tour } from "./help.js";
import { OverallPanel } from "./overall_panel.js";
import { OwnRows } from "./own_rows.js";
import { QuestionsPanel } from "./questions_panel.js";
import { divide } from "./resizing.js";
import { RowsPanel } from "./rows_panel.js";
import { SetsPanel } from "./sets_panel.js";
import { SpecPanel } from "./spec_panel.js";
import { Strip } from "./strip.js";

const root = document.getElementById("studio");

const title = make("h1", {}, "udcp studio");
const place = make("span", { class: "muted place-name" });
const message = make("p", { class: "message", role: "status", hidden: true });
const doing = make("div", { class: "doing", role: "status" });
let hush = null;
const told = (text, wrong = false) => {
  message.textContent = text;
  message.className = wrong ? "message wrong" : "message";
  message.hidden = false;
  clearTimeout(hush);
  hush = setTimeout(() => { message.hidden = true; }, 12000);
};

const save = async () => {
  try {
    spec.editor.send();
    await change({});
    const answer = await ask("save");
    told(`Saved: ${answer.written.join(", ")}`);
  } catch (error) {
    told(error.message, true);
  }
};

// What is not saved is not thrown away unasked.
const mayLeave = () => !state?.unsaved || confirm(`${state.name} has changes that are not saved. Leave them?`);
addEventListener("beforeunload", (event) => {
  if (state?.unsaved && !offline) event.preventDefault();
});

const copies = make("dialog", { "aria-label": "Copy" });
const copy = () => {
  const block = (title, key, text) => [make("h3", {}, title), make("pre", { tabindex: "0" }, text), make("button", { type: "button", class: "strong", "data-key": key, onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      told("Copied.");
    } catch {
      told("The browser does not allow copying: select the text and copy it yourself.", true);
    }
  } }, "Copy")];
  refill(copies, make("h2", {}, "Continue with this view"), ...block("As a command", "copy command", copied.command), ...block("As Python", "copy python", copied.python),
    make("div", { class: "ends" }, make("button", { type: "button", onclick: () => copies.close() }, "Close")));
  copies.showModal();
};

// What single labels cost, the cheapest first: a spec at a glance.
const thumbnail = (costs) => {
  if (!costs) return null;
  const most = Math.max(...costs, 1e-12);
  const width = 96 / costs.length;
  return draw("svg", { viewBox: "0 0 96 40", class: "thumbnail", role: "img", "aria-label": `Single labels cost ${number(costs[0])} to ${number(costs.at(-1))}.` },
    costs.map((one, i) => draw("rect", { x: i * width, width: Math.max(0.5, width - 0.5), y: 40 - 39 * Math.max(0, one / most), height: Math.max(1, 39 * Math.max(0, one / most)) })));
};

const gallery = make("dialog", { "aria-label": "Examples" });
const browse = async () => {
  try {
    const { examples } = await ask("gallery");
    refill(gallery, make("h2", {}, "Examples, from easy to hard"), make("p", { class: "muted small" }, "The figure shows what single labels cost, the cheapest first."), make("ul", { class: "gallery" }, examples.map((one) => make("li", {},
      make("button", { type: "button", "data-key": `example ${one.name}`, onclick: async () => {
        gallery.close();
        if (!mayLeave()) return;
        try {
          await ask("open", { example: one.name });
        } catch (error) {
          told(error.message, true);
        }
      } }, thumbnail(one.figure), make("b", {}, one.title), make("span", { class: "muted small" }, make("code", {}, one.name), `, ${one.labels.toLocaleString("en")} labels`),
        make("span", { class: "small" }, one.about), make("span", { class: "terms-used" }, one.terms.slice(0, 4).map((term) => make("code", {}, term)), one.terms.length > 4 ? ` and ${one.terms.length - 4} more` : ""))))),
      make("button", { type: "button", onclick: () => gallery.close() }, "Close"));
    gallery.showModal();
  } catch (error) {
    told(error.message, true);
  }
};

const tools = offline ? make("span", { class: "muted" }, "an exported page: it shows the state at export and cannot be edited")
  : make("div", { class: "tools" },
    make("button", { type: "button", onclick: browse }, "Examples"),
    make("button", { type: "button", "data-key": "own rows", onclick: () => ownRows.open() }, "Load rows"),
    make("button", { type: "button", "data-key": "copy", onclick: copy }, "Copy as …"),
    make("button", { type: "button", "data-key": "tour", onclick: () => tour(true) }, "Tour"),
    make("button", { type: "button", class: "strong", onclick: save, title: "Ctrl+S" }, "Save"),
    make("a", { class: "button", href: "export", download: "" }, "Export"));

const panel = (id, heading, ...words) => make("section", { id, tabindex: "-1", "aria-labelledby": `${id}-title` }, make("h2", { id: `${id}-title` }, heading, words.map((word) => [" ", help(word)]).flat()));
const SKIPS = [["alpha", "Alpha"], ["spec", "Spec"], ["sets", "Sets"], ["rows", "Row"], ["all", "All rows"]];
const skips = (label, but) => make("nav", { class: "skips", "aria-label": label }, SKIPS.filter(([id]) => id !== but).map(([id, text]) => make("a", { href: `#${id}` }, `Skip to ${text.toLowerCase()}`)));
const specAt = panel("spec", "Spec");
const setsAt = panel("sets", "Sets");
const rowsAt = panel("rows", "Rows");
const stripAt = make("div", { id: "strip", role: "region", "aria-label": "The answer" });
const saved = make("span", { class: "unsaved", hidden: true }, "not saved");
const jumps = make("nav", { class: "jumps", "aria-label": "Panels" }, ["spec", "sets", "rows"].map((id) => make("a", { href: `#${id}` }, id[0].toUpperCase() + id.slice(1))));
const main = make("main", {}, specAt, setsAt, rowsAt);
root.replaceChildren(skips("Skip", null), make("header", {}, title, saved, place, jumps, doing, tools), stripAt, message, main, gallery, copies, glossary);
divide(main, [specAt, setsAt, rowsAt]);

const strip = new Strip(stripAt, help);
const ownRows = offline ? null : new OwnRows(told);
if (ownRows) root.append(ownRows.dialog);
const spec = new SpecPanel(specAt);
specAt.querySelector(".editor").after(skips("Skip from the editor", "spec"));
const sets = new SetsPanel(setsAt, told);
const cases = new CasesPanel(setsAt);
const questions = new QuestionsPanel(setsAt, (body) => sets.keepCase(body));
const rows = new RowsPanel(rowsAt, sets, told);
rowsAt.classList.add("waiting");
rowsAt.append(make("p", { class: "muted wait" }, "Rows are being scored. The first run on a machine compiles for up to a minute; later runs start at once."));
rowsAt.append(make("h2", { class: "second", id: "all", tabindex: "-1" }, "All rows"));
const overall = new OverallPanel(rowsAt);

let state = null;
let looks = {};
let copied = { command: "", python: "" };
let now = null; // what the studio is doing
let slow = null;
const tellDoing = () => refill(doing,
  make("span", { class: "spin", "aria-hidden": "true" }), make("span", {}, `${now.oracle ? `${now.oracle}: ` : ""}${now.what}`, now.of > 1 ? ` ${Math.round((100 * now.done) / now.of)} %` : now.done ? ` ${now.done} rows` : ""),
  make("button", { type: "button", class: "quiet", "data-key": "stop", onclick: () => ask("stop") }, "Stop"));
const showDoing = (view) => {
  now = view;
  if (now === null) {
    clearTimeout(slow);
    slow = null;
    doing.replaceChildren();
  } else if (doing.children.length) tellDoing();
  // What takes but a moment is not worth a word.
  else slow ??= setTimeout(() => { slow = null; tellDoing(); }, 350);
};

const show = (views) => {
  if (views.state) {
    state = views.state;
    refill(title, name(state.name));
    document.title = `${state.name}, udcp studio`;
    place.textContent = state.place === state.name ? "" : state.place;
    saved.hidden = !state.unsaved;
    const document_ = `${state.place} ${state.name}`;
    // Saved under another place it is the same document still.
    if (state.by === client && spec.editor.text === state.text) spec.editor.document = document_;
    if (state.by !== client || spec.editor.document !== document_) spec.editor.show(state.text, document_);
  }
  if (views.copied) copied = views.copied;
  if (views.spec?.ok) setUnit(views.spec.unit);
  if (views.row) rowsAt.classList.remove("waiting");
  if (views.overall) {
    looks = Object.fromEntries(views.overall.oracles.map((x) => [x.oracle, x]));
    const stopped = Object.entries(views.overall.missing).some(([, why]) => why.startsWith("stopped"));
    again.hidden = !stopped || offline;
  }
  spec.show(views, state);
  sets.show(views);
  cases.show(views);
  questions.show(views);
  rows.show(views, looks);
  strip.show(views, state);
  overall.show(views, state);
  if (views.spec) specAt.classList.toggle("broken", !views.spec.ok);
  if (views.spec) for (const at of [setsAt, rowsAt]) at.classList.toggle("stale", !views.spec.ok);
  if ("doing" in views) showDoing(offline ? null : views.doing);
  if (views.fault) told(views.fault, true);
  root.dataset.ready = "yes";
};

const again = make("button", { type: "button", class: "quiet", hidden: true, onclick: () => ask("again") }, "Restart");
overall.table.parentElement.after(again);

onFailure((text) => told(text, true));
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "s" && !offline) {
    event.preventDefault();
    save();
  }
});
if (!offline) tour();
follow(show, (alive) => root.classList.toggle("gone", !alive));
