// One question and its answer, drawn as the events come in.

import { byId, documentURL, el, place, plural } from "./dom.js";
import { attach } from "./peek.js";
import { TextView } from "./text.js";

const encoder = new TextEncoder();
const bytes = (text) => encoder.encode(text).length;

const verdicts = { relevant: "on topic", irrelevant: "off topic", unparsable: "kept, verdict unreadable", error: "kept, not judged" };

export class AnswerView {
  // panel opens sources; say tells the reader of a screen what goes on.
  constructor(element, question, panel, say) {
    this.panel = panel;
    this.say = say;
    this.text = "";
    this.numbers = new Map(); // number -> cited event
    this.citations = [];
    this.passages = new Map(); // passage id -> passage
    this.judged = [];
    this.draft = { step: 0, text: "" };
    this.doubts = [];
    this.frame = 0;

    this.progress = el("p", { class: "progress" }, "Searching the documents");
    this.draftBox = el("div", { class: "draft", hidden: true });
    this.textBox = el("div", { class: "text" });
    this.notes = el("div", { class: "notes" });
    this.sources = el("ol", { class: "sources" });
    this.sourcesBox = el("section", { class: "sources-box", "aria-labelledby": "sources-title", hidden: true },
      el("h3", { id: "sources-title" }, "Sources"), this.sources);
    this.more = el("div", { class: "more-box" });
    this.actions = el("p", { class: "actions" });
    this.view = new TextView(this.textBox, (number, at) => this.#citation(number, at));
    this.draftView = new TextView(this.draftBox, () => document.createTextNode(""));
    element.replaceChildren(
      el("h2", { class: "asked" }, question),
      this.progress, this.draftBox, this.textBox, this.notes, this.actions, this.sourcesBox, this.more);
    element.hidden = false;
    element.setAttribute("aria-busy", "true");
    this.element = element;
  }

  take({ kind, data }) {
    const handler = this[`on_${kind}`];
    if (handler) handler.call(this, data);
  }

  on_retrieved({ passages }) {
    for (const p of passages || []) this.passages.set(p.id, p);
    this.#progress(`Checking ${plural(this.passages.size, "passage", "passages")}`);
  }

  on_judged(verdict) {
    this.judged.push(verdict);
    this.#progress(`Checked ${this.judged.length} of ${Math.max(this.passages.size, this.judged.length)} passages`, false);
  }

  on_draft({ step, text }) {
    if (step !== this.draft.step) this.draft = { step, text: "" };
    this.draft.text += text;
    this.#progress(`Draft ${step}, still checking more passages`, false);
    this.#later();
  }

  on_cited(cited) {
    if (this.numbers.has(cited.number)) return;
    this.numbers.set(cited.number, cited);
    const entry = el("li", { id: `source-${cited.number}`, value: cited.number },
      this.#opener("source-title", { ...cited, start: 0, end: 0 }, cited.title || cited.document),
      el("span", { class: "path" }, cited.document), el("ul", { class: "quotes" }));
    this.sources.append(entry);
    this.sourcesBox.hidden = false;
  }

  on_text({ text }) {
    if (!this.text) {
      // The answer takes the draft's place without the page jumping.
      this.textBox.style.minHeight = this.draftBox.hidden ? "" : `${this.draftBox.offsetHeight}px`;
      this.draftBox.hidden = true;
      this.#progress("Writing the answer");
    }
    this.text += text;
    this.#later();
  }

  on_quoted(citation) {
    this.citations.push(citation);
    this.#quote(citation);
    this.#weak();
  }

  on_unanswered({ reason, text, nearest }) {
    this.unanswered = true;
    this.draftBox.hidden = true;
    this.#progress("");
    this.notes.append(el("div", { class: "refusal" },
      el("p", { class: "refusal-text" }, text),
      nearest?.length ? el("p", { class: "facts" }, reason === "no_answer" ? "These came closest, and do not say:" : "The nearest passages, none of them on the topic:") : "",
      nearest?.length ? el("ul", { class: "nearest" }, ...nearest.map((p) => el("li", {},
        this.#opener("source-title", { ...p, document: p.document, title: p.title }, p.title || p.document),
        el("span", { class: "facts" }, place(p)),
        el("p", { class: "snippet" }, snippet(p.text.replace(/\s+/g, " ")))))) : ""));
  }

  on_incomplete({ reason }) {
    this.notes.append(el("p", { class: "note trouble" }, `The answer breaks off here: ${reason}`));
  }

  on_warning({ message }) {
    this.notes.append(el("p", { class: "note" }, message));
  }

  on_usage(usage) {
    this.usage = usage;
  }

  on_done(answer) {
    this.answer = answer;
    const count = answer.sources?.length || 0;
    if (this.unanswered) this.say("The documents do not answer this.");
    else this.say(answer.incomplete ? "The answer is incomplete." : `Answer complete, ${plural(count, "source", "sources")}.`);
    if (!this.text && !this.unanswered) this.notes.append(el("p", { class: "note" }, "The server gave no answer."));
    this.doubts = ranges(this.text, answer.unsupported || []);
    if (this.doubts.length && !this.unanswered) {
      this.notes.append(el("p", { class: "note" },
        el("span", { class: "doubt" }, "Underlined words"), " have no source that clearly bears them out."));
    }
    this.#evidence(answer);
    this.end();
  }

  // fail shows an error, with what was written before it left standing.
  fail(message, retry, request) {
    this.notes.append(el("div", { class: "note trouble" }, el("p", {}, message, request ? el("code", {}, ` ${request}`) : ""),
      el("button", { type: "button", class: "plain", onclick: retry }, "Try again")));
    this.say(message);
    this.end();
  }

  // stopped marks an answer that the reader broke off.
  stopped() {
    this.notes.append(el("p", { class: "note" }, "Stopped."));
    this.say("Stopped.");
    this.end();
  }

  end() {
    cancelAnimationFrame(this.frame);
    this.#draw();
    this.#weak();
    this.#progress("");
    this.draftBox.hidden = this.draftBox.hidden || Boolean(this.text) || this.unanswered === true;
    this.textBox.style.minHeight = "";
    this.element.setAttribute("aria-busy", "false");
    if (this.text) this.actions.replaceChildren(this.#copyButton());
  }

  #progress(words, aloud = true) {
    this.progress.textContent = words;
    this.progress.classList.toggle("ended", !words);
    if (words && aloud) this.say(words);
  }

  #later() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.frame = 0;
    if (this.text) this.view.draw(this.text, this.numbers, this.doubts);
    else if (this.draft.text) {
      this.draftBox.hidden = false;
      this.draftView.draw(this.draft.text, new Map());
    }
  }

  // #citation makes the link of the citation whose marker stands at an offset of the text.
  #citation(number, at) {
    const cited = this.numbers.get(number);
    const link = el("a", { class: "cite", href: cited.link || documentURL(cited.document), role: "button",
      "aria-label": `Source ${number}: ${cited.title || cited.document}`, "aria-expanded": "false", "data-number": number, "data-at": at }, String(number));
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
    return link;
  }

  // #under gives the citations that a marker stands for: those of its number
  // whose sentence holds it, else the nearest of its number.
  #under(link) {
    const number = Number(link.dataset.number);
    const at = bytes(this.text.slice(0, Number(link.dataset.at)));
    const mine = this.citations.filter((c) => c.number === number);
    const away = (c) => Math.max(0, c.text_start - at, at - c.text_end);
    const least = Math.min(...mine.map(away));
    return mine.filter((c) => away(c) === least);
  }

  #weak() {
    for (const link of this.textBox.querySelectorAll(".cite")) {
      const under = this.#under(link);
      link.classList.toggle("weak", under.length > 0 && under.every((c) => c.verdict === "weak"));
      if (under.length) link.href = documentURL(under[0].document, under[0].start, under[0].end);
    }
  }

  // #quote adds a quote to its source in the list, once.
  #quote(c) {
    const list = this.sources.querySelector(`#source-${Number(c.number)} .quotes`);
    const key = `${c.document}:${c.start}:${c.end}`;
    if (!list || [...list.children].some((e) => e.dataset.key === key)) return;
    const cited = this.numbers.get(c.number);
    list.append(el("li", { "data-key": key },
      this.#opener("quote", { ...cited, ...c }, snippet(c.quote)),
      place({ ...cited, ...c }) ? el("span", { class: "facts" }, place({ ...cited, ...c })) : ""));
  }

  // #opener is a link to a place that opens the panel.
  #opener(className, at, words) {
    const link = el("a", { class: className, href: documentURL(at.document, at.start, at.end) }, words);
    link.addEventListener("click", (e) => {
      if (e.metaKey || e.ctrlKey || e.shiftKey) return;
      e.preventDefault();
      this.panel.open(at, link);
    });
    return link;
  }

  // #evidence shows what was looked at and why it was kept or not, and the drafts.
  #evidence(answer) {
    const looked = answer.judged || this.judged;
    const used = answer.usage?.used ?? answer.sources?.length ?? 0;
    if (looked.length) {
      this.more.append(el("details", {},
        el("summary", {}, `Looked at ${answer.usage?.looked ?? looked.length}, used ${used}`),
        el("ul", { class: "judged" }, ...looked.map((j) => {
          const p = this.passages.get(j.passage);
          return el("li", {},
            el("span", { class: `verdict ${j.verdict}` }, verdicts[j.verdict] || j.verdict),
            el("span", {},
              this.#opener("source-title", { ...(p || {}), document: j.document, title: j.title, page: j.page, heading: j.heading }, j.title || j.document),
              el("span", { class: "facts" }, [place(j), j.reason, j.by === "unjudged" ? "decided by its score" : ""].filter(Boolean).join(" · "))));
        }))));
    }
    const drafts = answer.drafts || [];
    if (drafts.length) {
      this.more.append(el("details", {}, el("summary", {}, plural(drafts.length, "draft", "drafts") + " on the way"),
        el("ol", { class: "drafts" }, ...drafts.map((d) => {
          const box = el("li", {});
          new TextView(box, () => document.createTextNode("")).draw(d.text, new Map());
          return box;
        }))));
    }
    const u = answer.usage;
    if (u) {
      const facts = [
        u.seconds < 0.1 ? "under 0.1 s" : `${u.seconds < 10 ? u.seconds.toFixed(1) : Math.round(u.seconds)} s`,
        u.calls ? plural(u.calls, "model call", "model calls") : "no model used",
        u.prompt_tokens + u.completion_tokens ? `${u.prompt_tokens + u.completion_tokens} tokens` : "",
      ];
      this.more.append(el("p", { class: "facts" }, facts.filter(Boolean).join(" · ")));
    }
    const i = answer.indexing;
    if (i && !i.ready) {
      this.notes.append(el("p", { class: "note" }, `Answered while the documents were still being read: ${i.done} of ${i.total} files were in.`));
    }
  }

  #copyButton() {
    const button = el("button", { type: "button", class: "plain", onclick: async () => {
      const list = [...this.numbers.values()].map((c) => `[${c.number}] ${c.title || c.document} (${c.document})`).join("\n");
      try {
        await navigator.clipboard.writeText(list ? `${this.text}\n\n${list}\n` : this.text);
        button.textContent = "Copied";
        this.say("Copied.");
      } catch {
        button.textContent = "The browser does not allow copying";
      }
      setTimeout(() => (button.textContent = "Copy with sources"), 2000);
    } }, "Copy with sources");
    return button;
  }
}

// snippet shortens a text, and keeps its lines: a table's rows stay rows.
function snippet(text) {
  const words = (text || "").replace(/[^\S\n]+/g, " ").replace(/\s*\n\s*/g, "\n").trim();
  return words.length > 220 ? `${words.slice(0, 200).replace(/\s\S*$/, "")} …` : words;
}

// ranges turns byte ranges of the text into [from, to, why] of JavaScript's offsets.
function ranges(text, list) {
  if (!list.length) return [];
  const at = new Map();
  let n = 0;
  for (let i = 0; i < text.length; ) {
    at.set(n, i);
    const c = text.codePointAt(i);
    n += c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    i += c > 0xffff ? 2 : 1;
  }
  at.set(n, text.length);
  return list
    .map((u) => [at.get(u.text_start), at.get(u.text_end), u.reason || "No source bears this out"])
    .filter(([a, b]) => a !== undefined && b !== undefined && a < b);
}
