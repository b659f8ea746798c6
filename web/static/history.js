// The conversations of this browser, newest first, stored only in this browser
// and limited in number and size. Each key has its own list.

const { caller } = document.getElementById("turns").dataset;
const key = caller ? `ibid.history.${caller}` : "ibid.history";
const most = { conversations: 50, turns: 40, size: 2_000_000 };

// list returns the conversations: {id, at, turns: [{question, events}]}.
export function list() {
  try {
    const kept = JSON.parse(localStorage.getItem(key));
    return Array.isArray(kept) ? kept.filter((c) => c && c.id && Array.isArray(c.turns)) : [];
  } catch {
    return []; // there is no storage, or its content is not ours
  }
}

export const find = (id) => list().find((c) => c.id === id);

// save puts a conversation first and reports whether all of them fit.
export function save(conversation) {
  const name = find(conversation.id)?.name;
  const turns = conversation.turns.slice(-most.turns);
  const kept = [{ ...conversation, name, turns }, ...list().filter((c) => c.id !== conversation.id)];
  return store(kept.slice(0, most.conversations));
}

// rename names a conversation; without a name, its first question is shown.
export const rename = (id, name) => store(list().map((c) => (c.id === id ? { ...c, name } : c)));

export const forget = (id) => store(list().filter((c) => c.id !== id));

export const clear = () => store([]);

// store drops the oldest conversations until the remaining ones fit.
function store(conversations) {
  for (const kept = [...conversations]; ; kept.pop()) {
    const text = JSON.stringify(kept);
    if (text.length > most.size && kept.length) continue;
    try {
      if (kept.length) localStorage.setItem(key, text);
      else localStorage.removeItem(key);
      return kept.length === conversations.length;
    } catch {
      if (!kept.length) return false;
    }
  }
}

export const newID = () => `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;

// storedEvent returns the parts of an event that are needed to show it again.
export function storedEvent(kind, data) {
  switch (kind) {
    case "retrieved": {
      const passages = (data.passages || []).map(({ id, document, title, heading, page, start, end, text }) =>
        ({ id, document, title, heading, page, start, end, text: text?.length < 1200 ? text : undefined }));
      return { question: data.question, passages };
    }
    case "judged": {
      const { passage, document, title, heading, page, verdict, by, reason, wider } = data;
      return { passage, document, title, heading, page, verdict, by, reason, wider };
    }
    case "block":
      return data.final ? data : null;
    case "done": {
      const { usage, indexing } = data, drafts = data.drafts?.map(({ step }) => ({ step }));
      const sources = (data.sources || []).map(({ number, passages }) =>
        ({ number, passages: (passages || []).map(({ id }) => ({ id })) }));
      const verified = (data.verified || []).filter((v) => v.verdict === "dropped")
        .map(({ statement, verdict }) => ({ statement, verdict }));
      return { usage, indexing, drafts, sources, verified };
    }
    case "unanswered": {
      const nearest = (data.nearest || []).map(({ document, title, page, heading, start, end, text }) =>
        ({ document, title, page, heading, start, end, text: text.slice(0, 400) }));
      return { ...data, nearest };
    }
    case "cited": case "fallback": case "text": case "markdown": case "marked": case "quoted": case "incomplete": case "warning":
      return data;
  }
  return null;
}
