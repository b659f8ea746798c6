// The quotes of a citation, shown while its number is hovered or focused.

import { byId, el, place } from "./dom.js";
import { t } from "./words.js";

const peek = byId("peek");
const canHover = matchMedia("(hover: hover)");
let shownFor = null;
let timer = 0;

// attachPeek shows describe() while the anchor is hovered or focused.
export function attachPeek(anchor, describe) {
  const showSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => showPeek(anchor, describe()), 120);
  };
  anchor.addEventListener("pointerenter", () => canHover.matches && showSoon());
  anchor.addEventListener("pointerleave", hideSoon);
  anchor.addEventListener("focus", () => anchor.matches(":focus-visible") && showPeek(anchor, describe()));
  anchor.addEventListener("blur", hidePeek);
  anchor.addEventListener("click", hidePeek);
}

// hideSoon hides the quotes in a moment, unless the pointer moves onto them.
function hideSoon() {
  clearTimeout(timer);
  timer = setTimeout(hidePeek, 150);
}
peek.addEventListener("pointerenter", () => clearTimeout(timer));
peek.addEventListener("pointerleave", hideSoon);

export function hidePeek() {
  clearTimeout(timer);
  peek.hidden = true;
  shownFor?.removeAttribute("aria-describedby");
  shownFor = null;
}

// showPeek displays {number, title, page, heading, quotes: [{quote, verdict}]}.
function showPeek(anchor, what) {
  if (!anchor.isConnected) return;
  hidePeek();
  const where = place(what);
  peek.replaceChildren(
    el("p", { class: "peek-title" }, what.number ? el("span", { class: "number" }, String(what.number)) : "", what.title),
    where ? el("p", { class: "facts" }, where) : "",
    ...what.quotes.map((q) => el("blockquote", { class: q.verdict === "weak" ? "weak" : null, dir: "auto" }, shortenQuote(q.quote))),
    what.quotes.some((q) => q.verdict === "weak") ? el("p", { class: "facts" }, t("This quote supports the sentence only weakly.")) : "",
  );
  peek.hidden = false;
  const at = anchor.getBoundingClientRect();
  const box = peek.getBoundingClientRect();
  const left = Math.min(Math.max(12, at.left + at.width / 2 - box.width / 2), document.documentElement.clientWidth - box.width - 12);
  const above = at.top - box.height - 8;
  peek.style.left = `${left + scrollX}px`;
  peek.style.top = `${(above > 8 ? above : at.bottom + 8) + scrollY}px`;
  anchor.setAttribute("aria-describedby", "peek");
  shownFor = anchor;
}

function shortenQuote(quote) {
  const words = quote.replace(/[^\S\n]+/g, " ").replace(/\s*\n\s*/g, "\n").trim();
  return words.length > 320 ? `${words.slice(0, 300).replace(/\s\S*$/, "")} …` : words;
}

addEventListener("scroll", () => shownFor && hidePeek(), { passive: true });
addEventListener("keydown", (e) => {
  if (e.key === "Escape" && shownFor) {
    e.preventDefault();
    hidePeek();
  }
});
