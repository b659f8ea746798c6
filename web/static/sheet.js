// Drawn pages of a document, with the progress of drawing and a zoom.

import { el, makeButton } from "./dom.js";
import { t } from "./words.js";

const steps = [50, 75, 100, 150, 200, 300]; // percent of the free width

// sheets shows drawn pages, given as images or as {src, alt, page}. onFail is called
// when a page cannot be drawn.
export function sheets(pictures, onFail) {
  let zoom = 100;
  const images = pictures.map((p) => (p instanceof Element ? p : el("img", { src: p.src, alt: p.alt, "data-page": p.page })));
  const status = el("span", { class: "facts", role: "status" });
  const zoomBy = (by) => {
    zoom = steps[steps.indexOf(zoom) + by];
    for (const image of images) {
      image.style.width = `${zoom}%`;
      // A larger picture is drawn once it is needed.
      if (zoom > 100 && !/[?&]width=/.test(image.src)) loadImage(image, `${image.src}&width=2000`);
    }
    for (const [button, to] of [[smaller, -1], [larger, 1]]) button.disabled = !(steps.indexOf(zoom) + to in steps);
    status.textContent = `${zoom} %`;
  };
  const button = (words, label, by) => makeButton(words, () => zoomBy(by), { "aria-label": label, title: label });
  const smaller = button("−", t("Zoom out"), -1);
  const larger = button("+", t("Zoom in"), 1);

  const showDrawing = (image, yes) => {
    image.closest(".sheet").classList.toggle("drawing", yes);
    status.textContent = yes ? t("Drawing page {page}…", { page: image.dataset.page }) : `${zoom} %`;
  };
  // loadImage draws a page in another size, and shows the earlier picture meanwhile.
  const loadImage = (image, src) => {
    const next = new Image();
    showDrawing(image, true);
    next.onload = () => {
      image.src = src;
      showDrawing(image, false);
    };
    next.onerror = () => showDrawing(image, false);
    next.src = src;
  };
  const element = el("div", { class: "sheets-shown" }, el("p", { class: "zoom" }, smaller, larger, status),
    el("div", { class: "sheets-scroll", tabindex: "0", role: "region", "aria-label": t("Pages") }, ...images.map((image) => {
      image.classList.add("picture");
      const sheet = el("div", { class: "sheet" }, image,
        el("progress", { "aria-label": t("Drawing page {page}…", { page: image.dataset.page }) }));
      if (!image.complete) {
        image.addEventListener("load", () => showDrawing(image, false), { once: true });
        sheet.classList.add("drawing");
      }
      const reportFailure = () => {
        if (!sheet.contains(image)) return; // already reported
        sheet.classList.remove("drawing");
        status.textContent = "";
        onFail(image);
      };
      image.addEventListener("error", reportFailure);
      if (image.complete && !image.naturalWidth) queueMicrotask(reportFailure); // before this module ran
      return sheet;
    })));
  const waiting = images.find((i) => !i.complete);
  status.textContent = waiting ? t("Drawing page {page}…", { page: waiting.dataset.page }) : `${zoom} %`;
  return element;
}
