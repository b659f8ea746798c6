"""Judges answers, and makes the table."""

import difflib
import re
import statistics

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
        "before": before if changed else "",
        "after": after if changed else "",
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


def spread(values, digits):
    """Formats the median and range of the runs."""
    middle, low, high = (f"{v:.{digits}f}" for v in (statistics.median(values), min(values), max(values)))
    return middle if low == high else f"{middle} ({low}–{high})"


def rows(asked):
    """Returns the rows: name, digits, function of a run, and the feature that it needs."""
    answerable = sum(bool(q["documents"]) for q in asked)

    def each(summary, key):
        return lambda run: summary([a[key] for a in run["answers"]])

    def refused(answerable):
        return lambda run: sum(a["refused"] for a in run["answers"] if a["answerable"] == answerable)

    mean, median = statistics.mean, statistics.median
    return [
        ("Reading the folder in, s", 1, lambda run: run["ingest"], None),
        ("… work of the processors, s", 1, lambda run: run["ingest_work"], None),
        ("… requests for vectors", 0, lambda run: run["vector_calls"], None),
        ("… most memory, MB", 0, lambda run: run["ingest_memory"] / 1e6, None),
        ("From the start of the program to the end of its first answer, s", 1, lambda run: run["start"], None),
        ("… work of the processors, s", 1, lambda run: run["start_work"], None),
        ("First word of an answer, s", 2, each(median, "first"), None),
        ("Whole answer, s", 2, each(median, "total"), None),
        ("… of it not waiting for the model, s", 2, each(median, "own"), None),
        ("… work of the processors, s", 2, lambda run: run["work"], None),
        ("Calls to the model, a question", 1, each(mean, "calls"), None),
        ("… of them to judge passages or statements", 1, each(mean, "judges"), "gate"),
        ("Tokens in, a question", 0, each(mean, "tokens_in"), None),
        ("Tokens out, a question", 0, each(mean, "tokens_out"), None),
        ("Most memory while answering, MB", 0, lambda run: run["memory"] / 1e6, None),
        ("Installed, MB", 0, lambda run: run["size"] / 1e6, None),
        (f"Answers with the expected words, of {answerable}", 0, each(sum, "holds"), None),
        (f"Answers with the right sources, of {answerable}", 0, each(sum, "right"), None),
        ("Documents listed as sources", 0, each(sum, "listed"), None),
        ("… that do not hold the answer", 0, each(sum, "wrong"), None),
        ("… of these, whose passages do not have its words either", 0, each(sum, "empty"), None),
        ("… that nothing in the answer comes from", 0, each(sum, "unused"), None),
        (f"Refused, of {len(asked) - answerable} questions without an answer", 0, refused(False), None),
        (f"Refused, of {answerable} with one", 0, refused(True), None),
        ("Numbers in the answers", 0, each(sum, "marks"), "citations"),
        ("… that lead nowhere", 0, each(sum, "nowhere"), "citations"),
        ("Answers that differ from what the model wrote, marks aside", 0, each(sum, "changed"), None),
        ("… characters lost", 0, each(sum, "lost"), None),
        ("… characters added", 0, each(sum, "added"), None),
    ]


def table(results, asked):
    """Yields the cells of each row of the table."""
    systems = [system for system, _ in results]
    runs = len(results[0][1])
    yield [f"{len(asked)} questions, median of {runs} runs (range)", *(system.name for system in systems)]
    yield ["---"] * (len(systems) + 1)
    for name, digits, figure, feature in rows(asked):
        cells = (
            system.instead.get(feature) or spread([figure(run) for run in runs], digits) for system, runs in results
        )
        yield [name, *cells]
