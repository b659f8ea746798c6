// The home page: a question box, the conversation and the source panel.

import { Conversation } from "./conversation.js";
import { base, byId, el, plural } from "./dom.js";
import * as history from "./history.js";
import { Past } from "./past.js";
import { hide as hidePeek } from "./peek.js";
import { SourcePanel } from "./source.js";
import { get, Trouble } from "./stream.js";

const form = byId("ask");
const box = byId("question");
const send = byId("send");
const stop = byId("stop");
const library = byId("library");
const panel = new SourcePanel();
const collection = byId("collection");
const chosen = "ibid.collection"; // where the choice of a collection is stored

const say = (words) => (byId("status").textContent = words);
const reachable = (yes) => (byId("offline").hidden = yes);
const busy = (yes) => {
  send.hidden = yes;
  stop.hidden = !yes;
};

const conversation = new Conversation({ panel, say, busy, reachable, changed: updatePage });
const past = new Past(show, (id) => (!id || id === conversation.id) && begin());

// updatePage fits the page to an empty or a started conversation.
function updatePage() {
  const asked = !conversation.isEmpty;
  document.body.classList.toggle("asked", asked);
  byId("missing").hidden = true;
  byId("welcome").classList.toggle("hidden", asked);
  byId("new").hidden = !asked;
  library.hidden = asked || !library.hasChildNodes();
  box.placeholder = asked ? "Ask a follow-up" : "Ask a question";
  grow();
  panel.close();
  hidePeek();
}

// begin empties the page for a new conversation.
function begin() {
  conversation.clear();
  busy(false);
  say("");
  window.history.replaceState(null, "", location.pathname);
  updatePage();
  box.focus();
}

function show(kept) {
  busy(false);
  conversation.show(kept); // busy again if its last answer is not complete
  window.history.replaceState(null, "", `#c=${kept.id}`);
  scrollTo(0, 0);
}

function grow() {
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}

// refresh shows the state of the library until the first sync has ended.
async function refresh() {
  let wait = 1500;
  try {
    const { total, troubles, indexing } = await get(new URL("api/documents?limit=0", base));
    reachable(true);
    draw(total, troubles, indexing);
    if (indexing.ready) return;
  } catch (err) {
    if (!(err instanceof Trouble)) throw err;
    reachable(!err.offline);
    wait = 5000;
  }
  setTimeout(refresh, wait);
}

function draw(total, troubles, indexing) {
  const documents = el("a", { href: new URL("documents", base).href }, plural(total, "document", "documents"));
  const parts = [];
  if (!indexing.ready) {
    parts.push(
      el("p", {}, "Indexing your documents: ", el("strong", {}, `${indexing.done} of ${indexing.total || "…"}`), " files"),
      el("progress", { max: indexing.total || 1, value: indexing.total ? indexing.done : null, "aria-label": "Indexing progress" }),
      el("p", { class: "facts" }, total ? "You can ask now. Answers use the files indexed so far." : "You can ask as soon as the first file is indexed."),
    );
  } else if (total === 0) {
    parts.push(el("p", {}, "No documents yet."), el("p", { class: "facts" }, "Start the server with a folder: ", el("code", {}, "ibid serve FOLDER")));
  } else {
    parts.push(el("p", {}, "Answers come from ", documents, ". Every answer links to its source."));
  }
  if (troubles.length) {
    const more = el("a", { href: new URL("documents#troubles", base).href }, plural(troubles.length, "file", "files"));
    parts.push(el("p", { class: "facts" }, more, " couldn't be read."));
  }
  library.replaceChildren(...parts);
  library.hidden = !conversation.isEmpty;
}

form.addEventListener("submit", (e) => {
  e.preventDefault();
  const question = box.value.trim();
  if (!question) return;
  box.value = "";
  grow();
  if (matchMedia("(hover: none)").matches) box.blur(); // hide the on-screen keyboard, which would cover the answer
  conversation.ask(question, collection.value ? { collection: collection.value } : {});
});
box.addEventListener("keydown", (e) => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
    e.preventDefault();
    form.requestSubmit();
  }
});
box.addEventListener("input", grow);
stop.addEventListener("click", () => {
  conversation.stop();
  box.focus();
});
byId("new").addEventListener("click", begin);
addEventListener("online", () => {
  reachable(true);
  refresh();
});
addEventListener("offline", () => reachable(false));
addEventListener("hashchange", open);

// open shows the conversation that the address names.
function open() {
  const id = new URLSearchParams(location.hash.slice(1)).get("c");
  const kept = id && id !== conversation.id && history.find(id);
  if (kept) show(kept);
  return Boolean(kept);
}

// replay shows the answer that a shared address names.
async function replay() {
  const run = new URLSearchParams(location.search).get("run");
  if (!run) return;
  try {
    await conversation.replay(run);
  } catch (err) {
    if (!(err instanceof Trouble)) throw err;
    byId("missing").textContent = err.status === 404 ? "This answer is no longer available." : err.message;
    byId("missing").hidden = false;
  }
}

// collections lets the reader choose if the library has several.
async function collections() {
  try {
    const { collections: all } = await get(new URL("api/collections", base));
    if (all.length < 2) return;
    collection.append(...all.map((c) => el("option", { value: c.collection }, c.collection)));
    const before = localStorage.getItem(chosen);
    if (all.some((c) => c.collection === before)) collection.value = before;
    byId("collections").hidden = false;
  } catch (err) {
    if (err instanceof Trouble) return; // refresh shows that the server is unreachable
    throw err;
  }
}
collection.addEventListener("change", () => {
  if (collection.value) localStorage.setItem(chosen, collection.value);
  else localStorage.removeItem(chosen);
});

byId("past-button").hidden = false;
grow();
if (!open()) replay();
refresh();
collections();
