// The collections on the home page, as notebooks: choose one, make one, rename it.

import { base, byId, el, shelves } from "./dom.js";
import { get, patch, post, Trouble } from "./stream.js";
import { t } from "./words.js";

const chosen = "ibid.collection"; // where the choice is stored

export class Collections {
  // onChange is called after another collection was chosen; say announces a status.
  constructor({ onChange, say }) {
    Object.assign(this, { onChange, say });
    this.line = byId("collections");
    this.list = byId("collection");
    this.list.addEventListener("change", () => this.#chooseCollection(this.list.value));
    this.made = []; // names of collections that can be renamed
    this.dialog = byId("naming");
    if (!this.dialog) return;
    byId("make-collection").addEventListener("click", () => this.#askName(""));
    byId("rename-collection").addEventListener("click", () => this.#askName(this.value));
    byId("naming-cancel").addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("submit", (e) => {
      e.preventDefault(); // the dialog stays open until the server accepts the name
      this.#saveName(byId("naming-name").value.trim());
    });
  }

  // value returns the chosen collection, or "" for all.
  get value() {
    return this.list.value;
  }

  // load lists the collections, some of which may be new, and selects the last chosen one.
  async load() {
    const { collections } = await get(new URL("api/collections", base));
    for (const c of collections) for (const r of c.roots) if (r.uploads && r.root !== "uploads") shelves.set(r.root, c.collection);
    this.made = collections.filter((c) => c.roots.some((r) => r.uploads && r.root !== "uploads")).map((c) => c.collection);
    this.list.replaceChildren(this.list.options[0], ...collections.map((c) => el("option", { value: c.collection }, c.collection)));
    const before = localStorage.getItem(chosen);
    this.list.value = collections.some((c) => c.collection === before) ? before : "";
    this.#fitControls();
  }

  // showFor hides the controls for an empty conversation in a started one, and all controls
  // if single documents are picked.
  showFor(asked, picked) {
    Object.assign(this, { asked, picked });
    this.#fitControls();
  }

  #fitControls() {
    this.line.hidden = this.picked || this.list.options.length < 3 && (this.asked || !this.dialog);
    if (!this.dialog) return;
    byId("make-collection").hidden = this.asked;
    byId("rename-collection").hidden = this.asked || !this.made.includes(this.value);
  }

  #chooseCollection(name) {
    if (name) localStorage.setItem(chosen, name);
    else localStorage.removeItem(chosen);
    this.#fitControls();
    this.onChange();
  }

  // #askName asks for the name of a new collection, or another one for a collection.
  #askName(before) {
    this.before = before;
    byId("naming-title").textContent = before ? t("Rename the collection") : t("New collection");
    byId("naming-name").value = before;
    byId("naming-trouble").hidden = true;
    this.dialog.showModal();
    byId("naming-name").select();
  }

  async #saveName(name) {
    try {
      const url = new URL("api/collections", base);
      if (this.before) await patch(`${url}/${encodeURIComponent(this.before)}`, { collection: name });
      else await post(url, { collection: name });
      localStorage.setItem(chosen, name);
      await this.load();
      this.#chooseCollection(name);
      this.dialog.close();
      this.say(this.before ? t("The collection was renamed.") : t("The collection was created. New files are added to it."));
    } catch (err) {
      if (!(err instanceof Trouble)) throw err;
      byId("naming-trouble").textContent = err.message;
      byId("naming-trouble").hidden = false;
    }
  }
}
