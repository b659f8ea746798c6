// The page's texts in the reader's language. The English words of a text are its key;
// web/words.json has the translations, and the server writes those of one language into the page.

const phrases = JSON.parse(document.getElementById("phrases")?.textContent ?? "{}");
const { lang } = document.documentElement;
const plurals = new Intl.PluralRules(lang);

// locale formats numbers and dates, with the digits of citation numbers.
export const locale = `${lang}-u-nu-latn`;

// parts returns a text with its values, which may be elements, in place of {their
// names}. The value n chooses the plural form.
export function parts(text, values = {}) {
  let phrase = phrases[text] ?? text;
  if (typeof phrase !== "string") phrase = phrase[plurals.select(values.n)] ?? phrase.other;
  return phrase.split(/\{(\w+)\}/).map((s, i) => {
    const value = i % 2 ? values[s] : s;
    return typeof value === "number" ? value.toLocaleString(locale, { useGrouping: "min2" }) : value;
  });
}

// t returns a text with its values.
export const t = (text, values) => parts(text, values).join("");

// size returns a number of bytes in words.
export function size(n) {
  const tenths = (x) => x.toLocaleString(locale, { maximumFractionDigits: 1 });
  if (n < 1000) return `${n} B`;
  return n < 1e6 ? `${tenths(n / 1e3)} kB` : `${tenths(n / 1e6)} MB`;
}
