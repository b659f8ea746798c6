// The settings: the model that writes, how it answers, and optional parts.

import { base, byId, el, makeButton, writer } from "./dom.js";
import { change, get, post, Trouble } from "./stream.js";
import { t } from "./words.js";

const address = (path) => new URL(`api/settings${path}`, base);
const languages = ["Arabic", "Chinese", "English", "French", "German", "Italian", "Japanese", "Portuguese", "Spanish"];
const mostModels = 6; // buttons for the models of a server

let settings; // as the server last sent them
let timer;

export async function openSettings() {
  const dialog = byId("settings");
  dialog.replaceChildren(frame(el("p", { class: "facts", role: "status" }, t("Looking for models on this machine…"))));
  dialog.showModal();
  dialog.onclose = () => clearTimeout(timer);
  dialog.onclick = (e) => { // a handler that returns false would keep buttons from working
    if (e.target === dialog) dialog.close();
  };
  try {
    settings = await get(address(""));
    drawSettings();
  } catch (err) {
    dialog.replaceChildren(frame(trouble(err)));
  }
}

const frame = (...children) => el("div", { class: "drawer-inside settings" },
  el("div", { class: "drawer-head" }, el("h2", { id: "settings-title" }, t("Settings")),
    makeButton(t("Close"), () => byId("settings").close(), { class: "quiet" })),
  ...children);

function trouble(err) {
  if (!(err instanceof Trouble)) throw err;
  return el("p", { class: "note trouble", role: "alert" }, err.message);
}

function drawSettings() {
  const form = el("form", { onsubmit: saveSettings, autocomplete: "off", novalidate: true },
    modelFields(), answerFields(),
    el("p", { class: "settings-save" }, el("button", { type: "submit", class: "main-action" }, t("Save")), " ",
      el("span", { id: "settings-status", role: "status" })));
  byId("settings").replaceChildren(frame(form, partList(), readerFindings()));
  fitKey();
}

// field returns a labelled input with a note, disabled if a flag or a variable sets it.
function field(name, label, input, note) {
  const fixed = settings.fixed[name];
  input.id = `set-${name}`;
  if (fixed) input.disabled = true;
  const words = fixed ? t("Fixed by {flag}", { flag: fixed }) : note;
  if (words) input.setAttribute("aria-describedby", `${input.id}-note`);
  return el("p", {}, el("label", { for: input.id }, label), input, words && el("span", { class: "facts", id: `${input.id}-note` }, words));
}

function modelFields() {
  const found = settings.found.flatMap((server) => server.models.slice(0, mostModels).map((name) => [server, name]));
  const inUse = (server, name) => server.base_url === settings.base_url && name === settings.model;
  const useButton = ([server, name]) => el("li", {}, makeButton(
    t("Use {model} from {server}", { model: name, server: server.name }),
    () => putSettings({ base_url: server.base_url, model: name }),
    { disabled: Boolean(settings.fixed.model), "aria-pressed": String(inUse(server, name)) }));
  return el("fieldset", {}, el("legend", {}, t("Model")),
    el("p", { id: "settings-writer" }, writerLine()),
    settings.self_test && el("ul", { class: "findings" }, finding(settings.self_test)),
    found.length ? el("ul", { class: "found", "aria-label": t("Models on this machine") }, ...found.map(useButton))
      : el("p", { class: "facts" },
        t("No model server was found on this machine. Ollama, LM Studio, llama.cpp and vLLM are found while they run.")),
    field("base_url", t("Endpoint"),
      el("input", { value: settings.base_url ?? "", inputmode: "url", spellcheck: "false", oninput: fitKey }),
      t("The address of an OpenAI-compatible API. It gets your questions and the passages found for them.")),
    field("model", t("Model"), el("input", { value: settings.model, list: "set-models", spellcheck: "false" }),
      t("If empty, answers quote sentences without a model.")),
    el("datalist", { id: "set-models" }, ...found.map(([, name]) => el("option", { value: name }))),
    field("key", t("Key"), el("input", { type: "password", autocomplete: "new-password", spellcheck: "false" }), " "),
    el("p", { id: "set-code-line", hidden: true }, el("label", { for: "set-code" }, t("Code")),
      el("input", { id: "set-code", autocomplete: "off", spellcheck: "false", "aria-describedby": "set-code-note" }),
      el("span", { class: "facts", id: "set-code-note" },
        t("This endpoint is on another machine: give the code that the server printed when it started."))),
    el("p", {}, makeButton(t("Test"), testModel, { id: "set-test" })),
    el("ul", { id: "set-findings", class: "findings", "aria-live": "polite" }));
}

const believedModel = () => (settings.self_test?.state === "warning" ? "" : settings.model);
const writerLine = () => writer(believedModel(), settings.failing);

const isSameEndpoint = () => byId("set-base_url").value.trim().replace(/\/+$/, "") === settings.base_url;

function isOutside() {
  try {
    return !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(byId("set-base_url").value).hostname);
  } catch {
    return false; // not yet an address
  }
}

// fitKey fits the key and the code to the endpoint, since a key belongs to one endpoint.
function fitKey() {
  const key = byId("set-key");
  const note = byId("set-key-note");
  if (!isSameEndpoint() && key.dataset.for !== byId("set-base_url").value) key.value = "";
  key.dataset.for = byId("set-base_url").value;
  key.disabled = isSameEndpoint() && settings.key === "fixed";
  const stored = isSameEndpoint() && settings.key === "stored";
  note.replaceChildren(
    key.disabled ? t("Fixed by a flag or a variable.") : stored ? t("A key is stored for this endpoint.")
      : t("It is stored for this endpoint only, and never shown."),
    ...(stored ? [" ", makeButton(t("Remove the key"), () => putSettings({ key: "" }), { class: "quiet" })] : []));
  byId("set-code-line").hidden = !settings.code || !isOutside() || isSameEndpoint() && Boolean(settings.model);
}

function answerFields() {
  const styles = { auto: t("Automatic"), brief: t("Brief"), detailed: t("Detailed"), list: t("As a list") };
  return el("fieldset", {}, el("legend", {}, t("Answers")),
    field("language", t("Language"), el("input", { value: settings.language, list: "set-languages", maxlength: "40" }),
      t("If empty, answers are in the language of the question. Only a model translates.")),
    el("datalist", { id: "set-languages" }, ...languages.map((name) => el("option", { value: name }))),
    field("style", t("Style"), el("select", {}, ...Object.entries(styles).map(([value, words]) =>
      el("option", { value, selected: value === settings.style }, words)))),
    field("confidence", t("Confidence"),
      el("input", { type: "number", min: "0", max: "1", step: "0.05", value: String(settings.confidence) }),
      t("From 0 to 1: below it, sentences are not shown as an answer but as the closest passages.")));
}

// changedSettings returns the settings that differ from the server's.
function changedSettings() {
  const body = {};
  for (const name of ["base_url", "model", "language", "style"]) {
    const value = byId(`set-${name}`).value.trim();
    if (value !== (settings[name] ?? "")) body[name] = value;
  }
  const confidence = byId("set-confidence").valueAsNumber;
  if (!Number.isNaN(confidence) && confidence !== settings.confidence) body.confidence = confidence;
  if (byId("set-key").value) body.key = byId("set-key").value;
  if (!byId("set-code-line").hidden) body.code = byId("set-code").value;
  return body;
}

function saveSettings(e) {
  e.preventDefault();
  putSettings(changedSettings());
}

async function putSettings(body) {
  const status = byId("settings-status");
  status.textContent = t("Saving…");
  try {
    settings = await change(address(""), body);
    drawSettings();
    Object.assign(byId("writer"), { textContent: writerLine() }).dataset.model = believedModel();
    byId("settings-status").textContent = t("Saved. It applies from the next question on.");
    byId("settings").querySelector("[type=submit]").focus();
  } catch (err) {
    showFailure(err, status);
  }
}

// showFailure shows the server's refusal at the field that it names.
function showFailure(err, status) {
  status.replaceChildren(trouble(err));
  if (err.field) byId(`set-${err.field}`)?.focus();
}

const finding = ({ check, state, detail, next }) => el("li", { class: state },
  el("span", { class: "state" }, { ok: t("OK"), warning: t("Warning"), failed: t("Failed"), pending: t("Not tested yet") }[state]), " ",
  el("strong", {}, check), `: ${detail}`, next && el("span", { class: "facts" }, next));

async function testModel() {
  const button = byId("set-test");
  const list = byId("set-findings");
  button.disabled = true;
  list.replaceChildren(el("li", {}, t("Asking the model…")));
  try {
    const { base_url = settings.base_url, model: name = settings.model, key, code } = changedSettings();
    const { checks } = await post(address("/test"), { base_url, model: name, key, code });
    list.replaceChildren(...checks.map(finding));
  } catch (err) {
    const line = el("li", {});
    list.replaceChildren(line);
    showFailure(err, line);
  } finally {
    button.disabled = false;
  }
}

function partList() {
  const brings = {
    english: t("orders English passages better"),
    "english-large": t("orders English passages better, in twice the time"),
    multilingual: t("orders passages better, and finds them across languages"),
    pdfium: t("draws the pages of PDF files"),
  };
  const megabytes = (n) => t("{size} MB", { size: Math.round(n / 1e6) });
  const state = (part) => {
    switch (part.state) {
      case "used": return [t("In use"), part.chunks && el("span", { class: "facts" },
        t("{done} of {total} chunks encoded", { done: part.encoded ?? 0, total: part.chunks }))];
      case "ready": return [t("Installed, but a better one is in use.")];
      case "getting": return [el("progress", { max: part.bytes, value: part.done || null, "aria-label": t("Download") }),
        ` ${megabytes(part.done)} / ${megabytes(part.bytes)}`];
    }
    return [makeButton(t("Download ({size})", { size: megabytes(part.bytes) }), () => getPart(part.name)),
      part.detail && el("span", { class: "note trouble", role: "alert" }, part.detail)];
  };
  clearTimeout(timer);
  const isPending = (part) => part.state === "getting" || part.chunks > (part.encoded ?? 0);
  if (settings.parts.some(isPending)) timer = setTimeout(refreshParts, 1000);
  const licence = (part) => (part.languages ? `${part.licence} · ${t("{n} languages", { n: part.languages })}` : part.licence);
  return el("fieldset", { id: "set-parts" }, el("legend", {}, t("Parts")),
    el("ul", { class: "findings" }, ...settings.parts.map((part) => el("li", {}, el("strong", {}, part.model), " ",
      brings[part.name] ?? "", el("span", { class: "facts" }, licence(part)), ...state(part)))));
}

async function refreshParts() {
  try {
    ({ parts: settings.parts } = await get(address("")));
    byId("set-parts").replaceWith(partList());
  } catch (err) {
    byId("set-parts").append(trouble(err));
  }
}

async function getPart(part) {
  try {
    ({ parts: settings.parts } = await post(address("/parts"), { part }));
    byId("set-parts").replaceWith(partList());
  } catch (err) {
    byId("set-parts").append(trouble(err));
  }
}

const readerFindings = () => el("fieldset", {}, el("legend", {}, t("Reading files")),
  el("ul", { class: "findings" }, ...settings.reader.map(finding)));
