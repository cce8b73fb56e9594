// Words that a newcomer does not know, each behind a "?"; and a tour of three steps.

import { make } from "./dom.js";

const WORDS = {
  oracle: "An oracle orders the labels of a row; calibration decides where to cut. price adds the labels that are worth their cost; lac and base look at probabilities alone and are shown for comparison.",
  price: "What one unit of probability may cost. A row's set contains the labels that are worth this price; calibration finds the price at which the sets reach the target coverage.",
  mass: "The mass of a set is the sum of the probabilities of its labels, after their repair.",
  "worth of a miss": "price adds a label if its probability times this worth exceeds its cost. So the calibrated threshold is the implied cost of a missed true label: the smaller alpha, the higher it is. Type a worth to set alpha.",
  alpha: "The share of rows whose true label may be missing from the set. At alpha 0.1 the sets contain the true label of 9 rows in 10, on average over all rows.",
};

const dialog = make("dialog", { "aria-label": "Glossary", class: "glossary" });
const open = (word) => {
  dialog.replaceChildren(make("h2", {}, "Glossary"),
    make("dl", {}, Object.entries(WORDS).map(([term, text]) => [make("dt", { class: term === word ? "asked" : "" }, term), make("dd", {}, text)]).flat()),
    make("button", { type: "button", onclick: () => dialog.close() }, "Close"));
  dialog.showModal();
};
export const glossary = dialog;
export const help = (word) => make("button", { type: "button", class: "help", "aria-label": `What is ${word}?`, title: WORDS[word], onclick: () => open(word) }, "?");

const STEPS = [
  ["strip", "The answer. What the sets cost, what that saves, and which rows are covered too rarely. Move alpha and watch."],
  ["spec", "The loss. Edit it, or move a slider below: everything else updates as you type."],
  ["rows", "One row. Each mark is a label in an oracle's set. Drag a probability, or click a label to ask why it is in."],
];

// Shown once on a machine, where it may be remembered.
export const tour = (again = false) => {
  let seen = null;
  try {
    seen = localStorage.getItem("udcp tour");
  } catch {
    seen = null;
  }
  if (seen && !again) return;
  const end = () => {
    box.remove();
    document.querySelectorAll(".toured").forEach((one) => one.classList.remove("toured"));
    try {
      localStorage.setItem("udcp tour", "seen");
    } catch {
      return;
    }
  };
  let at = 0;
  const text = make("p");
  const next = make("button", { type: "button", class: "strong", "data-key": "tour next", onclick: () => (at + 1 < STEPS.length ? go(at + 1) : end()) });
  const box = make("aside", { class: "tour", role: "region", "aria-label": "Tour" }, text, make("div", {}, next, " ", make("button", { type: "button", class: "quiet", "data-key": "tour end", onclick: end }, "Dismiss")));
  const go = (step) => {
    at = step;
    const [place, says] = STEPS[at];
    document.querySelectorAll(".toured").forEach((one) => one.classList.remove("toured"));
    document.getElementById(place)?.classList.add("toured");
    text.textContent = `${at + 1} of ${STEPS.length}. ${says}`;
    next.textContent = at + 1 < STEPS.length ? "Next" : "Done";
  };
  document.querySelector(".tour")?.remove();
  document.body.append(box);
  go(0);
};
