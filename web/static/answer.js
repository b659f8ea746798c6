// One question and its answer, which grows with each event.

import { Blocks } from "./blocks.js";
import { copy, fenced } from "./copy.js";
import { base, byId, documentURL, el, place, plural, visibleName } from "./dom.js";
import { evidence } from "./evidence.js";
import { attach } from "./peek.js";
import { post, put, Trouble } from "./stream.js";

let views = 0;

export class AnswerView {
  // panel opens sources; say announces a status to screen readers; again asks
  // the question again.
  constructor(question, { panel, say, again }) {
    Object.assign(this, { question, panel, say, again });
    this.id = ++views;
    this.text = "";
    this.numbers = new Map(); // number -> cited event
    this.citations = [];
    this.passages = new Map(); // passage id -> passage
    this.judged = 0;
    this.drafts = new Map(); // step -> HTML of its blocks
    this.kept = []; // the events that restore the answer

    this.progress = el("p", { class: "progress" }, "Searching your documents…");
    this.draftBox = el("div", { class: "text draft", hidden: true });
    this.textBox = el("div", { class: "text" });
    this.notes = el("div", { class: "notes" });
    this.actions = el("div", { class: "actions" });
    this.sources = el("ol", { class: "sources" });
    this.sourcesBox = el("section", { class: "sources-box", "aria-labelledby": `sources-${this.id}`, hidden: true },
      el("h3", { id: `sources-${this.id}` }, "Sources"), this.sources);
    this.more = el("div", { class: "more-box" });
    this.blocks = new Blocks(this.textBox, (cite) => this.#equip(cite));
    this.draftBlocks = null;
    this.element = el("article", { class: "turn", "aria-labelledby": `question-${this.id}`, "aria-busy": "true", tabindex: "-1" },
      el("h2", { class: question.length > 160 ? "asked long" : "asked", id: `question-${this.id}`, dir: "auto" }, question),
      this.draftBox, this.textBox, this.progress, this.notes, this.actions, this.sourcesBox, this.more);
  }

  get busy() {
    return this.element.getAttribute("aria-busy") === "true";
  }

  // draw shows an event, and stores what is needed to show it again.
  draw({ kind, data }) {
    this[`on_${kind}`]?.(data);
    const kept = storedEvent(kind, data);
    const last = this.kept.at(-1);
    if (kind === "text" && last?.kind === "text") last.data.text += kept.text;
    else if (kept) this.kept.push({ kind, data: { ...kept } });
  }

  on_retrieved({ question, passages }) {
    if (question && question !== this.question && !this.passages.size) {
      this.notes.append(el("p", { class: "facts", dir: "auto" }, `Searched for: ${question}`));
    }
    for (const p of passages || []) this.passages.set(p.id, p);
    this.#progress(`Checking ${plural(this.passages.size, "passage", "passages")}…`);
  }

  on_judged() {
    this.judged++;
    this.#progress(`Checked ${this.judged} of ${Math.max(this.passages.size, this.judged)} passages…`, false);
  }

  on_draft({ step }) {
    this.#progress(`Draft ${step} is ready, checking more passages…`, false);
  }

  on_cited(cited) {
    if (this.numbers.has(cited.number)) return;
    this.numbers.set(cited.number, cited);
    this.sources.append(el("li", { value: cited.number, "data-number": cited.number },
      this.#opener("source-title", { ...cited, start: 0, end: 0 }, cited.title || cited.document),
      el("span", { class: "path" }, visibleName(cited.document)), el("ul", { class: "quotes" })));
  }

  on_text({ text }) {
    if (!this.text) {
      // Replace the draft without moving the page.
      if (!this.draftBox.hidden) this.textBox.style.minHeight = `${this.draftBox.offsetHeight}px`;
      this.draftBox.hidden = true;
      this.#progress("Writing the answer…");
    }
    this.text += text;
  }

  on_block({ draft, index, html }) {
    if (!draft) {
      this.blocks.put(index, html);
      return;
    }
    if (!this.drafts.has(draft)) {
      this.drafts.set(draft, []);
      this.draftBox.replaceChildren();
      this.draftBlocks = new Blocks(this.draftBox);
    }
    this.drafts.get(draft)[index] = html;
    if (this.text || !this.busy) return;
    this.draftBox.hidden = false;
    this.draftBlocks.put(index, html);
  }

  on_marked({ index, html }) {
    this.doubted = true;
    this.blocks.put(index, html);
  }

  on_markdown({ markdown }) {
    this.markdown = markdown;
  }

  on_quoted(citation) {
    this.citations.push(citation);
    this.#quote(citation);
    this.#weak();
  }

  on_unanswered({ reason, text, nearest, closest }) {
    this.unanswered = true;
    this.reason = reason;
    this.refusal = text;
    this.draftBox.hidden = true;
    this.textBox.hidden = true;
    this.#progress("");
    this.notes.append(el("div", { class: "refusal" },
      el("p", { class: "refusal-text", dir: "auto" }, text),
      closest?.length ? el("p", { class: "facts" }, "Closest passages:") : "",
      !closest?.length && nearest?.length ? el("p", { class: "facts" }, "The closest passages, none on this topic:") : "",
      closest?.length || nearest?.length ? el("ul", { class: "nearest" }, ...(closest?.length ? closest : nearest).map((p) => el("li", {},
        this.#opener("source-title", p, p.title || p.document),
        el("span", { class: "facts" }, place(p)),
        p.marks ? el("blockquote", { class: "closest", dir: "auto" }, ...marked(p)) :
          el("p", { class: "snippet", dir: "auto" }, snippet((p.text || "").replace(/\s+/g, " ")))))) : ""));
  }

  on_incomplete({ reason }) {
    this.incomplete = true;
    this.notes.append(el("p", { class: "note trouble" }, `The answer is incomplete: ${reason}`));
  }

  on_warning({ message }) {
    this.notes.append(el("p", { class: "note" }, message));
  }

  on_done(answer) {
    this.answer = answer;
    const count = this.numbers.size;
    if (this.unanswered) this.say(this.reason === "small_talk" ? this.refusal : "Your documents don't answer this question.");
    else this.say(this.incomplete ? "The answer is incomplete." : `Answer complete, ${plural(count, "source", "sources")}.`);
    if (!this.text && !this.unanswered) this.notes.append(el("p", { class: "note" }, "The server returned no answer."));
    if (this.doubted && !this.unanswered) {
      this.notes.append(el("p", { class: "note" },
        el("span", { class: "doubt" }, "Underlined text"), " isn't clearly supported by a source."));
    }
    const i = answer.indexing;
    if (i && !i.ready) {
      this.notes.append(el("p", { class: "note" }, `Answered while documents were still being indexed (${i.done} of ${i.total} files).`));
    }
    this.more.replaceChildren(...evidence(answer, this.passages, this.drafts, (...about) => this.#opener(...about)));
    this.end();
  }

  // reconnecting shows that the connection was lost.
  reconnecting() {
    this.#progress("Connection lost, reconnecting…");
  }

  // fail shows an error below the text that was received before it.
  fail({ message, request, status }) {
    const key = new URL(`key?next=${encodeURIComponent(location.pathname)}`, base).href;
    this.notes.append(el("div", { class: "note trouble" }, el("p", {}, message, request ? el("code", {}, ` ${request}`) : ""),
      status === 401 ? el("a", { href: key }, "Sign in") : el("button", { type: "button", class: "plain", onclick: () => this.again() }, "Try again")));
    this.failed = true;
    this.say(message);
    this.end();
  }

  // markStopped marks an answer that the reader stopped.
  markStopped() {
    this.notes.append(el("p", { class: "note" }, "Stopped."));
    this.say("Stopped.");
    this.end();
  }

  end() {
    this.blocks.draw();
    this.#weak();
    this.#progress("");
    if (this.text || this.unanswered) this.draftBox.hidden = true;
    this.textBox.style.minHeight = "";
    // Only now: below a growing text it would keep moving.
    this.sourcesBox.hidden = this.unanswered || this.numbers.size === 0;
    this.element.setAttribute("aria-busy", "false");
    this.actions.replaceChildren(...this.#buttons());
  }

  #progress(words, aloud = true) {
    this.progress.textContent = words;
    this.progress.classList.toggle("ended", !words);
    if (words && aloud) this.say(words);
  }

  // #equip makes a citation number in the text a link to its source.
  #equip(link) {
    const number = Number(link.dataset.number);
    const cited = this.numbers.get(number);
    if (!cited) return;
    link.href = cited.link || documentURL(cited.document);
    link.setAttribute("role", "button");
    link.setAttribute("aria-label", `Source ${number}: ${cited.title || cited.document}`);
    link.setAttribute("aria-expanded", "false");
    link.addEventListener("click", (e) => {
      if (e.metaKey || e.ctrlKey || e.shiftKey) return;
      e.preventDefault();
      this.panel.open({ ...cited, ...this.#under(link)[0] }, link);
    });
    link.addEventListener("keydown", (e) => {
      if ((e.key === " " || e.key === "Enter") && !e.ctrlKey && !e.metaKey && !e.shiftKey) {
        e.preventDefault();
        link.click();
      }
    });
    attach(link, () => {
      const under = this.#under(link);
      return { ...cited, page: under[0]?.page, heading: under[0]?.heading, quotes: under };
    });
  }

  // #under returns the citations of a marker: of those with its number, the ones
  // whose sentence contains it or is nearest.
  #under(link) {
    const number = Number(link.dataset.number);
    const at = Number(link.dataset.at);
    const mine = this.citations.filter((c) => c.number === number);
    const distance = (c) => Math.max(0, c.text_start - at, at - c.text_end);
    const least = Math.min(...mine.map(distance));
    return mine.filter((c) => distance(c) === least);
  }

  #weak() {
    for (const link of this.textBox.querySelectorAll(".cite")) {
      const under = this.#under(link);
      link.classList.toggle("weak", under.length > 0 && under.every((c) => c.verdict === "weak"));
      link.classList.toggle("found", under.length > 0 && under.every((c) => c.by === "found"));
      if (under.length) link.href = documentURL(under[0].document, under[0].start, under[0].end);
    }
  }

  // #quote adds a quote once to its source in the list.
  #quote(c) {
    const list = this.sources.querySelector(`[data-number="${Number(c.number)}"] .quotes`);
    const key = `${c.document}:${c.start}:${c.end}`;
    if (!list || !c.quote || [...list.children].some((e) => e.dataset.key === key)) return;
    const at = { ...this.numbers.get(c.number), ...c };
    list.append(el("li", { "data-key": key, dir: "auto" },
      this.#opener("quote", at, snippet(c.quote)), place(at) ? el("span", { class: "facts" }, place(at)) : ""));
  }

  // #opener returns a link to a place, which opens the panel.
  #opener(className, at, words) {
    const link = el("a", { class: className, href: documentURL(at.document, at.start, at.end) }, words);
    link.addEventListener("click", (e) => {
      if (e.metaKey || e.ctrlKey || e.shiftKey) return;
      e.preventDefault();
      this.panel.open(at, link);
    });
    return link;
  }

  #buttons() {
    const button = (words, onclick) => el("button", { type: "button", class: "plain", onclick }, words);
    const copied = button("Copy", async () => {
      const done = await copy(this.markdown || fenced(this.text));
      copied.textContent = done ? "Copied" : "Copying was blocked";
      if (done) this.say("Copied with links to the sources.");
      setTimeout(() => (copied.textContent = "Copy"), 2000);
    });
    const kept = this.run && this.answer && "kept" in byId("turns").dataset;
    const shared = button("Share", async () => {
      try {
        // Browsers allow copying only right after the click.
        const [done] = await Promise.all([copy(new URL(`?run=${this.run}`, base).href), put(new URL(`api/runs/${this.run}/shared`, base))]);
        shared.textContent = done ? "Link copied" : "Copying was blocked";
        if (done) this.say("Link to this answer copied.");
      } catch (err) {
        if (!(err instanceof Trouble)) throw err;
        shared.textContent = "Couldn't share";
        this.say(err.message);
      }
      setTimeout(() => (shared.textContent = "Share"), 2000);
    });
    return [
      this.text && !this.unanswered ? copied : "",
      kept ? shared : "",
      this.failed ? "" : button("Regenerate", () => this.again()),
      ...(kept ? this.#ratings() : []),
    ].filter(Boolean);
  }

  // #ratings returns the buttons that rate the answer.
  #ratings() {
    const buttons = [[1, "Helpful"], [-1, "Not helpful"]].map(([rating, words]) =>
      el("button", { type: "button", class: "quiet rating", "data-rating": rating, onclick: async () => {
        try {
          await post(new URL("api/feedback", base), { run: this.run, rating });
          this.rating = rating;
          press();
          this.say("Thanks for the feedback.");
          this.element.dispatchEvent(new Event("rated"));
        } catch (err) {
          if (!(err instanceof Trouble)) throw err;
          this.say(err.message);
          for (const b of buttons) b.replaceWith(b === buttons[0] ? el("span", { class: "facts" }, err.message) : "");
        }
      } }, words));
    const press = () => buttons.forEach((b) => b.setAttribute("aria-pressed", String(Number(b.dataset.rating) === this.rating)));
    press();
    return [el("span", { class: "ratings" }, ...buttons)];
  }

  // turns returns the question and answer as the history of the next question.
  get turns() {
    const said = this.unanswered ? this.refusal : this.text;
    return said ? [{ role: "user", content: this.question }, { role: "assistant", content: said }] : [];
  }
}

// marked returns the text of a closest passage with its marks, which count bytes.
function marked({ text, marks }) {
  const bytes = new TextEncoder().encode(text), decode = (from, to) => new TextDecoder().decode(bytes.subarray(from, to));
  const parts = [];
  let at = 0;
  for (const { start, end } of marks) {
    parts.push(decode(at, start), el("mark", {}, decode(start, end)));
    at = end;
  }
  return [...parts, decode(at)];
}

// storedEvent returns the parts of an event that are needed to show it again.
function storedEvent(kind, data) {
  switch (kind) {
    case "retrieved":
      return { question: data.question, passages: (data.passages || []).map(({ id, document, start, end }) => ({ id, document, start, end })) };
    case "block":
      return data.final ? data : null;
    case "done": {
      const { usage, indexing } = data;
      const judged = (data.judged || []).map(({ passage, document, title, heading, page, verdict, by, reason, wider }) => ({ passage, document, title, heading, page, verdict, by, reason, wider }));
      const sources = (data.sources || []).map(({ number, passages }) => ({ number, passages: (passages || []).map(({ id }) => ({ id })) }));
      const verified = (data.verified || []).filter((v) => v.verdict === "dropped").map(({ statement, verdict }) => ({ statement, verdict }));
      return { usage, indexing, judged, sources, verified };
    }
    case "unanswered":
      return { ...data, nearest: (data.nearest || []).map(({ document, title, page, heading, start, end, text }) => ({ document, title, page, heading, start, end, text: text.slice(0, 400) })) };
    case "cited": case "text": case "markdown": case "marked": case "quoted": case "incomplete": case "warning":
      return data;
  }
  return null;
}

// snippet shortens a text and keeps its line breaks, so that tables stay readable.
function snippet(text) {
  const words = (text || "").replace(/[^\S\n]+/g, " ").replace(/\s*\n\s*/g, "\n").trim();
  return words.length > 220 ? `${words.slice(0, 200).replace(/\s\S*$/, "")} …` : words;
}
