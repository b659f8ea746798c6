// Making elements. Text of documents and models becomes text nodes, never markup.

import { t } from "./words.js";

// el makes an element: el("a", {class: "cite", href: "…"}, "text", child…).
export function el(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...children.filter((c) => c !== undefined && c !== null && c !== ""));
  return e;
}

// makeButton makes a button with words. It is plain unless the attributes have another class.
export const makeButton = (words, onclick, attributes) =>
  el("button", { type: "button", class: "plain", onclick, ...attributes }, words);

// writer returns a sentence about the model that writes the answers, or says that they are quoted.
export function writer(model, failing) {
  if (!model) return t("No model: sentences are quoted");
  return failing ? t("Answers are quoted until {model} replies again", { model }) : t("{model} writes the answers", { model });
}

export const byId = (id) => document.getElementById(id);

export const maySet = Boolean(byId("settings-button") || byId("settings-link"));

// The texts for a failure of the model: what happened, and what to do. Steps that need the right to change
// settings are shown only to readers who have it.
const failed = [t("The model failed"), t("Ask again in a moment.")];
const unusable = [t("The model can't be used"), t("Whoever runs this server can choose another one.")];
const reasons = {
  unreachable: maySet ? [t("The model can't be reached"), t("Check that its server is running, and ask again.")] : failed,
  timeout: [t("The model took too long"), t("Ask again, or use a faster model.")],
  rejected: maySet ? [t("The model's server refused the request"), t("Check the model's name and key.")] : unusable,
  window: maySet ? [t("The question and its passages don't fit the model's context window"),
    t("Set --context-tokens to the context window, lower --top-k, or choose a model with a larger one.")]
    : [t("The model's context window is too small for this question"), t("Tell whoever runs this server.")],
  untrusted: maySet ? [t("The model did not pass its self-test"),
    t("Choose another model under Settings. To use this one anyway, start the server with --no-self-test.")] : unusable,
  failed,
  rate_limit: [t("The model has too many requests at the moment"), t("Ask again in a minute.")],
  content_filter: [t("The model's content filter refused this question"), t("Rephrase the question.")],
};
const errors = {
  down: "unreachable", quota: "rejected", auth: "rejected", not_found: "rejected",
  context_length: "window", server: "failed", cut: "failed", bad_reply: "failed",
};

// fallback returns why the model gave no answer, whether documents are quoted instead, and what to do.
export function fallback(reason, quoted = true) {
  const [what, next] = reasons[reason.replace("model_", "")] || failed;
  if (!quoted) return t("{what}, and nothing in your documents can be quoted instead. {next}", { what, next });
  return t("{what}, so your documents are quoted instead. {next}", { what, next });
}

// refusal returns the message for an error of the model if nothing is shown instead, or undefined for any other error.
export function refusal(code) {
  const [, kind] = code?.split("model_") || [];
  const [what, next] = reasons[errors[kind] || kind] || [];
  return what && t("{what}, so there is no answer. {next}", { what, next });
}

// breakReason returns the reason why a text ended early, up to the first colon, and whether the
// model's server said more after it, which is shown under the details.
export function breakReason(reason) {
  const [what, ...more] = reason.replace(/^asking the model \(\w+\): | at https?:\S*[^\s:;,.]/g, "").split(": ");
  return { reason: what.replace(/\.$/, ""), more: more.length > 0 };
}

// withFlags returns a sentence in parts. Its flags are code, so that no line breaks inside one.
export const withFlags = (words) => words.split(/(--[a-z][a-z-]*)/).map((part, i) => i % 2 ? el("code", {}, part) : part);

// base is the address of the server, including a proxy's path.
export const base = new URL("../", import.meta.url);

// documentURL returns the address of a place in the viewer. link is the server's
// link to the place, which also has the hash of its words. run is the id of the
// answer that cites the place; the answer's record has the quote.
export function documentURL(id, start, end, link, run) {
  return placeURL("documents/", id, start, end, link, run, "#quote");
}

// documentAPI returns the address of the same place in the API.
export function documentAPI(id, start, end, link, run) {
  return placeURL("api/documents/", id, start, end, link, run, "");
}

function placeURL(route, id, start, end, link, run, fragment) {
  const path = id.split("/").map(encodeURIComponent).join("/");
  const query = new URL(link || "", base).searchParams;
  const proof = query.get("quote") && Number(query.get("start")) === start
    ? `&digest=${query.get("digest")}&quote=${query.get("quote")}${run ? `&run=${run}` : ""}` : "";
  const place = end > start ? `?start=${start}&end=${end}${proof}${fragment}` : "";
  return new URL(base.pathname + route + path + place, base).href;
}

// place describes a place in a document: "page 3 · Fees › Mooring". It omits a
// first heading that is the document's title.
export function place({ page, heading, title }) {
  const path = (heading || "").split(" › ");
  if (path[0] === title) path.shift();
  return [page ? t("page {page}", { page: String(page) }) : "", isolateWords(path.join(" › "))].filter(Boolean).join(" · ");
}

// isolateWords keeps words of a document from changing the order of the words around them on a
// page that reads from right to left.
const isolateWords = (words) => words && document.documentElement.dir === "rtl" ? `\u2068${words}\u2069` : words;

// visibleName returns the name of a file with escapes for characters that are invisible
// or change the reading direction.
export function visibleName(name) {
  return name.replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// shelves maps the roots of uploads to the names of renamed collections: a
// document's id keeps the first name of its collection.
export const shelves = new Map(Object.entries(JSON.parse(byId("shelves")?.textContent ?? "{}")));

// documentName returns the id of a document as shown to people.
export function documentName(id) {
  const [root] = id.split("/", 1);
  return visibleName((shelves.get(root) ?? root) + id.slice(root.length));
}

// withMarks returns the parts of a text with its marks, whose offsets are in bytes.
export function withMarks({ text, marks }) {
  const bytes = new TextEncoder().encode(text), decode = (from, to) => new TextDecoder().decode(bytes.subarray(from, to));
  const parts = [];
  let at = 0;
  for (const { start, end } of marks) {
    parts.push(decode(at, start), el("mark", {}, decode(start, end)));
    at = end;
  }
  return [...parts, decode(at)];
}

// snippet shortens a text and keeps its line breaks, so that tables stay readable.
export function snippet(text, most = 220) {
  const words = (text || "").replace(/[^\S\n]+/g, " ").replace(/\s*\n\s*/g, "\n").trim();
  return words.length > most ? `${words.slice(0, most - 20).replace(/\s\S*$/, "")} …` : words;
}

// rankHeadings gives the headings in an element levels without gaps, beginning with outermost.
export function rankHeadings(element, outermost) {
  let above = [];
  for (const heading of element.querySelectorAll("h3, h4, h5, h6, [data-level]")) {
    const level = heading.dataset.level || heading.tagName[1];
    above = [...above.filter((other) => other < level), level];
    heading.setAttribute("aria-level", above.length + outermost - 1);
  }
}
