// A client of an Ibid server: questions to your documents, answers with sources.
//
//   import { Ibid, turns } from "ibid-client";
//
//   const ibid = new Ibid("http://127.0.0.1:8080", { key: "ibid_…" }); // a key if the server needs one
//   const answer = await ibid.ask("What does a mooring cost?");
//   console.log(answer.text);
//
//   for await (const { kind, data } of ibid.stream("And in winter?", { history: turns("What does a mooring cost?", answer) })) {
//     if (kind === "text") process.stdout.write(data.text);
//   }
//
// It needs Node.js 20, another runtime with fetch, or a browser, and nothing else.

/** An error reply of the server, or status 0 and the code "unreachable" if there was no reply. */
export class IbidError extends Error {
  constructor({ status = 0, code = "unknown", detail, title, request = "" }, retryAfter) {
    super(detail || title || `the server replied with status ${status}`);
    Object.assign(this, { name: "IbidError", status, code, request, retryAfter });
  }
}

/** Returns a question and its answer as the history of the next question. */
export const turns = (question, answer) => [{ role: "user", content: question }, { role: "assistant", content: answer.text }];

const lostTimes = 6;

export class Ibid {
  #headers;
  #fetch;

  /** headers are sent with every request; fetch replaces the global one. */
  constructor(url = "http://127.0.0.1:8080", { key = "", headers = {}, fetch = globalThis.fetch } = {}) {
    this.url = url.replace(/\/+$/, "");
    this.#headers = { ...(key && { Authorization: `Bearer ${key}` }), ...headers };
    this.#fetch = (...args) => fetch(...args);
  }

  /** Answers a question. */
  ask(question, { signal, ...more } = {}) {
    return this.#json("POST", "/api/ask", { question, ...more }, signal);
  }

  /** Answers a question event by event. After a lost connection it continues where it was; leaving the loop stops the answer. */
  async *stream(question, { signal, ...more } = {}) {
    const { id } = await this.#json("POST", "/api/runs", { question, ...more }, signal);
    let ended = false;
    try {
      for await (const event of this.follow(id, { signal })) {
        ended = event.kind === "done";
        yield event;
      }
      ended = true;
    } catch (err) {
      ended = err instanceof IbidError && err.status > 0;
      throw err;
    } finally {
      if (!ended) await this.#open("DELETE", `/api/runs/${encodeURIComponent(id)}`).catch(() => {}); // without a reader it ends by itself
    }
  }

  /** Yields the events of a run, from the first or after the event with an id, until it ends. */
  async *follow(run, { after = "", signal } = {}) {
    for (let lost = 0; ; ) {
      let cause = new Error("it ended early");
      try {
        const headers = { Accept: "text/event-stream", ...(after && { "Last-Event-ID": after }) };
        const reply = await this.#open("GET", `/api/runs/${encodeURIComponent(run)}`, undefined, signal, headers);
        for await (const event of events(reply.body)) {
          lost = 0;
          after = event.id || after;
          if (event.kind === "error") throw new IbidError({ ...event.data, status: event.data.status || 500 });
          yield event;
          if (event.kind === "done") return;
        }
      } catch (err) {
        if (signal?.aborted || (err instanceof IbidError && err.status > 0)) throw err;
        cause = err;
      }
      if (++lost > lostTimes) {
        throw new IbidError({ code: "unreachable", detail: `the connection to ${this.url} was lost: ${cause.message}` });
      }
      await new Promise((done) => setTimeout(done, Math.min(250 * 2 ** lost, 5000)));
    }
  }

  /** Answers up to 50 questions, strings or bodies of ask. Each outcome has a run and an answer, or an error. */
  async batch(questions, { signal } = {}) {
    const asked = questions.map((q) => (typeof q === "string" ? { question: q } : q));
    return (await this.#json("POST", "/api/ask/batch", { questions: asked }, signal)).answers;
  }

  /** Returns the passages nearest to a question, best first. */
  async search(question, { signal, ...more } = {}) {
    return (await this.#json("POST", "/api/search", { question, ...more }, signal)).passages;
  }

  /** Summarizes { document }, or { collection } or { filter }. */
  summarize({ signal, ...what }) {
    return this.#json("POST", "/api/summarize", what, signal);
  }

  /** Numbers the citations in any model's text, given the documents that it cites. */
  cite(text, documents, more = {}) {
    return this.#json("POST", "/api/cite", { text, documents, ...more });
  }

  /** Yields the stored documents. */
  async *documents(page = 500) {
    for (let after = ""; ; ) {
      const list = await this.#json("GET", `/api/documents?${new URLSearchParams({ limit: page, ...(after && { after }) })}`);
      yield* list.documents;
      if (!list.more) return;
      after = list.documents.at(-1).document;
    }
  }

  /** Adds a file (a string, Blob or bytes), or replaces the file with this name. The labels are author, date and language. */
  async upload(name, data, { collection, tags = [], ...labels } = {}) {
    const query = new URLSearchParams({ name, ...(collection && { collection }), ...labels });
    for (const tag of tags) query.append("tag", tag);
    const reply = await this.#open("POST", `/api/documents?${query}`, data, undefined, { "Content-Type": "application/octet-stream" });
    return reply.json();
  }

  /** Gives an uploaded document other { tags, author, date, language }. */
  label(document, labels) {
    return this.#json("PATCH", `/api/documents/${document.split("/").map(encodeURIComponent).join("/")}`, labels);
  }

  /** Deletes an uploaded document, and the answers that quote it. */
  async delete(document) {
    await this.#open("DELETE", `/api/documents/${document.split("/").map(encodeURIComponent).join("/")}`);
  }

  /** Returns the collections that the key may read. */
  async collections() {
    return (await this.#json("GET", "/api/collections")).collections;
  }

  /** Returns the record of an answer. Its sources have their current state: unchanged, moved, changed or gone. */
  run(id) {
    return this.#json("GET", `/api/runs/${encodeURIComponent(id)}`);
  }

  /** Rates an answer: 1 if it helped, -1 if not. */
  async rate(run, rating, comment) {
    await this.#open("POST", "/api/feedback", JSON.stringify({ run, rating, comment }));
  }

  async #json(method, path, body, signal) {
    return (await this.#open(method, path, body && JSON.stringify(body), signal)).json();
  }

  async #open(method, path, body, signal, headers = {}) {
    let reply;
    try {
      const all = { ...(body !== undefined && { "Content-Type": "application/json" }), ...this.#headers, ...headers };
      reply = await this.#fetch(this.url + path, { method, body, signal, headers: all });
    } catch (err) {
      if (signal?.aborted) throw err;
      throw new IbidError({ code: "unreachable", detail: `there is no reply from ${this.url}: ${err.cause?.message || err.message}` });
    }
    if (reply.ok) return reply;
    const problem = await reply.json().catch(() => ({})); // a proxy may reply with a page
    const retry = Number(reply.headers.get("Retry-After"));
    throw new IbidError({ ...problem, status: reply.status }, retry > 0 ? retry : undefined);
  }
}

// events yields the events of a stream of server-sent events. Not every browser can
// iterate over a stream.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let rest = ""; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop();
      for (const block of blocks) {
        const event = { kind: "", id: "" };
        const data = [];
        for (const line of block.split(/\r?\n/)) {
          const [, name, value] = line.match(/^([^:]*): ?(.*)$/) || [];
          if (name === "event") event.kind = value;
          else if (name === "id") event.id = value;
          else if (name === "data") data.push(value);
        }
        if (data.length) yield { ...event, data: JSON.parse(data.join("\n")) };
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
