// A conversation: questions and their answers.

import { AnswerView } from "./answer.js";
import { base, byId, el, makeButton, writer } from "./dom.js";
import * as history from "./history.js";
import { followRun, get, post, Trouble } from "./stream.js";
import { parts, t } from "./words.js";

// The history that is sent with a question, in characters.
const historySize = 24_000;

const runURL = (id, query = "") => new URL(`api/runs/${encodeURIComponent(id)}${query}`, base);

export class Conversation {
  // panel opens sources; say announces a status to screen readers; showBusy(yes),
  // showReachable(yes) and onChange() are called after a change.
  constructor({ panel, say, showBusy, showReachable, onChange }) {
    Object.assign(this, { panel, say, showBusy, showReachable, onChange });
    this.views = [];
    this.turns = byId("turns");
    this.clear();
  }

  get isEmpty() {
    return this.views.length === 0;
  }

  clear() {
    this.stop();
    this.id = history.newID();
    this.views = [];
    this.turns.replaceChildren();
  }

  // stop ends the current answer, here and on the server.
  stop() {
    this.asking?.abort();
  }

  // ask asks a question below the others, or replaces one of them (instead).
  // resume is the id of a failed run to resume; compare shows what differs from the
  // answer that is replaced; alone asks it without the questions before it.
  async ask(question, body = {}, instead = null, { resume = "", compare = false, alone = false } = {}) {
    this.stop();
    const mine = (this.asking = new AbortController());
    const view = this.#addView(question, body, instead);
    const sent = { ...body, question };
    const past = alone ? [] : this.#turnsBefore(view);
    if (past.length) sent.history = past;
    // If keys are in use, the server keeps the conversation, too.
    if ("keyed" in this.turns.dataset) Object.assign(sent, { conversation: this.id, history: past });
    this.#saveTurns();
    await this.#followRun(view, mine, async () => {
      const beginRun = (what) => post(new URL("api/runs", base), what, mine.signal);
      try {
        if (resume) return (await beginRun({ run: resume })).id;
      } catch (err) {
        if (!(err instanceof Trouble) || err.status !== 404) throw err;
      }
      return (await beginRun(sent)).id;
    });
    if (compare && view.answer) this.#showDifferences(view, instead);
    this.#showWriter(view.answer);
  }

  // #showWriter shows that answers are quoted since the model failed, until it writes one again.
  #showWriter({ fallback, answered, usage } = {}) {
    const line = byId("writer");
    const { model } = line.dataset;
    if (model && fallback !== "model_untrusted" && (fallback || answered && usage?.calls)) line.textContent = writer(model, fallback);
  }

  // #showDifferences marks the sentences that an earlier answer lacks, and shows it below.
  #showDifferences(view, earlier) {
    view.blocks.markChanged(earlier.blocks.html);
    view.notes.append(
      el("p", { class: "note" }, ...(view.blocks.differs
        ? parts("{highlighted} differ from the earlier answer.",
          { highlighted: el("span", { class: "changed" }, t("Highlighted sentences")) })
        : [t("The answer is the same as before.")])),
      el("details", { class: "earlier" }, el("summary", {}, t("Earlier answer")),
        earlier.text ? earlier.textBox : el("p", { dir: "auto" }, earlier.refusal)));
  }

  // #showStates shows which sources of a recorded answer have changed, and offers to ask again.
  #showStates(view, { answer, ended }) {
    if (!view.board.showStates(answer?.sources || [], ended)) return;
    const again = makeButton(t("Regenerate and compare"), () => view.askAgain({ compare: true }));
    view.actions.insertBefore(again, view.actions.querySelector(".ratings"));
  }

  // replay shows recorded answers, or answers that are being written. If the first one belongs to
  // a conversation of the reader on the server, it shows this conversation.
  async replay(runs) {
    this.clear();
    const mine = (this.asking = new AbortController());
    for (const run of runs) {
      const record = await get(runURL(run), mine.signal);
      const { conversation } = record.request || {};
      if (run === runs[0] && conversation && "keyed" in this.turns.dataset) {
        try {
          return await this.fetch(conversation);
        } catch (err) {
          if (!(err instanceof Trouble) || err.status !== 404) throw err; // the conversation is another reader's
        }
      }
      const view = await this.#restoreRecord(record, mine);
      this.#showStates(view, record);
    }
  }

  // #restoreRecord shows the answer of a record.
  async #restoreRecord({ id, question, request }, mine) {
    const { question: _, history: __, conversation: ___, ...body } = request || {};
    const view = this.#addView(question, body, null, false);
    this.asking = mine;
    await this.#followRun(view, mine, async () => id);
    return view;
  }

  // fetch shows a conversation from the server. A question that was asked again is shown
  // with its last answer.
  async fetch(id) {
    const { runs } = await get(new URL(`api/conversations/${encodeURIComponent(id)}`, base), this.asking?.signal);
    this.clear();
    const mine = (this.asking = new AbortController());
    this.id = id;
    const latest = new Map(runs.map((run) => [`${run.request.history?.length || 0} ${run.question}`, run]));
    for (const record of latest.values()) {
      if (mine.signal.aborted) return;
      await this.#restoreRecord(record, mine);
    }
  }

  // show restores a conversation, whose last answer can be incomplete.
  show({ id, turns }) {
    this.clear();
    this.id = id;
    for (const { question, body, events, run, rating, over } of turns) {
      const view = this.#addView(question, body, null, false);
      Object.assign(view, { run, rating, over });
      for (const event of events) view.draw(event);
    }
    this.say("");
    const last = this.views.at(-1);
    for (const view of this.views) {
      if (!view.busy) continue;
      if (view === last && view.run && !view.over) this.#followRun(view, (this.asking = new AbortController()), async () => view.run);
      else view.markStopped();
    }
    if ("kept" in this.turns.dataset) for (const view of this.views) if (view.run && view.answer) this.#compareSources(view);
  }

  async #compareSources(view) {
    try {
      this.#showStates(view, await get(runURL(view.run)));
    } catch (err) {
      if (!(err instanceof Trouble)) throw err; // no longer stored
    }
  }

  #addView(question, body, instead, scroll = true) {
    const view = new AnswerView(question, { panel: this.panel, say: this.say, isFollowUp: () => this.#turnsBefore(view).length > 0,
      askAgain: (more) => this.ask(question, body, view, { resume: view.failed ? view.run : "", ...more }) });
    view.body = body;
    view.element.addEventListener("rated", () => this.#saveTurns());
    const at = this.views.indexOf(instead);
    if (at >= 0) {
      this.views[at] = view;
      instead.element.replaceWith(view.element);
    } else {
      this.views.push(view);
      this.turns.append(view.element);
    }
    this.onChange();
    if (scroll && this.views.length > 1) {
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      view.element.scrollIntoView({ block: "start", behavior: still ? "instant" : "smooth" });
    }
    return view;
  }

  // #followRun shows the events of a run, whose id begin() returns.
  async #followRun(view, mine, begin) {
    const isCurrent = () => this.asking === mine;
    this.showBusy(true);
    this.say(t("Searching your documents…"));
    try {
      view.run = await begin();
      this.#saveTurns();
      const url = runURL(view.run, "?html=1&markdown=1");
      const onLost = () => {
        this.showReachable(false);
        view.showReconnecting();
      };
      for await (const event of followRun(url, mine.signal, onLost)) {
        this.showReachable(true);
        view.draw(event);
      }
      if (view.busy) view.markStopped();
    } catch (err) {
      if (mine.signal.aborted) {
        view.markStopped();
        if (view.run) fetch(runURL(view.run), { method: "DELETE" }).catch(() => {}); // without a reader it ends later
      } else if (err instanceof Trouble) {
        if (err.code === "unreachable") this.showReachable(false);
        view.fail(err);
      } else {
        view.fail({ message: t("The answer couldn't be displayed.") });
        throw err;
      }
    } finally {
      view.over = true;
      if (isCurrent()) {
        this.asking = null;
        this.showBusy(false);
      }
      if (this.views.includes(view)) this.#saveTurns();
    }
  }

  #saveTurns() {
    const turns = this.views.map((v) =>
      ({ question: v.question, body: v.body, events: v.kept, run: v.run, rating: v.rating, over: v.over }));
    history.save({ id: this.id, at: Date.now(), turns });
    window.history.replaceState(null, "", `#c=${this.id}`);
  }

  // #turnsBefore returns the latest turns before a view that fit into historySize.
  #turnsBefore(view) {
    const turns = [];
    let size = 0;
    for (const v of this.views.slice(0, this.views.indexOf(view)).reverse()) {
      const said = v.turns;
      size += said.reduce((n, t) => n + t.content.length, 0);
      if (size > historySize) break;
      turns.unshift(...said);
    }
    return turns;
  }
}
