// The home page: a question box, the conversation and the source panel.

import { Conversation } from "./conversation.js";
import { base, byId } from "./dom.js";
import * as history from "./history.js";
import { Library } from "./library.js";
import { Past } from "./past.js";
import { hidePeek } from "./peek.js";
import { SourcePanel } from "./source.js";
import { Trouble } from "./stream.js";
import { t } from "./words.js";

const form = byId("ask");
const box = byId("question");
const send = byId("send");
const stop = byId("stop");
const panel = new SourcePanel();

const say = (words) => (byId("status").textContent = words);
const showReachable = (yes) => (byId("offline").hidden = yes);
const showBusy = (yes) => {
  send.hidden = yes;
  stop.hidden = !yes;
  document.querySelector("link[rel=icon]").href = new URL(`static/icon${yes ? "-busy" : ""}.svg`, base).href;
};

const library = new Library({ ask: askQuestion, say, showReachable });
const conversation = new Conversation({ panel, say, showBusy, showReachable, onChange: updatePage });
const past = new Past(showConversation, (id) => (!id || id === conversation.id) && beginConversation());

// updatePage fits the page to an empty or a started conversation.
function updatePage() {
  const asked = !conversation.isEmpty;
  document.body.classList.toggle("asked", asked);
  byId("missing").hidden = true;
  byId("welcome").classList.toggle("hidden", asked);
  byId("new").hidden = !asked;
  library.showFor(asked);
  box.placeholder = asked ? t("Ask a follow-up") : t("Ask a question");
  growBox();
  panel.close();
  hidePeek();
}

// beginConversation empties the page for a new conversation.
function beginConversation() {
  conversation.clear();
  showBusy(false);
  say("");
  window.history.replaceState(null, "", location.pathname);
  updatePage();
  box.focus();
}

function showConversation(kept) {
  showBusy(false);
  if (!kept.turns) return conversation.fetch(kept.id).catch((err) => say(err.message)); // only on the server
  conversation.show(kept); // busy again if its last answer is not complete
  window.history.replaceState(null, "", `#c=${kept.id}`);
  scrollTo(0, 0);
}

function growBox() {
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}

function askQuestion(question) {
  conversation.ask(question, library.scope);
}

form.addEventListener("submit", (e) => {
  e.preventDefault();
  const question = box.value.trim();
  if (!question) return;
  box.value = "";
  growBox();
  if (library.offer?.(question)) return;
  if (matchMedia("(hover: none)").matches) box.blur(); // hide the on-screen keyboard, which would cover the answer
  askQuestion(question);
});
box.addEventListener("keydown", (e) => {
  if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
    e.preventDefault();
    form.requestSubmit();
  }
});
box.addEventListener("input", growBox);
stop.addEventListener("click", () => {
  conversation.stop();
  box.focus();
});
byId("new").addEventListener("click", beginConversation);
addEventListener("online", () => {
  showReachable(true);
  library.refresh();
});
addEventListener("offline", () => showReachable(false));
addEventListener("hashchange", openFromAddress);

// openFromAddress shows the conversation that the address names.
function openFromAddress() {
  const id = new URLSearchParams(location.hash.slice(1)).get("c");
  const kept = id && id !== conversation.id && history.find(id);
  if (kept) showConversation(kept);
  return Boolean(kept);
}

// replayShared shows the answers that a shared address names.
async function replayShared() {
  const runs = new URLSearchParams(location.search).getAll("run");
  if (!runs.length) return;
  const mine = history.list().find((c) => runs.every((run) => c.turns.some((turn) => turn.run === run)));
  if (mine) return showConversation(mine); // no second entry in the history
  try {
    await conversation.replay(runs);
  } catch (err) {
    if (!(err instanceof Trouble)) throw err;
    byId("missing").textContent = err.status === 404 ? t("This answer is no longer available.") : err.message;
    byId("missing").hidden = false;
  }
}

byId("past-button").hidden = false;
const openSettings = async () => (await import("./settings.js")).openSettings();
byId("settings-button")?.addEventListener("click", openSettings);
if (byId("settings-button") && location.hash === "#settings") { // from another page
  window.history.replaceState(null, "", location.pathname);
  openSettings();
}
growBox();
if (!openFromAddress()) replayShared();
