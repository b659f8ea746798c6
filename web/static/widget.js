// A box for questions on a page of another site, with one tag:
//
//   <script src="https://docs.example.org/static/widget.js" data-key="ibid_…" data-title="Ask our documents" defer></script>
//
// The server names the site's origin in --cors-origin, and the key is a public one:
// 'ibid keys make site --scope public --collection NAME'. data-collection chooses a
// collection if no keys are in use, data-target an element for the box (a CSS
// selector) instead of the button in the corner. The texts are data-title,
// data-placeholder, data-button and data-sources. Everything is shown as plain text.

(() => {
  const tag = document.currentScript;
  const { key, collection, target } = tag.dataset;
  const words = { title: "Ask the documents", placeholder: "Ask a question", button: "Ask", sources: "Sources", ...tag.dataset };
  const api = new URL("../api/ask", tag.src);

  const style = `
  :host { all: initial; font: 16px/1.5 system-ui, sans-serif; color-scheme: light dark; color: CanvasText; }
  details { inline-size: min(26rem, 100vw - 2rem); }
  :host([floating]) details { position: fixed; inset-block-end: 1rem; inset-inline-end: 1rem; z-index: 2147483000; inline-size: auto; }
  :host([floating]) details[open] { inline-size: min(26rem, 100vw - 2rem); }
  summary { cursor: pointer; padding: .6rem 1rem; border-radius: .6rem; background: #116b5c; color: #fff; font-weight: 600;
    list-style: none; }
  section { background: Canvas; border: 1px solid #8886; border-radius: .6rem; padding: 1rem; margin-block-start: .5rem;
    max-block-size: 70vh; overflow: auto; }
  form { display: flex; gap: .5rem; }
  input { flex: 1; min-inline-size: 0; font: inherit; padding: .4rem .6rem; border: 1px solid #888; border-radius: .4rem; }
  button { font: inherit; padding: .4rem .9rem; border: 0; border-radius: .4rem; background: #116b5c; color: #fff; cursor: pointer; }
  .text { white-space: pre-wrap; overflow-wrap: anywhere; margin-block: .8rem 0; }
  h2 { font-size: .9rem; margin: 1rem 0 .3rem; }
  ol { margin: 0; padding-inline-start: 1.4rem; font-size: .9rem; }
  blockquote { margin: .2rem 0 .5rem; padding-inline-start: .6rem; border-inline-start: 2px solid #8886; white-space: pre-wrap; }`;

  function el(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const [k, v] of Object.entries(attributes)) element.setAttribute(k, v);
    element.append(...children);
    return element;
  }

  // askServer asks a question and calls show with each event.
  async function askServer(question, history, signal, show) {
    const headers = { "Content-Type": "application/json", Accept: "text/event-stream", ...(key && { Authorization: `Bearer ${key}` }) };
    const body = JSON.stringify({ question, history, record: false, ...(collection && { collection }) });
    const reply = await fetch(api, { method: "POST", headers, body, signal, credentials: "omit", referrerPolicy: "no-referrer" });
    if (!reply.ok) throw new Error((await reply.json().catch(() => ({}))).detail || `${reply.status}`);
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const kind = block.match(/^event: (.*)$/m)?.[1];
        const data = block.match(/^data: (.*)$/m)?.[1];
        if (data) show(kind, JSON.parse(data));
      }
    }
  }

  function sourcesOf({ sources, closest }) {
    const quoteList = (title, quotes) => el("li", {}, title, ...quotes.map((q) => el("blockquote", { dir: "auto" }, q)));
    if (sources.length) return sources.map((s) => quoteList(s.title || s.document, s.passages.map((p) => p.quote).filter(Boolean)));
    return closest.map((p) => quoteList(p.title || p.document, [p.text]));
  }

  function box() {
    const input = el("input", { "aria-label": words.placeholder, placeholder: words.placeholder, maxlength: 1000 });
    const text = el("div", { class: "text", role: "status", dir: "auto" });
    const sources = el("div", {});
    let asking = new AbortController();
    let history = [];
    const form = el("form", {}, input, el("button", {}, words.button));
    form.addEventListener("submit", async (e) => {
      e.preventDefault();
      const question = input.value.trim();
      if (!question) return;
      asking.abort();
      const mine = (asking = new AbortController());
      text.textContent = "…";
      sources.replaceChildren();
      let said = "";
      try {
        await askServer(question, history, mine.signal, (kind, data) => {
          if (kind === "text") text.textContent = said += data.text;
          else if (kind === "error") throw new Error(data.detail);
          else if (kind === "done") {
            text.textContent = data.text;
            history = [...history, { role: "user", content: question }, { role: "assistant", content: data.text }].slice(-8);
            const list = sourcesOf(data);
            if (list.length) sources.replaceChildren(el("h2", {}, words.sources), el(data.sources.length ? "ol" : "ul", {}, ...list));
          }
        });
      } catch (err) {
        if (mine === asking && !mine.signal.aborted) text.textContent = err.message;
      }
    });
    return el("section", {}, form, text, sources);
  }

  const place = target && document.querySelector(target);
  const host = el("div", place ? {} : { floating: "" });
  const root = host.attachShadow({ mode: "closed" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  root.adoptedStyleSheets = [sheet];
  root.append(place ? box() : el("details", {}, el("summary", {}, words.title), box()));
  (place || document.body).append(host);
})();
