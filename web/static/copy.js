// Copying an answer as Markdown.

// fenced returns a text as a block of code, for an answer without an end: the server
// sends Markdown with the end.
export function fenced(text) {
  const fence = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));
  return `${fence}\n${text}\n${fence}\n`;
}

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
