// The answer's text as blocks of HTML from the server. Only here does the page
// parse markup. It can: the server renders the Markdown without links, images
// and raw HTML, and allows only a list of elements without addresses, styles and
// handlers (web/render.go, which tests check). In addition, the content of a
// template element runs and loads nothing.

import { copyButtons } from "./copy.js";

// The sentences that differ from those of an earlier draft, where the browser can mark them.
const changed = globalThis.Highlight && new Highlight();
if (changed) CSS.highlights.set("changed", changed);

export class Blocks {
  // equip is called once with each new citation number.
  constructor(element, equip = () => {}) {
    this.element = element;
    this.equip = equip;
    this.html = []; // by index
    this.earlier = []; // the draft that the text replaces, sentence by sentence
    this.first = null; // the first of the drafts
    this.draft = false; // the text is a draft too
    this.marked = []; // its sentences in changed
    this.stale = new Set();
    this.frame = 0;
  }

  // begin starts another version of the text, which replaces the one that is drawn.
  begin(draft) {
    const size = (html) => html.join("").length;
    if (2 * size(this.html) > size(this.earlier)) this.earlier = this.html; // not by what broke off early
    if (this.html.length) this.first ||= this.html;
    this.html = [];
    this.draft = draft;
    this.#redraw();
  }

  // put sets the HTML of a block, which is drawn in the next frame.
  put(index, html) {
    this.html[index] = html;
    this.stale.add(index);
    if (index) this.stale.add(index - 1);
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  // finish drops what is left of the earlier draft, and marks the sentences that differ from the first.
  finish() {
    this.earlier = [];
    this.#redraw();
    this.draw();
    while (this.element.children.length > this.html.length) this.element.lastChild.remove();
    this.mark(this.first);
  }

  // mark marks the sentences that are not in an earlier text, which is the HTML of its blocks.
  mark(before) {
    if (!changed || !before?.length) return;
    for (const range of this.marked) changed.delete(range);
    const old = new Set(before.flatMap((html) => sentences(parse(html)).map((s) => s.text)));
    this.marked = sentences(this.element).filter((s) => !old.has(s.text)).map((s) => s.range);
    for (const range of this.marked) changed.add(range);
  }

  // differs reports whether sentences are marked.
  get differs() {
    return this.marked.length > 0;
  }

  #redraw() {
    for (let i = 0; i < Math.max(this.html.length, this.earlier.length); i++) this.stale.add(i);
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    for (const index of [...this.stale].sort((a, b) => a - b)) {
      while (this.element.children.length <= index) {
        const block = document.createElement("div");
        block.className = "block";
        block.dir = "auto";
        this.element.append(block);
      }
      const block = this.element.children[index];
      block.classList.toggle("draft", this.draft || this.html[index] === undefined);
      graft(block, this.#content(index));
      for (const cite of block.querySelectorAll(".cite:not([href])")) this.equip(cite);
      copyButtons(block);
    }
    this.stale.clear();
  }

  // #content returns a block, and below the last one the rest of the draft's.
  #content(index) {
    const [html, earlier] = [this.html[index], this.earlier[index]];
    const content = parse(html ?? earlier ?? "");
    if (this.draft || html === undefined) for (const cite of content.querySelectorAll(".cite")) cite.remove();
    if (html === undefined || earlier === undefined || index < this.html.length - 1) return content;
    const rest = parse(earlier);
    for (const cite of rest.querySelectorAll(".cite")) cite.remove();
    const [now, before] = [sentences(content), sentences(rest)];
    const [growing, same] = [now.at(-1), before[now.length - 1]];
    if (growing && same && same.text !== growing.text && same.text.startsWith(growing.text)) {
      growing.range.deleteContents(); // until it differs from what is there
      now.pop();
    }
    const left = before[now.length];
    if (!left) return content;
    const gone = document.createRange();
    gone.setStart(rest, 0);
    gone.setEnd(left.range.startContainer, left.range.startOffset);
    gone.deleteContents();
    for (const node of rest.children) {
      node.classList.add("draft");
      if (node.tagName === "P" && content.lastElementChild?.tagName === "P") {
        const span = document.createElement("span");
        span.className = "draft";
        span.append(" ", ...node.childNodes);
        node.replaceWith(span);
        content.lastElementChild.append(span);
        break;
      }
    }
    content.append(...rest.childNodes);
    return content;
  }
}

// under returns the citations of a number in the text: of those with its number, the
// ones whose sentence contains it or is nearest.
export function under(citations, link) {
  const number = Number(link.dataset.number);
  const at = Number(link.dataset.at);
  const mine = citations.filter((c) => c.number === number);
  const distance = (c) => Math.max(0, c.text_start - at, at - c.text_end);
  const least = Math.min(...mine.map(distance));
  return mine.filter((c) => distance(c) === least);
}

function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

const splitter = new Intl.Segmenter(undefined, { granularity: "sentence" });

// sentences returns the sentences of a text without its numbers: {text, range}.
function sentences(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT, (n) => (n.parentElement?.closest(".cite, button") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
  const nodes = [];
  let text = "";
  while (walker.nextNode()) {
    nodes.push({ node: walker.currentNode, at: text.length });
    text += walker.currentNode.data;
  }
  const place = (at) => {
    const { node, at: start } = nodes.findLast((n) => n.at <= at);
    return [node, Math.min(at - start, node.data.length)];
  };
  return [...splitter.segment(text)].filter((s) => s.segment.trim()).map(({ segment, index }) => {
    const range = document.createRange();
    range.setStart(...place(index));
    const [node, last] = place(index + segment.trimEnd().length - 1);
    range.setEnd(node, last + 1); // before a number
    return { text: segment.replace(/\s+/g, " ").trim(), range };
  });
}

// graft replaces the children of an element with those of a fragment, but keeps
// equal ones, so that focus, selection and layout do not change.
function graft(element, fragment) {
  let at = element.firstChild;
  for (const node of [...fragment.childNodes]) {
    if (at && alike(at, node)) {
      if (node.nodeType === Node.TEXT_NODE) {
        if (at.data !== node.data) at.data = node.data;
      } else if (node.className !== "cite") graft(at, node);
      at = at.nextSibling;
    } else if (at) {
      at.replaceWith(node);
      at = node.nextSibling;
    } else element.append(node);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function alike(a, b) {
  if (a.nodeType === Node.TEXT_NODE || b.nodeType === Node.TEXT_NODE) return a.nodeType === b.nodeType;
  if (b.className === "cite") return a.dataset.at === b.dataset.at && a.dataset.number === b.dataset.number;
  return a.cloneNode(false).isEqualNode(b.cloneNode(false));
}
