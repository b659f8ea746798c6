// The quotes of a citation, shown while its number is hovered or focused.

import { byId, el, place } from "./dom.js";
import { t } from "./words.js";

const peek = byId("peek");
const canHover = matchMedia("(hover: hover)");
let shownFor = null;
let timer = 0;

// attach shows describe() while the anchor is hovered or focused.
export function attach(anchor, describe) {
  const showSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => show(anchor, describe()), 120);
  };
  anchor.addEventListener("pointerenter", () => canHover.matches && showSoon());
  anchor.addEventListener("pointerleave", hideSoon);
  anchor.addEventListener("focus", () => anchor.matches(":focus-visible") && show(anchor, describe()));
  anchor.addEventListener("blur", hide);
  anchor.addEventListener("click", hide);
}

// hideSoon hides it in a moment, unless the pointer moves into it.
function hideSoon() {
  clearTimeout(timer);
  timer = setTimeout(hide, 150);
}
peek.addEventListener("pointerenter", () => clearTimeout(timer));
peek.addEventListener("pointerleave", hideSoon);

export function hide() {
  clearTimeout(timer);
  peek.hidden = true;
  shownFor?.removeAttribute("aria-describedby");
  shownFor = null;
}

// show displays {number, title, page, heading, quotes: [{quote, verdict}]}.
function show(anchor, what) {
  if (!anchor.isConnected) return;
  hide();
  const where = place(what);
  peek.replaceChildren(
    el("p", { class: "peek-title" }, what.number ? el("span", { class: "number" }, String(what.number)) : "", what.title),
    where ? el("p", { class: "facts" }, where) : "",
    ...what.quotes.map((q) => el("blockquote", { class: q.verdict === "weak" ? "weak" : null, dir: "auto" }, shortened(q.quote))),
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

function shortened(quote) {
  const words = quote.replace(/[^\S\n]+/g, " ").replace(/\s*\n\s*/g, "\n").trim();
  return words.length > 320 ? `${words.slice(0, 300).replace(/\s\S*$/, "")} …` : words;
}

addEventListener("scroll", () => shownFor && hide(), { passive: true });
addEventListener("keydown", (e) => {
  if (e.key === "Escape" && shownFor) {
    e.preventDefault();
    hide();
  }
});
