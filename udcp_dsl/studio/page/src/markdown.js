// The Markdown that the language server speaks: paragraphs, headings, tables, code, bold. All of it goes in as text.

import { make } from "./dom.js";

const INLINE = /(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]*\))/;

export const inline = (text) => text.split(INLINE).flatMap((part) => {
  if (part.startsWith("`") && part.length > 1) return make("code", {}, part.slice(1, -1));
  if (part.startsWith("**")) return make("b", {}, part.slice(2, -2));
  const link = /^\[([^\]]+)\]\([^)]*\)$/.exec(part);
  return link ? inline(link[1]) : part;
});

const table = (lines) => make("table", {}, lines.filter((line) => !/^\|[-|: ]+\|$/.test(line)).map((line, i) =>
  make("tr", {}, line.replace(/^\||\|$/g, "").split("|").map((cell) => make(i ? "td" : "th", {}, inline(cell.trim()))))));

export const markdown = (text) => {
  const blocks = [];
  let code = null;
  for (const block of text.split(/\n{2,}/)) {
    const lines = block.split("\n");
    if (code !== null || lines[0].startsWith("```")) {
      code = [...(code ?? []), ...lines];
      if (code.length > 1 && code.at(-1).startsWith("```")) {
        blocks.push(make("pre", {}, code.slice(1, -1).join("\n")));
        code = null;
      }
    } else if (lines.every((line) => line.startsWith("    "))) blocks.push(make("pre", {}, lines.map((line) => line.slice(4)).join("\n")));
    else if (lines[0].startsWith("|")) blocks.push(table(lines));
    else if (/^#+ /.test(block)) blocks.push(make("h4", {}, block.replace(/^#+ /, "")));
    else if (/^-{3,}$/.test(block.trim())) blocks.push(make("hr"));
    else blocks.push(make("p", {}, inline(lines.join(" "))));
  }
  if (code !== null) blocks.push(make("pre", {}, code.slice(1).join("\n")));
  return make("div", { class: "markdown" }, blocks);
};
