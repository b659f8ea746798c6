"""Prints the table of .ci/maintext/run; the argument is its folder."""

import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import mean

import trafilatura
from lxml import html

work = Path(sys.argv[1])


def sets():
    """Yields name, pages and main texts of each set. The second set is only its test part, by type of page."""
    news = work / "article-extraction-benchmark"
    truth = json.loads((news / "ground-truth.json").read_text())
    yield "news: article-extraction-benchmark", [gzip.decompress((news / "html" / f"{k}.html.gz").read_bytes()) for k in truth], [
        v["articleBody"] for v in truth.values()]
    kinds = {}
    test = work / "web-content-extraction-benchmark" / "test"
    for file in sorted((test / "ground-truth").glob("*.json")):
        said = json.loads(file.read_text())
        if text := said["ground_truth"].get("main_content"):
            page = gzip.decompress((test / "html" / f"{file.stem}.html.gz").read_bytes())
            kinds.setdefault(said["_internal"]["page_type"]["primary"], []).append((page, text))
    for kind, pages in sorted(kinds.items()):
        yield f"WCXB, test: {kind}", *map(list, zip(*pages))


def f1(got, want):
    got, want = (Counter(re.findall(r"\w+", text.lower())) for text in (got, want))
    return 2 * (got & want).total() / max(1, got.total() + want.total())


def ibid(pages):
    with tempfile.TemporaryDirectory() as folder:
        for n, page in enumerate(pages):
            (Path(folder) / f"{n}.html").write_bytes(page)
        names = "".join(f"{folder}/{n}.html\n" for n in range(len(pages)))
        out = subprocess.run([work / "text"], input=names, capture_output=True, text=True, check=True).stdout
        return [json.loads(line)["text"] for line in out.splitlines()]


def without_title(text, page):
    """Returns the text without its first-level headings: the sets count the title as metadata."""
    tags = re.findall(r"(?is)<h1[^>]*>(.*?)</h1>", page.decode("utf-8", "replace"))
    titles = {re.sub(r"\W", "", html.fromstring(f"<p>{t}</p>").text_content()) for t in tags}
    return "\n".join(line for line in text.split("\n") if re.sub(r"\W", "", line) not in titles)


rows = []
print("| pages | | Ibid | trafilatura | Ibid, no title | trafilatura, no title |\n|---|---|---|---|---|---|")
for name, pages, wanted in sets():
    texts = [ibid(pages), [trafilatura.extract(p, include_comments=False) or "" for p in pages]]
    plain = [[without_title(t, p) for t, p in zip(some, pages)] for some in (*texts, wanted)]
    these = list(zip(*([f1(t, w) for t, w in zip(some, wanted)] for some in texts),
                     *([f1(t, w) for t, w in zip(some, plain[2])] for some in plain[:2])))
    rows += these
    print(f"| {name} | {len(these)} | " + " | ".join(f"{mean(c):.3f}" for c in zip(*these)) + " |", flush=True)
all_pages = [mean(c) for c in zip(*rows)]
print(f"| all | {len(rows)} | " + " | ".join(f"{c:.3f}" for c in all_pages) + " |")
print(f"figure: F1 of the main text of {len(rows)} pages: Ibid {all_pages[0]:.3f}, trafilatura {all_pages[1]:.3f}")
sys.exit(all_pages[0] < all_pages[1])
