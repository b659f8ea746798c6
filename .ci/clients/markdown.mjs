// Renders the lines of standard input (of TestRendered) as chat clients do, and fails
// if anything in them except Ibid's own links is live.
import { createInterface } from "node:readline";
import * as commonmark from "commonmark";
import { parse } from "node-html-parser";
import { marked } from "marked";
import MarkdownIt from "markdown-it";
import footnote from "markdown-it-footnote";
import linkify from "linkify-it/package.json" with { type: "json" };
import remarkGfm from "remark-gfm";
import remarkHtml from "remark-html";
import { remark } from "remark";

const fuzzy = new MarkdownIt({ html: true, linkify: true }).use(footnote);
fuzzy.linkify.set({ fuzzyLink: true, fuzzyEmail: true, fuzzyIP: true });
const strict = new MarkdownIt("commonmark", { html: true });
const github = remark().use(remarkGfm).use(remarkHtml, { sanitize: false });
const renderers = {
  [`markdown-it, fuzzy links (linkify-it ${linkify.version})`]: (text) => fuzzy.render(text),
  "markdown-it, commonmark": (text) => strict.render(text),
  commonmark: (text) => new commonmark.HtmlRenderer().render(new commonmark.Parser().parse(text)),
  marked: (text) => marked.parse(text, { gfm: true }),
  "marked, breaks": (text) => marked.parse(text, { gfm: true, breaks: true }),
  "remark-gfm (GitHub's rules)": (text) => String(github.processSync(text)),
};
const plain = new Set(
  "p em strong del s code pre ul ol li h1 h2 h3 h4 h5 h6 hr br blockquote table thead tbody tr th td input".split(" "));

function live(html) {
  for (const e of parse(html, { blockTextElements: {} }).querySelectorAll("*")) {
    const name = e.rawTagName.toLowerCase();
    if (name === "a" ? e.getAttribute("href") !== "/documents/own" : !plain.has(name)) return e.toString().slice(0, 200);
  }
  return "";
}

let bad = 0;
let texts = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { name, markdown } = JSON.parse(line);
  texts++;
  for (const [renderer, render] of Object.entries(renderers)) {
    const found = live(render(markdown));
    if (found) {
      bad++;
      console.error(`${renderer}: ${name}: ${found}\n  in ${JSON.stringify(markdown)}`);
    }
  }
}
const names = Object.keys(renderers);
console.log(`figure: ${texts} texts by ${names.length} renderers (${names.join("; ")}): ${bad} with anything live`);
process.exit(bad || !texts ? 1 : 0);
