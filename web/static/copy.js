// Taking an answer along: Markdown with links to its sources.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

// markdown writes an answer: each number at its offset in bytes becomes a link.
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

// plain keeps words from being Markdown.
const plain = (words) => words.replace(/\s+/g, " ").replace(/[\\`*_[\]<>]/g, "\\$&");

// copy puts words on the clipboard, and says whether it could.
export async function copy(words) {
  try {
    await navigator.clipboard.writeText(words);
    return true;
  } catch {
    // Over plain HTTP there is no such clipboard; the old way works.
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
