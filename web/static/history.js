// The conversations of this browser, kept in its own storage and nowhere else:
// the newest first, bounded in number and size.

const key = "ibid.history";
const most = { conversations: 50, turns: 40, size: 2_000_000 };

// list gives the conversations: {id, at, turns: [{question, events}]}.
export function list() {
  try {
    const kept = JSON.parse(localStorage.getItem(key));
    return Array.isArray(kept) ? kept.filter((c) => c && c.id && Array.isArray(c.turns)) : [];
  } catch {
    return []; // storage is off, or holds what we did not write
  }
}

export const find = (id) => list().find((c) => c.id === id);

// keep puts a conversation first. It says whether there was room.
export function keep(conversation) {
  const kept = [{ ...conversation, turns: conversation.turns.slice(-most.turns) }, ...list().filter((c) => c.id !== conversation.id)];
  return store(kept.slice(0, most.conversations));
}

export const forget = (id) => store(list().filter((c) => c.id !== id));

export const clear = () => store([]);

// store drops the oldest until the rest fits.
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
