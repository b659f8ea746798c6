"""Train the static table on the teacher's vectors and write it.

    python train.py WORK OUT [--rows N] [--dims D] [--epochs E] [...]

Three steps: (1) the rows' words: the teacher's whole words, then the words of
the training texts by frequency; the rows' pieces: the teacher's; (2) every row
starts as the teacher's vector of its word alone, in the directions of greatest
variance of the teacher's text vectors, weighted by smooth inverse
frequency; (3) the rows are refined so that the sum of a text's rows behaves
as the teacher's vector of the text.
"""

import argparse
import json
import pathlib
import random
import re
import time

import numpy as np
import torch
import torch.nn.functional as F

import table as tables
import teach
import tokens


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("work", type=pathlib.Path)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--rows", type=int, default=40000)
    p.add_argument("--dims", type=int, default=256)
    p.add_argument("--epochs", type=float, default=4)
    p.add_argument("--batch", type=int, default=1024)
    p.add_argument("--rate", type=float, default=0.002)
    p.add_argument("--temperature", type=float, default=0.05, help="of the student and teacher similarities")
    p.add_argument("--contrast", type=float, default=0.3, help="weight of the contrastive loss")
    p.add_argument("--distil", type=float, default=1.0, help="weight of the similarity distillation")
    p.add_argument("--regress", type=float, default=1.0, help="weight of the regression on the teacher's vectors")
    p.add_argument("--split", type=float, default=0.05, help="chance that a word is trained by its pieces")
    p.add_argument("--hash", type=float, default=1.0, help="length of a hashed word, in median lengths of a word's row")
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


def pairs_taught(work):
    """The pairs whose teacher vectors exist, and those vectors: (pairs, queries, texts)."""
    shards = sorted((work / "teacher").glob("[0-9]*.npy"), key=lambda p: int(p.stem.split(".")[0]))
    shards = [p for p in shards if ".part" not in p.name]
    rows = np.concatenate([np.load(p) for p in shards])
    pairs = []
    with open(work / "pairs.jsonl", encoding="utf-8") as lines:
        for _, line in zip(range(len(rows) // 2), lines):
            pairs.append(json.loads(line))
    return pairs, rows[0::2], rows[1::2]


def counted(work):
    counts = {}
    with open(work / "pairs.jsonl", encoding="utf-8") as lines:
        for line in lines:
            pair = json.loads(line)
            for word in tokens.ASCII.findall(pair["query"] + " " + pair["text"]):
                for part in tokens.humps(word):
                    part = part.lower()
                    counts[part] = counts.get(part, 0) + 1
    return counts


def vocabulary(work, rows, counts):
    teacher = [l.rstrip("\n") for l in open(teach.model_folder() / "vocab.txt", encoding="utf-8")]
    whole = [w for w in teacher if re.fullmatch(r"[a-z]+|[0-9]{1,4}", w)]
    pieces = [w[2:] for w in teacher if re.fullmatch(r"##([a-z]+|[0-9]{1,4})", w)]
    known = set(whole)
    rest = sorted((w for w in counts if re.fullmatch(r"[a-z]{2,24}", w) and w not in known), key=lambda w: (-counts[w], w))
    words = whole + rest[: rows - len(whole) - len(pieces)]
    print(f"{len(whole)} whole words, {len(words) - len(whole)} more down to {counts.get(words[-1])} uses, {len(pieces)} pieces")
    return words, pieces


def word_vectors(work, names):
    path = work / f"words.{len(names)}.npz"
    if path.exists():
        saved = np.load(path)
        if list(saved["names"]) == names:
            return saved["rows"].astype(np.float32)
    rows = teach.Teacher(work)(names)
    np.savez(path, names=np.array(names), rows=rows)
    return rows.astype(np.float32)


class Bags:
    """Row ids of many texts in one flat array, with pieces for the words that are split at random."""

    def __init__(self, tokeniser, texts, limit=160):
        flat, offsets = [], [0]
        for text in texts:
            flat.extend(f[1] for f in tokeniser.features(text)[:limit] if f[0] == "row")
            offsets.append(len(flat))
        self.flat = np.array(flat, np.int32)
        self.offsets = np.array(offsets)

    def take(self, chosen, splits, chance, rng):
        parts = [self.flat[self.offsets[i] : self.offsets[i + 1]] for i in chosen]
        lengths = np.array([len(p) for p in parts])
        flat = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        owner = np.repeat(np.arange(len(chosen)), lengths)
        if chance:
            hit = np.flatnonzero(rng.random(len(flat)) < chance)
            extra, owners = [], []
            keep = np.ones(len(flat), bool)
            for i in hit:
                rows = splits[flat[i]]
                if rows:
                    keep[i] = False
                    extra.extend(rows)
                    owners.extend([owner[i]] * len(rows))
            flat = np.concatenate([flat[keep], np.array(extra, np.int32)])
            owner = np.concatenate([owner[keep], np.array(owners, np.int64)])
            order = np.argsort(owner, kind="stable")
            flat, owner = flat[order], owner[order]
        starts = np.searchsorted(owner, np.arange(len(chosen)))
        return torch.from_numpy(flat.astype(np.int64)), torch.from_numpy(starts.astype(np.int64))


def main():
    o = parse()
    torch.manual_seed(o.seed)
    rng = np.random.default_rng(o.seed)
    random.seed(o.seed)
    began = time.time()
    counts = counted(o.work)
    words, pieces = vocabulary(o.work, o.rows, counts)
    names = words + pieces
    start = word_vectors(o.work, names)
    tokeniser = tokens.Tokeniser({w: i for i, w in enumerate(words)}, {w: len(words) + i for i, w in enumerate(pieces)})
    pairs, queries, texts = pairs_taught(o.work)
    print(f"{len(pairs)} pairs, {time.time() - began:.0f} s")

    # The directions of greatest variance of the teacher's text vectors, about their mean.
    sample = texts[rng.permutation(len(texts))[:50000]].astype(np.float32)
    mean = sample.mean(0)
    _, _, axes = np.linalg.svd(np.cov((sample - mean).T))
    axes = axes[: o.dims].T
    total = sum(counts.values())
    weight = np.array([1e-3 / (1e-3 + counts.get(w, 3) / total) for w in names], np.float32)
    init = (start - start.mean(0)) @ axes * weight[:, None]

    splits = {}
    for i, w in enumerate(words):
        if len(w) > 3:
            # How the word would be cut had it no row.
            del tokeniser.words[w]
            splits[i] = tokeniser.split(w)
            tokeniser.words[w] = i
    splits = [splits.get(i) for i in range(len(names))]

    q_bags = Bags(tokeniser, [p["query"] for p in pairs])
    t_bags = Bags(tokeniser, [p["text"] for p in pairs])
    filled = np.flatnonzero((np.diff(q_bags.offsets) > 0) & (np.diff(t_bags.offsets) > 0))
    print(f"bags filled, {time.time() - began:.0f} s", flush=True)

    bag = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(init.astype(np.float32)), freeze=False, mode="sum")
    steps = int(o.epochs * len(filled) / o.batch)
    if steps:
        optimiser = torch.optim.Adam(bag.parameters(), lr=o.rate, betas=(0.9, 0.99))
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, o.rate, total_steps=steps, pct_start=0.1)
    axes_t, mean_t = torch.from_numpy(axes.astype(np.float32)), torch.from_numpy(mean)
    order, sums = rng.permutation(filled), np.zeros(3)
    for step in range(steps):
        if len(order) < o.batch:
            order = rng.permutation(filled)
        chosen, order = order[: o.batch], order[o.batch :]
        sq = F.normalize(bag(*q_bags.take(chosen, splits, o.split, rng)), dim=-1)
        st = F.normalize(bag(*t_bags.take(chosen, splits, o.split, rng)), dim=-1)
        tq = torch.from_numpy(queries[chosen].astype(np.float32))
        tt = torch.from_numpy(texts[chosen].astype(np.float32))
        student, wanted = sq @ st.T / o.temperature, tq @ tt.T / o.temperature
        distil = F.kl_div(F.log_softmax(student, 1), F.softmax(wanted, 1), reduction="batchmean")
        distil = distil + F.kl_div(F.log_softmax(student.T, 1), F.softmax(wanted.T, 1), reduction="batchmean")
        target = torch.arange(len(chosen))
        contrast = F.cross_entropy(student, target) + F.cross_entropy(student.T, target)
        pq, pt = (F.normalize((x - mean_t) @ axes_t, dim=-1) for x in (tq, tt))
        regress = (1 - (sq * pq).sum(-1)).mean() + (1 - (st * pt).sum(-1)).mean()
        loss = o.distil * distil + o.contrast * contrast + o.regress * regress
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        sums += [distil.item(), contrast.item(), regress.item()]
        if (step + 1) % 50 == 0:
            print(f"step {step + 1}/{steps}: distil {sums[0]/50:.3f} contrast {sums[1]/50:.3f} regress {sums[2]/50:.3f}, {time.time() - began:.0f} s", flush=True)
            sums[:] = 0

    rows = bag.weight.detach().numpy().astype(np.float64)
    lengths = np.linalg.norm(rows[: len(words)], axis=1)
    size = tables.write(o.out, words, pieces, rows, o.hash * float(np.median(lengths)))
    print(f"{o.out}: {size} bytes, {time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
