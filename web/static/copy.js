// Copying an answer as Markdown with links to its sources.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

// markdown returns an answer in which each number, at its byte offset, is a link.
// cites are {number, at, href} in the order of the text.
export function markdown(text, cites, sources) {
  const bytes = encoder.encode(text);
  let out = "";
  let last = 0;
  const words = (end) => inert(decoder.decode(bytes.subarray(last, end)));
  for (const { number, at, href } of cites) {
    out += words(at).replace(/!$/, "! ");
    out += `[[${number}]](${href})`;
    last = at + `[${number}]`.length;
  }
  out = `${out}${words()}`.trimEnd();
  const list = sources.map((s) => `${s.number}. [${plain(s.title)}](${s.href})${s.place ? `, ${plain(s.place)}` : ""}`);
  return list.length ? `${out}\n\nSources\n\n${list.join("\n")}\n` : `${out}\n`;
}

// What makes more than words of a text where it is rendered, as in rewrite.Neutral.
const host = String.raw`(?=[^\s/\\)\]}"'\x60>,;|*])`;
const active = [
  [/[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu, (c, at, all) =>
    "\n\t".includes(c) || ("\u200c\u200d\ufe0e\ufe0f".includes(c) && /[^\x00-\x7f\u200c\u200d]/.test(all[at - 1])) ? c : ""],
  [new RegExp(String.raw`(?:https?|ftp):[/\\]{2,}${host}|www\\*\.${host}`, "gi"), ""],
  [/\](?=[(:])/g, "] "],
  [/!(?=\[)/g, "! "],
  [/<(?=[a-z/!?])/gi, "< "],
  [/&(?=#)/g, "& "],
  [/&([a-z0-9]{1,32});/gi, "&$1 ;"],
  [/&([lg])t/gi, "&$1 t"],
  [/(\S)@(?=[^\s.+])/g, "$1@ "],
  [new RegExp(String.raw`(/[/\\]+|:\\*/\\*)${host}`, "g"), "$1 "],
  [/\b(https?|ftps?|sftp|file|smb|wss?)(\\*):(?=[^\s/])/gi, "$1$2: "],
  [/\b(mailto|xmpp|tel|sms|callto|sip|skype|(?:java|vb|live)script|data|blob|about|filesystem|view-source|jar|intent|ms-[a-z]+|search-ms|vscode)(\\*):(?=\S)/gi, "$1$2: "],
];

// inert returns words that a model wrote as mere text for what may render the copy.
export function inert(words) {
  for (let before; before !== words; ) {
    before = words;
    for (const [found, instead] of active) words = words.replace(found, instead);
  }
  return words;
}

// plain escapes Markdown.
const plain = (words) => words.replace(/\s+/g, " ").replace(/[\\`*_[\]<>]/g, "\\$&");

// copy puts words on the clipboard and reports whether it could.
export async function copy(words) {
  try {
    await navigator.clipboard.writeText(words);
    return true;
  } catch {
    // That clipboard needs HTTPS; this one does not.
    const box = document.createElement("textarea");
    box.value = words;
    box.className = "hidden";
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    return done;
  }
}
