// The answer's text as the server renders it: blocks of HTML that come while
// it is written. This is the one place where the page makes elements out of
// markup. It may: the server parses the Markdown itself, knows no links, images
// or raw HTML in it, and lets nothing through but a list of elements without
// any address, style or handler (policy in web/render.go, held to it by tests).
// The template keeps what is parsed from running or loading anything even so.

export class Blocks {
  // equip is called with each citation number once, when it has been put in.
  constructor(element, equip = () => {}) {
    this.element = element;
    this.equip = equip;
    this.html = []; // by index
    this.changed = new Set();
    this.frame = 0;
  }

  // put takes the HTML of a block; it is drawn with the next frame.
  put(index, html) {
    this.html[index] = html;
    this.changed.add(index);
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    for (const index of [...this.changed].sort((a, b) => a - b)) {
      while (this.element.children.length <= index) {
        const block = document.createElement("div");
        block.className = "block";
        block.dir = "auto";
        this.element.append(block);
      }
      const template = document.createElement("template");
      template.innerHTML = this.html[index];
      const block = this.element.children[index];
      graft(block, template.content);
      for (const cite of block.querySelectorAll(".cite:not([href])")) this.equip(cite);
    }
    this.changed.clear();
  }
}

// graft makes the children of an element those of a fragment, and leaves
// alone what is the same: focus, selection and layout stay put.
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
