// The list of past conversations.

import { byId, el, plural } from "./dom.js";
import * as history from "./history.js";

// A Past is the drawer with past conversations. open(conversation) shows one;
// gone(id) is called after one was deleted, without an id after all were.
export class Past {
  constructor(open, gone) {
    this.open = open;
    this.gone = gone;
    this.dialog = byId("past");
    this.button = byId("past-button");
    this.button.addEventListener("click", () => this.show());
    // A click outside the drawer closes it.
    this.dialog.addEventListener("click", (e) => e.target === this.dialog && this.dialog.close());
  }

  show() {
    this.#draw();
    this.dialog.showModal();
  }

  #draw() {
    const kept = history.list();
    this.dialog.replaceChildren(el("div", { class: "drawer-inside" },
      el("header", { class: "drawer-head" }, el("h2", { id: "past-title" }, "History"),
        el("button", { type: "button", class: "quiet", onclick: () => this.dialog.close() }, "Close")),
      kept.length
        ? el("ul", { class: "past" }, ...kept.map((c) => this.#entry(c)))
        : el("p", { class: "facts" }, "Your questions will appear here."),
      el("footer", { class: "drawer-foot" }, el("p", { class: "facts" }, "Stored only in this browser."),
        kept.length ? this.#clear(kept.length) : "")));
  }

  #entry(conversation) {
    const { id, at, turns } = conversation;
    const question = turns[0]?.question || "";
    const entry = el("li", {},
      el("button", { type: "button", class: "past-open", onclick: () => {
        this.dialog.close();
        this.open(conversation);
      } }, el("span", { class: "past-question" }, question), el("span", { class: "facts" }, [when(at), turns.length > 1 ? plural(turns.length, "question", "questions") : ""].filter(Boolean).join(" · "))),
      el("button", { type: "button", class: "quiet", "aria-label": `Delete: ${question}`, onclick: () => {
        history.forget(id);
        const next = entry.nextElementSibling || entry.previousElementSibling;
        entry.remove();
        (next?.querySelector(".past-open") || this.dialog.querySelector("button")).focus();
        if (!next) this.#draw();
        this.gone(id);
      } }, "Delete"));
    return entry;
  }

  #clear(count) {
    let sure = false;
    const button = el("button", { type: "button", class: "plain", onclick: () => {
      if (!sure) {
        sure = true;
        button.textContent = `Confirm: delete all ${count}`;
        return;
      }
      history.clear();
      this.#draw();
      this.dialog.querySelector("button").focus();
      this.gone();
    } }, "Delete all");
    return button;
  }
}

function when(at) {
  const day = new Date(at);
  const today = new Date();
  const time = day.toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false });
  if (day.toDateString() === today.toDateString()) return `today, ${time}`;
  return day.toLocaleDateString("en", { day: "numeric", month: "long", year: day.getFullYear() === today.getFullYear() ? undefined : "numeric" });
}
