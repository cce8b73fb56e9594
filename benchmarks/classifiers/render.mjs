// One-colour icons as pictures: of every set whose licence is a free one and every name asked for, one drawing at 48 x
// 48, of which the alpha is kept. A set that has a name in several styles only (home-outline, home-fill) gives the first
// of STYLES that it has. Reads a JSON array of names; writes the bytes of all pictures, one after the other, and beside
// them a JSON array of [set, author, name].
//
//     node render.mjs names.json pictures.bin pictures.json

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Resvg } from "@resvg/resvg-js";

const SIZE = 48;
const FREE = /^(MIT|ISC|Apache-2\.0|BSD-3-Clause|CC0-1\.0|CC-BY-[34]\.0|OFL-1\.1|MPL-2\.0|Unlicense)$/;
const STYLES = ["", "outline", "line", "linear", "regular", "fill", "filled", "solid", "bold", "rounded", "round", "light"];

const [from, bytes, index] = process.argv.slice(2);
const names = JSON.parse(readFileSync(from, "utf8"));
const root = dirname(createRequire(import.meta.url).resolve("@iconify/json/package.json"));
const sets = JSON.parse(readFileSync(join(root, "collections.json"), "utf8"));

function picture(set, icon) {
  const width = icon.width ?? set.width ?? 16;
  const height = icon.height ?? set.height ?? 16;
  const box = `${icon.left ?? set.left ?? 0} ${icon.top ?? set.top ?? 0} ${width} ${height}`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${SIZE}" height="${SIZE}" viewBox="${box}" color="#000">${icon.body}</svg>`;
  const drawn = new Resvg(svg, { font: { loadSystemFonts: false } }).render();
  if (drawn.width !== SIZE || drawn.height !== SIZE) throw new Error(`drawn at ${drawn.width} x ${drawn.height}`);
  const pixels = drawn.pixels; // each look at it is a copy of the whole
  return Uint8Array.from({ length: SIZE * SIZE }, (_, i) => pixels[4 * i + 3]);
}

const pictures = [];
const rows = [];
for (const [prefix, about] of Object.entries(sets)) {
  if (about.palette || !FREE.test(about.license.spdx ?? "")) continue;
  const set = JSON.parse(readFileSync(join(root, "json", `${prefix}.json`), "utf8"));
  for (const name of names) {
    const style = STYLES.find((style) => set.icons[style ? `${name}-${style}` : name]);
    if (style === undefined) continue;
    pictures.push(picture(set, set.icons[style ? `${name}-${style}` : name]));
    rows.push([prefix, about.author.name, name]);
  }
}
writeFileSync(bytes, Buffer.concat(pictures));
writeFileSync(index, JSON.stringify(rows));
