"""Cut text into the features of the table, exactly as tokens.go does.

A feature is either ("row", id) or ("hash", 64-bit hash, parts): a hashed
feature is one of `parts` of one word.
"""

import re
import unicodedata

# The longest run of letters or digits treated as one word; longer ones are cut.
MAX_WORD = 64
# The longest piece looked up.
MAX_PIECE = 20

LETTER, DIGIT, IDEOGRAPH, DROPPED, OTHER = range(5)

_classes = {}
ASCII = re.compile(r"[A-Za-z]{1,%d}|[0-9]{1,%d}" % (MAX_WORD, MAX_WORD))


def _classify(c):
    code = ord(c)
    if 0x300 <= code <= 0x36F or 0x591 <= code <= 0x5C7 or 0x64B <= code <= 0x65F or code in (0x670, 0xAD, 0x200D, 0x200C):
        return DROPPED
    if (0x3040 <= code <= 0x30FF or 0x3400 <= code <= 0x4DBF or 0x4E00 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF
            or 0x20000 <= code <= 0x3FFFF):
        return IDEOGRAPH
    # South-East Asian scripts are written without spaces.
    if 0x0E00 <= code <= 0x0EFF or 0x1000 <= code <= 0x109F or 0x1780 <= code <= 0x17FF:
        return IDEOGRAPH
    category = unicodedata.category(c)
    if category[0] in "LM":
        return LETTER
    if category == "Nd":
        return DIGIT
    return OTHER


def classify(c):
    k = _classes.get(c)
    if k is None:
        k = _classes[c] = _classify(c)
    return k


def fnv(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = ((h ^ b) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def lower(word):
    out = []
    for c in word:
        l = c.lower()
        out.append(l if len(l) == 1 else c)
    return "".join(out)


def humps(word):
    """Split camelCase and HTTPServer; a word without humps is one part."""
    parts, start = [], 0
    for i in range(1, len(word)):
        here = word[i].isupper()
        before = word[i - 1].isupper()
        after = i + 1 < len(word) and word[i + 1].islower()
        if here and (word[i - 1].islower() or (before and after)):
            parts.append(word[start:i])
            start = i
    parts.append(word[start:])
    return parts


class Tokeniser:
    """words: word -> row, pieces: continuation piece (without mark) -> row."""

    def __init__(self, words, pieces):
        self.words, self.pieces = words, pieces
        self.seen = {}

    def features(self, text):
        out = []
        if text.isascii():
            for word in ASCII.findall(text):
                out.extend(self.word(word))
            return out
        run, kind, last = [], OTHER, None

        def flush():
            if run:
                out.extend(self.word("".join(run)))
                run.clear()

        for c in unicodedata.normalize("NFKD", text):
            k = classify(c)
            if k == DROPPED:
                continue
            if k != kind or len(run) == MAX_WORD:
                flush()
            if k == IDEOGRAPH:
                out.append(("hash", fnv(b"c" + c.encode()), 2))
                if last is not None:
                    out.append(("hash", fnv(b"b" + (last + c).encode()), 1))
                last = c
            else:
                last = None
                if k != OTHER:
                    run.append(c)
            kind = k
        flush()
        return out

    def word(self, word):
        """The features of one run of letters or of digits, kept for the next time."""
        found = self.seen.get(word)
        if found is None:
            found = self.seen[word] = self._word(word)
        return found

    def _word(self, word):
        out = []
        joined = lower(word)
        parts = [joined] if joined in self.words else [lower(p) for p in humps(word)]
        for part in parts:
            self.part(part, out)
        return out

    def part(self, word, out):
        row = self.words.get(word)
        if row is not None:
            out.append(("row", row))
            return
        rows = self.split(word)
        if rows:
            out.extend(("row", r) for r in rows)
            out.append(("hash", fnv(b"w" + word.encode()), 1))
            return
        if word.isdecimal():
            out.append(("hash", fnv(b"w" + word.encode()), 1))
            return
        padded = "<" + word + ">"
        grams = [padded] if len(padded) <= 4 else [padded[i : i + 4] for i in range(len(padded) - 3)]
        for gram in grams:
            out.append(("hash", fnv(b"g" + gram.encode()), len(grams)))

    def split(self, word):
        """The rows of the longest pieces from the left, or None when one is missing."""
        rows, at = [], 0
        while at < len(word):
            table = self.pieces if at else self.words
            for end in range(min(len(word), at + MAX_PIECE), at, -1):
                row = table.get(word[at:end])
                if row is not None:
                    rows.append(row)
                    at = end
                    break
            else:
                return None
        return rows
