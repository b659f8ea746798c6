// Adding documents: files, folders and pasted text, with buttons or by dropping
// them on the page.

import { base, byId, documentName, documentURL, el, makeButton } from "./dom.js";
import { setUpSites } from "./sites.js";
import { withRemedy } from "./remedy.js";
import { sentence } from "./stream.js";
import { t } from "./words.js";

const atOnce = 2;
const longReason = 160; // characters; a longer reason is folded after its first colon

// The uploads that were refused: name, reason and more about it. They are listed in this tab until they
// are dismissed. If the server needs keys, each key has its own list.
const refusedKey = `ibid.refused.${document.getElementById("upload")?.dataset.caller ?? ""}`;
const mostRefused = 50;

function refusedUploads() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(refusedKey));
    return Array.isArray(kept) ? kept : [];
  } catch {
    return []; // there is no storage, or its content is not ours
  }
}

function keepRefused(list) {
  try {
    sessionStorage.setItem(refusedKey, JSON.stringify(list.slice(-mostRefused)));
  } catch {
    // Without storage they are listed until the page is reloaded.
  }
}

// showInto says which collection files are added to, if one is named.
export function showInto(section, name) {
  section.querySelector(".into").textContent = name && ` · ${t("into the collection {name}", { name })}`;
}

// setUpUpload sets up the section, which adds files to the collection that into() names, or to
// the server's. It calls refresh after files were added. It returns offer(text), which offers to
// add a web address and reports whether the text is one.
export function setUpUpload(section, { say, refresh, into = () => "" }) {
  const list = section.querySelector("ul");
  const waiting = [];
  let running = 0;

  const inputs = section.querySelectorAll("input[type=file]");
  for (const [i, id] of ["choose", "choose-folder"].entries()) {
    byId(id).addEventListener("click", () => inputs[i].click());
    inputs[i].addEventListener("change", () => {
      addFiles([...inputs[i].files].map((file) => ({ file, name: file.webkitRelativePath || file.name })));
      inputs[i].value = "";
    });
  }
  const pasted = byId("pasted");
  const openPasted = () => {
    pasted.showModal();
    byId("pasted-name").select();
  };
  byId("paste").addEventListener("click", openPasted);
  byId("pasted-cancel").addEventListener("click", () => pasted.close());
  pasted.addEventListener("submit", () => {
    const name = `${byId("pasted-name").value.trim().replace(/[/\\]/g, "-") || t("Notes")}.md`;
    addFiles([{ file: new Blob([byId("pasted-text").value]), name }]);
    byId("pasted-text").value = "";
  });
  const offer = setUpSites(section, { say, refresh, into });
  // Pasted outside a field: files, an address or text.
  addEventListener("paste", (e) => {
    if (section.hidden || e.target.closest?.("input, textarea, dialog")) return;
    e.preventDefault(); // otherwise the field that gets the focus would receive it, too
    const files = [...e.clipboardData.files];
    const text = e.clipboardData.getData("text/plain").trim();
    if (files.length) addFiles(files.map((file) => ({ file, name: file.name })));
    else if (text && !offer(text)) {
      byId("pasted-text").value = text;
      openPasted();
    }
  });
  let inside = 0;
  const carriesFiles = (e) => ["Files", "text/uri-list"].some((kind) => e.dataTransfer?.types.includes(kind));
  addEventListener("dragenter", (e) => {
    if (!carriesFiles(e)) return;
    inside++;
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", () => {
    inside = Math.max(0, inside - 1);
    if (!inside) document.body.classList.remove("dropping");
  });
  addEventListener("dragover", (e) => carriesFiles(e) && e.preventDefault());
  addEventListener("drop", async (e) => {
    if (!carriesFiles(e)) return;
    e.preventDefault();
    inside = 0;
    document.body.classList.remove("dropping");
    if (!e.dataTransfer.types.includes("Files")) {
      return offer(e.dataTransfer.getData("text/uri-list").split(/\r?\n/).find((line) => !line.startsWith("#")) || "");
    }
    // The items are only available during this handler.
    const entries = [...e.dataTransfer.items].map((i) => i.webkitGetAsEntry?.()).filter(Boolean);
    const plain = [...e.dataTransfer.files].map((file) => ({ file, name: file.name }));
    addFiles(entries.some((x) => x.isDirectory) ? (await Promise.all(entries.map(filesIn))).flat() : plain);
  });

  for (const { name, reason, more } of refusedUploads()) {
    const line = el("li", { class: "failed" },
      el("span", { class: "upload-name" }, name), el("div", { class: "facts" }, reason, foldDetails(more)));
    line.append(dismissButton(line, name));
    list.append(line);
  }
  section.classList.toggle("has-files", list.children.length > 0);

  return offer;

  // dismissButton returns a button that removes a refused upload from the list.
  function dismissButton(line, name) {
    return makeButton(t("Dismiss"), () => {
      keepRefused(refusedUploads().filter((x) => x.name !== name));
      line.remove();
      byId("choose").focus();
    }, { class: "quiet", "aria-label": t("Dismiss {name}", { name }) });
  }

  function addFiles(files) {
    for (const f of files) {
      if (/\/\./.test(f.name)) continue; // hidden in a folder
      const bar = el("progress", { max: 1, value: 0, "aria-label": t("Uploading {name}", f) });
      const state = el("div", { class: "facts" }, t("Waiting"));
      const line = el("li", {}, el("span", { class: "upload-name" }, f.name), bar, state);
      list.append(line);
      waiting.push({ ...f, line, bar, state, collection: into() });
    }
    section.hidden = false;
    section.classList.toggle("has-files", list.children.length > 0);
    sendNext();
  }

  function sendNext() {
    while (running < atOnce && waiting.length) {
      running++;
      sendFile(waiting.shift()).then(() => {
        running--;
        if (!running && !waiting.length) refresh();
        sendNext();
      });
    }
  }

  // sendFile uploads a file. It never fails: errors are shown with the file.
  function sendFile({ file, name, line, bar, state, collection }) {
    return new Promise((done) => {
      const request = new XMLHttpRequest(); // fetch reports no progress of uploads
      const endUpload = (kind, ...words) => {
        bar.remove();
        line.classList.add(kind);
        state.replaceChildren(...words);
        say(`${name}: ${state.firstChild.textContent}`);
        done();
      };
      const showRefused = (words, unread) => {
        const [, short, rest] = words.length > longReason && /^(.+?): (.+)$/s.exec(words) || [0, words];
        const entry = { name, reason: unread ? withRemedy(short, words) : sentence(short), more: rest && sentence(rest) };
        keepRefused([...refusedUploads().filter((x) => x.name !== name), entry]);
        endUpload("failed", entry.reason, foldDetails(entry.more));
        line.append(dismissButton(line, name));
      };
      request.upload.addEventListener("progress", (e) => {
        if (!e.lengthComputable) return;
        bar.value = e.loaded / e.total;
        state.textContent = e.loaded < e.total ? `${Math.round((100 * e.loaded) / e.total)} %` : t("Reading…");
      });
      request.upload.addEventListener("load", () => {
        bar.removeAttribute("value"); // uploaded, now being read
        state.textContent = t("Reading…");
      });
      request.addEventListener("load", () => {
        const reply = parseReply(request.responseText);
        if (request.status >= 400) {
          showRefused(reply.detail || t("the server replied with status {status}", request),
            ["unreadable_file", "unsupported_format", "file_too_large"].includes(reply.code));
        } else if (reply.action === "skipped" || reply.action === "failed") showRefused(reply.reason || reply.action, true);
        else {
          keepRefused(refusedUploads().filter((x) => x.name !== name));
          const { action, also_in: copies, reason } = reply;
          const words = { added: t("Added"), unchanged: t("Unchanged") }[action] || t("Replaced");
          endUpload("done", el("a", { href: documentURL(reply.document) }, words),
            copies ? ` · ${t("a copy of {name}", { name: copies.map(documentName).join(t(", ")) })}` : "",
            reason ? ` · ${action === "unchanged" ? reason : withRemedy(reason)}` : "");
        }
      });
      request.addEventListener("error", () => showRefused(t("Can't reach the server.")));
      const to = new URL(`api/documents?name=${encodeURIComponent(name)}`, base);
      if (collection) to.searchParams.set("collection", collection);
      request.open("POST", to);
      request.setRequestHeader("Content-Type", "application/octet-stream");
      request.send(file);
    });
  }
}

// foldDetails returns the rest of a long reason, such as the list of formats, folded.
const foldDetails = (more) => (more ? el("details", {}, el("summary", {}, t("Details")), more) : "");

// filesIn returns the files of a dropped folder.
async function filesIn(entry) {
  if (entry.isFile) {
    const file = await new Promise((yes, no) => entry.file(yes, no));
    return [{ file, name: entry.fullPath.replace(/^\//, "") }];
  }
  const reader = entry.createReader();
  const files = [];
  for (;;) {
    const some = await new Promise((yes, no) => reader.readEntries(yes, no));
    if (!some.length) return files;
    for (const e of some) files.push(...(await filesIn(e)));
  }
}

function parseReply(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
