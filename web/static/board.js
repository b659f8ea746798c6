// The board of an answer: passages appear when they are found, verdicts tick in
// on them, cited ones move up to the sources and take their numbers, and the
// others fold.

import { Blocks } from "./blocks.js";
import { documentURL, el, marked, place, plural, snippet, visibleName } from "./dom.js";

const verdicts = { relevant: "on topic", irrelevant: "off topic", unparsable: "kept: unreadable verdict", error: "kept: not checked" };

export class Board {
  // panel opens sources.
  constructor(id, panel) {
    this.panel = panel;
    this.passages = new Map(); // by id
    this.cards = new Map(); // by id, not cited
    this.reasons = new Map(); // by id
    this.sources = el("ol", { class: "sources" });
    this.found = el("ul", { class: "found" });
    this.summary = el("summary", {}, "");
    this.rest = el("details", { class: "evidence", open: true, hidden: true }, this.summary, this.found);
    this.cost = el("p", { class: "facts cost", hidden: true });
    this.title = el("h3", { id: `sources-${id}` }, "Found");
    this.element = el("section", { class: "board", "aria-labelledby": `sources-${id}`, hidden: true }, this.title, this.sources, this.rest, this.cost);
  }

  // found shows passages before they are checked.
  add(passages) {
    for (const p of passages) {
      this.passages.set(p.id, p);
      if (!this.cards.has(p.id)) this.#card(p.id, p);
    }
    this.#count();
  }

  // judge shows a verdict on its passage.
  judge(j) {
    if (!this.reasons.has(j.passage)) this.reasons.set(j.passage, j);
    const card = this.cards.get(j.passage) || this.#card(j.passage, j);
    card.className = `card ${j.verdict}`;
    card.querySelector(".verdict").textContent = verdicts[j.verdict] || j.verdict;
    card.querySelector(".facts").textContent = [place({ ...this.passages.get(j.passage), ...j }), j.wider ? "read in a second look" : "",
      j.reason, j.by === "unjudged" ? "ranked by search score" : ""].filter(Boolean).join(" · ");
    this.#count();
  }

  // cite adds a source with its number.
  cite(cited) {
    this.title.textContent = "Sources";
    this.sources.append(el("li", { value: cited.number, "data-number": cited.number },
      this.opener("source-title", { ...cited, start: 0, end: 0 }, cited.title || cited.document),
      el("span", { class: "path" }, visibleName(cited.document)), el("ul", { class: "quotes" })));
  }

  // quote moves a passage up to its source, with the quoted words marked in it.
  quote(c, cited) {
    const list = this.sources.querySelector(`[data-number="${Number(c.number)}"] .quotes`);
    const key = `${c.document}:${c.start}:${c.end}`;
    if (!list || !c.quote || [...list.children].some((e) => e.dataset.key === key)) return;
    const at = { ...cited, ...c };
    const facts = [place(at), this.reasons.get(c.passage)?.reason].filter(Boolean).join(" · ");
    list.append(el("li", { "data-key": key, dir: "auto" },
      this.opener("quote", at, ...this.#inContext(c)), facts ? el("span", { class: "facts" }, facts) : ""));
    this.cards.get(c.passage)?.remove();
    this.#count();
  }

  // showStates says which sources of an old answer have changed since its date.
  showStates(sources, date) {
    const day = new Date(date).toLocaleDateString("en", { day: "numeric", month: "long", year: "numeric" });
    const words = { moved: "The quoted text has moved", changed: "The quoted text has changed", gone: "The quoted text is gone" };
    for (const { number, state, now } of sources) {
      if (!words[state]) continue;
      const change = now ? `Renamed to ${visibleName(now)}` : words[state];
      this.sources.querySelector(`[data-number="${Number(number)}"] .path`)?.after(el("p", { class: "facts state" }, `${change} since ${day}.`));
    }
  }

  // fold closes the list of the passages that are not cited.
  fold() {
    this.rest.open = false;
  }

  // end shows what the answer was made from.
  end(answer, drafts) {
    const looked = [...this.reasons.values()];
    for (const { passages } of answer.sources || []) for (const { id } of passages || []) this.cards.get(id)?.remove();
    const dropped = (answer.verified || []).filter((v) => v.verdict === "dropped");
    const more = [];
    if (dropped.length) {
      more.push(el("h4", {}, "Left out, since the model itself says no to it"), el("ul", {}, ...dropped.map((v) => el("li", { dir: "auto" }, v.statement))));
    }
    if (drafts.size) more.push(el("h4", {}, "Earlier drafts"), el("ol", { class: "drafts" }, ...[...drafts.values()].map(drawDraft)));
    this.rest.append(...more);
    const again = looked.filter((j) => j.wider).length;
    this.summary.textContent = looked.length
      ? `Looked at ${plural(answer.usage?.looked ?? looked.length, "passage", "passages")}${again ? `, again at ${again}` : ""}, used ${answer.usage?.used ?? answer.sources?.length ?? 0}${dropped.length ? `, left out ${plural(dropped.length, "statement", "statements")}` : ""}`
      : "Earlier drafts";
    this.rest.hidden = !looked.length && !more.length;
    this.cost.hidden = !answer.usage;
    if (answer.usage) this.cost.textContent = cost(answer.usage);
    this.element.hidden = false;
    this.fold();
  }

  // opener returns a link to a place, which opens the panel.
  opener(className, at, ...words) {
    const link = el("a", { class: className, href: documentURL(at.document, at.start, at.end, at.link) }, ...words);
    link.addEventListener("click", (e) => {
      if (e.metaKey || e.ctrlKey || e.shiftKey) return;
      e.preventDefault();
      this.panel.open(at, link);
    });
    return link;
  }

  #card(id, p) {
    const card = el("li", { class: "card" }, el("span", { class: "verdict" }, "checking…"),
      this.opener("source-title", p, p.title || p.document), el("span", { class: "facts" }, place(p)),
      p.text ? el("p", { class: "snippet", dir: "auto" }, snippet(p.text, 140)) : "");
    this.cards.set(id, card);
    this.found.append(card);
    this.rest.hidden = this.element.hidden = false;
    return card;
  }

  #count() {
    const all = Math.max(this.passages.size, this.reasons.size);
    this.summary.textContent = this.reasons.size ? `Looked at ${this.reasons.size} of ${all}` : `Found ${plural(all, "passage", "passages")}`;
  }

  // #inContext returns the quoted words, marked, with some of those around them.
  #inContext(c) {
    const p = this.passages.get(c.passage);
    if (!p?.text || c.start < p.start || c.end > p.end) return [snippet(c.quote)];
    const [before, words, after] = marked({ text: p.text, marks: [{ start: c.start - p.start, end: c.end - p.start }] });
    const tidy = (s) => s.replace(/[^\S\n]+/g, " ").replace(/\s*\n\s*/g, "\n");
    const last = tidy(before).slice(-90);
    const next = tidy(after).slice(0, 90);
    return [last.length === 90 ? `… ${last.replace(/^\S*\s/, "")}` : last, words, next.length === 90 ? `${next.replace(/\s\S*$/, "")} …` : next];
  }
}

function drawDraft(html) {
  const box = el("li", {});
  const blocks = new Blocks(box);
  html.forEach((h, i) => blocks.put(i, h));
  blocks.draw();
  return box;
}

function cost(u) {
  const tokens = (u.prompt_tokens || 0) + (u.completion_tokens || 0);
  return [
    u.seconds < 0.1 ? "under 0.1 s" : `${u.seconds < 10 ? u.seconds.toFixed(1) : Math.round(u.seconds)} s`,
    u.calls ? `${u.calls} model ${u.calls === 1 ? "call" : "calls"}` : "no model",
    tokens ? `${tokens.toLocaleString("en")} tokens` : "",
  ].filter(Boolean).join(" · ");
}
