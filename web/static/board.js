// The board of an answer: passages appear when they are found, verdicts tick in
// on them, cited ones move up to the sources and take their numbers, and the
// others fold.

import { Blocks } from "./blocks.js";
import { documentURL, el, marked, place, snippet, visibleName } from "./dom.js";
import { locale, t } from "./words.js";

const verdicts = { relevant: t("on topic"), irrelevant: t("off topic"), unparsable: t("kept: unreadable verdict"), error: t("kept: not checked") };

// isStale reports whether a document no longer has the words that were quoted.
export const isStale = (state) => state === "changed" || state === "gone";

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
    this.title = el("h3", { id: `sources-${id}` }, t("Found"));
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
    card.querySelector(".facts").textContent = [place({ ...this.passages.get(j.passage), ...j }), j.wider ? t("read in a second look") : "",
      reason(j.reason), j.by === "unjudged" ? t("ranked by search score") : ""].filter(Boolean).join(" · ");
    this.#count();
  }

  // cite adds a source with its number.
  cite(cited) {
    this.title.textContent = t("Sources");
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
    const facts = [place(at), reason(this.reasons.get(c.passage)?.reason)].filter(Boolean).join(" · ");
    list.append(el("li", { "data-key": key, dir: "auto" },
      this.opener("quote", at, ...this.#inContext(c)), facts ? el("span", { class: "facts", dir: document.documentElement.dir }, facts) : ""));
    this.cards.get(c.passage)?.remove();
    this.#count();
  }

  // showStates says which sources of an old answer have changed since its date, and
  // reports whether quoted words are no longer there.
  showStates(sources, date) {
    const day = new Date(date).toLocaleDateString(locale, { day: "numeric", month: "long", year: "numeric" });
    const words = { moved: t("The quoted text has moved since {day}.", { day }), changed: t("The quoted text has changed since {day}.", { day }), gone: t("The quoted text is gone since {day}.", { day }) };
    for (const { number, state, now } of sources) {
      if (!words[state]) continue;
      const renamed = now ? t("Renamed to {name} since {day}.", { name: visibleName(now), day }) : "";
      const change = renamed && !isStale(state) ? renamed : `${renamed} ${words[state]}`.trim();
      this.sources.querySelector(`[data-number="${Number(number)}"] .path`)?.after(el("p", { class: "facts state" }, change));
    }
    return sources.some((s) => isStale(s.state));
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
      more.push(el("h4", {}, t("Left out, since the model itself says no to it")), el("ul", {}, ...dropped.map((v) => el("li", { dir: "auto" }, v.statement))));
    }
    if (drafts.size) more.push(el("h4", {}, t("Earlier drafts")), el("ol", { class: "drafts" }, ...[...drafts.values()].map(drawDraft)));
    this.rest.append(...more);
    const again = looked.filter((j) => j.wider).length;
    this.summary.textContent = looked.length
      ? [t("Looked at {n} passages", { n: answer.usage?.looked ?? looked.length }), again ? t("again at {n}", { n: again }) : "",
        t("used {n}", { n: answer.usage?.used ?? answer.sources?.length ?? 0 }),
        dropped.length ? t("left out {n} statements", { n: dropped.length }) : ""].filter(Boolean).join(t(", "))
      : t("Earlier drafts");
    this.rest.hidden = !looked.length && !more.length;
    this.cost.hidden = !answer.usage;
    if (answer.usage) this.cost.textContent = cost(answer.usage);
    this.element.hidden = false;
    this.fold();
  }

  // opener returns a link to a place, which opens the panel.
  opener(className, at, ...words) {
    at = { ...at, run: this.run };
    const link = el("a", { class: className, href: documentURL(at.document, at.start, at.end, at.link, at.run) }, ...words);
    link.addEventListener("click", (e) => {
      if (e.metaKey || e.ctrlKey || e.shiftKey) return;
      e.preventDefault();
      this.panel.open(at, link);
    });
    return link;
  }

  #card(id, p) {
    const card = el("li", { class: "card" }, el("span", { class: "verdict" }, t("checking…")),
      this.opener("source-title", p, p.title || p.document), el("span", { class: "facts" }, place(p)),
      p.text ? el("p", { class: "snippet", dir: "auto" }, snippet(p.text, 140)) : "");
    this.cards.set(id, card);
    this.found.append(card);
    this.rest.hidden = this.element.hidden = false;
    return card;
  }

  #count() {
    const all = Math.max(this.passages.size, this.reasons.size);
    this.summary.textContent = this.reasons.size ? t("Looked at {done} of {total}", { done: this.reasons.size, total: all }) : t("Found {n} passages", { n: all });
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

// reason returns why a passage was kept or skipped. The server says which words of
// the question it covers in English; a model's own words are shown as they are.
function reason(words) {
  const [, has, lacks] = /^covers (.+?)(?:, not (.+))?$/.exec(words) || [];
  return has ? t("covers {words}", { words: has }) + (lacks ? t(", not {words}", { words: lacks }) : "") : words;
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
  const seconds = u.took_ms / 1000; // earlier answers have no time
  return [
    u.took_ms === undefined ? "" : seconds < 0.1 ? t("under 0.1 s") : t("{seconds} s", { seconds: Number(seconds.toFixed(seconds < 10 ? 1 : 0)) }),
    u.calls ? t("{n} model calls", { n: u.calls }) : t("no model"),
    tokens ? t("{n} tokens", { n: tokens }) : "",
  ].filter(Boolean).join(" · ");
}
