// A conversation: questions and their answers, one after the other.

import { AnswerView } from "./answer.js";
import { base, byId } from "./dom.js";
import * as history from "./history.js";
import { events, get, Trouble } from "./stream.js";

// What of the conversation goes along with a question, in characters.
const along = 24_000;

export class Conversation {
  // panel opens sources; say speaks; busy(yes), reachable(yes) and changed() are told.
  constructor({ panel, say, busy, reachable, changed }) {
    Object.assign(this, { panel, say, busy, reachable, changed });
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

  stop() {
    this.asking?.abort();
  }

  // ask puts a question below the others, or anew in the place of one.
  async ask(question, body = {}, instead = null) {
    this.stop();
    const mine = (this.asking = new AbortController());
    const view = this.#view(question, body, instead);
    const sent = { ...body, question };
    const past = this.#past(view);
    if (past.length) sent.history = past;
    this.#keep();
    await this.#follow(view, mine, events(new URL("api/ask?html=1", base), sent, mine.signal));
  }

  // replay shows an answer that the server keeps, or that is still being written.
  async replay(run) {
    this.clear();
    const mine = (this.asking = new AbortController());
    const url = new URL(`api/runs/${encodeURIComponent(run)}`, base);
    const { question, request } = await get(url, mine.signal);
    const { question: _, history: __, ...body } = request || {};
    const view = this.#view(question, body, null, false);
    view.run = run;
    url.search = "html=1";
    await this.#follow(view, mine, events(url, null, mine.signal));
  }

  // show draws a conversation that was kept.
  show({ id, turns }) {
    this.clear();
    this.id = id;
    for (const { question, body, events, run, rating } of turns) {
      const view = this.#view(question, body, null, false);
      Object.assign(view, { run, rating });
      for (const event of events) view.take(event);
      if (view.busy) view.stopped();
    }
    this.say("");
  }

  #view(question, body, instead, scroll = true) {
    const view = new AnswerView(question, { panel: this.panel, say: this.say, again: () => this.ask(question, body, view) });
    view.body = body;
    view.element.addEventListener("rated", () => this.#keep());
    const at = this.views.indexOf(instead);
    if (at >= 0) {
      this.views[at] = view;
      instead.element.replaceWith(view.element);
    } else {
      this.views.push(view);
      this.turns.append(view.element);
    }
    this.changed();
    if (scroll && this.views.length > 1) view.element.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth" });
    return view;
  }

  async #follow(view, mine, stream) {
    const current = () => this.asking === mine;
    this.busy(true);
    this.say("Searching the documents");
    try {
      for await (const event of stream) {
        if (!current()) break;
        this.reachable(true);
        view.take(event);
      }
      if (!current()) view.stopped();
    } catch (err) {
      if (mine.signal.aborted) view.stopped();
      else if (err instanceof Trouble) {
        if (err.code === "unreachable") this.reachable(false);
        view.fail(err);
      } else {
        view.fail({ message: "The page could not show the answer." });
        throw err;
      }
    } finally {
      if (current()) {
        this.asking = null;
        this.busy(false);
      }
      if (this.views.includes(view)) this.#keep();
    }
  }

  #keep() {
    const turns = this.views.map((v) => ({ question: v.question, body: v.body, events: v.kept, run: v.run, rating: v.rating }));
    history.keep({ id: this.id, at: Date.now(), turns });
    window.history.replaceState(null, "", `#c=${this.id}`);
  }

  // #past is what was said before a view, the latest that fits.
  #past(view) {
    const turns = [];
    let size = 0;
    for (const v of this.views.slice(0, this.views.indexOf(view)).reverse()) {
      const said = v.turns;
      size += said.reduce((n, t) => n + t.content.length, 0);
      if (size > along) break;
      turns.unshift(...said);
    }
    return turns;
  }
}
