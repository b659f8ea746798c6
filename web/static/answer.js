// One question and its answer, which grows with each event.

import { actions } from "./actions.js";
import { Blocks, citationsAt } from "./blocks.js";
import { Board } from "./board.js";
import { base, breakReason, documentURL, el, fallback, makeButton, maySet, place, refusal, snippet, withFlags, withMarks } from "./dom.js";
import { storedEvent } from "./history.js";
import { attachPeek } from "./peek.js";
import { sentence } from "./stream.js";
import { parts, t } from "./words.js";

let views = 0;

export class AnswerView {
  // panel opens sources; say announces a status to screen readers; askAgain asks
  // the question again; isFollowUp returns true if there are questions before it.
  constructor(question, { panel, say, askAgain, isFollowUp }) {
    Object.assign(this, { question, panel, say, askAgain, isFollowUp });
    this.id = ++views;
    this.run = ""; // the id of the record that the server keeps
    this.text = "";
    this.numbers = new Map(); // number -> cited event
    this.citations = [];
    this.drafts = new Map(); // step -> HTML of the draft's blocks
    this.revising = 0; // the step that replaces the draft, in proved sentences
    this.revised = new Map(); // the revision's sources, by their numbers when it is complete
    this.kept = []; // the events that restore the answer

    this.progress = el("p", { class: "progress" }, t("Searching your documents…"));
    this.textBox = el("div", { class: "text" });
    this.notes = el("div", { class: "notes" });
    this.actions = el("div", { class: "actions" });
    this.board = new Board(this, panel);
    this.blocks = new Blocks(this.textBox, (cite) => this.#equipCite(cite));
    this.element = el("article", { class: "turn", "aria-labelledby": `question-${this.id}`, "aria-busy": "true", tabindex: "-1" },
      el("h2", { class: question.length > 160 ? "asked long" : "asked", id: `question-${this.id}`, dir: "auto" }, question),
      el("div", { class: "answer" }, this.textBox, this.progress, this.notes, this.actions), this.board.element);
  }

  get busy() {
    return this.element.getAttribute("aria-busy") === "true";
  }

  // draw shows an event, and stores what is needed to show it again.
  draw({ kind, data }) {
    this[`on_${kind}`]?.(data);
    const kept = this.revising && data.draft === this.revising ? null : storedEvent(kind, data);
    const last = this.kept.at(-1);
    if (kind === "text" && last?.kind === "text") last.data.text += kept.text;
    else if (kept) this.kept.push({ kind, data: { ...kept } });
  }

  on_queued({ place: waiting }) {
    this.#showProgress(waiting === 1 ? t("Waiting for another search to finish. You are next.")
      : t("Waiting for other searches to finish. {n} are ahead of yours.", { n: waiting - 1 }));
  }

  on_retrieved({ question, passages }) {
    if (question && question !== this.question && !this.board.passages.size) {
      this.notes.append(el("p", { class: "facts", dir: "auto" }, t("Searched for: {question}", { question }), " ",
        this.isFollowUp() ? makeButton(t("Search it as written"), () => this.askAgain({ alone: true })) : ""));
    }
    this.board.add(passages || []);
    this.#showProgress(t("Checking {n} passages…", { n: this.board.passages.size }));
  }

  on_judged(judged) {
    this.board.judge(judged);
    const done = this.board.reasons.size, total = Math.max(this.board.passages.size, done);
    this.#showProgress(done === total ? t("Writing the answer…") : t("Checked {done} of {total} passages…", { done, total }), false);
  }

  on_draft({ step, final }) {
    this.#showProgress(final ? t("Draft {step} is ready. A better one is being written from more passages…", { step })
      : t("Writing draft {step}…", { step }), false);
  }

  on_cited(cited) {
    if (this.numbers.has(cited.number)) return;
    this.numbers.set(cited.number, cited);
    this.board.cite(cited);
  }

  // on_revision begins or withdraws a revision. Its blocks replace the draft, whose remaining
  // sentences are dimmed. It becomes the text when it is complete, and then all its sources
  // have numbers.
  on_revision({ step, cited, settled, cut }) {
    if (cut) return this.#withdrawRevision();
    if (this.revising !== step) {
      this.revising = step;
      this.revised.clear();
      this.blocks.begin(false, new Set());
      this.#showProgress(t("Writing the answer…"));
    }
    for (const number of settled) this.blocks.settled.add(number);
    for (const source of cited) {
      this.revised.set(source.number, { ...source, number: settled.includes(source.number) ? source.number : 0 });
    }
  }

  #withdrawRevision() {
    if (this.revising) this.blocks.withdraw();
    this.revising = 0;
  }

  on_text({ text }) {
    if (!this.text) {
      if (!this.revising) this.blocks.begin(false);
      this.revising = 0;
      this.blocks.settled = null;
      this.board.fold();
      this.#showProgress(t("Writing the answer…"));
    }
    this.text += text;
  }

  on_block({ draft, index, html }) {
    if (draft && draft !== this.revising) {
      if (!this.drafts.has(draft)) {
        this.drafts.set(draft, []);
        if (!this.text) this.blocks.begin(true);
      }
      this.drafts.get(draft)[index] = html;
      if (this.text || !this.busy) return;
    }
    this.blocks.put(index, html);
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
    this.board.quote(citation, this.numbers.get(citation.number));
    this.#markWeak();
  }

  on_unanswered({ reason, text, nearest, closest }) {
    this.unanswered = true;
    this.reason = reason;
    this.refusal = text;
    this.textBox.hidden = true;
    if (this.fellBack) this.#showFailure(fallback(this.fellBack, false));
    this.board.fold();
    this.#showProgress("");
    this.notes.append(el("div", { class: "refusal" },
      el("p", { class: "refusal-text", dir: "auto" }, text),
      closest?.length ? el("p", { class: "facts" }, t("Closest passages:")) : "",
      !closest?.length && nearest?.length ? el("p", { class: "facts" }, t("The closest passages (none is on this topic):")) : "",
      closest?.length || nearest?.length ? el("ul", { class: "nearest" }, ...(closest?.length ? closest : nearest).map((p) => el("li", {},
        this.board.opener("source-title", p, p.title || p.document),
        el("span", { class: "facts" }, place(p)),
        p.marks ? el("blockquote", { class: "closest", dir: "auto" }, ...withMarks(p)) :
          el("p", { class: "snippet", dir: "auto" }, snippet((p.text || "").replace(/\s+/g, " ")))))) : ""));
  }

  // on_fallback says in a sentence what failed, what is shown instead and what to do.
  on_fallback({ reason }) {
    this.fellBack = reason;
    this.#showFailure(fallback(reason));
  }

  on_incomplete({ reason: message }) {
    this.incomplete = true;
    const { reason, more } = breakReason(message);
    this.#showFailure(
      t("The answer is incomplete: {reason}. The part received so far is shown; ask again for a complete answer.", { reason }));
    if (more) this.on_warning({ message });
  }

  on_warning({ message }) {
    if (message.startsWith("the question was searched for unchanged") && !this.details) {
      this.#showFailure(
        t("The model couldn't reword the question, so it was searched for as you wrote it. Ask again in a moment, or ask it in full."));
      if (!message.includes(": ")) return;
    }
    (this.details || this.notes).append(el("p", { class: "note" }, ...withFlags(sentence(message))));
  }

  // #showFailure shows in one place that the model failed. Earlier and later warnings are listed
  // under its details, with the server's words for readers who may see them.
  #showFailure(words) {
    const warnings = [...this.notes.querySelectorAll("p.note:not(.trouble)")];
    this.trouble?.remove();
    this.notes.append(this.trouble = el("p", { class: "note trouble" }, ...withFlags(words)));
    this.details ||= el("details", { class: "details" }, el("summary", {}, t("Details")));
    this.details.append(...warnings);
    this.notes.append(this.details);
  }

  on_done(answer) {
    this.answer = answer;
    const count = this.numbers.size;
    if (this.unanswered) this.say(this.reason === "small_talk" ? this.refusal : t("Your documents don't answer this question."));
    else this.say(this.incomplete ? t("The answer is incomplete.") : t("Answer complete, {n} sources.", { n: count }));
    if (!this.text && !this.unanswered) this.notes.append(el("p", { class: "note" }, t("The server returned no answer.")));
    if (this.doubted && !this.unanswered) {
      this.notes.append(el("p", { class: "note" },
        ...parts("{underlined} isn't clearly supported by a source.",
          { underlined: el("span", { class: "doubt" }, t("Underlined text")) })));
    }
    const i = answer.indexing;
    if (i && !i.ready) {
      this.notes.append(el("p", { class: "note" }, t("Answered while documents were still being indexed ({done} of {total} files).", i)));
    }
    this.board.end(answer, this.drafts);
    if (this.details?.children.length === 1) this.details.remove();
    this.end();
    if (this.blocks.differs) this.notes.append(el("p", { class: "note" },
      ...parts("{highlighted} changed after the first draft.",
        { highlighted: el("span", { class: "changed" }, t("Highlighted sentences")) })));
  }

  // showReconnecting shows that the connection was lost.
  showReconnecting() {
    this.#showProgress(t("Connection lost, reconnecting…"));
  }

  // fail shows an error below the text that was received before it.
  fail({ message, request, status, code }) {
    if (code === "unreachable") {
      message = t("Can't reach the server. Your conversation stays here, and you can ask again once the connection is back.");
    }
    const refused = refusal(code);
    const warnings = refused ? [...this.notes.querySelectorAll("p.note"), ...(maySet ? [el("p", {}, ...withFlags(message))] : [])] : [];
    const details = warnings.length ? el("details", { class: "details" }, el("summary", {}, t("Details")), ...warnings) : "";
    message = refused || message;
    const key = new URL(`key?next=${encodeURIComponent(location.pathname)}`, base).href;
    this.notes.append(el("div", { class: `note trouble ${code || ""}` },
      el("p", {}, ...withFlags(message), request ? el("code", {}, ` ${request}`) : ""),
      status === 401 ? el("a", { href: key }, t("Sign in"))
        : makeButton(t("Try again"), () => this.askAgain()),
      details));
    this.failed = true;
    this.say(message);
    this.end();
  }

  // markStopped marks an answer that the reader stopped.
  markStopped() {
    this.notes.append(el("p", { class: "note" }, t("Stopped.")));
    this.say(t("Stopped."));
    this.end();
  }

  end() {
    this.#withdrawRevision();
    this.blocks.finish();
    this.#markWeak();
    this.#showProgress("");
    this.board.fold();
    this.element.setAttribute("aria-busy", "false");
    this.actions.replaceChildren(...actions(this));
  }

  #showProgress(words, aloud = true) {
    this.progress.textContent = words;
    this.progress.classList.toggle("ended", !words);
    if (words && aloud) this.say(words);
  }

  // #equipCite makes a citation number in the text a link to its source.
  #equipCite(link) {
    const number = Number(link.dataset.number);
    const cited = this.numbers.get(number) || this.revised.get(number);
    if (!cited) return;
    link.href = cited.link || documentURL(cited.document);
    link.setAttribute("role", "button");
    const title = cited.title || cited.document;
    link.setAttribute("aria-label", cited.number ? t("Source {number}: {title}", { number, title }) : title);
    link.setAttribute("aria-expanded", "false");
    link.addEventListener("click", (e) => {
      if (e.metaKey || e.ctrlKey || e.shiftKey) return;
      e.preventDefault();
      this.panel.open({ ...cited, ...citationsAt(this.citations, link)[0], run: this.run }, link);
    });
    link.addEventListener("keydown", (e) => {
      if ((e.key === " " || e.key === "Enter") && !e.ctrlKey && !e.metaKey && !e.shiftKey) {
        e.preventDefault();
        link.click();
      }
    });
    attachPeek(link, () => {
      const quotes = citationsAt(this.citations, link);
      return { ...cited, page: quotes[0]?.page, heading: quotes[0]?.heading, quotes };
    });
  }

  #markWeak() {
    for (const link of this.textBox.querySelectorAll(".cite")) {
      const quotes = citationsAt(this.citations, link);
      if (!quotes.length) continue;
      link.classList.toggle("weak", quotes.every((c) => c.verdict === "weak"));
      link.classList.toggle("found", quotes.every((c) => c.by === "found"));
      link.href = documentURL(quotes[0].document, quotes[0].start, quotes[0].end, quotes[0].link, this.run);
    }
  }

  // turns returns the question and answer as the history of the next question.
  get turns() {
    const said = this.unanswered ? this.refusal : this.text;
    return said ? [{ role: "user", content: this.question }, { role: "assistant", content: said }] : [];
  }
}
