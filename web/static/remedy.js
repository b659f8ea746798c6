// What to do about a file that was not read, by the words of the reason.

import { sentence } from "./stream.js";
import { t } from "./words.js";

// The first match counts. A reason that says what to do needs no remedy; nor does a file that is omitted on purpose.
const remedies = [
  [/: (save|split|rename|give|unpack|ingest|put|remove|write) |; open it|install |ibid (doctor|setup)/, ""],
  [/only files|only the programs|lock file|minified|generated/, ""],
  [/files are not read|binary file|not supported|in a text|none of its lines/,
    t("Save it as PDF, Word, HTML or text, and add that file.")],
  [/^empty|no text|no readable text|without files|without a document|too small|a program/,
    t("It contains no text: add a file that has text instead.")],
  [/larger than|more than|took|too (long|large)|exceeds|killed/, t("Split it into smaller files, and add them.")],
  [/robots\.txt|replied with|address|another site/, t("Open it in a browser, save the page, and add that file.")],
  [/storing it|permission|PDFium|archive changed|cannot be listed/, t("Repair the server's disk or programs, then read it again.")],
  [/./, t("Save it again from the program that made it, and add it again.")],
];

// withRemedy returns a reason as a sentence, and what to do.
export function withRemedy(reason, said = reason) {
  return `${sentence(reason)} ${remedies.find(([words]) => words.test(said))[1]}`.trim();
}
