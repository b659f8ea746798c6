// The answer's text as blocks of HTML from the server. The page parses markup
// only here. This is safe: the server renders the Markdown without links, images
// and raw HTML, and allows only a list of elements without addresses, styles and
// handlers (web/render.go, which tests check). In addition, the content of a
// template element runs and loads nothing.

import { copyButtons } from "./copy.js";
import { rankHeadings } from "./dom.js";

// The sentences that differ from an earlier draft, if the browser can mark them.
const changed = globalThis.Highlight && new Highlight();
if (changed) CSS.highlights.set("changed", changed);

export class Blocks {
  // equip is called once with each new citation number.
  constructor(element, equip = () => {}) {
    this.element = element;
    this.equip = equip;
    this.html = []; // of the blocks, by index
    this.earlier = []; // HTML of the draft that the text replaces, sentence by sentence
    this.before = []; // the sentences of that draft: {text, block, n}
    this.first = null; // HTML of the first draft
    this.draft = false; // the text itself is a draft
    this.settled = null; // the numbers that are final; other numbers are shown as dots. null if all are final
    this.growing = false; // the last sentence is drawn, but may be incomplete
    this.marked = []; // the ranges of the text in changed
    this.stale = new Set();
    this.frame = 0;
  }

  // begin starts another version of the text, which replaces the one that is drawn.
  begin(draft, settled = null) {
    const size = (html) => html.join("").length;
    if (2 * size(this.html) > size(this.earlier)) this.earlier = this.html; // unless this version broke off early
    this.before = this.earlier.flatMap((html, block) => sentences(parseHTML(html)).map(({ text }, n) => ({ text, block, n })));
    if (this.html.length) this.first ||= this.html;
    this.html = [];
    this.stale.clear();
    Object.assign(this, { draft, settled });
    this.draw();
  }

  // put sets the HTML of a block, which is drawn in the next frame.
  put(index, html) {
    this.html[index] = html;
    this.stale.add(index);
    if (this.before.length) for (let i = 0; i < this.html.length; i++) this.stale.add(i); // a block may show a part of the draft
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  // withdraw withdraws the text, and draws the draft that it should have replaced.
  withdraw() {
    [this.html, this.earlier, this.before] = [this.earlier, [], []];
    this.draft = true;
    this.growing = false;
    this.stale = new Set(this.html.keys());
    this.draw();
    this.markChanged(this.html); // removes all marks
  }

  // finish removes the remaining sentences of the earlier draft, and marks those that differ from the first.
  finish() {
    this.earlier = this.before = [];
    this.growing = false;
    this.html.forEach((_, i) => this.stale.add(i));
    this.draw();
    rankHeadings(this.element, 3);
    this.markChanged(this.first);
  }

  // markChanged marks the sentences that are not in an earlier text, given as the HTML of its
  // blocks. Sentences of the draft below the text are not marked.
  markChanged(before) {
    if (!changed || !before?.length) return;
    for (const range of this.marked) changed.delete(range);
    const old = new Set(before.flatMap((html) => sentences(parseHTML(html)).map((s) => s.text)));
    const said = sentences(this.element);
    if (this.growing) said.pop();
    this.marked = said.filter((s) => !old.has(s.text)).map((s) => s.range);
    for (const range of this.marked) changed.add(range);
  }

  // differs reports whether sentences are marked.
  get differs() {
    return this.marked.length > 0;
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const drawn = new Map([...this.stale].sort((a, b) => a - b).map((i) => [i, parseHTML(this.html[i])]));
    const below = this.before.length ? this.#rest(drawn) : [];
    this.stale.clear();
    below.forEach((content, i) => drawn.set(this.html.length + i, content));
    while (this.element.children.length < this.html.length + below.length) {
      this.element.append(Object.assign(document.createElement("div"), { className: "block", dir: "auto" }));
    }
    while (this.element.children.length > this.html.length + below.length) this.element.lastChild.remove();
    for (const [index, content] of drawn) {
      const block = this.element.children[index];
      const draft = this.draft || index >= this.html.length;
      block.classList.toggle("draft", draft);
      for (const cite of content.querySelectorAll(".cite")) {
        if (draft) cite.remove();
        else if (this.settled?.has(Number(cite.dataset.number)) === false) cite.textContent = "•";
      }
      graftChildren(block, content);
      for (const cite of block.querySelectorAll(".cite:not([href])")) this.equip(cite);
      copyButtons(block);
    }
    if (this.before.length && !this.draft) this.markChanged(this.first);
  }

  // #rest returns the part of the earlier draft that is below the text, by block. The end of
  // the paragraph that contains the end of the text is added to the text's last block.
  #rest(drawn) {
    const now = [...drawn.values()].flatMap((content) => sentences(content));
    const growing = sentenceEnd.test(now.at(-1)?.text) ? null : now.pop();
    this.growing = Boolean(growing);
    let begun = false; // the draft contains the growing sentence, too
    let [shared, next] = countPassed(this.before.map((s) => s.text), now.map((s) => s.text));
    if (growing) {
      // A sentence of the draft stays until the new one differs from it.
      const same = this.before.findIndex((s, i) =>
        i >= shared && s.text.startsWith(growing.text) && (i <= next || growing.text.length > 20));
      begun = same >= 0;
      this.growing = !begun;
      if (same >= 0 && this.before[same].text === growing.text) next = same + 1;
      else if (begun) {
        next = same;
        growing.range.deleteContents();
      }
    }
    const left = this.before[next];
    const last = drawn.get(this.html.length - 1);
    // An incomplete sentence would run into the earlier text, or push it down, so it waits.
    if (left && this.growing && (left.n || last.lastElementChild?.tagName === "P" && sentences(last).length === 1)) {
      growing.range.deleteContents();
      this.growing = false;
    }
    if (!left) return [];
    const rest = this.earlier.slice(left.block).map(parseHTML);
    if (left.n) {
      const gone = document.createRange();
      const { startContainer, startOffset } = sentences(rest[0])[left.n].range;
      gone.setStart(rest[0], 0);
      gone.setEnd(startContainer, startOffset);
      gone.deleteContents();
    }
    const inside = left.n || begun && last.lastElementChild.textContent.trim();
    if (!last || !inside && last.textContent.trim()) return rest;
    const nodes = [...rest.shift().children];
    for (const node of nodes) for (const cite of node.querySelectorAll(".cite")) cite.remove();
    if (nodes[0]?.tagName === "P" && last.lastElementChild?.tagName === "P") {
      const span = document.createElement("span");
      span.append(" ", ...nodes[0].childNodes);
      last.lastElementChild.append(span);
      nodes[0] = span;
      last.append(...nodes.slice(1));
    } else last.append(...nodes);
    for (const node of nodes) node.classList.add("draft");
    return rest;
  }
}

// countPassed returns how many sentences of a draft a growing text has passed: up to the end of
// their longest common subsequence, and with one more for each later sentence of the text, which
// replaces one of the draft. Sentences that share most of their words also match, with less
// weight.
function countPassed(before, now) {
  const words = before.map(wordsOf);
  const best = [Array(before.length + 1).fill(0)]; // by number of sentences of the text, then of the draft
  for (const text of now) {
    const mine = wordsOf(text), above = best.at(-1), row = [0];
    before.forEach((other, i) => row.push(Math.max(above[i + 1], row[i], above[i] + (other === text ? 1 : likeness(words[i], mine)))));
    best.push(row);
  }
  const most = best.at(-1).at(-1), shared = best.at(-1).indexOf(most);
  const after = now.length - best.findIndex((row) => row[shared] === most);
  return [shared, Math.min(shared + after, before.length)];
}

// sentenceEnd matches the end of a sentence.
const sentenceEnd = /[.!?…。！？؟]["'”’»)\]]*$/u;

const wordsOf = (text) => new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu));

// likeness returns 0.9 of the share of words that two sentences have in common, or 0 if it is at most half.
function likeness(a, b) {
  const share = a.intersection(b).size / Math.max(a.size, b.size, 1);
  return share > 0.5 ? 0.9 * share : 0;
}

// citationsAt returns the citations with the number of a link whose sentence contains the link
// or, if there is no such sentence, is nearest to it.
export function citationsAt(citations, link) {
  const number = Number(link.dataset.number);
  const at = Number(link.dataset.at);
  const mine = citations.filter((c) => c.number === number);
  const distance = (c) => Math.max(0, c.text_start - at, at - c.text_end);
  const least = Math.min(...mine.map(distance));
  return mine.filter((c) => distance(c) === least);
}

function parseHTML(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

const splitter = new Intl.Segmenter(undefined, { granularity: "sentence" });

// sentences returns the sentences of a text without citation numbers: {text, range}.
function sentences(root) {
  const hidden = ".cite, button, .block .draft, .block.draft";
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT,
    (n) => (n.parentElement?.closest(hidden) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
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
    // A label before a period may have left a space.
    return { text: segment.replace(/\s+/g, " ").replace(/ (?=[.,;:!?…])/g, "").trim(), range };
  });
}

// graftChildren replaces the children of an element with those of a fragment, but keeps
// equal ones, so that focus, selection and layout do not change.
function graftChildren(element, fragment) {
  let at = element.firstChild;
  for (const node of [...fragment.childNodes]) {
    if (at && isAlike(at, node)) {
      if (node.nodeType === Node.TEXT_NODE) {
        if (at.data !== node.data) at.data = node.data;
      } else if (node.className !== "cite") graftChildren(at, node);
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

function isAlike(a, b) {
  if (a.nodeType === Node.TEXT_NODE || b.nodeType === Node.TEXT_NODE) return a.nodeType === b.nodeType;
  if (b.className === "cite") return a.dataset.at === b.dataset.at && a.textContent === b.textContent;
  return a.cloneNode(false).isEqualNode(b.cloneNode(false));
}
