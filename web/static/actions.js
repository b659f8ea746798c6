// The buttons under an answer.

import { copyText, fencedText } from "./copy.js";
import { base, byId, el, makeButton } from "./dom.js";
import { post, put, Trouble } from "./stream.js";
import { t } from "./words.js";

// actions returns the buttons for an answer in its current state.
export function actions(view) {
  const copied = makeButton(t("Copy"), async () => {
    const done = await copyText(view.markdown || fencedText(view.text));
    copied.textContent = done ? t("Copied") : t("Copying was blocked");
    if (done) view.say(t("Copied with links to the sources."));
    setTimeout(() => (copied.textContent = t("Copy")), 2000);
  });
  const kept = view.run && view.answer && "kept" in byId("turns").dataset;
  return [
    view.text && !view.unanswered ? copied : "",
    kept ? shareButton({ class: "plain" }, () => [view.run],
      (done, trouble) => view.say(done ? t("Link to this answer copied.") : trouble)) : "",
    view.failed ? "" : makeButton(t("Regenerate"), () => view.askAgain()),
    ...(kept ? ratings(view) : []),
  ].filter(Boolean);
}

// shareButton returns a button that shares the answers whose records runs() names, copies
// a link to them, and then calls onEnd(done, trouble).
export function shareButton(attributes, runs, onEnd) {
  const button = makeButton(t("Share"), async () => {
    try {
      const ids = await runs();
      // Browsers allow copying only right after the click.
      const shared = new URL(`?${ids.map((id) => `run=${id}`).join("&")}`, base).href;
      const [done] = await Promise.all([copyText(shared), ...ids.map((id) => put(new URL(`api/runs/${id}/shared`, base)))]);
      button.textContent = done ? t("Link copied") : t("Copying was blocked");
      onEnd(done, button.textContent);
    } catch (err) {
      if (!(err instanceof Trouble)) throw err;
      button.textContent = t("Couldn't share");
      onEnd(false, err.message);
    }
    setTimeout(() => (button.textContent = t("Share")), 2000);
  }, attributes);
  return button;
}

// ratings returns the buttons that rate the answer.
function ratings(view) {
  const buttons = [[1, t("Helpful")], [-1, t("Not helpful")]].map(([rating, words]) =>
    makeButton(words, async () => {
      try {
        await post(new URL("api/feedback", base), { run: view.run, rating });
        view.rating = rating;
        showPressed();
        view.say(t("Thanks for the feedback."));
        view.element.dispatchEvent(new Event("rated"));
      } catch (err) {
        if (!(err instanceof Trouble)) throw err;
        view.say(err.message);
        for (const b of buttons) b.replaceWith(b === buttons[0] ? el("span", { class: "facts" }, err.message) : "");
      }
    }, { class: "quiet rating", "data-rating": rating }));
  const showPressed = () => buttons.forEach((b) => b.setAttribute("aria-pressed", String(Number(b.dataset.rating) === view.rating)));
  showPressed();
  return [el("span", { class: "ratings" }, ...buttons)];
}
