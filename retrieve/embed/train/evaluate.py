"""Measure a table on retrieval sets: nDCG@10 of the vectors, of BM25 and of both mixed.

    python evaluate.py TABLE DATA [SET ...]

DATA/SET holds corpus.jsonl, queries.jsonl and qrels.tsv. BM25: k1 1.2, b .75,
a light stemmer, stop words. The mixture is the mean of both scores,
each scaled over the union of both lists' best 100.
"""

import json
import math
import pathlib
import re
import sys

import numpy as np

import table as tables

SETS = ["cranfield", "scifact-train", "anthropic-docs", "squad2-a", "clapnq-a", "msmarco-dl-5k", "financebench-a"]
STOP = set(
    "a an and are as at be but by for from has have how if in into is it its no not of on or such that the their then "
    "there these they this to was were what when where which who why will with do does did can".split()
)


def stem(w):
    for end in ("ing", "edly", "ed", "ies", "es", "ly", "s"):
        if w.endswith(end) and len(w) - len(end) >= 3:
            return w[: -len(end)] + ("y" if end == "ies" else "")
    return w


def terms(text):
    return [stem(w) for w in re.findall(r"\w+", text.lower()) if w not in STOP]


class BM25:
    def __init__(self, texts, k1=1.2, b=0.75):
        self.n = len(texts)
        lists, lengths = {}, []
        for i, text in enumerate(texts):
            counts = {}
            for t in terms(text):
                counts[t] = counts.get(t, 0) + 1
            lengths.append(sum(counts.values()))
            for t, c in counts.items():
                lists.setdefault(t, []).append((i, c))
        mean = sum(lengths) / len(lengths)
        self.lists = {}
        for t, found in lists.items():
            idf = math.log(1 + (self.n - len(found) + 0.5) / (len(found) + 0.5))
            ids = np.array([i for i, _ in found])
            tf = np.array([c for _, c in found], float)
            norm = k1 * (1 - b + b * np.array([lengths[i] for i in ids]) / mean)
            self.lists[t] = ids, idf * tf * (k1 + 1) / (tf + norm)

    def __call__(self, query):
        out = np.zeros(self.n)
        for t in set(terms(query)):
            if t in self.lists:
                ids, weights = self.lists[t]
                out[ids] += weights
        return out


def load(folder):
    def lines(name):
        return [json.loads(line) for line in open(folder / name, encoding="utf-8")]

    corpus = {str(d["_id"]): (d.get("title", "") + " " + d["text"]).strip() for d in lines("corpus.jsonl")}
    qrels = {}
    for line in open(folder / "qrels.tsv", encoding="utf-8"):
        fields = line.rstrip("\n").split("\t")
        if len(fields) < 3 or not fields[-1].lstrip("-").isdigit():
            continue
        if int(fields[-1]) > 0:
            qrels.setdefault(fields[0], {})[fields[-2]] = int(fields[-1])
    queries = {str(q["_id"]): q["text"] for q in lines("queries.jsonl") if str(q["_id"]) in qrels}
    return corpus, queries, qrels


def gain(grade):
    return 2**grade - 1


def ndcg(scores, ids, relevant, k=10):
    top = np.argsort(-scores, kind="stable")[:k]
    found = sum(gain(relevant.get(ids[i], 0)) / math.log2(r + 2) for r, i in enumerate(top))
    best = sum(gain(g) / math.log2(r + 2) for r, g in enumerate(sorted(relevant.values(), reverse=True)[:k]))
    return found / best


def scale_minmax(x):
    return (x - x.min()) / (x.max() - x.min() + 1e-9)


def scale_z(x):
    return (x - x.mean()) / (x.std() + 1e-9)


def mixed(dense, lexical, scale):
    best = np.union1d(np.argsort(-dense)[:100], np.argsort(-lexical)[:100])
    out = np.full(len(dense), -1e9)
    out[best] = scale(dense[best]) + scale(lexical[best])
    return out


def joined(dense, lexical):
    """Reciprocal ranks of the best 100 of each, as libraries join two lists."""
    out = np.zeros(len(dense))
    for scores in (dense, lexical):
        best = np.argsort(-scores, kind="stable")[:100]
        best = best[scores[best] > 0]
        out[best] += 1 / (60 + np.arange(1, len(best) + 1))
    return out


def evaluate(embed, folder):
    corpus, queries, _ = load(folder)
    return measure(*(np.vstack([embed(text) for text in texts.values()]) for texts in (corpus, queries)), folder)


def measure(documents, questions, folder):
    """nDCG@10 of vectors, of BM25, of their mixtures and of both joined by rank; rows are in the order of load."""
    corpus, queries, qrels = load(folder)
    ids = list(corpus)
    bm25 = BM25([corpus[i] for i in ids])
    total = np.zeros(5)
    for (q, text), row in zip(queries.items(), questions):
        dense, lexical = documents @ row, bm25(text)
        relevant = qrels[q]
        total += [
            ndcg(s, ids, relevant)
            for s in (dense, lexical, mixed(dense, lexical, scale_z), mixed(dense, lexical, scale_minmax), joined(dense, lexical))
        ]
    return total / len(queries)


def main():
    embed = tables.Embedder(*tables.read(pathlib.Path(sys.argv[1])))
    data = pathlib.Path(sys.argv[2])
    print(f"{'':16}  dense   bm25  z mix  minmax  ranks")
    for name in sys.argv[3:] or SETS:
        print(f"{name:16}" + "".join(f"{x:7.3f}" for x in evaluate(embed, data / name)), flush=True)


if __name__ == "__main__":
    main()
