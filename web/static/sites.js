// Adding web addresses, and how far the server has read them.

import { base, byId, el, makeButton } from "./dom.js";
import { get, post, Trouble } from "./stream.js";
import { t } from "./words.js";

const pause = 1000; // milliseconds between requests

// notice returns, in the reader's language, what was left out of a site.
function notice({ code, n, address, detail }) {
  switch (code) {
    case "disallowed": return t("Left out because of robots.txt: {n}", { n });
    case "many_pages": return t("Not everything was read. Page limit: {n}", { n });
    case "many_sitemaps": return t("Not everything was read. Sitemap limit: {n}", { n });
    case "long_sitemap": return t("Not everything was read. Limit of addresses in {address}: {n}", { n, address });
    case "large_sitemap": return t("Not everything was read. Size limit of {address}: {n} MB", { n, address });
    case "unread_list": return t("Not everything was read. Couldn't read {address}", { address });
    case "many_links": return t("Not everything was read. Limit of links in {address}: {n}", { n, address });
    case "slow": return t("Not everything has been read yet. Time limit: {n} min", { n });
    case "large": return t("Not everything was read. Size limit: {n} MB", { n });
    default: return detail;
  }
}

// setUpSites sets up the dialog of the section and lists the sites that are being read.
// It returns offer(text), which opens the dialog and reports whether the text is an address.
export function setUpSites(section, { say, refresh, into }) {
  const dialog = byId("sites");
  if (!dialog) return () => false;
  const list = section.querySelector("ul");
  const input = byId("sites-address");
  const lines = new Map(); // address -> line
  byId("site").addEventListener("click", () => dialog.showModal());
  byId("sites-cancel").addEventListener("click", () => dialog.close());
  dialog.addEventListener("submit", () => {
    addSite(input.value.trim());
    input.value = "";
  });
  pollSites();
  return (text) => {
    if (!/^https?:\/\/\S+$/i.test(text)) return false;
    input.value = text;
    dialog.showModal();
    return true;
  };

  async function addSite(address) {
    try {
      const to = new URL(`api/documents?url=${encodeURIComponent(address)}`, base);
      if (into()) to.searchParams.set("collection", into());
      const root = await post(to);
      showSite({ address: root.path, reading: true, done: 0, total: 0 });
      setTimeout(pollSites, pause);
    } catch (err) {
      if (!(err instanceof Trouble)) throw err;
      showSite({ address, error: err.message });
    }
  }

  // pollSites requests the progress of the sites until all are read.
  async function pollSites() {
    let states = [];
    try {
      ({ sites: states = [] } = await get(new URL("api/documents?limit=0", base)));
    } catch (err) {
      if (!(err instanceof Trouble)) throw err; // the page shows that the server is unreachable
    }
    for (const s of states) if (s.reading || lines.get(s.address)?.classList.contains("reading")) showSite(s);
    if (states.some((s) => s.reading)) setTimeout(pollSites, pause);
  }

  // showSite shows the state of a site, and announces when it has been read.
  function showSite({ address, reading, done, total, notices = [], error }) {
    const name = el("span", { class: "upload-name", dir: "ltr" }, address);
    const line = el("li", { class: reading ? "reading" : error ? "failed" : "done" }, name);
    if (reading) {
      const label = t("Reading {name}", { name: address });
      line.append(el("progress", { max: total || 1, value: total ? done : null, "aria-label": label }),
        el("span", { class: "facts" }, total ? t("{done} of {total} pages", { done, total }) : t("Waiting")));
    } else {
      line.append(el("span", { class: "facts" }, [error || t("{n} pages", { n: done }), ...notices.map(notice)].join(" · ")),
        makeButton(t("Dismiss"), () => {
          line.remove();
          lines.delete(address);
          byId("site").focus();
        }, { class: "quiet", "aria-label": t("Dismiss {name}", { name: address }) }));
      say(`${address}: ${line.children[1].textContent}`);
      if (!error) refresh();
    }
    const before = lines.get(address);
    if (before) before.replaceWith(line);
    else list.append(line);
    lines.set(address, line);
    section.classList.add("has-files");
  }
}
