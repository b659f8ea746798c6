// The list of past conversations.

import { shareButton } from "./actions.js";
import { isStale } from "./board.js";
import { fencedText } from "./copy.js";
import { base, byId, el, makeButton } from "./dom.js";
import * as history from "./history.js";
import { get, patch, Trouble } from "./stream.js";
import { locale, t } from "./words.js";

const conversationURL = (id) => new URL(`api/conversations/${encodeURIComponent(id)}`, base);

// A Past is the drawer with past conversations. open(conversation) shows one;
// onDelete(id) is called after one was deleted, without an id after all were.
export class Past {
  constructor(open, onDelete) {
    this.open = open;
    this.onDelete = onDelete;
    this.dialog = byId("past");
    this.button = byId("past-button");
    this.keyed = "keyed" in byId("turns").dataset; // the server has the conversations of the caller's key
    this.button.addEventListener("click", () => this.show());
    // A click outside the drawer closes it.
    this.dialog.addEventListener("click", (e) => e.target === this.dialog && this.dialog.close());
  }

  async show() {
    this.#drawList();
    this.dialog.showModal();
    if (this.keyed) await this.#drawOthers();
    if ("kept" in byId("turns").dataset) this.#markChanged();
  }

  // #markChanged marks the conversations with answers whose sources have changed since.
  async #markChanged() {
    let changed;
    try {
      const { runs } = await get(new URL("api/runs?limit=500&states=1", base));
      changed = new Set(runs.filter((r) => isStale(r.sources)).map((r) => r.id));
    } catch (err) {
      if (err instanceof Trouble) return; // the list works without the marks
      throw err;
    }
    let n = 0;
    for (const [{ turns = [] }, entry] of this.entries) {
      const here = turns.filter((t) => changed.has(t.run)).length;
      if (here) entry.querySelector(".past-open").append(el("span", { class: "facts state" }, t("The sources have changed since.")));
      n += here;
    }
    if (n) this.status.textContent = t("Answers whose sources have changed: {n}", { n });
  }

  // #drawOthers adds the conversations that are only on the server, and the server's names for the other ones.
  async #drawOthers() {
    try {
      const here = new Set(this.entries.map(([c]) => c.id));
      const { conversations } = await get(new URL("api/conversations?user=", base));
      const others = conversations.filter((c) => !here.has(c.conversation))
        .map((c) => ({ id: c.conversation, at: c.ended, name: c.name || c.first, questions: c.questions }));
      const named = new Map(conversations.filter((c) => c.name).map((c) => [c.conversation, c.name]));
      const said = this.status.textContent; // drawing the list changes it
      if (others.length || named.size) this.#drawList(others, named);
      this.status.textContent = said;
    } catch (err) {
      if (!(err instanceof Trouble)) throw err;
      this.status.textContent = err.message;
    }
  }

  // #loadAll loads the conversations that are only on the server, and reports whether there
  // were any, or null if that failed.
  async #loadAll() {
    try {
      let any = false;
      for (const [c] of this.entries) any = (await loadRuns(c)) || any;
      return any;
    } catch (err) {
      if (!(err instanceof Trouble)) throw err;
      this.status.textContent = err.message;
      return null;
    }
  }

  #drawList(others = [], named = new Map()) {
    const kept = [...history.list().map((c) => ({ ...c, name: named.get(c.id) || c.name })), ...others]
      .sort((a, b) => new Date(b.at) - new Date(a.at));
    const entries = (this.entries = kept.map((c) => [c, this.#entry(c)]));
    const none = (this.status = el("p", { class: "facts", role: "status" }));
    const findWords = () => {
      let shown = 0;
      for (const [c, entry] of entries) shown += !(entry.hidden = !matches(c, words.value));
      none.textContent = shown ? "" : t("No conversation contains these words.");
    };
    const words = el("input", { type: "search", "aria-label": t("Search the history"), placeholder: t("Search"), autocomplete: "off",
      oninput: async () => {
        findWords();
        if (await this.#loadAll()) findWords();
      } });
    const exportAll = async () => {
      if (await this.#loadAll() !== null) saveFile(t("History"), JSON.stringify(kept, null, 1), "json");
    };
    this.dialog.replaceChildren(el("div", { class: "drawer-inside" },
      el("header", { class: "drawer-head" }, el("h2", { id: "past-title" }, t("History")),
        makeButton(t("Close"), () => this.dialog.close(), { class: "quiet" })),
      ...(kept.length ? [words, none, el("ul", { class: "past" }, ...entries.map(([, entry]) => entry))]
        : [el("p", { class: "facts" }, t("Your questions will appear here."))]),
      el("footer", { class: "drawer-foot" },
        el("p", { class: "facts" }, this.keyed ? t("Stored on the server, under your key or name.") : t("Stored only in this browser.")),
        kept.length ? makeButton(t("Export as JSON"), exportAll) : "",
        kept.length ? this.#clearButton(kept.length) : "")));
  }

  #entry(conversation) {
    const { id, at, turns, questions = turns?.length } = conversation;
    const question = conversation.name || turns?.[0]?.question || "";
    const entry = el("li", {},
      el("button", { type: "button", class: "past-open", onclick: () => {
        this.dialog.close();
        this.open(conversation);
      } }, el("span", { class: "past-question" }, question),
      el("span", { class: "facts" },
        [dateWords(at), questions > 1 ? t("{n} questions", { n: questions }) : ""].filter(Boolean).join(" · "))),
      makeButton(t("Rename"), () => this.#renameEntry(conversation, entry),
        { class: "quiet", "aria-label": t("Rename: {name}", { name: question }) }),
      "kept" in byId("turns").dataset ? shareButton(
        { class: "quiet", "aria-label": t("Share: {name}", { name: question }) }, () => runsOf(conversation),
        (done, trouble) => (this.status.textContent = done ? t("Link to this conversation copied.") : trouble)) : "",
      makeButton(t("Export"), async () => saveFile(question, turns ? asMarkdown(conversation) : await fetchMarkdown(conversation)),
        { class: "quiet", "aria-label": t("Export: {name}", { name: question }) }),
      makeButton(t("Delete"), () => {
        history.forget(id);
        this.#forgetOnServer(id);
        const next = entry.nextElementSibling || entry.previousElementSibling;
        entry.remove();
        (next?.querySelector(".past-open") || this.dialog.querySelector("button")).focus();
        if (!next) this.#drawList();
        this.onDelete(id);
      }, { class: "quiet", "aria-label": t("Delete: {name}", { name: question }) }));
    return entry;
  }

  // #renameEntry replaces an entry with a box for its name.
  #renameEntry(conversation, entry) {
    const value = conversation.name || conversation.turns?.[0]?.question || "";
    const box = el("input", { "aria-label": t("Name"), value, maxlength: 200 });
    const form = el("form", { class: "rename", onsubmit: async (e) => {
      e.preventDefault();
      const name = box.value.trim();
      history.rename(conversation.id, name);
      let trouble = "";
      try {
        if (this.keyed) await patch(conversationURL(conversation.id), { name });
      } catch (err) {
        if (!(err instanceof Trouble)) throw err;
        if (err.status !== 404 || !conversation.turns) trouble = err.message; // 404: only in this browser, or its records have expired
      }
      this.#drawList();
      if (this.keyed) await this.#drawOthers();
      this.status.textContent = trouble;
      this.dialog.querySelector("input").focus();
    } }, box, el("button", { type: "submit", class: "plain" }, t("Save")));
    entry.replaceChildren(form);
    box.select();
  }

  // #forgetOnServer deletes a conversation on the server.
  #forgetOnServer(id) {
    if (this.keyed) fetch(conversationURL(id), { method: "DELETE" }).catch(() => {}); // if this fails, it is listed again
  }

  #clearButton(count) {
    let sure = false;
    const button = makeButton(t("Delete all"), () => {
      if (!sure) {
        sure = true;
        button.textContent = t("Confirm: delete all {n}", { n: count });
        return;
      }
      for (const [{ id }] of this.entries) this.#forgetOnServer(id);
      history.clear();
      this.#drawList();
      this.dialog.querySelector("button").focus();
      this.onDelete();
    });
    return button;
  }
}

function dateWords(at) {
  const day = new Date(at);
  const today = new Date();
  const time = day.toLocaleTimeString(locale, { hour: "2-digit", minute: "2-digit", hour12: false });
  if (day.toDateString() === today.toDateString()) return t("today, {time}", { time });
  const year = day.getFullYear() === today.getFullYear() ? undefined : "numeric";
  return day.toLocaleDateString(locale, { day: "numeric", month: "long", year });
}

// matches reports whether the questions and answers of a conversation contain all words.
function matches({ name, turns = [], runs = [] }, words) {
  const text = [name, ...turns.flatMap((t) => [t.question, ...answerTexts(t)]), ...runs.flatMap((r) => [r.question, r.answer?.text])]
    .join(" ").toLowerCase();
  return words.toLowerCase().split(/\s+/).every((w) => text.includes(w));
}

const answerTexts = ({ events }) => events.filter((e) => e.kind === "text" || e.kind === "unanswered").map((e) => e.data.text);

// loadRuns adds the records of a conversation that is only on the server, and reports
// whether they were missing.
async function loadRuns(conversation) {
  if (conversation.turns || conversation.runs) return false;
  ({ runs: conversation.runs } = await get(conversationURL(conversation.id)));
  return true;
}

// runsOf returns the ids of the records of a conversation's answers.
async function runsOf(conversation) {
  await loadRuns(conversation);
  return conversation.turns ? conversation.turns.map((turn) => turn.run).filter(Boolean) : conversation.runs.map((run) => run.id);
}

// asMarkdown returns a conversation as Markdown, with the sources of each answer.
function asMarkdown({ turns }) {
  return turns.map((t) => {
    const whole = t.events.findLast((e) => e.kind === "markdown")?.data.markdown;
    return `## ${t.question.replace(/\s+/g, " ")}\n\n${whole || fencedText(answerTexts(t).join(""))}`;
  }).join("\n\n");
}

// fetchMarkdown is asMarkdown for a conversation on the server.
async function fetchMarkdown(conversation) {
  await loadRuns(conversation);
  const whole = await Promise.all(conversation.runs.map(async (run) => {
    const { markdown } = await get(new URL(`api/runs/${encodeURIComponent(run.id)}?markdown=1`, base));
    return `## ${run.question.replace(/\s+/g, " ")}\n\n${markdown || ""}`;
  }));
  return whole.join("\n\n");
}

// saveFile saves a text as a file.
function saveFile(name, text, ending = "md") {
  const url = URL.createObjectURL(new Blob([text], { type: ending === "md" ? "text/markdown" : "application/json" }));
  el("a", { href: url, download: `${name.replace(/[^\p{L}\p{N} ]+/gu, "").slice(0, 60).trim() || "conversation"}.${ending}` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
