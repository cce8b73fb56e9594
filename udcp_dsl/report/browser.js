// One row of the test fold at a time: what the classifier said, each oracle's set, and what it costs term by term.
// Text enters the page as text only, never as markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("instances").textContent);
  const root = document.getElementById("browser");
  if (!data.losses.length) return;
  const FEW = 6; // labels of a category that are shown at once
  const ROWS = 24; // labels after which further categories are folded

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("--")) element.style.setProperty(name, value);
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  };
  const name = (text) => make("bdi", {}, text);
  const brief = (text) => (text.length > 40 ? `${text.slice(0, 39)}…` : text);
  const number = (value) => String(Number(value.toPrecision(4)));
  const colour = (oracle) => `var(${data.colours[oracle] ?? "--muted"})`;

  // The mark of an oracle: its colour and its shape, as in the figures.
  const swatch = (oracle, kind, attributes = {}) => {
    const { namespaceURI } = document.querySelector("svg"); // that of the figures: no address stands in the page
    const [svg, path] = ["svg", "path"].map((tag) => document.createElementNS(namespaceURI, tag));
    for (const [key, value] of Object.entries({ class: kind, viewBox: "-6 -6 12 12", ...attributes })) svg.setAttribute(key, value);
    path.setAttribute("d", data.marks[oracle] ?? "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z");
    svg.style.setProperty("--c", colour(oracle));
    svg.append(path);
    return svg;
  };

  const lossChoice = make("select");
  const rowChoice = make("select");
  const back = make("button", { type: "button" }, "← previous");
  const forth = make("button", { type: "button" }, "next →");
  const view = make("div", { class: "instance", "aria-live": "polite" });
  const controls = make("div", { class: "controls" });
  if (data.losses.length > 1) controls.append(make("label", {}, "loss", lossChoice));
  controls.append(make("label", {}, "row", rowChoice), back, forth);
  data.losses.forEach((loss, i) => lossChoice.append(make("option", { value: i }, loss.name)));

  const chosen = () => {
    const loss = data.losses[Number(lossChoice.value)];
    return [loss, loss.examples[Number(rowChoice.value)]];
  };

  // The categories above the labels with some probability, heaviest first; a label in two categories stands in both.
  const forest = (loss, example) => {
    const top = { children: new Map(), labels: [], mass: 0 };
    const nodes = loss.tree ? loss.tree.nodes : [];
    const below = (index) => {
      if (index < 0) return top;
      const above = below(nodes[index][1]);
      if (!above.children.has(index)) {
        const [text, , size] = nodes[index];
        above.children.set(index, { text, size, children: new Map(), labels: [], mass: 0 });
      }
      return above.children.get(index);
    };
    for (const [label, p] of example.p) {
      const above = loss.tree ? loss.tree.above[label] : [];
      for (const index of above.length ? above : [-1]) {
        below(index).labels.push([label, p]);
        for (let at = index; at >= 0; at = nodes[at][1]) below(at).mass += p;
      }
    }
    return top;
  };
  const members = (node) => [
    ...node.labels.map(([label]) => label),
    ...[...node.children.values()].flatMap(members),
  ];

  const head = (loss) =>
    make("thead", {}, make("tr", {}, make("td"), make("td"), ...loss.oracles.map((oracle) =>
      make("th", { scope: "col" }, swatch(oracle, "swatch", { "aria-hidden": "true" }), name(oracle)))));
  const part = (text, loss, second = "") =>
    make("tr", { class: "part" }, make("th", { scope: "rowgroup" }, text), make("td", { class: "muted" }, second),
      ...loss.oracles.map(() => make("td")));
  const line = (text, cells, kind = "") =>
    make("tr", { class: kind }, make("th", { scope: "row" }, text), make("td"), ...cells.map((cell) => make("td", {}, cell)));

  const costs = (loss, example) => {
    const body = make("tbody", {}, part("cost", loss));
    if (loss.terms.length > 1) {
      loss.terms.forEach((term, i) => body.append(line(make("code", {}, term), example.terms.map((paid) => number(paid[i])))));
    }
    body.append(line("total", example.costs.map(number), "total"));
    body.append(line("labels in the set", example.sets.map((set) => String(set.length))));
    body.append(line("holds the truth", example.sets.map((set) =>
      set.includes(example.truth) ? make("span", { class: "yes" }, "yes") : make("span", { class: "no" }, "no"))));
    if (example.decided.some(Boolean)) body.append(line("decision", example.decided.map(name)));
    return body;
  };

  const labels = (loss, example, sets) => {
    const body = make("tbody", {}, part(loss.tree ? `labels, by ${loss.tree.name}` : "labels", loss, "probability"));
    const likeliest = Math.max(...example.p.map(([, p]) => p), 1e-12);
    // Why is this label in, or out? Its p-value is the alpha from which on it is left out.
    const place = new Map(example.p.map(([label], at) => [label, at]));
    const because = (i, label) => (example.from.length > i
      ? `p-value ${example.from[i][place.get(label)]}: in while alpha is below it` : "");
    const leaf = ([label, p], depth) => {
      const title = make("th", { scope: "row", "--depth": depth }, name(loss.labels[label]));
      if (label === example.truth) title.append(make("span", { class: "tag" }, "truth"));
      const bar = make("i");
      bar.style.width = `${(100 * p) / likeliest}%`;
      return make("tr", label === example.truth ? { class: "truth" } : {}, title,
        make("td", {}, make("span", { class: "p", "aria-hidden": "true" }, bar), p && p < 0.0001 ? p.toExponential(0) : p.toFixed(4)),
        ...sets.map((set, i) => {
          const why = because(i, label);
          return make("td", why ? { title: why } : {}, set.has(label)
            ? swatch(loss.oracles[i], "dot", { role: "img", "aria-label": `in the set of ${loss.oracles[i]}${why && `: ${why}`}` })
            : make("span", { class: "out", role: "img", "aria-label": `not in it${why && `: ${why}`}` }));
        }));
    };
    // What is folded away opens with a button; the truth never is.
    const opener = (text, open) => {
      const button = make("button", { type: "button", class: "more" }, text);
      button.addEventListener("click", () => open(button));
      return button;
    };
    const counts = (all) => sets.map((set) => make("td", {}, String(all.filter((label) => set.has(label)).length || "")));
    const rows = (node, depth, budget) => {
      const found = [];
      for (const child of [...node.children.values()].sort((a, b) => b.mass - a.mass)) {
        const all = members(child);
        const title = make("th", { scope: "row", "--depth": depth }, name(child.text), make("span", { class: "muted of" }, ` of ${child.size}`));
        const row = make("tr", { class: "node" }, title, make("td"), ...counts(all));
        found.push(row);
        if (budget.left > 0 || all.includes(example.truth)) {
          found.push(...rows(child, depth + 1, budget));
        } else {
          title.append(opener("show", (button) => {
            row.after(...rows(child, depth + 1, { left: ROWS }));
            button.remove();
          }));
        }
      }
      const sorted = node.labels.sort((a, b) => b[1] - a[1]);
      const some = Math.min(FEW, Math.max(budget.left, 0));
      const shown = sorted.filter(([label], i) => i < some || sorted.length <= some + 1 || label === example.truth);
      const folded = sorted.filter((label) => !shown.includes(label));
      budget.left -= shown.length;
      found.push(...shown.map((label) => leaf(label, depth)));
      if (folded.length) {
        const more = opener(`${folded.length} more`, () => row.replaceWith(...folded.map((label) => leaf(label, depth))));
        const row = make("tr", { class: "node" }, make("th", { scope: "row", "--depth": depth }, more), make("td"), ...counts(folded.map(([label]) => label)));
        found.push(row);
      }
      return found;
    };
    body.append(...rows(forest(loss, example), 0, { left: ROWS }));
    return body;
  };

  const show = () => {
    const [loss, example] = chosen();
    const title = make("h3", {}, example.name === null ? `Row ${example.row}` : name(example.name), ": the truth is ", name(loss.labels[example.truth]));
    const table = make("table", {}, head(loss), costs(loss, example), labels(loss, example, example.sets.map((set) => new Set(set))));
    const why = example.why ? [make("p", { class: "why" }, name(example.why))] : [];
    view.replaceChildren(title, ...why, make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "sets of this row" }, table));
    if (!example.p.some(([label]) => label === example.truth)) {
      view.append(make("p", { class: "muted small" }, "The truth is in none of the sets and not among the likeliest labels."));
    }
    back.disabled = rowChoice.selectedIndex === 0;
    forth.disabled = rowChoice.selectedIndex === loss.examples.length - 1;
  };
  const choices = () => {
    const loss = data.losses[Number(lossChoice.value)];
    rowChoice.replaceChildren(...loss.examples.map((example, i) => {
      const range = [Math.min(...example.costs), Math.max(...example.costs)].map(number);
      const cost = range[0] === range[1] ? `cost ${range[0]}` : `costs ${range[0]} to ${range[1]}`;
      return make("option", { value: i }, `${brief(example.name ?? `row ${example.row}`)}: ${brief(loss.labels[example.truth])}, ${cost}`);
    }));
    show();
  };
  lossChoice.addEventListener("change", choices);
  rowChoice.addEventListener("change", show);
  back.addEventListener("click", () => { rowChoice.selectedIndex -= 1; show(); });
  forth.addEventListener("click", () => { rowChoice.selectedIndex += 1; show(); });
  root.replaceChildren(controls, view);
  choices();
  root.dataset.ready = "yes";
})();
