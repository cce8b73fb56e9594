// The page: a bar with what can be done, three panels, and what the studio is doing now.

import { ask, change, client, follow, offline, onFailure } from "./connection.js";
import { make, name, refill } from "./dom.js";
import { OverallPanel } from "./overall_panel.js";
import { RowsPanel } from "./rows_panel.js";
import { SetsPanel } from "./sets_panel.js";
import { SpecPanel } from "./spec_panel.js";

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

const gallery = make("dialog", { "aria-label": "Examples" });
const browse = async () => {
  try {
    const { examples } = await ask("gallery");
    refill(gallery, make("h2", {}, "Examples"), make("ul", { class: "gallery" }, examples.map((one) => make("li", {},
      make("button", { type: "button", onclick: async () => {
        gallery.close();
        try {
          await ask("open", { example: one.name });
        } catch (error) {
          told(error.message, true);
        }
      } }, make("b", {}, one.name), make("span", { class: "muted small" }, one.about))))),
      make("button", { type: "button", onclick: () => gallery.close() }, "Close"));
    gallery.showModal();
  } catch (error) {
    told(error.message, true);
  }
};

const tools = offline ? make("span", { class: "muted" }, "a page that was kept: it shows how things stood, and changes nothing")
  : make("div", { class: "tools" },
    make("button", { type: "button", onclick: browse }, "Examples"),
    make("button", { type: "button", class: "strong", onclick: save, title: "Ctrl+S" }, "Save"),
    make("a", { class: "button", href: "export", download: "" }, "Export"));

const panel = (id, heading) => make("section", { id, "aria-labelledby": `${id}-title` }, make("h2", { id: `${id}-title` }, heading));
const specAt = panel("spec", "Spec");
const setsAt = panel("sets", "Sets");
const rowsAt = panel("rows", "Rows");
const jumps = make("nav", { "aria-label": "Panels" }, ["spec", "sets", "rows"].map((id) => make("a", { href: `#${id}` }, id[0].toUpperCase() + id.slice(1))));
root.replaceChildren(make("header", {}, title, place, jumps, doing, tools), message, make("main", {}, specAt, setsAt, rowsAt), gallery);

const spec = new SpecPanel(specAt);
const sets = new SetsPanel(setsAt, told);
const rows = new RowsPanel(rowsAt, sets, told);
rowsAt.classList.add("waiting");
rowsAt.append(make("p", { class: "muted wait" }, "Rows are being scored. The first time on a machine that compiles what it needs, which takes up to a minute; after that it is a matter of moments."));
rowsAt.append(make("h2", { class: "second" }, "All rows"));
const overall = new OverallPanel(rowsAt);

let state = null;
let colours = {};
let slow = null;
const showDoing = (now) => {
  clearTimeout(slow);
  if (now === null) {
    doing.replaceChildren();
    return;
  }
  // What takes but a moment is not worth a word.
  slow = setTimeout(() => refill(doing,
    make("span", { class: "spin", "aria-hidden": "true" }), make("span", {}, `${now.oracle}: ${now.what}`, now.of > 1 ? ` ${Math.round((100 * now.done) / now.of)} %` : now.done ? ` ${now.done} rows` : ""),
    make("button", { type: "button", class: "quiet", "data-key": "stop", onclick: () => ask("stop") }, "Stop")), doing.children.length ? 0 : 350);
};

const show = (views) => {
  if (views.state) {
    state = views.state;
    refill(title, name(state.name));
    document.title = `${state.name}, udcp studio`;
    place.textContent = state.place === state.name ? "" : state.place;
    if (state.by !== client || spec.editor.text === "") spec.editor.show(state.text);
  }
  if (views.row) rowsAt.classList.remove("waiting");
  if (views.overall) {
    colours = Object.fromEntries(views.overall.oracles.map((x) => [x.oracle, x.colour]));
    const stopped = Object.entries(views.overall.missing).some(([, why]) => why.startsWith("stopped"));
    again.hidden = !stopped || offline;
  }
  spec.show(views, state);
  sets.show(views);
  rows.show(views, colours);
  overall.show(views, state);
  if (views.spec) specAt.classList.toggle("broken", !views.spec.ok);
  if (views.spec) for (const at of [setsAt, rowsAt]) at.classList.toggle("stale", !views.spec.ok);
  if ("doing" in views) showDoing(offline ? null : views.doing);
  if (views.fault) told(views.fault, true);
  root.dataset.ready = "yes";
};

const again = make("button", { type: "button", class: "quiet", hidden: true, onclick: () => ask("again") }, "Begin again what was stopped");
overall.table.parentElement.after(again);

onFailure((text) => told(text, true));
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "s" && !offline) {
    event.preventDefault();
    save();
  }
});
follow(show, (alive) => root.classList.toggle("gone", !alive));
