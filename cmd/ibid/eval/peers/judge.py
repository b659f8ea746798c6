"""Judges answers."""

import difflib
import re

# Code, which contains no citations, or a citation with its numbers.
MARK = re.compile(r"`[^`]*`|\[(\d+(?:, ?\d+)*)\]")


def judge(question, answer, every):
    """Returns the figures of one answer and its calls."""
    every = sorted(every, key=lambda c: c["start"])
    calls = [c for c in every if not c["vectors"]]
    writing = [c for c in calls if not c["judge"]]
    written = next((c for c in reversed(writing) if c["plain"]), None)
    gold = {d.split("/", 1)[1] for d in question["documents"]}
    listed = {}
    for s in answer["sources"]:
        listed.setdefault(s["document"], []).append(s["text"])
    right = set(listed) & gold
    quoted = [letters(q) for q in written["quoted"] or []] if written and not answer["refused"] else []
    used = {d for d, texts in listed.items() if any(q in letters(t) for t in texts for q in quoted)}
    numbers = [int(n) for found in MARK.findall(answer["text"]) if found for n in found.split(",")]
    shown = {s["number"] for s in answer["sources"]}
    after, before = bare(answer["text"]), bare(written["plain"]) if written else ""
    changed = not answer["refused"] and after != before
    edits = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if changed else []
    return {
        "id": question["id"],
        "answerable": bool(gold),
        "refused": answer["refused"],
        "first": answer["first"],
        "total": answer["total"],
        "own": answer["total"] - waited(every),
        "calls": len(calls),
        "judges": sum(c["judge"] for c in calls),
        "tokens_in": sum(c["tokens_in"] for c in calls),
        "tokens_out": sum(c["tokens_out"] for c in calls),
        "before": sum(c["start"] < answer["asked"] + answer["first"] for c in calls),
        "holds": not answer["refused"] and holds(answer["text"], question),
        "right": not answer["refused"]
        and (right == gold if question["kind"] == "two-documents" else bool(right))
        and bool(gold),
        "listed": len(listed),
        "wrong": len(listed) - len(right),
        "empty": sum(not holds("\n".join(texts), question) for d, texts in listed.items() if d not in gold),
        "unused": len(listed) - len(used),
        "numbered": any(n is not None for n in shown),
        "marks": len(numbers),
        "nowhere": sum(n not in shown for n in numbers),
        "changed": changed,
        "lost": sum(i2 - i1 for tag, i1, i2, _, _ in edits if tag in ("delete", "replace")),
        "added": sum(j2 - j1 for tag, _, _, j1, j2 in edits if tag in ("insert", "replace")),
        "wrote": before if changed else "",
        "shown": after if changed else "",
    }


def waited(calls):
    """Returns the seconds in which any call was in progress; calls are sorted by start."""
    total = until = 0
    for c in calls:
        total += max(0, c["end"] - max(until, c["start"]))
        until = max(until, c["end"])
    return total


def holds(text, question):
    """Says whether a text has the words of an expected answer."""
    return any(words(a) in words(text) for a in question.get("answers", []))


def letters(text):
    return re.sub(r"[\W_]+", "", text).lower()


def words(text):
    return " ".join(re.sub(r"[\W_]+", " ", text).lower().split())


def bare(text):
    """Returns a text without citations and the space before them, and with single spaces."""
    return re.sub(r" ([.,])", r"\1", " ".join(MARK.sub(lambda m: "" if m[1] else m[0], text).split()))
