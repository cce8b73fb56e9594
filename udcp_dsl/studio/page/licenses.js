// Writes the licences of all that is part of studio.js beside it: they ask to be passed on with it.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";

const { inputs } = JSON.parse(readFileSync("bundle.json", "utf8"));
const packages = new Set(Object.keys(inputs).flatMap((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? []));
const parts = [...packages].sort().map((name) => {
  const folder = `node_modules/${name}`;
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const { version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  return `${name} ${version}\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n`;
});
writeFileSync("studio.js.licenses.txt", `studio.js contains these packages.\n\n${parts.join("\n----\n\n")}`);
