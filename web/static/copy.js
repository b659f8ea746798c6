// Copying an answer as Markdown with links to its sources.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

// markdown returns an answer in which each number, at its byte offset, is a link.
// cites are {number, at, href} in the order of the text.
export function markdown(text, cites, sources) {
  const bytes = encoder.encode(text);
  let out = "";
  let last = 0;
  for (const { number, at, href } of cites) {
    out += decoder.decode(bytes.subarray(last, at));
    out += `[[${number}]](${href})`;
    last = at + `[${number}]`.length;
  }
  out = `${out}${decoder.decode(bytes.subarray(last))}`.trimEnd();
  const list = sources.map((s) => `${s.number}. [${plain(s.title)}](${s.href})${s.place ? `, ${plain(s.place)}` : ""}`);
  return list.length ? `${out}\n\nSources\n\n${list.join("\n")}\n` : `${out}\n`;
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
