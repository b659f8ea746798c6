// The library on the home page: its state, questions to try, and the documents,
// among which the reader can tick the ones to ask.

import { Collections } from "./collections.js";
import { base, byId, documentAPI, documentName, el, makeButton, visibleName } from "./dom.js";
import { get, Trouble } from "./stream.js";
import { showInto, setUpUpload } from "./upload.js";
import { parts, t } from "./words.js";

const most = 8; // documents shown to tick
const mostSuggesting = 20; // ticked documents whose questions are suggested

export class Library {
  // ask asks a suggested question; say announces a status; showReachable(yes) is called after a change.
  constructor({ ask, say, showReachable }) {
    Object.assign(this, { ask, showReachable });
    this.box = byId("library");
    this.shelf = byId("shelf");
    this.collections = new Collections({ say, onChange: () => this.refresh() });
    this.picked = new Map(new URLSearchParams(location.search).getAll("document").map((id) => [id, id.split("/").at(-1)])); // id -> title
    this.asked = false; // a conversation has begun
    this.upload = byId("upload");
    if (this.upload) {
      this.offer = setUpUpload(this.upload, { say, refresh: () => this.refresh(), into: () => this.collections.value });
      byId("sample").addEventListener("click", () => this.#addSample(say));
    }
    byId("only-clear").addEventListener("click", () => {
      this.picked.clear();
      for (const box of this.shelf.querySelectorAll("input")) box.checked = false;
      this.#showPicked();
      byId("question").focus();
    });
    this.#showPicked();
    if (this.picked.size && this.picked.size < 3) this.#nameDocuments();
    this.refresh();
  }

  // #nameDocuments finds the titles of the documents that the address names.
  async #nameDocuments() {
    for (const id of [...this.picked.keys()]) {
      try {
        const { title } = await get(documentAPI(id));
        if (title && this.picked.has(id)) this.picked.set(id, title);
      } catch (err) {
        if (!(err instanceof Trouble)) throw err; // the document keeps its file name
      }
    }
    this.#showPicked();
  }

  // scope returns the documents and collections to which a question is restricted.
  get scope() {
    if (this.picked.size) return { filter: { documents: [...this.picked.keys()] } };
    return this.collections.value ? { collection: this.collections.value } : {};
  }

  // showFor fits the library to an empty or a started conversation.
  showFor(asked) {
    this.asked = asked;
    this.box.hidden = asked || !this.total && !byId("state").hasChildNodes();
    if (this.upload) this.upload.hidden = asked;
    this.collections.showFor(asked, this.picked.size > 0);
    this.#fitPage();
  }

  // refresh shows the state of the library, until the first sync has ended.
  async refresh() {
    clearTimeout(this.timer);
    let wait = 1500;
    try {
      await this.collections.load();
      const { value: collection } = this.collections;
      const list = await get(new URL(`api/documents?recent=1&limit=${most}&collection=${encodeURIComponent(collection)}`, base));
      this.showReachable(true);
      if (this.upload) showInto(this.upload, collection);
      this.#drawState(list);
      if (list.indexing.ready) return;
    } catch (err) {
      if (!(err instanceof Trouble)) throw err;
      this.showReachable(!err.offline);
      wait = 5000;
    }
    this.timer = setTimeout(() => this.refresh(), wait);
  }

  #drawState({ documents, total, troubles, indexing }) {
    const { value: collection } = this.collections;
    const shown = `${total} ${collection} ${documents[0]?.document}`;
    const changed = shown !== this.shown;
    Object.assign(this, { total, shown, ready: indexing.ready, empty: indexing.ready && !total && !collection });
    const link = el("a", { href: new URL("documents", base).href }, t("{n} documents", { n: total }));
    const lines = [];
    if (!indexing.ready) {
      lines.push(
        el("p", {}, t("Indexing your documents: {done} of {total} files", { done: indexing.done, total: indexing.total || "…" })),
        el("progress", { max: indexing.total || 1, value: indexing.total ? indexing.done : null, "aria-label": t("Indexing progress") }),
        el("p", { class: "facts" }, total ? t("You can ask now. Answers use the files indexed so far.")
          : t("You can ask as soon as the first file is indexed.")),
      );
    } else if (total === 0 && collection) {
      lines.push(el("p", {}, t("This collection is empty."), " ", this.upload ? t("New files are added to it.") : ""));
    } else if (total === 0) {
      lines.push(this.upload
        ? el("p", {}, t("Add PDF, Word, Markdown, HTML, mail and other files. Every answer quotes them and links to the exact words."))
        : el("p", {}, t("No documents yet."), " ",
          el("span", { class: "facts" }, t("Start the server with a folder:"), " ", el("code", {}, "ibid serve FOLDER"))));
    } else {
      lines.push(el("p", {}, ...parts("Answers come from {documents}. Every answer links to its source.", { documents: link })));
    }
    if (troubles.length) {
      const more = el("a", { href: new URL("documents#troubles", base).href }, t("{n} files couldn't be read", { n: troubles.length }));
      lines.push(el("p", { class: "facts" }, more));
    }
    byId("state").replaceChildren(...lines);
    if (changed) this.#drawShelf(documents);
    this.showFor(this.asked);
  }

  // #fitPage shows an empty library as an invitation to add documents.
  #fitPage() {
    const empty = this.empty && !this.asked;
    document.body.classList.toggle("no-documents", empty);
    byId("welcome").textContent = empty && this.upload ? t("Add your documents") : t("Ask your documents");
    const hidden = (byId("dock").hidden = empty && Boolean(this.upload));
    if (hidden) this.box.append(byId("writer"));
    else byId("hint").prepend(byId("writer"));
    if (this.upload) byId("sample").hidden = !(empty && "sample" in this.box.dataset);
  }

  #drawShelf(documents) {
    this.shelf.hidden = documents.length === 0;
    const titles = documents.map((d) => d.title); // a title that several documents share says too little
    const name = ({ title, document: id }) => !title ? documentName(id)
      : titles.filter((x) => x === title).length > 1 ? `${title} (${documentName(id)})` : title;
    this.shelf.querySelector("ul").replaceChildren(...documents.map((d) => el("li", {}, el("label", { title: documentName(d.document) },
      el("input", { type: "checkbox", checked: this.picked.has(d.document), onchange: (e) => {
        if (e.target.checked) this.picked.set(d.document, name(d));
        else this.picked.delete(d.document);
        this.#showPicked();
      } }), " ", name(d)))));
    for (const d of documents) if (this.picked.has(d.document)) this.picked.set(d.document, name(d));
    this.#showPicked();
  }

  #showPicked() {
    const titles = [...this.picked.values()];
    byId("only").hidden = titles.length === 0;
    this.collections.showFor(this.asked, titles.length > 0);
    const names = titles.length > 2 ? t("{n} documents", { n: titles.length }) : titles.map(visibleName).join(", ");
    byId("only-words").textContent = t("Asking only: {documents}", { documents: names });
    if (this.shown) this.#suggestQuestions();
  }

  // #suggestQuestions shows questions that the chosen documents answer.
  async #suggestQuestions() {
    const mine = (this.suggesting = {});
    const list = byId("suggested");
    const url = new URL("api/suggestions", base);
    for (const id of [...this.picked.keys()].slice(0, mostSuggesting)) url.searchParams.append("document", id);
    if (!this.picked.size && this.collections.value) url.searchParams.set("collection", this.collections.value);
    const showQuestions = (questions) => {
      if (this.suggesting !== mine) return;
      list.replaceChildren(...questions.map((q) => el("li", {}, makeButton(q, () => this.ask(q), { dir: "auto" }))));
      list.hidden = questions.length === 0;
    };
    if (!this.total) return showQuestions([]);
    try {
      const { questions, model } = await get(url);
      showQuestions(questions);
      if (!model || this.asked) return;
      url.searchParams.set("model", "1");
      const better = await get(url); // the model takes a while
      if (better.questions.length && !list.contains(document.activeElement)) showQuestions(better.questions);
    } catch (err) {
      if (!(err instanceof Trouble)) throw err; // the page works without suggestions
    }
  }

  async #addSample(say) {
    const button = byId("sample");
    button.disabled = true;
    say(t("Adding the sample library…"));
    try {
      const response = await fetch(new URL("api/sample", base), { method: "POST" });
      if (!response.ok) throw new Trouble(await response.json());
      await this.refresh();
      say(t("The sample library was added."));
      byId("question").focus();
    } catch (err) {
      const words = err instanceof Trouble ? err.message : t("Can't reach the server.");
      byId("state").append(el("p", { class: "note trouble", role: "alert" }, words));
    } finally {
      button.disabled = false;
    }
  }
}
