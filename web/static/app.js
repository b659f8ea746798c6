// The page: a question box, one answer, and the source beside it.

import { AnswerView } from "./answer.js";
import { base, byId, el, plural } from "./dom.js";
import { hide as hidePeek } from "./peek.js";
import { SourcePanel } from "./source.js";
import { events, get, Trouble } from "./stream.js";

const form = byId("ask");
const box = byId("question");
const send = byId("send");
const stop = byId("stop");
const status = byId("status");
const offline = byId("offline");
const library = byId("library");
const panel = new SourcePanel();
let asking = null;

const say = (words) => (status.textContent = words);

function grow() {
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}

async function ask(question) {
  asking?.abort();
  const mine = (asking = new AbortController());
  panel.close();
  hidePeek();
  library.hidden = true;
  document.body.classList.add("asked");
  byId("welcome").className = "hidden";
  send.hidden = true;
  stop.hidden = false;
  const view = new AnswerView(byId("answer"), question, panel, say);
  say("Searching the documents");
  try {
    for await (const event of events(new URL("api/ask", base), { question }, mine.signal)) {
      if (asking !== mine) return;
      reachable(true);
      view.take(event);
    }
  } catch (err) {
    if (asking !== mine) return;
    if (mine.signal.aborted) view.stopped();
    else if (err instanceof Trouble) {
      if (err.code === "unreachable") reachable(false);
      view.fail(err.message, () => ask(question), err.request);
    } else {
      view.fail("The page could not show the answer.", () => ask(question));
      throw err;
    }
  } finally {
    if (asking === mine) {
      asking = null;
      send.hidden = false;
      stop.hidden = true;
    }
  }
}

function reachable(yes) {
  offline.hidden = yes;
}

// refresh shows how much there is to ask, until the first sync has ended.
async function refresh() {
  let wait = 1500;
  try {
    const { total, troubles, indexing } = await get(new URL("api/documents?limit=0", base));
    reachable(true);
    if (!document.body.classList.contains("asked")) show(total, troubles, indexing);
    if (indexing.ready) return;
  } catch (err) {
    if (!(err instanceof Trouble)) throw err;
    reachable(!err.offline);
    wait = 5000;
  }
  setTimeout(refresh, wait);
}

function show(total, troubles, indexing) {
  const documents = el("a", { href: new URL("documents", base).href }, plural(total, "document", "documents"));
  const parts = [];
  if (!indexing.ready) {
    parts.push(
      el("p", {}, "Reading your documents: ", el("strong", {}, `${indexing.done} of ${indexing.total || "…"}`), " files"),
      el("progress", { max: indexing.total || 1, value: indexing.total ? indexing.done : null, "aria-label": "Documents read" }),
      el("p", { class: "facts" }, total ? "Ask already: answers come from what is in so far." : "The first answers come as soon as the first file is in."),
    );
  } else if (total === 0) {
    parts.push(el("p", {}, "No documents yet."), el("p", { class: "facts" }, "Start the server with a folder: ", el("code", {}, "ibid serve FOLDER")));
  } else {
    parts.push(el("p", {}, "Answers come from ", documents, " and say where they stand."));
  }
  if (troubles.length) {
    const more = el("a", { href: new URL("documents#troubles", base).href }, plural(troubles.length, "file was", "files were"));
    parts.push(el("p", { class: "facts" }, more, " not taken in."));
  }
  library.replaceChildren(...parts);
  library.hidden = false;
}

form.addEventListener("submit", (e) => {
  e.preventDefault();
  const question = box.value.trim();
  if (!question) return;
  box.value = "";
  box.placeholder = "Ask something else";
  grow();
  if (matchMedia("(hover: none)").matches) box.blur(); // the keyboard on the screen would cover the answer
  ask(question);
});
box.addEventListener("keydown", (e) => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
    e.preventDefault();
    form.requestSubmit();
  }
});
box.addEventListener("input", grow);
stop.addEventListener("click", () => {
  asking?.abort();
  box.focus();
});
addEventListener("online", () => {
  reachable(true);
  refresh();
});
addEventListener("offline", () => reachable(false));

grow();
refresh();
