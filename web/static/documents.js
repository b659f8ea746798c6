// The documents page: upload, find, read again and delete. Without this module
// the page is a plain list.

import { base, byId, documentAPI, documentURL, el, plural, visibleName } from "./dom.js";
import { get, Trouble } from "./stream.js";
import { upload } from "./upload.js";

const most = 300; // rows drawn at a time
const body = byId("rows");
const words = byId("words");
const collection = byId("collection");
const status = byId("status");
const mayChange = Boolean(byId("upload"));
let all = null; // every document, once loaded

const say = (text) => (status.textContent = text);

// load requests the whole list.
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

function facts({ total, indexing, troubles: unread }) {
  troubles(unread);
  byId("facts").textContent = plural(total, "document", "documents") + (indexing.ready ? "" : ` so far: ${indexing.done} of ${indexing.total} files indexed`);
  if (!indexing.ready) setTimeout(refresh, 2000);
}

// troubles shows the files that couldn't be read.
function troubles(list) {
  const section = byId("troubles");
  section.hidden = list.length === 0;
  section.querySelector("ul").replaceChildren(...list.map((t) => el("li", { "data-id": t.document },
    el("span", { class: "path" }, visibleName(`${t.root}/${t.path}`)), el("span", { class: `verdict ${t.action}` }, t.action), ` ${t.reason || ""}`, ...troubleActions(t.document))));
  byId("trouble-count").replaceChildren(...(list.length ? [" · ", el("a", { href: "#troubles" }, `${list.length} couldn't be read`)] : []));
}

// troubleActions returns the buttons of an upload that couldn't be read.
function troubleActions(id) {
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
  more.textContent = found.length ? `${found.length - most} more. Type part of a name to narrow the list.` : all.length ? "No matching documents." : "No documents yet.";
  if (wanted.length) say(plural(found.length, "document", "documents"));
}

function row(d) {
  const cells = [
    el("td", {}, el("a", { href: documentURL(d.document) }, d.title || d.document), el("span", { class: "path" }, visibleName(d.document))),
    el("td", {}, d.format),
    el("td", { class: "count" }, d.pages ? String(d.pages) : ""),
    el("td", { class: "count" }, String(d.chunks)),
    el("td", { class: "count" }, size(d.bytes)),
  ];
  if (mayChange) cells.push(el("td", { class: "row-actions" }, ...actions(d.document)));
  return el("tr", {}, ...cells);
}

// actions returns the buttons of an upload; other files are changed in their folder.
function actions(id) {
  if (!id.startsWith("uploads/")) return [];
  const again = el("button", { type: "button", class: "quiet", "aria-label": `Read again: ${id}`, onclick: () => change(again, "POST", id, "was read again") }, "Read again");
  let sure = false;
  const remove = el("button", { type: "button", class: "quiet", "aria-label": `Delete: ${id}`, onclick: () => {
    if (sure) {
      change(remove, "DELETE", id, "was deleted");
      return;
    }
    sure = true;
    remove.textContent = "Confirm delete";
    remove.setAttribute("aria-label", `Confirm delete: ${id}`);
  } }, "Delete");
  remove.addEventListener("blur", () => {
    sure = false;
    remove.textContent = "Delete";
    remove.setAttribute("aria-label", `Delete: ${id}`);
  });
  return [again, remove];
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
    say(err instanceof Trouble ? err.message : "Can't reach the server.");
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
  for (const li of byId("troubles").querySelectorAll("li")) li.append(...troubleActions(li.dataset.id));
  byId("actions-head").hidden = false;
  byId("upload").hidden = false;
  upload(byId("upload"), { say, refresh });
}
if (byId("facts").dataset.ready === "false") setTimeout(refresh, 2000);
