"""Train the static table on the teacher's vectors and write it.

    python train.py WORK OUT [--rows N] [--dims D] [--steps N] [...]

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
    p.add_argument("--steps", type=int, default=488)
    p.add_argument("--batch", type=int, default=1024)
    p.add_argument("--rate", type=float, default=0.002)
    p.add_argument("--temperature", type=float, default=0.05, help="of the student and teacher similarities")
    p.add_argument("--contrast", type=float, default=0.3, help="weight of the contrastive loss")
    p.add_argument("--distil", type=float, default=1.0, help="weight of the similarity distillation")
    p.add_argument("--regress", type=float, default=1.0, help="weight of the regression on the teacher's vectors")
    p.add_argument("--split", type=float, default=0.05, help="chance that a word is trained by its pieces")
    p.add_argument("--questions", type=float, default=0.4, help="chance that a query is put as a question to the student alone")
    p.add_argument("--hash", type=float, default=1.0, help="length of a hashed word, in median lengths of a word's row")
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


# Ways to ask. The student reads them before a query and the teacher does not,
# so that they come to say nothing about the topic.
QUESTIONS = """
what is|what is the|what are|what was|what does|what did|who is|who was|who|when was|when did|when is|where is|where was
where did|why is|why does|how do i|how does|how is|how to|how many|how much|how long|how can i|which|which of the
in what|what kind of|what type of|what year|what name|is|does|do|can|can you tell me|tell me about|explain|describe|define
give|what happens|what happened to|during what|according to the text what|under what|name the|what can|can i|should i
""".strip().replace("\n", "|").split("|")


def load_pairs(work):
    """The pairs that the teacher has embedded, and its vectors: (pairs, queries, texts)."""
    shards = sorted((p for p in (work / "teacher").glob("*.npy") if p.stem.isdigit()), key=lambda p: int(p.stem))
    rows = np.concatenate([np.load(p) for p in shards])
    with open(work / "pairs.jsonl", encoding="utf-8") as lines:
        pairs = [json.loads(line) for _, line in zip(range(len(rows) // 2), lines)]
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
    """Row ids of many texts in one flat array."""

    def __init__(self, tokeniser, texts, limit=160):
        flat, offsets = [], [0]
        for text in texts:
            flat.extend(f[1] for f in tokeniser.features(text)[:limit] if f[0] == "row")
            offsets.append(len(flat))
        self.flat = np.array(flat, np.int32)
        self.offsets = np.array(offsets)

    def take(self, chosen, splits, chance, rng):
        """The ids of the chosen texts in one array, and for each id its text."""
        flat, owner = gather(self.flat, self.offsets, chosen)
        hit = (rng.random(len(flat)) < chance) & (np.diff(splits.offsets)[flat] > 0)
        extra, of = gather(splits.flat, splits.offsets, flat[hit])
        flat = np.concatenate([flat[~hit], extra])
        owner = np.concatenate([owner[~hit], owner[hit][of]])
        order = np.argsort(owner, kind="stable")
        return flat[order], owner[order]


def prepend(bag, flat, owner, size, chance, rng):
    """Put the ids of a random text of the bag before those of some of the texts."""
    asked = np.flatnonzero(rng.random(size) < chance)
    extra, of = gather(bag.flat, bag.offsets, rng.integers(0, len(bag.offsets) - 1, len(asked)))
    flat, owner = np.concatenate([extra, flat]), np.concatenate([asked[of], owner])
    order = np.argsort(owner, kind="stable")
    return flat[order], owner[order]


def batches(pairs, size, rng):
    """Endless batches, each pair once before any comes again."""
    order = pairs[:0]
    while True:
        if len(order) < size:
            order = rng.permutation(pairs)
        yield order[:size]
        order = order[size:]


def gather(flat, offsets, chosen):
    """flat[offsets[i]:offsets[i+1]] for each chosen i one after the other, and whose each is."""
    lengths = offsets[np.asarray(chosen) + 1] - offsets[chosen]
    owner = np.repeat(np.arange(len(chosen)), lengths)
    begin = np.repeat(offsets[chosen] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return flat[begin + np.arange(len(owner))], owner


class Splits:
    """For each row, the rows of the pieces of its word; none for short words and pieces."""

    def __init__(self, tokeniser, words, rows):
        flat, lengths = [], np.zeros(rows, np.int64)
        for i, word in enumerate(words):
            if len(word) > 3:
                del tokeniser.words[word]
                found = tokeniser.split(word) or []
                tokeniser.words[word] = i
                flat.extend(found)
                lengths[i] = len(found)
        self.flat = np.array(flat, np.int32)
        self.offsets = np.concatenate([[0], np.cumsum(lengths)])


class LazyAdam:
    """Adam that touches only the rows of a batch, so that rare words keep their step."""

    def __init__(self, table, betas=(0.9, 0.99)):
        self.table, self.betas = table, betas
        self.first, self.second = torch.zeros_like(table), torch.zeros_like(table)
        self.count = torch.zeros(len(table), 1)

    def step(self, rows, gradient, rate):
        b1, b2 = self.betas
        self.count[rows] += 1
        n = self.count[rows]
        first = self.first[rows].mul_(b1).add_(gradient, alpha=1 - b1)
        second = self.second[rows].mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
        self.first[rows], self.second[rows] = first, second
        self.table[rows] -= rate * (first / (1 - b1**n)) / ((second / (1 - b2**n)).sqrt_() + 1e-8)


def main():
    o = parse()
    torch.manual_seed(o.seed)
    rng = np.random.default_rng(o.seed)
    began = time.time()
    counts = counted(o.work)
    words, pieces = vocabulary(o.work, o.rows, counts)
    names = words + pieces
    start = word_vectors(o.work, names)
    tokeniser = tokens.Tokeniser({w: i for i, w in enumerate(words)}, {w: len(words) + i for i, w in enumerate(pieces)})
    pairs, queries, texts = load_pairs(o.work)
    print(f"{len(pairs)} pairs, {time.time() - began:.0f} s")

    # The directions of greatest variance of the teacher's text vectors, about their mean.
    sample = texts[rng.permutation(len(texts))[:50000]].astype(np.float32)
    mean = sample.mean(0)
    _, _, axes = np.linalg.svd(np.cov((sample - mean).T))
    axes = axes[: o.dims].T
    total = sum(counts.values())
    weight = np.array([1e-3 / (1e-3 + counts.get(w, 3) / total) for w in names], np.float32)
    init = (start - start.mean(0)) @ axes * weight[:, None]

    splits = Splits(tokeniser, words, len(names))
    q_bags = Bags(tokeniser, [p["query"] for p in pairs])
    t_bags = Bags(tokeniser, [p["text"] for p in pairs])
    filled = np.flatnonzero((np.diff(q_bags.offsets) > 0) & (np.diff(t_bags.offsets) > 0))
    print(f"bags filled, {time.time() - began:.0f} s", flush=True)

    weights = torch.from_numpy(init.astype(np.float32))
    optimiser = LazyAdam(weights)
    steps = o.steps
    axes_t, mean_t = torch.from_numpy(axes.astype(np.float32)), torch.from_numpy(mean)
    questions = Bags(tokeniser, QUESTIONS)
    losses = np.zeros(3)
    for step, chosen in zip(range(steps), batches(filled, o.batch, rng)):
        # Warm up over a tenth of the steps, then fall to nothing.
        rate = o.rate * min(1, 10 * (step + 1) / steps, (steps - step) / (0.9 * steps))
        (q_flat, q_owner), (t_flat, t_owner) = (b.take(chosen, splits, o.split, rng) for b in (q_bags, t_bags))
        q_flat, q_owner = prepend(questions, q_flat, q_owner, len(chosen), o.questions, rng)
        used, local = np.unique(np.concatenate([q_flat, t_flat]), return_inverse=True)
        rows = weights[torch.from_numpy(used).long()].requires_grad_()
        starts = np.searchsorted(np.concatenate([q_owner, t_owner + len(chosen)]), np.arange(2 * len(chosen)))
        sums = F.embedding_bag(torch.from_numpy(local), rows, torch.from_numpy(starts), mode="sum")
        sq, st = F.normalize(sums, dim=-1).split(len(chosen))
        student = sq @ st.T / o.temperature
        target = torch.arange(len(chosen))
        contrast = F.cross_entropy(student, target) + F.cross_entropy(student.T, target)
        tq = torch.from_numpy(queries[chosen].astype(np.float32))
        tt = torch.from_numpy(texts[chosen].astype(np.float32))
        wanted = tq @ tt.T / o.temperature
        distil = F.kl_div(F.log_softmax(student, 1), F.softmax(wanted, 1), reduction="batchmean")
        distil = distil + F.kl_div(F.log_softmax(student.T, 1), F.softmax(wanted.T, 1), reduction="batchmean")
        pq, pt = (F.normalize((x - mean_t) @ axes_t, dim=-1) for x in (tq, tt))
        regress = (1 - (sq * pq).sum(-1)).mean() + (1 - (st * pt).sum(-1)).mean()
        loss = o.distil * distil + o.contrast * contrast + o.regress * regress
        loss.backward()
        optimiser.step(torch.from_numpy(used).long(), rows.grad, rate)
        losses += [distil.item(), contrast.item(), regress.item()]
        if (step + 1) % 50 == 0:
            l = losses / 50
            print(f"step {step + 1}/{steps}: distil {l[0]:.3f} contrast {l[1]:.3f} regress {l[2]:.3f}, {time.time() - began:.0f} s",
                  flush=True)
            losses[:] = 0

    rows = weights.numpy().astype(np.float64)
    lengths = np.linalg.norm(rows[: len(words)], axis=1)
    size = tables.write(o.out, words, pieces, rows, o.hash * float(np.median(lengths)))
    print(f"{o.out}: {size} bytes, {time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
