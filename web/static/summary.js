// The model's summary of a document, on the document's page.

import { Blocks, citationsAt } from "./blocks.js";
import { base, breakReason, documentURL, el, maySet, refusal, withFlags } from "./dom.js";
import { followRun, post, sentence, Trouble } from "./stream.js";
import { t } from "./words.js";

const most = 150; // words

// summarize writes the summary of a document into a section as it arrives. again, the button that
// asks for the summary, is shown after a failure.
export async function summarize(section, again) {
  const status = el("p", { class: "facts", role: "status" }, t("Writing the summary…"));
  const text = el("div", { class: "text" });
  const notes = el("div", {});
  const details = el("details", { class: "details" }, el("summary", {}, t("Details")));
  const citations = [];
  const blocks = new Blocks(text);
  let begun = false;
  section.replaceChildren(el("h2", {}, t("Summary")), text, status, notes);
  const draw = {
    text: () => begun ||= (blocks.begin(false), true),
    block: ({ draft, index, html }) => draft || blocks.put(index, html),
    marked: ({ index, html }) => blocks.put(index, html),
    quoted: (c) => citations.push(c),
    incomplete: ({ reason: message }) => {
      const { reason, more } = breakReason(message);
      showFailure(t("The summary is incomplete: {reason}. The part received so far is shown.", { reason }), more && message);
    },
    warning: ({ message }) => (details.parentElement ? details : notes)
      .append(el("p", { class: "note" }, ...withFlags(sentence(message)))),
  };
  // showFailure says in a sentence what happened. The server's words are shown under the details.
  function showFailure(words, more) {
    const warnings = [...notes.querySelectorAll("p.note")];
    if (more) warnings.push(el("p", { class: "note" }, ...withFlags(sentence(more))));
    details.append(...warnings);
    notes.append(el("p", { class: "note trouble", role: "alert" }, ...withFlags(words)), again, warnings.length ? details : "");
  }
  try {
    const { id } = await post(new URL("api/runs", base), { summarize: { document: section.dataset.document, max_words: most } });
    const onLost = () => (status.textContent = t("Connection lost, reconnecting…"));
    for await (const { kind, data } of followRun(new URL(`api/runs/${id}?html=1`, base), undefined, onLost)) draw[kind]?.(data);
    blocks.finish();
    for (const link of text.querySelectorAll(".cite")) {
      const [c] = citationsAt(citations, link);
      if (c) link.href = documentURL(c.document, c.start, c.end, c.link, id);
    }
    status.textContent = "";
  } catch (err) {
    if (!(err instanceof Trouble)) throw err;
    const words = refusal(err.code);
    showFailure(words || err.message, words && maySet && err.message);
    status.remove();
  }
}
