// Asking the server: server-sent events over a POST.

// A Trouble is an error with words for the reader.
export class Trouble extends Error {
  constructor(problem, offline = false) {
    super(sentence(problem.detail || problem.title || "the server could not answer"));
    this.code = problem.code || "unknown";
    this.request = problem.request || "";
    this.status = problem.status || 0;
    this.offline = offline;
  }
}

// sentence makes an error's words a sentence for people.
const sentence = (words) => `${words[0].toUpperCase()}${words.slice(1).replace(/\.$/, "")}.`;

// events asks, or without a body reads again, and yields {kind, data} for each
// event, "done" last; the first is "run" with the id of the answer where there
// is one. It throws a Trouble when the server cannot be reached, refuses, or
// stops half-way.
export async function* events(url, body, signal) {
  const response = await reach(url, {
    method: body ? "POST" : "GET",
    headers: { ...(body && { "Content-Type": "application/json" }), Accept: "text/event-stream" },
    body: body && JSON.stringify(body),
    signal,
  });
  if (!response.ok) throw new Trouble(await problemOf(response));
  const run = response.headers.get("Ibid-Run");
  if (run) yield { kind: "run", data: run };
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(lost(signal));
      if (done) break;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const event = parse(block);
        if (!event) continue;
        if (event.kind === "error") throw new Trouble(event.data);
        yield event;
        if (event.kind === "done") return;
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // already closed or aborted: there is nothing left to stop
  }
  throw new Trouble({ code: "cut", detail: "the connection ended before the answer did" }, true);
}

// get reads JSON.
export async function get(url, signal) {
  const response = await reach(url, { headers: { Accept: "application/json" }, signal });
  if (!response.ok) throw new Trouble(await problemOf(response));
  return response.json();
}

// post sends JSON.
export async function post(url, body) {
  const response = await reach(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  if (!response.ok) throw new Trouble(await problemOf(response));
}

// put sends nothing but the address.
export async function put(url) {
  const response = await reach(url, { method: "PUT" });
  if (!response.ok) throw new Trouble(await problemOf(response));
}

function reach(url, init) {
  return fetch(url, init).catch(lost(init.signal));
}

function lost(signal) {
  return (err) => {
    if (signal?.aborted) throw err;
    throw new Trouble({ code: "unreachable", detail: "the server cannot be reached" }, true);
  };
}

async function problemOf(response) {
  try {
    return await response.json();
  } catch {
    return { code: "http", detail: `the server answered with status ${response.status}` };
  }
}

function parse(block) {
  let kind = "";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) kind = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  return kind && data ? { kind, data: JSON.parse(data) } : null;
}
