// The text of a document, or its pages as they look in print, at a place with
// marked words: pages to turn, and words to find.

import { documentAPI, el, makeButton, place, rankHeadings } from "./dom.js";
import { sheets } from "./sheet.js";
import { get } from "./stream.js";
import { t } from "./words.js";

const narrow = matchMedia("(max-width: 67.99rem)");

export class Reader {
  // at is the place: {document, page, heading, start, end, link, quote}. onPart is
  // called with each part of the document that is shown.
  constructor(at, onPart) {
    Object.assign(this, { at, onPart });
    this.loading = new AbortController();
    this.quote = documentAPI(at.document, at.start, at.end, at.link, at.run);
    this.asText = false; // show the text instead of drawn pages
    this.paging = el("p", { class: "paging", hidden: true });
    this.places = el("details", { class: "places", hidden: true });
    const words = el("input", { type: "search", "aria-label": t("Find in this document"), placeholder: t("Find in this document"),
      maxlength: 200, autocomplete: "off" });
    this.find = el("form", { class: "find", role: "search", hidden: true, onsubmit: (e) => {
      e.preventDefault();
      this.#findWords(words.value.trim());
    } }, words, el("button", { type: "submit", class: "plain" }, t("Find")));
    this.body = el("div", { class: "source-body", tabindex: "0", role: "region", "aria-label": t("Source text") },
      el("p", { class: "waiting" }, t("Loading…")));
    this.elements = [el("div", { class: "source-tools" }, this.paging, this.find, this.places), this.body];
  }

  // load shows a part of the document, the one with the quote unless another is named.
  async load(url = this.quote) {
    const { signal } = this.loading;
    const used = document.activeElement?.dataset.tool;
    try {
      const text = await get(url, signal);
      this.#showText(text, new URL(url));
      this.onPart(text);
      if (used) (this.paging.querySelector(`[data-tool=${used}]:not([disabled])`) || this.body).focus();
    } catch (err) {
      if (signal.aborted) return;
      this.body.replaceChildren(
        el("p", { class: "note trouble" }, err.message), quoteNote(this.at.quote) || "",
        makeButton(t("Open again"), () => this.load(url)),
      );
    }
  }

  close() {
    this.loading.abort();
  }

  #showText(text, url) {
    const moreButton = (label, offset) => offset >= 0 && el("p", { class: "more" },
      makeButton(label, () => this.load(`${documentAPI(this.at.document)}?at=${offset}`)));
    const words = el("div", {},
      ...[
        ...changeNotes(text, this.at.quote),
        moreButton(t("Earlier in this document"), text.earlier),
        ...text.blocks.map(drawBlock),
        text.blocks.length === 0 && el("p", { class: "note" }, t("This document has no text.")),
        moreButton(t("Later in this document"), text.later),
      ].filter(Boolean),
    );
    const drawn = text.drawn || [];
    const alt = (d) => (text.end > text.start ? t("Page {page} with the quote highlighted", d) : t("Page {page}", d));
    const pictures = drawn.map((d) => ({ src: new URL(d.link, location).href, page: d.page, alt: alt(d) }));
    const pages = drawn.length > 0 && sheets(pictures, () => showAsText(true));
    const showAsText = (toText) => {
      words.hidden = !toText;
      if (pages) pages.hidden = toText;
      const button = this.paging.querySelector("[data-tool=swap]");
      if (button) button.textContent = toText ? t("Show page") : t("Show text");
      if (toText) this.#scrollTo(url.searchParams.get("page"));
    };
    this.find.hidden = text.blocks.length === 0;
    this.#drawPaging(text, url.href === this.quote, pages && (() => showAsText((this.asText = words.hidden))));
    this.body.replaceChildren(...[pages, words].filter(Boolean));
    this.body.scrollTop = 0;
    rankHeadings(words, 3);
    showAsText(!pages || this.asText);
  }

  // #drawPaging draws the buttons that turn pages, show the text and lead back to the quote.
  #drawPaging({ page, pages }, atQuote, swap) {
    const button = (tool, words, onclick, disabled = false) => makeButton(words, onclick, { "data-tool": tool, disabled });
    const turnTo = (to) => () => {
      const url = new URL(this.quote);
      url.searchParams.set("page", to);
      this.load(url);
    };
    this.paging.replaceChildren(...[
      page && button("before", t("Previous page"), turnTo(page - 1), page <= 1),
      page && el("span", { class: "facts", role: "status" }, t("Page {page} of {total}", { page, total: pages })),
      page && button("after", t("Next page"), turnTo(page + 1), page >= pages),
      swap && button("swap", "", swap),
      !atQuote && this.at.end > this.at.start && button("quote", t("Back to the quote"), () => this.load()),
    ].filter(Boolean));
    this.paging.hidden = !this.paging.hasChildNodes();
  }

  // #findWords lists the places that contain the words.
  async #findWords(words) {
    this.places.hidden = !words;
    if (!words) return;
    try {
      const { found = [] } = await get(`${documentAPI(this.at.document)}?find=${encodeURIComponent(words)}`, this.loading.signal);
      const most = 100; // the server sends no more places
      const say = found.length < most ? t("{n} places with “{words}”", { n: found.length, words })
        : t("The first {n} places with “{words}”", { n: found.length, words });
      const openPlace = (f) => {
        this.places.open = !narrow.matches; // on a narrow screen the list covers the text
        this.load(documentAPI(this.at.document, f.start, f.end));
      };
      this.places.replaceChildren(el("summary", {}, el("span", { role: "status" }, say)),
        el("ol", {}, ...found.map((f) => el("li", {}, el("button",
          { type: "button", class: "quiet", dir: "auto", onclick: () => openPlace(f) },
          ...runs(f.runs), f.page ? el("span", { class: "facts" }, ` ${place({ page: f.page })}`) : "")))));
      this.places.open = true;
    } catch (err) {
      if (!this.loading.signal.aborted) this.places.replaceChildren(el("summary", {}, el("span", { role: "status" }, err.message)));
    }
  }

  // #scrollTo shows the page that was turned to, else the marked words.
  #scrollTo(page) {
    const { body } = this;
    const to = body.querySelector(page ? `.pagebreak[data-page="${Number(page)}"]` : "mark");
    const above = body.getBoundingClientRect().top + (page ? 0 : body.clientHeight / 3);
    body.scrollTop += to ? to.getBoundingClientRect().top - above : -body.scrollTop;
  }
}

// changeNotes says how the quote has changed since the document was cited.
function changeNotes({ state, missing, cited: day }, quote) {
  if (state === "moved") {
    return [el("p", { class: "note" },
      t("The document has changed or was renamed since it was cited. The quoted text is marked at its new place."))];
  }
  if (!missing) return [];
  const words = !day ? t("The document has changed since it was cited: the quoted text is no longer there.")
    : state === "gone" ? t("The quoted text has been removed since {day}.", { day })
      : t("The quoted text has changed since {day}.", { day });
  return [el("p", { class: "note trouble" }, words), quoteNote(quote)];
}

function quoteNote(quote) {
  return quote && el("div", { class: "note" }, el("p", {}, t("The cited text:")), el("blockquote", { class: "was", dir: "auto" }, quote));
}

const runs = (list = []) => list.map((r) => (r.mark ? el("mark", { id: r.first ? "quote" : null }, r.text) : r.text));

function drawBlock(block) {
  if (block.kind === "page") return el("p", { class: "pagebreak", "data-page": block.page }, el("span", {}, t("Page {page}", block)));
  return block.kind === "heading"
    ? el("p", { class: `heading level${block.level}`, role: "heading", "data-level": block.level, dir: "auto" }, ...runs(block.runs))
    : el("p", { dir: "auto" }, ...runs(block.runs));
}
