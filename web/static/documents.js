// The documents page: upload, find, sort, select, ask, read again and delete. Without this script it is a plain list.

import { base, byId, documentAPI, documentName, documentURL, el, makeButton } from "./dom.js";
import { withRemedy } from "./remedy.js";
import { get, Trouble } from "./stream.js";
import { showInto as intoWords, setUpUpload } from "./upload.js";
import { locale, size, t } from "./words.js";

let most = 300; // rows drawn
const body = byId("rows");
const words = byId("words");
const collection = byId("collection");
const uploadRoots = new Set(["uploads"]);
const status = byId("status");
const mayChange = Boolean(byId("upload"));
let all = null; // every document, once loaded
let unread = new Map(); // id -> trouble in the last sync
let equal = new Map(); // digest -> documents with this content
let matching = []; // documents that match, in order
const selected = new Set(); // ids
const verdicts = { skipped: t("skipped"), failed: t("failed") };
const order = { by: "document", down: false };

const say = (text) => (status.textContent = text);

// loadDocuments requests the whole list.
async function loadDocuments() {
  const found = [];
  for (let after = ""; ; after = found.at(-1).document) {
    const list = await get(new URL(`api/documents?limit=1000&after=${encodeURIComponent(after)}`, base));
    found.push(...list.documents);
    showFacts(list);
    if (!list.more || !list.documents.length) break;
  }
  all = found;
  equal = Map.groupBy(all.filter((d) => d.digest), (d) => d.digest);
}

async function refreshPage() {
  try {
    await loadDocuments();
    await loadCollections();
    drawList();
  } catch (err) {
    if (!(err instanceof Trouble)) throw err;
    say(err.message);
  }
}

function showFacts({ total, indexing, troubles: unread }) {
  showTroubles(unread);
  const progress = indexing.ready ? "" : ` · ${t("{done} of {total} files indexed", indexing)}`;
  byId("facts").textContent = t("{n} documents", { n: total }) + progress;
  if (!indexing.ready) setTimeout(refreshPage, 2000);
}

// showTroubles shows the files that couldn't be read.
function showTroubles(list) {
  unread = new Map(list.map((x) => [x.document, x]));
  const section = byId("troubles");
  section.hidden = list.length === 0;
  section.querySelector("ul").replaceChildren(...list.map((x) => el("li", { "data-id": x.document },
    el("span", { class: "path" }, documentName(`${x.root}/${x.path}`)),
    el("span", { class: `verdict ${x.action}` }, verdicts[x.action] || x.action),
    x.reason ? ` ${withRemedy(x.reason)}` : "",
    mayChange ? el("span", { class: "row-actions" }, ...rowActions(x.document)) : "")));
  byId("trouble-count").replaceChildren(...(list.length
    ? [" · ", el("a", { href: "#troubles" }, t("{n} files couldn't be read", { n: list.length }))] : []));
}

function drawList() {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = matching = all.filter((d) => {
    const name = `${d.title} ${d.document}`.toLowerCase();
    return (!collection.value || d.collection === collection.value) && wanted.every((w) => name.includes(w));
  });
  found.sort(compareDocuments);
  for (const id of selected) if (!all.some((d) => d.document === id)) selected.delete(id);
  showSelected();
  byId("select-head").hidden = byId("date-head").hidden = false;
  body.replaceChildren(...found.slice(0, most).map(drawRow));
  byId("list").hidden = byId("find").hidden = all.length === 0;
  const more = byId("more");
  more.hidden = found.length > 0 && found.length <= most;
  more.textContent = found.length ? t("{n} more. Type part of a name to narrow the list.", { n: found.length - most })
    : all.length ? t("No matching documents.") : "";
  if (found.length > most) more.append(" ", makeButton(t("More documents"), () => {
    const next = most;
    most *= 2;
    drawList();
    body.children[next].querySelector("a").focus();
  }));
  if (all.length) document.querySelector("main > .note")?.remove(); // the note about an empty library
  if (wanted.length) say(t("{n} documents", { n: found.length }));
}

// compareDocuments orders two documents by the chosen column, with empty values last.
function compareDocuments(a, b) {
  const keys = { date: (d) => dateOf(d).date, state: (d) => state(d).words, pages: (d) => d.pages || "" };
  const key = (d) => (order.by in keys ? keys[order.by](d) : d[order.by]) ?? "";
  const [x, y] = [key(a), key(b)];
  if ((x === "") !== (y === "")) return x === "" ? 1 : -1;
  return (typeof x === "number" ? x - y : String(x).localeCompare(y, locale, { numeric: true })) * (order.down ? -1 : 1);
}

// dateOf returns the date of a document or, failing that, of its file, and says which date it is.
function dateOf({ root, meta = {} }) {
  const own = [meta.date, meta.updated, meta.created, meta.modified].find((value) => /^\d{4}/.test(value));
  const date = (own || meta.file_modified || "").slice(0, 10);
  if (own || !date) return { date };
  return { date, of: uploadRoots.has(root) ? t("added") : t("file changed") };
}

// state says whether a document was read, partly read or not read again, and why.
function state(d) {
  const reason = unread.get(d.document)?.reason || d.meta?.unread;
  if (!reason) return { words: t("Read") };
  return { words: unread.has(d.document) ? t("Not read again") : t("Partly read"), reason };
}

function drawRow(d) {
  const { words: read, reason } = state(d);
  const { date, of } = dateOf(d);
  const copies = (equal.get(d.digest) || []).filter((x) => x !== d).map((x) => documentName(x.document));
  const cells = [
    el("td", { class: "select" }, el("input", { type: "checkbox", checked: selected.has(d.document),
      "aria-label": t("Select {name}", { name: d.title || d.document }), onchange: (e) => {
      if (e.target.checked) selected.add(d.document);
      else selected.delete(d.document);
      showSelected();
    } })),
    el("td", {}, el("a", { href: documentURL(d.document) }, d.title || d.document),
      el("span", { class: "path" }, documentName(d.document)),
      copies.length ? el("span", { class: "facts" },
        `${t("Also in:")} ${copies.slice(0, 3).join(", ")}${copies.length > 3 ? "…" : ""}`) : ""),
    el("td", { class: "date" }, date, of ? el("span", { class: "facts" }, of) : ""),
    el("td", reason ? { class: "partly" } : {}, read, reason ? el("span", { class: "facts" }, ` ${withRemedy(reason)}`) : ""),
    el("td", { "data-label": "" }, d.format),
    el("td", { class: "count", "data-label": t("Pages") }, d.pages ? String(d.pages) : ""),
    el("td", { class: "count", "data-label": t("Passages") }, String(d.chunks)),
    el("td", { class: "count", "data-label": t("Text") }, size(d.bytes)),
  ];
  if (mayChange) cells.push(el("td", { class: "row-actions" }, ...rowActions(d.document)));
  return el("tr", {}, ...cells);
}

// isUpload reports whether a document was uploaded and can be deleted here.
function isUpload(id) {
  return uploadRoots.has(id.slice(0, id.indexOf("/")));
}

// isPage reports whether a document is a page of a web site.
function isPage(id) {
  return Boolean(all?.find((d) => d.document === id)?.meta?.address);
}

// showSelected shows what can be done with the selected documents.
function showSelected() {
  const bar = byId("selected"), head = byId("select-all");
  const some = matching.filter((d) => selected.has(d.document)).length;
  head.checked = some > 0 && some === matching.length;
  head.indeterminate = some > 0 && !head.checked;
  bar.hidden = selected.size === 0;
  bar.firstElementChild.textContent = t("{n} selected", { n: selected.size });
  const remove = byId("delete-selected");
  if (remove) {
    byId("read-selected").hidden = [...selected].some(isPage);
    remove.hidden = ![...selected].every(isUpload);
    remove.textContent = t("Delete");
    remove.dataset.sure = "";
  }
}

byId("ask-selected").addEventListener("click", () => {
  const home = new URL(base);
  for (const id of selected) home.searchParams.append("document", id);
  location.assign(home);
});
byId("select-all").addEventListener("change", (e) => {
  for (const d of matching) selected[e.target.checked ? "add" : "delete"](d.document);
  drawList();
});
byId("clear-selected").addEventListener("click", () => {
  selected.clear();
  drawList();
  words.focus();
});
// changeSelected changes each selected document, and says which failed.
async function changeSelected(method, done, couldNot) {
  const failed = [];
  for (const id of selected) {
    const response = await fetch(documentAPI(id), { method }).catch(() => null);
    if (!response?.ok) failed.push(id);
  }
  await refreshPage();
  say(failed.length ? couldNot(failed.map(documentName).join(", ")) : done);
  words.focus();
}
byId("read-selected")?.addEventListener("click", () => changeSelected("POST", t("The documents were read again."),
  (names) => t("Couldn't read {names} again.", { names })));
byId("delete-selected")?.addEventListener("click", (e) => {
  if (e.target.dataset.sure) {
    return changeSelected("DELETE", t("The documents were deleted."), (names) => t("Couldn't delete {names}.", { names }));
  }
  e.target.dataset.sure = "yes";
  e.target.textContent = t("Confirm: delete {n}", { n: selected.size });
});

// The headings of the columns are buttons that sort.
for (const head of document.querySelectorAll("th[data-sort]")) {
  const button = makeButton(head.textContent, async () => {
    order.down = order.by === head.dataset.sort && !order.down;
    order.by = head.dataset.sort;
    for (const other of document.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    await narrowList();
  }, { class: "quiet sort" });
  head.replaceChildren(button);
}

// rowActions returns the buttons of a document. Only uploads can be replaced here; other files are changed in their folder.
function rowActions(id) {
  if (isPage(id)) return [el("span", { class: "facts" }, t("Read again each day"))];
  const name = documentName(id);
  const again = makeButton(t("Read again"), () => changeDocument(again, "POST", id, t("{name} was read again.", { name })),
    { class: "quiet", "aria-label": t("Read again: {name}", { name }) });
  if (!isUpload(id)) return [again];
  const file = el("input", { type: "file", class: "hidden", tabindex: "-1", accept: /\.\w+$/.exec(id)?.[0],
    "aria-label": t("Replace: {name}", { name }), onchange: () => {
    // A file replaces the upload with the same name.
    const to = new URL(`api/documents?name=${encodeURIComponent(id.slice(id.indexOf("/") + 1))}`, base);
    const { collection: of } = all?.find((d) => d.document === id) || {};
    if (of) to.searchParams.set("collection", of);
    const sent = { headers: { "Content-Type": "application/octet-stream" }, body: file.files[0] };
    if (file.files.length) changeDocument(replace, "POST", id, `${name}: ${t("Replaced")}`, to, sent);
  } });
  const replace = makeButton(t("Replace"), () => file.click(), { class: "quiet", "aria-label": t("Replace: {name}", { name }) });
  let sure = false;
  const remove = makeButton(t("Delete"), () => {
    if (sure) {
      changeDocument(remove, "DELETE", id, t("{name} was deleted.", { name }));
      return;
    }
    sure = true;
    remove.textContent = t("Confirm delete");
    remove.setAttribute("aria-label", t("Confirm delete: {name}", { name }));
  }, { class: "quiet", "aria-label": t("Delete: {name}", { name }) });
  remove.addEventListener("blur", () => {
    sure = false;
    remove.textContent = t("Delete");
    remove.setAttribute("aria-label", t("Delete: {name}", { name }));
  });
  return [again, replace, file, remove];
}

async function changeDocument(button, method, id, done, url = documentAPI(id), sent = {}) {
  button.disabled = true;
  try {
    const response = await fetch(url, { method, ...sent });
    if (!response.ok) throw new Trouble(await response.json());
    say(done);
    byId("find").hidden ? byId("choose").focus() : words.focus();
    await refreshPage();
  } catch (err) {
    button.disabled = false;
    say(err instanceof Trouble ? err.message : t("Can't reach the server."));
  }
}

async function narrowList() {
  if (!all) await loadDocuments().catch((err) => say(err.message));
  if (all) drawList();
}
words.addEventListener("input", narrowList);
// Files are added to the named collection, which may be new, otherwise to the chosen one.
const named = byId("into");
const intoName = () => (named ? named.value.trim() : collection.value);
function showInto() {
  if (mayChange) intoWords(byId("upload"), intoName());
}
function fitInto() {
  if (named) named.value = collection.value;
  showInto();
}
named?.addEventListener("change", showInto);
collection.addEventListener("change", () => {
  history.replaceState({ collection: collection.value }, ""); // for a reload
  fitInto();
  narrowList();
});

// loadCollections offers the collections. Some may be new since the last call.
async function loadCollections() {
  const { collections } = await get(new URL("api/collections", base));
  const { value: before } = collection;
  byId("into-names")?.replaceChildren(...collections.map((c) => el("option", { value: c.collection })));
  collection.replaceChildren(collection.options[0], ...collections.map((c) => el("option", { value: c.collection }, c.collection)));
  const after = history.state?.collection;
  collection.value = collections.some((c) => c.collection === after) ? after : "";
  if (collection.value !== before) fitInto();
  byId("collections").hidden = collections.length < 2;
  for (const root of collections.flatMap((c) => c.roots)) if (root.uploads) uploadRoots.add(root.root);
}
if (!body.children.length) loadCollections().catch((err) => say(err.message));
byId("find").addEventListener("submit", (e) => e.preventDefault());
byId("find").hidden = body.children.length === 0;
if (mayChange) {
  byId("actions-head").hidden = false;
  byId("upload").hidden = false;
  byId("into-line")?.removeAttribute("hidden");
  setUpUpload(byId("upload"), { say, refresh: refreshPage, into: intoName });
}
if (byId("facts").dataset.ready === "false") setTimeout(refreshPage, 2000);
if (body.children.length || !byId("troubles").hidden) refreshPage();
