// The answer's text as blocks of HTML from the server. Only here does the page
// parse markup. It can: the server renders the Markdown without links, images
// and raw HTML, and allows only a list of elements without addresses, styles and
// handlers (web/render.go, which tests check). In addition, the content of a
// template element runs and loads nothing.

export class Blocks {
  // equip is called once with each new citation number.
  constructor(element, equip = () => {}) {
    this.element = element;
    this.equip = equip;
    this.html = []; // by index
    this.changed = new Set();
    this.frame = 0;
  }

  // put sets the HTML of a block, which is drawn in the next frame.
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
