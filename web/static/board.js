// The board of an answer. Passages appear as cards when they are found, and get
// their verdicts. Cited passages move up to the sources, which have numbers; the
// other passages are folded.

import { Blocks } from "./blocks.js";
import { documentName, documentURL, el, place, snippet, withMarks } from "./dom.js";
import { locale, t } from "./words.js";

const verdicts = {
  relevant: t("on topic"),
  irrelevant: t("off topic"),
  unparsable: t("kept: unreadable verdict"),
  error: t("kept: not checked"),
};

// isStale reports whether a document no longer has the words that were quoted.
export const isStale = (state) => state === "changed" || state === "gone";

export class Board {
  // view is the answer, with its text and the id of its record; panel opens sources.
  constructor(view, panel) {
    Object.assign(this, { view, panel });
    this.passages = new Map(); // by id
    this.cards = new Map(); // by id, not cited
    this.reasons = new Map(); // by id
    this.marks = new Map(); // the quotes in each entry of a source, in order
    this.sources = el("ol", { class: "sources" });
    this.found = el("ul", { class: "found" });
    this.summary = el("summary", {}, "");
    this.rest = el("details", { class: "evidence", open: true, hidden: true }, this.summary, this.found);
    this.cost = el("p", { class: "facts cost", hidden: true });
    this.title = el("h3", { id: `sources-${view.id}` }, t("Found"));
    this.element = el("section", { class: "board", "aria-labelledby": `sources-${view.id}`, hidden: true },
      this.title, this.sources, this.rest, this.cost);
  }

  // add shows passages before they are checked.
  add(passages) {
    for (const p of passages) {
      this.passages.set(p.id, p);
      if (!this.cards.has(p.id)) this.#addCard(p.id, p);
    }
    this.#showCount();
  }

  // judge shows a verdict on its passage.
  judge(j) {
    if (j.wider || !this.reasons.has(j.passage)) this.reasons.set(j.passage, j);
    const card = this.cards.get(j.passage) || this.#addCard(j.passage, j);
    card.className = `card ${j.verdict}`;
    card.querySelector(".verdict").textContent = verdicts[j.verdict] || j.verdict;
    card.querySelector(".facts").textContent = [
      place({ ...this.passages.get(j.passage), ...j }),
      j.wider ? t("read in a second pass") : "",
      reason(j),
      j.by === "unjudged" ? t("ranked by search score") : "",
    ].filter(Boolean).join(" · ");
    this.#showCount();
  }

  // cite adds a source with its number.
  cite(cited) {
    this.title.textContent = t("Sources");
    const after = [...this.sources.children].find((e) => e.value > cited.number);
    this.sources.insertBefore(el("li", { value: cited.number, "data-number": cited.number },
      this.opener("source-title", { ...cited, start: 0, end: 0 }, cited.title || cited.document),
      el("span", { class: "path" }, documentName(cited.document)), el("ul", { class: "quotes" })), after || null);
  }

  // quote moves a passage up to its source, with the quoted words marked in it. Quotes that
  // the answer itself contains are shortened to their ends.
  quote(c, cited) {
    const list = this.sources.querySelector(`[data-number="${Number(c.number)}"] .quotes`);
    if (!list || !c.quote) return;
    const p = this.passages.get(c.passage);
    const whole = p?.text && c.start >= p.start && c.end <= p.end;
    const key = whole ? c.passage : `${c.document}:${c.start}:${c.end}`;
    const at = { ...cited, ...c };
    let entry = [...list.children].find((e) => e.dataset.key === key);
    if (!entry) {
      const facts = [place(at), reason(this.reasons.get(c.passage))].filter(Boolean).join(" · ");
      entry = el("li", { "data-key": key, dir: "auto" }, el("p", {}),
        facts ? el("span", { class: "facts", dir: document.documentElement.dir }, facts) : "");
      list.append(entry);
      this.marks.set(entry, []);
    }
    const marks = this.marks.get(entry);
    if (marks.some((m) => m.start < c.end && c.start < m.end)) return;
    marks.push(at);
    marks.sort((a, b) => a.start - b.start);
    entry.firstChild.replaceChildren(...(whole ? this.#inContext(p, marks) : [this.opener("quote", at, snippet(c.quote))]));
    this.cards.get(c.passage)?.remove();
    this.#showCount();
  }

  // showStates shows which sources of an old answer have changed since its date, and
  // reports whether quoted words were deleted.
  showStates(sources, date) {
    const day = new Date(date).toLocaleDateString(locale, { day: "numeric", month: "long", year: "numeric" });
    const words = {
      moved: t("The quoted text has moved since {day}.", { day }),
      changed: t("The quoted text has changed since {day}.", { day }),
      gone: t("The quoted text has been removed since {day}.", { day }),
    };
    for (const { number, state, now } of sources) {
      if (!words[state]) continue;
      const renamed = now ? t("Renamed to {name} since {day}.", { name: documentName(now), day }) : "";
      const change = renamed && !isStale(state) ? renamed : `${renamed} ${words[state]}`.trim();
      this.sources.querySelector(`[data-number="${Number(number)}"] .path`)?.after(el("p", { class: "facts state" }, change));
    }
    return sources.some((s) => isStale(s.state));
  }

  // fold closes the list of the passages that are not cited.
  fold() {
    this.rest.open = false;
  }

  // end shows the passages and drafts that led to the answer.
  end(answer, drafts) {
    const whole = [...drafts].filter(([step]) => answer.drafts?.some((d) => d.step === step)); // the last one is the answer
    const looked = [...this.reasons.values()];
    const cited = new Set((answer.sources || []).flatMap(({ passages }) => (passages || []).map(({ id }) => id)));
    for (const id of cited) this.cards.get(id)?.remove();
    const dropped = (answer.verified || []).filter((v) => v.verdict === "dropped");
    const more = [];
    if (dropped.length) {
      more.push(el("h4", {}, t("Removed because the model contradicts it")),
        el("ul", {}, ...dropped.map((v) => el("li", { dir: "auto" }, v.statement))));
    }
    if (whole.length) more.push(el("h4", {}, t("Earlier drafts")), el("ol", { class: "drafts" }, ...whole.map(drawDraft)));
    this.rest.append(...more);
    const again = looked.filter((j) => j.wider).length;
    this.summary.textContent = looked.length
      ? [t("Checked {n} passages", { n: answer.usage?.looked ?? looked.length }), again ? t("again at {n}", { n: again }) : "",
        t("used {n}", { n: cited.size }), // the other passages stay below, even if the model read them
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
    at = { ...at, run: this.view.run };
    const link = el("a", { class: className, href: documentURL(at.document, at.start, at.end, at.link, at.run) }, ...words);
    link.addEventListener("click", (e) => {
      if (e.metaKey || e.ctrlKey || e.shiftKey) return;
      e.preventDefault();
      this.panel.open(at, link);
    });
    return link;
  }

  #addCard(id, p) {
    const card = el("li", { class: "card" }, el("span", { class: "verdict" }, t("checking…")),
      this.opener("source-title", p, p.title || p.document), el("span", { class: "facts" }, place(p)),
      p.text ? el("p", { class: "snippet", dir: "auto" }, snippet(belowHeading(p), 140)) : "");
    this.cards.set(id, card);
    this.found.append(card);
    this.rest.hidden = this.element.hidden = false;
    return card;
  }

  #showCount() {
    const all = Math.max(this.passages.size, this.reasons.size);
    this.summary.textContent = this.reasons.size ? t("Checked {done} of {total}", { done: this.reasons.size, total: all })
      : t("Found {n} passages", { n: all });
  }

  // #shortenRepeated removes the middle of marked words that the answer itself contains.
  #shortenRepeated(mark) {
    const words = mark.textContent;
    if (words.length > 60 && plainText(this.view.text).includes(plainText(words))) {
      mark.textContent = withoutMiddle(words, 24, 24);
    }
    return mark;
  }

  // #inContext returns the quoted words of a passage, marked, with the words around them.
  #inContext(p, quotes) {
    const marks = quotes.map(({ start, end }) => ({ start: start - p.start, end: end - p.start }));
    return withMarks({ text: p.text, marks }).map((part, i) => (i % 2
      ? this.opener("quote", quotes[(i - 1) / 2], this.#shortenRepeated(part))
      : shortenContext(part, i > 0, i < 2 * marks.length)));
  }
}

// plainText returns a text without Markdown and line breaks.
const plainText = (text) => text.replace(/\[\d+\]|[^\p{L}\p{N}]+/gu, " ").trim();

// shortenContext shortens a text that follows a quote, precedes one, or both.
function shortenContext(text, follows, leads) {
  const words = text.replace(/[^\S\n]+/g, " ").replace(/\s*\n\s*/g, "\n");
  if (words.length <= (follows && leads ? 200 : 90)) return words;
  return withoutMiddle(words, follows && 90, leads && 90);
}

// withoutMiddle keeps at most before and after characters of the ends of a text, in whole words.
// Words of different lines stay on different lines: joined, they would read as a row of a table.
function withoutMiddle(text, before, after) {
  const start = text.slice(0, before || 0).replace(/\s\S*$/, "");
  const end = after ? text.slice(-after).replace(/^\S*\s/, "") : "";
  const apart = start && end && text.slice(start.length, text.length - end.length).includes("\n");
  return start + (apart ? " …\n… " : " … ") + end;
}

// reason returns why a passage was kept or skipped. The server reports in English which
// words of the question the passage covers. A model's own words are shown unchanged; the
// reason why the model could not be asked is not shown.
function reason({ reason: words, verdict } = {}) {
  if (verdict === "error") return "";
  const [, verb, first, lacks] = /^(covers|does not mention|close to the question, without) (.+?)(?:, not (.+))?$/.exec(words) || [];
  if (!verb) return words;
  const list = (quoted) => quoted.replace(/'/g, "").replace(/,? /g, t(", "));
  if (verb === "close to the question, without") return t("close to the question, without {words}", { words: list(first) });
  if (verb !== "covers") return t("does not mention {words}", { words: list(first) });
  return t("covers {words}", { words: list(first) }) + (lacks ? t(", not {words}", { words: list(lacks) }) : "");
}

// belowHeading returns the text of a passage without the headings that it begins with.
function belowHeading({ text = "", heading = "", title }) {
  const headings = new Set(["", title, ...heading.split(" › ")]);
  const lines = text.split("\n");
  const first = lines.findIndex((line) => !headings.has(line.trim()));
  return lines.slice(Math.max(first, 0)).join("\n");
}

function drawDraft([, html]) {
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
    u.took_ms === undefined ? "" : seconds < 0.1 ? t("under 0.1 s")
      : t("{seconds} s", { seconds: Number(seconds.toFixed(seconds < 10 ? 1 : 0)) }),
    u.calls ? t("{n} model calls", { n: u.calls }) : t("no model"),
    tokens ? t("{n} tokens", { n: tokens }) : "",
  ].filter(Boolean).join(" · ");
}
