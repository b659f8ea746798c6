// Drawing the answer's text as it grows: paragraphs, lists, headings, code,
// bold, and the citation numbers. What has been drawn and has not changed is
// left alone, so that focus, selection and layout stay put while it streams.

const item = /^(\s*)([-*+]|\d{1,3}[.)])\s+/;
const inlineToken = /`([^`\n]+)`|\*\*([^*\n]+(?:\*[^*\n]+)*)\*\*|\[(\d{1,4})\]/g;

// blocksOf cuts text into blocks: {kind, parts: [[from, to], …]}, offsets into text.
export function blocksOf(text) {
  const blocks = [];
  let open = null;
  let fence = "";
  let at = 0;
  for (const line of text.split("\n")) {
    const from = at;
    const to = from + line.length;
    at = to + 1;
    if (fence) {
      if (line.trim().startsWith(fence)) fence = "";
      else if (open.parts.length) open.parts[0][1] = to;
      else open.parts.push([from, to]);
      if (!fence) open = null;
      continue;
    }
    const opening = line.match(/^\s*(```+|~~~+)/);
    if (opening) {
      fence = opening[1];
      blocks.push((open = { kind: "code", parts: [] }));
      continue;
    }
    if (!line.trim()) {
      // An empty line inside a list need not end it; the next line decides.
      if (open?.kind !== "ul" && open?.kind !== "ol") open = null;
      else open.gap = true;
      continue;
    }
    const heading = line.match(/^#{1,6}\s+/);
    if (heading) {
      blocks.push({ kind: "heading", parts: [[from + heading[0].length, to]] });
      open = null;
      continue;
    }
    const bullet = line.match(item);
    if (bullet) {
      const kind = /\d/.test(bullet[2]) ? "ol" : "ul";
      if (open?.kind !== kind) {
        blocks.push((open = { kind, parts: [], start: kind === "ol" ? parseInt(bullet[2], 10) : undefined }));
      }
      open.gap = false;
      open.parts.push([from + bullet[0].length, to]);
      continue;
    }
    if (open && !open.gap && open.parts.length) {
      open.parts[open.parts.length - 1][1] = to;
      continue;
    }
    blocks.push((open = { kind: "p", parts: [[from, to]] }));
  }
  return blocks;
}

// tokensOf cuts text[from:to] into runs: {kind: "text"|"bold"|"code"|"cite", text, at, why}.
// numbers holds the citation numbers announced so far; others are plain text.
// doubts are ranges [from, to, why] to mark.
function tokensOf(text, from, to, numbers, doubts) {
  const tokens = [];
  const plain = (kind, a, b) => {
    while (a < b) {
      const doubt = doubts.find(([x, y]) => a >= x && a < y);
      const next = doubts.reduce((n, [x]) => (x > a && x < n ? x : n), b);
      const end = Math.min(doubt ? doubt[1] : b, next, b);
      tokens.push({ kind, text: text.slice(a, end), at: a, why: doubt ? doubt[2] : "" });
      a = end;
    }
  };
  const spans = (kind, a, b) => {
    let last = a;
    const slice = text.slice(a, b);
    for (const m of slice.matchAll(inlineToken)) {
      const start = a + m.index;
      const end = start + m[0].length;
      if (m[3] !== undefined && !numbers.has(Number(m[3]))) continue;
      if (m[2] !== undefined && kind === "bold") continue;
      plain(kind, last, start);
      if (m[1] !== undefined) tokens.push({ kind: "code", text: m[1], at: start + 1, why: "" });
      else if (m[2] !== undefined) spans("bold", start + 2, end - 2);
      else tokens.push({ kind: "cite", text: m[3], at: start, why: "" });
      last = end;
    }
    plain(kind, last, b);
  };
  spans("text", from, to);
  return tokens;
}

// A TextView draws a growing text into an element. cite(number, at) makes the
// link of a citation that stands at that offset.
export class TextView {
  constructor(element, cite) {
    this.element = element;
    this.cite = cite;
    this.drawn = []; // per block: {kind, element, parts: [{element, tokens}]}
  }

  draw(text, numbers, doubts = []) {
    const blocks = blocksOf(text);
    blocks.forEach((block, i) => {
      let old = this.drawn[i];
      if (old?.kind !== block.kind) {
        while (this.drawn.length > i) this.drawn.pop().element.remove();
        old = { kind: block.kind, element: frameOf(block), parts: [] };
        this.drawn.push(old);
        this.element.append(old.element);
      }
      block.parts.forEach(([from, to], j) => {
        const tokens = block.kind === "code"
          ? [{ kind: "text", text: text.slice(from, to), at: from, why: "" }]
          : tokensOf(text, from, to, numbers, doubts);
        if (!old.parts[j]) {
          const holder = holderOf(block, old.element);
          old.parts[j] = { element: holder, tokens: [] };
        }
        this.#update(old.parts[j], tokens);
      });
      while (old.parts.length > block.parts.length) old.parts.pop().element.remove();
    });
    while (this.drawn.length > blocks.length) this.drawn.pop().element.remove();
  }

  #update(part, tokens) {
    const same = (a, b) => a && a.kind === b.kind && a.text === b.text && a.why === b.why;
    let keep = 0;
    while (keep < tokens.length && same(part.tokens[keep], tokens[keep])) keep++;
    const last = part.tokens[keep];
    const next = tokens[keep];
    // The usual case while streaming: the last run has grown.
    if (last && next && last.kind === "text" && next.kind === "text" && !last.why && !next.why) {
      part.element.childNodes[keep].nodeValue = next.text;
      keep++;
    }
    while (part.element.childNodes.length > keep) part.element.lastChild.remove();
    for (const token of tokens.slice(keep)) part.element.append(this.#node(token));
    part.tokens = tokens;
  }

  #node(token) {
    if (token.kind === "cite") return this.cite(Number(token.text), token.at);
    if (token.kind === "text" && !token.why) return document.createTextNode(token.text);
    const e = document.createElement({ code: "code", bold: "strong", text: "span" }[token.kind]);
    e.textContent = token.text;
    if (token.why) {
      e.className = "doubt";
      e.title = token.why;
    }
    return e;
  }
}

function frameOf(block) {
  const e = document.createElement({ code: "pre", heading: "h3", ul: "ul", ol: "ol", p: "p" }[block.kind]);
  if (block.start > 1) e.start = block.start;
  return e;
}

function holderOf(block, element) {
  if (block.kind !== "ul" && block.kind !== "ol") return element;
  const li = document.createElement("li");
  element.append(li);
  return li;
}
