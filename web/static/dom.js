// Making elements. Words of documents and models go in as text nodes only;
// nothing on the page is ever built from markup.

// el makes an element: el("a", {class: "cite", href: "…"}, "text", child…).
export function el(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...children.filter((c) => c !== undefined && c !== null && c !== ""));
  return e;
}

export const byId = (id) => document.getElementById(id);

// base is the address that the page's own requests begin with, whatever path a proxy serves it under.
export const base = new URL("../", import.meta.url);

// documentURL is the viewer's address of a place in a document.
export function documentURL(id, start, end) {
  return placed("documents/", id, start, end, "#quote");
}

// documentAPI is the API's address of the same place.
export function documentAPI(id, start, end) {
  return placed("api/documents/", id, start, end, "");
}

function placed(route, id, start, end, fragment) {
  const path = id.split("/").map(encodeURIComponent).join("/");
  const place = end > start ? `?start=${start}&end=${end}${fragment}` : "";
  return new URL(base.pathname + route + path + place, base).href;
}

export const plural = (n, one, many) => `${n} ${n === 1 ? one : many}`;

// place says where in its document something stands: "page 3 · Fees › Mooring".
// A heading path that begins with the document's own title goes without it.
export function place({ page, heading, title }) {
  const path = (heading || "").split(" › ");
  if (path[0] === title) path.shift();
  return [page ? `page ${page}` : "", path.join(" › ")].filter(Boolean).join(" · ");
}
