// The documents page: adding files, finding one, reading one anew, deleting.
// Without this module the page is the plain list.

import { base, byId, documentAPI, documentURL, el, plural } from "./dom.js";
import { get, Trouble } from "./stream.js";
import { upload } from "./upload.js";

const most = 300; // rows drawn at a time
const body = byId("rows");
const words = byId("words");
const collection = byId("collection");
const status = byId("status");
const mayChange = Boolean(byId("upload"));
let all = null; // every document, once they have been asked for

const say = (text) => (status.textContent = text);

// load asks for the whole list.
async function load() {
  const found = [];
  for (let after = ""; ; after = found.at(-1).document) {
    const list = await get(new URL(`api/documents?limit=1000&after=${encodeURIComponent(after)}`, base));
    found.push(...list.documents);
    facts(list);
    if (!list.more || !list.documents.length) break;
  }
  all = found;
}

async function refresh() {
  try {
    await load();
    draw();
  } catch (err) {
    if (!(err instanceof Trouble)) throw err;
    say(err.message);
  }
}

function facts({ total, indexing, troubles: untaken }) {
  troubles(untaken);
  byId("facts").textContent = plural(total, "document", "documents") + (indexing.ready ? "" : ` so far: ${indexing.done} of ${indexing.total} files read`);
  if (!indexing.ready) setTimeout(refresh, 2000);
}

// troubles shows the files that could not be taken in.
function troubles(list) {
  const section = byId("troubles");
  section.hidden = list.length === 0;
  section.querySelector("ul").replaceChildren(...list.map((t) => el("li", { "data-id": t.document },
    el("span", { class: "path" }, `${t.root}/${t.path}`), el("span", { class: `verdict ${t.action}` }, t.action), ` ${t.reason || ""}`, ...mend(t.document))));
  byId("trouble-count").replaceChildren(...(list.length ? [" · ", el("a", { href: "#troubles" }, `${list.length} not taken in`)] : []));
}

// mend is what may be done about an upload that could not be taken in.
function mend(id) {
  const may = mayChange ? actions(id) : [];
  return may.length ? [el("span", { class: "row-actions" }, ...may)] : [];
}

function draw() {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((d) => {
    if (collection.value && d.collection !== collection.value) return false;
    const name = `${d.title} ${d.document}`.toLowerCase();
    return wanted.every((w) => name.includes(w));
  });
  body.replaceChildren(...found.slice(0, most).map(row));
  byId("list").hidden = all.length === 0;
  byId("find").hidden = all.length === 0;
  const more = byId("more");
  more.hidden = found.length > 0 && found.length <= most;
  more.textContent = found.length ? `${found.length - most} more: narrow the list by words of a name.` : all.length ? "No such document." : "No documents yet.";
  if (wanted.length) say(plural(found.length, "document", "documents"));
}

function row(d) {
  const cells = [
    el("td", {}, el("a", { href: documentURL(d.document) }, d.title || d.document), el("span", { class: "path" }, d.document)),
    el("td", {}, d.format),
    el("td", { class: "count" }, d.pages ? String(d.pages) : ""),
    el("td", { class: "count" }, String(d.chunks)),
    el("td", { class: "count" }, size(d.bytes)),
  ];
  if (mayChange) cells.push(el("td", { class: "row-actions" }, ...actions(d.document)));
  return el("tr", {}, ...cells);
}

// actions are what may be done to an upload; other files are changed in their folder.
function actions(id) {
  if (!id.startsWith("uploads/")) return [];
  const again = el("button", { type: "button", class: "quiet", "aria-label": `Read again: ${id}`, onclick: () => change(again, "POST", id, "was read again") }, "Read again");
  let sure = false;
  const away = el("button", { type: "button", class: "quiet", "aria-label": `Delete: ${id}`, onclick: () => {
    if (sure) {
      change(away, "DELETE", id, "is deleted");
      return;
    }
    sure = true;
    away.textContent = "Really delete?";
    away.setAttribute("aria-label", `Really delete ${id}? Press again`);
  } }, "Delete");
  away.addEventListener("blur", () => {
    sure = false;
    away.textContent = "Delete";
    away.setAttribute("aria-label", `Delete: ${id}`);
  });
  return [again, away];
}

async function change(button, method, id, done) {
  button.disabled = true;
  try {
    const response = await fetch(documentAPI(id), { method });
    if (!response.ok) throw new Trouble(await response.json());
    say(`${id} ${done}.`);
    byId("find").hidden ? byId("choose").focus() : words.focus();
    await refresh();
  } catch (err) {
    button.disabled = false;
    say(err instanceof Trouble ? err.message : "The server cannot be reached.");
  }
}

export function size(n) {
  if (n < 1000) return `${n} B`;
  return n < 1e6 ? `${(n / 1e3).toFixed(1).replace(/\.0$/, "")} kB` : `${(n / 1e6).toFixed(1).replace(/\.0$/, "")} MB`;
}

async function narrow() {
  if (!all) await load().catch((err) => say(err.message));
  if (all) draw();
}
words.addEventListener("input", narrow);
collection.addEventListener("change", narrow);
get(new URL("api/collections", base)).then(({ collections }) => {
  if (collections.length < 2) return;
  collection.append(...collections.map((c) => el("option", { value: c.collection }, c.collection)));
  byId("collections").hidden = false;
}, (err) => say(err.message));
byId("find").addEventListener("submit", (e) => e.preventDefault());
byId("find").hidden = body.children.length === 0;
if (mayChange) {
  for (const tr of body.children) tr.append(el("td", { class: "row-actions" }, ...actions(tr.dataset.id)));
  for (const li of byId("troubles").querySelectorAll("li")) li.append(...mend(li.dataset.id));
  byId("actions-head").hidden = false;
  byId("upload").hidden = false;
  upload(byId("upload"), { say, refresh });
}
if (byId("facts").dataset.ready === "false") setTimeout(refresh, 2000);
