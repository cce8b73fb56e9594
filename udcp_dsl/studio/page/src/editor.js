// The editor: CodeMirror with the words of the language, and what the compiler says underlined as one types.

import { autocompletion } from "@codemirror/autocomplete";
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { Annotation, Compartment, EditorState } from "@codemirror/state";
import { EditorView, hoverTooltip } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";
import { ask, change, client, offline } from "./connection.js";
import { make } from "./dom.js";
import { markdown } from "./markdown.js";

const TYPED = 120; // milliseconds after the last key

const ours = Annotation.define();

const language = (words) => {
  const keywords = new Set(words.keywords);
  const atoms = new Set(words.atoms);
  return StreamLanguage.define({
    name: "loss",
    languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ["(", "{", "[", '"'] } },
    startState: () => ({ named: false }),
    token(stream, state) {
      if (stream.eatSpace()) return null;
      if (stream.match(/#.*/)) return "comment";
      if (stream.match(/"(?:\\.|[^"\\])*"?/)) return "string";
      if (stream.match(/[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/)) return "number";
      if (stream.match(/[\p{L}\p{M}\p{N}_]+/u)) {
        const word = stream.current();
        const named = state.named;
        state.named = word === "loss" || word === "let" || word === "param";
        if (keywords.has(word)) return "keyword";
        if (named) return "variableName.definition";
        if (atoms.has(word) && !/^\s*:/.test(stream.string.slice(stream.pos))) return "atom";
        return "variableName";
      }
      stream.next();
      return "operator";
    },
  });
};

const colours = HighlightStyle.define([
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: tags.keyword, color: "var(--oracle-lac)", fontWeight: "600" },
  { tag: tags.atom, color: "var(--link)" },
  { tag: tags.string, color: "var(--good)" },
  { tag: tags.number, color: "var(--oracle-greedy)" },
  { tag: tags.definition(tags.variableName), fontWeight: "650" },
]);

const look = EditorView.theme({
  "&": { backgroundColor: "var(--card)", color: "var(--ink)", fontSize: "0.8125rem", height: "100%" },
  "&.cm-focused": { outline: "2px solid var(--link)", outlineOffset: "-2px" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--ink)", padding: "0.5rem 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--soft)", color: "var(--muted)", border: "none" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--link) 6%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--link) 14%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--link) 28%, transparent) !important",
  },
  ".cm-selectionMatch": { backgroundColor: "color-mix(in srgb, var(--link) 16%, transparent)" },
  ".cm-matchingBracket": { backgroundColor: "color-mix(in srgb, var(--good) 25%, transparent) !important" },
  ".cm-tooltip, .cm-panels": { backgroundColor: "var(--card)", color: "var(--ink)", border: "1px solid var(--rule)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--link)", color: "var(--card)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad) 1.5px", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--oracle-penalized) 1.5px", textUnderlineOffset: "3px" },
  ".cm-diagnostic": { maxWidth: "34rem", whiteSpace: "normal" },
  ".cm-hover": { padding: "0.3rem 0.8rem", maxWidth: "40rem", maxHeight: "22rem", overflow: "auto" },
});

// Places, as the language server counts them.
const placeOf = (doc, at) => {
  const line = doc.lineAt(at);
  return { line: line.number - 1, character: at - line.from };
};
const offsetOf = (doc, { line, character }) => {
  if (line >= doc.lines) return doc.length;
  const found = doc.line(line + 1);
  return Math.min(found.from + character, found.to);
};
const question = (state, at) => ({ text: state.doc.toString(), at: placeOf(state.doc, at) });

const completing = async (context) => {
  const before = context.matchBefore(/[\p{L}\p{M}\p{N}_."]+/u);
  if (!context.explicit && !before) return null;
  try {
    const { items, range } = await ask("complete", question(context.state, context.pos));
    if (!range) return null;
    const options = items.map(({ info, ...item }, i) => ({ ...item, boost: -i / 10, ...(info ? { info: () => markdown(info) } : {}) }));
    return { from: offsetOf(context.state.doc, range.start), to: offsetOf(context.state.doc, range.end), options, validFor: /^"?[\p{L}\p{M}\p{N}_]*$/u };
  } catch {
    return null;
  }
};

const hovering = hoverTooltip(async (view, at) => {
  try {
    const { text, range } = await ask("hover", question(view.state, at));
    if (!text) return null;
    const { doc } = view.state;
    return { pos: offsetOf(doc, range.start), end: offsetOf(doc, range.end), above: true, create: () => ({ dom: make("div", { class: "cm-hover" }, markdown(text)) }) };
  } catch {
    return null;
  }
});

export class Editor {
  constructor(parent) {
    this.words = new Compartment();
    this.known = false;
    let timer = null;
    const typed = EditorView.updateListener.of((update) => {
      if (!update.docChanged || update.transactions.some((t) => t.annotation(ours))) return;
      clearTimeout(timer);
      timer = setTimeout(() => this.send(), TYPED);
    });
    this.extensions = [
      basicSetup,
      EditorView.lineWrapping,
      this.words.of([]),
      syntaxHighlighting(colours),
      look,
      EditorView.contentAttributes.of({ "aria-label": "The spec. Tab leaves the editor.", tabindex: "0" }),
      typed,
      offline ? [EditorState.readOnly.of(true)] : [autocompletion({ override: [completing] }), hovering],
    ];
    this.view = new EditorView({ parent, state: EditorState.create({ extensions: this.extensions }) });
  }

  get text() {
    return this.view.state.doc.toString();
  }

  send() {
    change({ text: { text: this.text, by: client } });
  }

  // The words of the language, which come with the first state.
  learn(words) {
    if (this.known) return;
    this.known = true;
    this.spoken = words;
    this.view.dispatch({ effects: this.words.reconfigure(language(words)) });
  }

  // A text that somebody else has set: another document, which has an undo of its own, or another window's edit.
  show(text, document) {
    if (document !== this.document) {
      this.document = document;
      this.view.setState(EditorState.create({ doc: text, extensions: this.extensions }));
      if (this.spoken) this.view.dispatch({ effects: this.words.reconfigure(language(this.spoken)) });
      return;
    }
    if (text === this.text) return;
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, annotations: ours.of(true) });
  }

  diagnose(found) {
    const length = this.view.state.doc.length;
    const placed = found.map((d) => {
      const from = Math.min(d.from, length);
      const to = Math.min(Math.max(d.to, from), length);
      return {
        from: from === to && from === length && from > 0 ? from - 1 : from,
        to: from === to && to < length ? to + 1 : to,
        severity: d.severity,
        source: d.code,
        message: d.help ? `${d.message}\n${d.help}` : d.message,
      };
    });
    this.view.dispatch(setDiagnostics(this.view.state, placed));
  }

  // The ways to mend a fault: each a title, and a function that does it.
  async fixes(d) {
    const asked = this.view.state;
    const { fixes } = await ask("fixes", question(asked, Math.min(d.from, asked.doc.length)));
    return fixes.map(({ title, edits }) => ({
      title,
      mend: () => {
        if (!this.view.state.doc.eq(asked.doc)) return; // it has been edited since
        const changes = edits.map((e) => ({ from: offsetOf(asked.doc, e.range.start), to: offsetOf(asked.doc, e.range.end), insert: e.newText }));
        this.view.dispatch({ changes });
      },
    }));
  }

  // Writes a number in the place of another.
  write(from, to, text) {
    this.view.dispatch({ changes: { from, to, insert: text } });
  }

  goTo(at) {
    this.view.dispatch({ selection: { anchor: Math.min(at, this.view.state.doc.length) }, scrollIntoView: true });
    this.view.focus();
  }
}
