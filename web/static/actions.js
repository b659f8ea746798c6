// The buttons under an answer.

import { copy, fenced } from "./copy.js";
import { base, byId, el } from "./dom.js";
import { post, put, Trouble } from "./stream.js";
import { t } from "./words.js";

// actions returns the buttons for the state of an answer.
export function actions(view) {
  const button = (words, onclick) => el("button", { type: "button", class: "plain", onclick }, words);
  const copied = button(t("Copy"), async () => {
    const done = await copy(view.markdown || fenced(view.text));
    copied.textContent = done ? t("Copied") : t("Copying was blocked");
    if (done) view.say(t("Copied with links to the sources."));
    setTimeout(() => (copied.textContent = t("Copy")), 2000);
  });
  const kept = view.run && view.answer && "kept" in byId("turns").dataset;
  const shared = button(t("Share"), async () => {
    try {
      // Browsers allow copying only right after the click.
      const [done] = await Promise.all([copy(new URL(`?run=${view.run}`, base).href), put(new URL(`api/runs/${view.run}/shared`, base))]);
      shared.textContent = done ? t("Link copied") : t("Copying was blocked");
      if (done) view.say(t("Link to this answer copied."));
    } catch (err) {
      if (!(err instanceof Trouble)) throw err;
      shared.textContent = t("Couldn't share");
      view.say(err.message);
    }
    setTimeout(() => (shared.textContent = t("Share")), 2000);
  });
  return [
    view.text && !view.unanswered ? copied : "",
    kept ? shared : "",
    view.failed ? "" : button(t("Regenerate"), () => view.again()),
    ...(kept ? ratings(view) : []),
  ].filter(Boolean);
}

// ratings returns the buttons that rate the answer.
function ratings(view) {
  const buttons = [[1, t("Helpful")], [-1, t("Not helpful")]].map(([rating, words]) =>
    el("button", { type: "button", class: "quiet rating", "data-rating": rating, onclick: async () => {
      try {
        await post(new URL("api/feedback", base), { run: view.run, rating });
        view.rating = rating;
        press();
        view.say(t("Thanks for the feedback."));
        view.element.dispatchEvent(new Event("rated"));
      } catch (err) {
        if (!(err instanceof Trouble)) throw err;
        view.say(err.message);
        for (const b of buttons) b.replaceWith(b === buttons[0] ? el("span", { class: "facts" }, err.message) : "");
      }
    } }, words));
  const press = () => buttons.forEach((b) => b.setAttribute("aria-pressed", String(Number(b.dataset.rating) === view.rating)));
  press();
  return [el("span", { class: "ratings" }, ...buttons)];
}
