// Copying an answer as Markdown, and its code.

import { el, makeButton } from "./dom.js";
import { t } from "./words.js";

// fencedText returns a text as a block of code, for an answer that has not ended: the server
// sends Markdown only at the end.
export function fencedText(text) {
  const fence = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));
  return `${fence}\n${text}\n${fence}\n`;
}

// copyText puts words on the clipboard and reports whether that worked.
export async function copyText(words) {
  try {
    await navigator.clipboard.writeText(words);
    return true;
  } catch {
    // navigator.clipboard needs HTTPS; execCommand does not.
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

// copyButtons adds a button to each block of code that has none.
export function copyButtons(element) {
  for (const code of element.querySelectorAll("pre")) {
    if (code.nextElementSibling?.classList.contains("copy-code")) continue;
    const button = makeButton(t("Copy code"), async () => {
      button.textContent = (await copyText(code.textContent)) ? t("Copied") : t("Copying was blocked");
      setTimeout(() => (button.textContent = t("Copy code")), 2000);
    }, { class: "quiet copy-code" });
    code.after(button);
  }
}
