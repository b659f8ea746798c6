// The source of a citation: the document's text, scrolled to the marked quote.
// A panel on wide screens, a sheet over the lower part of narrow ones.

import { byId, documentName, documentURL, el, makeButton, place } from "./dom.js";
import { Reader } from "./reader.js";
import { t } from "./words.js";

const narrow = matchMedia("(max-width: 67.99rem)");

export class SourcePanel {
  constructor() {
    this.panel = byId("source");
    this.backdrop = byId("backdrop");
    this.opener = null;
    this.reader = null;
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
    this.reader?.close();
    const reader = (this.reader = new Reader(at, (text) => this.#showLinks(at, text)));
    this.panel.replaceChildren(this.#head(at), ...reader.elements);
    this.panel.hidden = false;
    document.body.classList.add("has-source");
    this.#layOut();
    this.panel.focus({ preventScroll: true });
    this.#markCite(opener);
    await reader.load();
  }

  close() {
    if (!this.isOpen) return;
    this.reader?.close();
    this.panel.hidden = true;
    this.panel.replaceChildren();
    document.body.classList.remove("has-source");
    this.#layOut();
    this.#markCite(null);
    if (this.opener?.isConnected) this.opener.focus();
    this.opener = null;
  }

  // #showLinks shows where else the document is: its file or web page, and identical files.
  #showLinks(at, text) {
    const links = this.panel.querySelector(".source-links");
    links.querySelector(".original")?.remove();
    if (/^https?:/.test(text.original)) {
      links.append(el("a", { class: "original", href: text.original, target: "_blank", rel: "noopener" }, t("Web page")));
    } else if (text.original) {
      const words = text.format !== "pdf" ? t("Original file") : text.page ? t("PDF, page {page}", text) : "PDF";
      links.append(el("a", { class: "original", href: new URL(text.original, location).href, target: "_blank", rel: "noopener" }, words));
    }
    this.panel.querySelector(".also-in")?.remove();
    if (text.also_in) {
      links.before(el("p", { class: "facts also-in" }, `${t("Also in:")} ${text.also_in.map(documentName).join(", ")}`));
    }
  }

  #head(at) {
    return el("header", { class: "source-head" },
      el("div", {},
        el("p", { class: "path" }, documentName(at.document)),
        el("h2", { id: "source-title" }, at.number ? el("span", { class: "number" }, String(at.number)) : "", at.title || at.document),
        place(at) ? el("p", { class: "facts" }, place(at)) : "",
        el("p", { class: "source-links" }, el("a", { href: documentURL(at.document, at.start, at.end, at.link, at.run),
          target: "_blank", rel: "noopener" }, t("Open full page"))),
      ),
      makeButton(t("Close"), () => this.close(), { class: "quiet close" }),
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
    const stops = [...this.panel.querySelectorAll("a, button:not([disabled]), input, [tabindex='0']")].filter((e) => e.checkVisibility());
    const [first, last] = [stops[0], stops[stops.length - 1]];
    if (e.shiftKey && (document.activeElement === first || document.activeElement === this.panel)) {
      e.preventDefault();
      last.focus();
    } else if (!e.shiftKey && document.activeElement === last) {
      e.preventDefault();
      first.focus();
    }
  }

  #markCite(opener) {
    for (const e of document.querySelectorAll("[aria-expanded=true].cite")) e.setAttribute("aria-expanded", "false");
    if (opener?.classList.contains("cite")) opener.setAttribute("aria-expanded", "true");
  }
}
