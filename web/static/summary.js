// The summary of a document, by the model, on the page of the document.

import { Blocks, under } from "./blocks.js";
import { base, documentURL, el, refusal } from "./dom.js";
import { follow, post, Trouble } from "./stream.js";
import { t } from "./words.js";

const most = 150; // words

// summarize writes the summary of a document into a section, as it comes.
export async function summarize(section, document) {
  const status = el("p", { class: "facts", role: "status" }, t("Writing the summary…"));
  const text = el("div", { class: "text" });
  const notes = el("div", {});
  const citations = [];
  const blocks = new Blocks(text);
  let begun = false;
  section.replaceChildren(el("h2", {}, t("Summary")), text, status, notes);
  const draw = {
    text: () => begun ||= (blocks.begin(false), true),
    block: ({ draft, index, html }) => draft || blocks.put(index, html),
    marked: ({ index, html }) => blocks.put(index, html),
    quoted: (c) => citations.push(c),
    incomplete: ({ reason }) => notes.append(el("p", { class: "note trouble" }, t("The answer is incomplete: {reason}", { reason }))),
    warning: ({ message }) => notes.append(el("p", { class: "note" }, message)),
  };
  try {
    const { id } = await post(new URL("api/runs", base), { summarize: { document, max_words: most } });
    const lost = () => (status.textContent = t("Connection lost, reconnecting…"));
    for await (const { kind, data } of follow(new URL(`api/runs/${id}?html=1`, base), undefined, lost)) draw[kind]?.(data);
    blocks.finish();
    for (const link of text.querySelectorAll(".cite")) {
      const [c] = under(citations, link);
      if (c) link.href = documentURL(c.document, c.start, c.end, c.link, id);
    }
    status.textContent = "";
  } catch (err) {
    if (!(err instanceof Trouble)) throw err;
    status.replaceWith(el("p", { class: "note trouble", role: "alert" }, refusal(err.code) || err.message));
  }
}
