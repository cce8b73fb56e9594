// The probabilities that the language detection of VS Code gives to snippets: reads a JSON array of texts, writes an
// object with the labels, in the order of the columns, and a row of probabilities for each text.
//
//     node detect.mjs snippets.json probabilities.json

import { readFileSync, writeFileSync } from "node:fs";
import detection from "@vscode/vscode-languagedetection";

const [from, to] = process.argv.slice(2);
const texts = JSON.parse(readFileSync(from, "utf8"));
const model = new detection.ModelOperations();
let labels = null;
const rows = [];
for (const text of texts) {
  const found = new Map((await model.runModel(text)).map((one) => [one.languageId, one.confidence]));
  labels ??= [...found.keys()].sort();
  rows.push(labels.map((label) => found.get(label)));
  if (rows.length % 500 === 0) console.error(`${rows.length} of ${texts.length}`);
}
writeFileSync(to, JSON.stringify({ labels, rows }));
