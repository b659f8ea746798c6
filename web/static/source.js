// The source of a citation: the document's text, scrolled to the marked quote.
// A panel on wide screens, a sheet over the lower part of narrow ones.

import { byId, documentAPI, documentURL, el, place, visibleName } from "./dom.js";
import { get } from "./stream.js";
import { t } from "./words.js";

const narrow = matchMedia("(max-width: 67.99rem)");

export class SourcePanel {
  constructor() {
    this.panel = byId("source");
    this.backdrop = byId("backdrop");
    this.opener = null;
    this.loading = null;
    this.backdrop.addEventListener("click", () => this.close());
    addEventListener("keydown", (e) => {
      if (e.key === "Escape" && this.isOpen && !e.defaultPrevented) {
        e.preventDefault();
        this.close();
      }
    });
    this.panel.addEventListener("keydown", (e) => this.#keepFocus(e));
    narrow.addEventListener("change", () => this.isOpen && this.#layOut());
  }

  get isOpen() {
    return !this.panel.hidden;
  }

  // open shows a place: {document, title, number, page, heading, start, end}.
  async open(at, opener) {
    this.opener = opener || document.activeElement;
    this.loading?.abort();
    const loading = (this.loading = new AbortController());
    const body = el("div", { class: "source-body", tabindex: "0", role: "region", "aria-label": t("Source text") });
    body.append(el("p", { class: "waiting" }, t("Loading…")));
    this.panel.replaceChildren(this.#head(at), body);
    this.panel.hidden = false;
    document.body.classList.add("has-source");
    this.#layOut();
    this.panel.focus({ preventScroll: true });
    this.#mark(opener);
    await this.#load(at, body, loading.signal, documentAPI(at.document, at.start, at.end, at.link, at.run));
  }

  close() {
    if (!this.isOpen) return;
    this.loading?.abort();
    this.panel.hidden = true;
    this.panel.replaceChildren();
    document.body.classList.remove("has-source");
    this.#layOut();
    this.#mark(null);
    if (this.opener?.isConnected) this.opener.focus();
    this.opener = null;
  }

  async #load(at, body, signal, url) {
    try {
      const text = await get(url, signal);
      this.#show(at, body, text, signal);
    } catch (err) {
      if (signal.aborted) return;
      body.replaceChildren(
        el("p", { class: "note trouble" }, err.message), cited(at.quote) || "",
        el("button", { type: "button", class: "plain", onclick: () => this.#load(at, body, signal, url) }, t("Try again")),
      );
    }
  }

  #show(at, body, text, signal) {
    const more = (label, offset) => offset >= 0 &&
      el("p", { class: "more" }, el("button", { type: "button", class: "plain",
        onclick: () => this.#load(at, body, signal, `${documentAPI(at.document)}?at=${offset}`) }, label));
    const drawn = text.drawn || [];
    const words = el("div", { hidden: drawn.length > 0 },
      ...[
        ...changes(text, at.quote),
        more(t("Earlier in this document"), text.earlier),
        ...text.blocks.map(drawBlock),
        text.blocks.length === 0 && el("p", { class: "note" }, t("This document has no text.")),
        more(t("Later in this document"), text.later),
      ].filter(Boolean),
    );
    const links = this.panel.querySelector(".source-links");
    links.querySelector(".original")?.remove();
    if (/^https?:/.test(text.original)) {
      links.append(el("a", { class: "original", href: text.original, target: "_blank", rel: "noopener" }, t("Web page")));
    } else if (text.original) {
      const pdf = text.format === "pdf";
      links.append(el("a", { class: "original", href: new URL(text.original, location).href, target: "_blank", rel: "noopener" },
        pdf ? (at.page ? t("PDF, page {page}", at) : "PDF") : t("Original file")));
    }
    this.panel.querySelector(".also-in")?.remove();
    if (text.also_in) {
      links.before(el("p", { class: "facts also-in" }, `${t("Also in:")} ${text.also_in.map(visibleName).join(", ")}`));
    }
    const pages = drawn.length && this.#pages(drawn, words);
    body.replaceChildren(...[pages, words].filter(Boolean));
    if (!drawn.length) this.#scroll(body);
  }

  // #pages returns the images of the pages, with a button for the text.
  #pages(drawn, words) {
    const pictures = el("div", {}, ...drawn.map((d) => {
      const alt = t("Page {page} with the quote highlighted", d);
      const picture = el("img", { src: new URL(d.link, location).href, alt, class: "picture" });
      // Without an image, show the text.
      picture.addEventListener("error", () => swap(true));
      return picture;
    }));
    const button = el("button", { type: "button", class: "plain", onclick: () => swap(words.hidden) }, t("Show text"));
    const swap = (toText) => {
      words.hidden = !toText;
      pictures.hidden = toText;
      button.textContent = toText ? t("Show page") : t("Show text");
      if (toText) this.#scroll(words.parentElement);
    };
    return el("div", { class: "pictures" }, el("p", { class: "more" }, button), pictures);
  }

  #scroll(body) {
    const first = body.querySelector("mark");
    body.scrollTop = first ? Math.max(0, first.offsetTop - body.offsetTop - body.clientHeight / 3) : 0;
  }

  #head(at) {
    return el("header", { class: "source-head" },
      el("div", {},
        el("p", { class: "path" }, visibleName(at.document)),
        el("h2", { id: "source-title" }, at.number ? el("span", { class: "number" }, String(at.number)) : "", at.title || at.document),
        place(at) ? el("p", { class: "facts" }, place(at)) : "",
        el("p", { class: "source-links" }, el("a", { href: documentURL(at.document, at.start, at.end, at.link, at.run), target: "_blank", rel: "noopener" }, t("Open full page"))),
      ),
      el("button", { type: "button", class: "quiet close", onclick: () => this.close() }, t("Close")),
    );
  }

  // On a narrow screen the sheet covers the answer, which must not get the focus.
  #layOut() {
    const sheet = this.isOpen && narrow.matches;
    this.backdrop.hidden = !sheet;
    for (const e of [byId("main"), document.querySelector(".bar")]) e.inert = sheet;
    this.panel.setAttribute("role", sheet ? "dialog" : "complementary");
    if (sheet) this.panel.setAttribute("aria-modal", "true");
    else this.panel.removeAttribute("aria-modal");
  }

  #keepFocus(e) {
    if (e.key !== "Tab" || !narrow.matches) return;
    const stops = [...this.panel.querySelectorAll("a, button, [tabindex='0']")];
    const [first, last] = [stops[0], stops[stops.length - 1]];
    if (e.shiftKey && (document.activeElement === first || document.activeElement === this.panel)) {
      e.preventDefault();
      last.focus();
    } else if (!e.shiftKey && document.activeElement === last) {
      e.preventDefault();
      first.focus();
    }
  }

  #mark(opener) {
    for (const e of document.querySelectorAll("[aria-expanded=true].cite")) e.setAttribute("aria-expanded", "false");
    if (opener?.classList.contains("cite")) opener.setAttribute("aria-expanded", "true");
  }
}

// changes says what has become of the quote since the document was cited.
function changes({ state, missing, cited: day }, quote) {
  if (state === "moved") {
    return [el("p", { class: "note" }, t("The document has changed or was renamed since it was cited. The quoted text is marked at its new place."))];
  }
  if (!missing) return [];
  const words = day && (state === "gone" ? t("The quoted text is gone since {day}.", { day }) : t("The quoted text has changed since {day}.", { day }));
  return [el("p", { class: "note trouble" }, words || t("The document has changed since it was cited: the quoted text is no longer there.")), cited(quote)];
}

function cited(quote) {
  return quote && el("div", { class: "note" }, el("p", {}, t("The text that was cited:")), el("blockquote", { class: "was", dir: "auto" }, quote));
}

function drawBlock(block) {
  if (block.kind === "page") return el("p", { class: "pagebreak" }, el("span", {}, t("Page {page}", block)));
  const runs = block.runs.map((r) => (r.mark ? el("mark", { id: r.first ? "quote" : null }, r.text) : r.text));
  return block.kind === "heading"
    ? el("p", { class: `heading level${block.level}`, role: "heading", "aria-level": Math.min(block.level + 2, 6), dir: "auto" }, ...runs)
    : el("p", { dir: "auto" }, ...runs);
}
