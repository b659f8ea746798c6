// What an answer was made from: every passage that was checked, with the verdict
// and its reason, and the earlier drafts.

import { Blocks } from "./blocks.js";
import { el, place, plural } from "./dom.js";

const verdicts = { relevant: "on topic", irrelevant: "off topic", unparsable: "kept: unreadable verdict", error: "kept: not checked" };

// evidence returns the elements below an answer. opener(className, place, words)
// makes a link to a place; drafts are lists of blocks by step.
export function evidence(answer, passages, drafts, opener) {
  const looked = answer.judged || [];
  const parts = [];
  const cited = new Map(); // the numbers of each passage
  for (const { number, passages: quoted } of answer.sources || []) {
    for (const { id } of quoted || []) cited.set(id, [...new Set([...(cited.get(id) || []), number])]);
  }
  if (looked.length) {
    parts.push(el("ul", { class: "judged" }, ...looked.map((j) => {
      const p = passages.get(j.passage) || {};
      return el("li", {},
        el("span", { class: `verdict ${j.verdict}` }, verdicts[j.verdict] || j.verdict),
        el("div", {},
          opener("source-title", { ...p, document: j.document, title: j.title, page: j.page, heading: j.heading }, j.title || j.document),
          el("span", { class: "facts" }, [cited.has(j.passage) ? `cited as ${cited.get(j.passage).join(", ")}` : "", j.wider ? "read in a second look" : "", place(j), j.reason, j.by === "unjudged" ? "ranked by search score" : ""].filter(Boolean).join(" · "))));
    })));
  }
  const dropped = (answer.verified || []).filter((v) => v.verdict === "dropped");
  if (dropped.length) {
    parts.push(el("h4", {}, "Left out, since the model itself says no to it"), el("ul", {}, ...dropped.map((v) => el("li", { dir: "auto" }, v.statement))));
  }
  if (drafts.size) {
    parts.push(el("h4", {}, "Earlier drafts"), el("ol", { class: "drafts" }, ...[...drafts.values()].map((html) => {
      const box = el("li", {});
      const blocks = new Blocks(box);
      html.forEach((h, i) => blocks.put(i, h));
      blocks.draw();
      return box;
    })));
  }
  const used = answer.usage?.used ?? answer.sources?.length ?? 0;
  const again = looked.filter((j) => j.wider).length;
  const summary = looked.length
    ? `Checked ${plural(answer.usage?.looked ?? looked.length, "passage", "passages")}${again ? `, looked again at ${again}` : ""}, used ${used}${dropped.length ? `, left out ${plural(dropped.length, "statement", "statements")}` : ""}`
    : "Earlier drafts";
  return [
    parts.length ? el("details", { class: "evidence" }, el("summary", {}, summary), ...parts) : "",
    answer.usage ? el("p", { class: "facts cost" }, cost(answer.usage)) : "",
  ].filter(Boolean);
}

function cost(u) {
  const tokens = (u.prompt_tokens || 0) + (u.completion_tokens || 0);
  return [
    u.seconds < 0.1 ? "under 0.1 s" : `${u.seconds < 10 ? u.seconds.toFixed(1) : Math.round(u.seconds)} s`,
    u.calls ? `${u.calls} model ${u.calls === 1 ? "call" : "calls"}` : "no model",
    tokens ? `${tokens.toLocaleString("en")} tokens` : "",
  ].filter(Boolean).join(" · ");
}
