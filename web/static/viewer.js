// The page of a document: drawn pages get a zoom and show the progress of drawing, and
// the model can summarize. The page works without this module.

import { sheets } from "./sheet.js";
import { el } from "./dom.js";
import { t } from "./words.js";

const summary = document.getElementById("summary");
if (summary) {
  summary.hidden = false;
  const button = summary.querySelector("button");
  button.addEventListener("click", async () => (await import("./summary.js")).summarize(summary, button));
}
const drawn = document.querySelector(".drawn");
if (drawn) {
  const shown = sheets([...drawn.querySelectorAll("img")], (image) => {
    const words = t("Page {page} can't be drawn. Its text is shown instead.", { page: image.dataset.page });
    image.closest(".sheet").replaceChildren(el("p", { class: "note" }, words));
  });
  drawn.replaceChildren(shown);
  // The text next to the picture scrolls to the same page.
  const page = new URLSearchParams(location.search).get("page");
  if (page && !location.hash && matchMedia("(min-width: 72rem)").matches) document.getElementById(`page-${page}`)?.scrollIntoView();
}
