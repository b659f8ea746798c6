// Requests to the server, and its answers as server-sent events.

import { t } from "./words.js";

// A Trouble is an error with a message for the reader.
export class Trouble extends Error {
  constructor(problem, offline = false) {
    super(sentence(problem.detail || problem.title || t("the server couldn't answer")));
    this.code = problem.code || "unknown";
    this.request = problem.request || "";
    this.field = problem.field || "";
    this.status = problem.status || 0;
    this.offline = offline;
  }
}

// sentence makes an error message a sentence; an address at its beginning remains unchanged.
export const sentence = (words) => `${/^https?:/.test(words) ? words[0] : words[0].toUpperCase()}${words.slice(1).replace(/\.$/, "")}.`;

// followRun yields {kind, data} for each event of a run, "done" last. If the
// connection is lost it calls onLost(), reconnects and continues. It throws a
// Trouble if the server refuses, stays unreachable, or reports that the run failed.
export async function* followRun(url, signal, onLost) {
  let last = "";
  for (let tries = 1; ; tries++) {
    try {
      for await (const event of events(url, signal, last)) {
        tries = 1;
        last = event.id || last;
        yield event;
      }
      return;
    } catch (err) {
      if (!(err instanceof Trouble) || !err.offline || tries > 5) throw err;
      onLost();
      await pause(250 * 2 ** tries, signal);
    }
  }
}

function pause(ms, signal) {
  return new Promise((yes, no) => {
    const timer = setTimeout(yes, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      no(signal.reason);
    });
  });
}

async function* events(url, signal, last) {
  const response = await reachServer(url, { headers: { Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) }, signal });
  if (!response.ok) throw new Trouble(await problemOf(response));
  if (!response.body) return; // there are no more events
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(throwLost(signal));
      if (done) break;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const event = parseEvent(block);
        if (!event) continue;
        if (event.kind === "error") throw new Trouble(event.data);
        yield event;
        if (event.kind === "done") return;
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // already closed or aborted
  }
  throw new Trouble({ code: "cut", detail: t("the connection was lost before the answer was complete") }, true);
}

// get requests JSON.
export async function get(url, signal) {
  const response = await reachServer(url, { headers: { Accept: "application/json" }, signal });
  if (!response.ok) throw new Trouble(await problemOf(response));
  return response.json();
}

// post, change and patch send JSON and read JSON.
export const post = (url, body, signal) => exchangeJSON("POST", url, body, signal);
export const change = (url, body) => exchangeJSON("PUT", url, body);
export const patch = (url, body) => exchangeJSON("PATCH", url, body);

async function exchangeJSON(method, url, body, signal) {
  const response = await reachServer(url, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
  if (!response.ok) throw new Trouble(await problemOf(response));
  return response.json();
}

// put sends a request without a body.
export async function put(url) {
  const response = await reachServer(url, { method: "PUT" });
  if (!response.ok) throw new Trouble(await problemOf(response));
}

function reachServer(url, init) {
  return fetch(url, init).catch(throwLost(init.signal));
}

function throwLost(signal) {
  return (err) => {
    if (signal?.aborted) throw err;
    throw new Trouble({ code: "unreachable", detail: t("can't reach the server") }, true);
  };
}

async function problemOf(response) {
  try {
    return await response.json();
  } catch {
    return { code: "http", detail: t("the server replied with status {status}", response) };
  }
}

function parseEvent(block) {
  let id = "";
  let kind = "";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("id: ")) id = line.slice(4);
    else if (line.startsWith("event: ")) kind = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  return kind && data ? { id, kind, data: JSON.parse(data) } : null;
}
