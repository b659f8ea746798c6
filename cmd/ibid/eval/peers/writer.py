"""The scripted model that Ibid and its peers are compared with: it quotes sentences
that contain an answer, and some that do not. Its replies follow from the prompt alone.

The model's server sends it a prompt per line, a JSON object with system and user, and
gets a line with the text and the record of the call."""

import argparse
import json
import re
import sys

MOST_PARTS = 4  # statements of an answer
LONGEST = 60  # words of a statement
SHORT = 5  # letters of an answer that may be found anywhere
OUT_OF_RANGE = 99  # a label that no passage has

BLOCKS = re.compile(r"\n\s*\n|\n\s*[-*|#]|\n(?:[^\n]*,){3}|\n[^\n]*\|", re.ASCII)
STOPS = re.compile(r"[.!?]\s+", re.ASCII)
COMMON = """what when where which does have with from that this there their they your much many long
need must about into will would could should school""".split()


def fold(text):
    return " ".join(text.split()).lower()


def words(text):
    """Returns the words of a text in lower case, separated by single spaces."""
    return " ".join("".join(c if c.isalpha() or c.isdecimal() else " " for c in text.lower()).split())


def stems(text):
    """Returns the first five letters of the longer words of a text."""
    return {w[:5] for w in words(text).split() if len(w) > 3 and w not in COMMON}


def hashed(text):
    """Returns FNV-1a of a text, without the weakest bits."""
    h = 0xCBF29CE484222325
    for b in text.encode():
        h = (h ^ b) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h >> 7


def split_at(pattern, text):
    """Splits a text after the first character of each match, and drops nothing."""
    ends = [m.start() + 1 for m in pattern.finditer(text)]
    return [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)])]


def split(text):
    """Splits a text into sentences and lines of lists and tables."""
    for block in split_at(BLOCKS, text):
        for sentence in split_at(STOPS, block):
            fields = sentence.strip("#*-|>. \n\t").split()[:LONGEST]
            if len(fields) > 2:
                yield " ".join(fields).rstrip(".")


def nearest(question, sentences):
    """Returns the first sentence with the most words of the question, and their number."""
    wanted, best, most = stems(question), "", 0
    for sentence in sentences:
        n = len(stems(sentence) & wanted)
        if n > most or not best:
            best, most = sentence, n
    return best, most


class Question:
    """A question with its answers. What the model errs about depends on the question and
    the sentence only, so it is the same for every tool."""

    def __init__(self, text, answers, errors):
        self.text, self.answers, self.errors = text, [words(a) for a in answers], errors

    def holding(self, sentences):
        """Returns the sentence that contains an answer, or None. Short answers such as
        "1961" occur elsewhere too, so they count only in a passage that shares a word
        with the question."""
        shared = nearest(self.text, sentences)[1]
        answers = [a for a in self.answers if shared > 0 or len(a.encode()) > SHORT]
        found = [s for s in sentences if any(f" {a} " in f" {words(s)} " for a in answers)]
        return nearest(self.text, found)[0] if found else None

    def choose(self, text):
        """Returns the sentence of a passage that the model quotes: one with the answer, or
        one that misleads it; empty if there is none."""
        sentences = list(split(text))
        answer = self.holding(sentences)
        if answer is not None:
            return answer
        near, score = nearest(self.text, sentences)
        misled = hashed(self.errors.seed + self.text + fold(near)) % 6 < self.errors.misled
        return near if score >= 2 and misled else ""

    def errs(self, what):
        return hashed(self.errors.seed + what) % 10 < self.errors.wrong

    def verdict(self, text):
        sentences = list(split(text))
        answer = self.holding(sentences)
        sentence = nearest(self.text, sentences)[0] if answer is None else answer
        return (answer is not None) != self.errs("verdict" + self.text + fold(sentence))

    def belongs(self, prompt):
        """The verdict on a statement: whether it holds an answer, as one of the passages
        does, if there are any."""

        def holds(text):
            return self.holding(list(split(text))) is not None

        right = holds(prompt.statement) and (not prompt.passages or any(holds(text) for _, text in prompt.passages))
        time = "second" if prompt.again and not self.errors.alike else "first"
        return right != self.errs(time + self.text + fold(prompt.statement))

    def extend(self, draft, passages):
        """Returns the parts of an answer: text without full stop, labels by pair of
        brackets, and whether a passage contains it."""
        parts = list(draft)
        for label, text in passages:
            sentence = self.choose(text)
            if sentence and len(parts) < MOST_PARTS and all(fold(p[0]) != fold(sentence) for p in parts):
                parts.append((sentence, [[label]], True))
        if draft or not parts:
            return parts
        # What real models do to citations, each with a fifth of the questions.
        text, marks, found = parts[-1]
        own, first = marks[0][0], passages[0][0]
        match hashed(self.text) % 5:
            case 0:  # a label that no passage has
                parts[-1] = (text, [*marks, [OUT_OF_RANGE]], found)
            case 1:  # the same label twice
                parts[-1] = (text, [*marks, [own]], found)
            case 2 if first != own:  # two labels in one pair of brackets
                parts[-1] = (text, [[first, own]], found)
            case 3:  # brackets that are not citations
                parts.append(("In the list this is `row[2]`, as [the notes](notes.md) have it", [], False))
        return parts


class Writer:
    def __init__(self, questions, errors):
        self.questions = {fold(q["question"]): q.get("answers", []) for q in questions}
        self.errors = errors
        self.written = {}  # parts by the text, to recognise drafts

    def reply(self, p):
        """Returns a reply, and the record of the call."""
        record = {"tool": p.tool, "judge": p.judge, "plain": "", "quoted": [], "marks": 0, "wrong": 0}
        q = Question(p.question, self.questions.get(fold(p.question), []), self.errors)
        if p.statement:
            return "yes" if q.belongs(p) else "no", record
        if p.judge:
            kept = p.passages and q.verdict(p.passages[0][1])
            return "yes" if kept else "no\nIt does not say what is asked for.", record
        draft = self.written.get(fold(p.draft), [])
        if not draft and p.draft and p.draft != p.nothing:
            draft = [(p.draft.removesuffix("."), [], False)]
        parts = q.extend(draft, p.passages)
        if p.structured:
            return self.structured(q, p, parts, record), record
        if len(parts) <= len(draft):
            if not draft:
                return p.nothing, record
            if p.unchanged:
                return p.unchanged, record
        return self.write(parts, p, record), record

    def structured(self, q, p, parts, record):
        """Replies as LlamaIndex's structured_answer_filtering requires."""
        text = self.write(parts, p, record) if parts else p.nothing
        satisfied = any(q.verdict(passage) for _, passage in p.passages)
        if not satisfied:
            record |= {"plain": "", "quoted": []}
        text = json.dumps({"query_satisfied": satisfied, "answer": text}, ensure_ascii=False, separators=(",", ":"))
        return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")  # as servers in Go do

    def write(self, parts, p, record):
        """Returns the text of an answer and remembers it as a possible draft."""
        statements = []
        for text, marks, found in parts:
            if found:
                record["quoted"].append(text)
            if marks and p.cite:
                labels = sum(marks, [])
                record["marks"] += len(labels)
                record["wrong"] += labels.count(OUT_OF_RANGE)
                statements.append(p.cite(text, marks))
            else:
                statements.append(text + ".")
        record["plain"] = " ".join(text + "." for text, _, _ in parts)
        whole = " ".join(statements)
        self.written[fold(whole)] = parts
        return whole


def brackets(marks):
    return "".join(f"[{', '.join(map(str, labels))}]" for labels in marks)


def cite_brackets(text, marks):
    return f"{text} {brackets(marks)}."


def cite_ibid(text, marks):
    return f"{text}.{brackets(marks)}"


def cite_langchain(text, marks):
    return text + "".join(f" 【{label}†source】" for label in sum(marks, [])) + "."


DOCUMENTS = re.compile(r"<document id=(\d+)>\n(.*?)\n</document>", re.DOTALL)
DRAFTS = re.compile(r"<answer>\n(.*?)\n</answer>", re.DOTALL)
ASKED = re.compile(r"^(?:Question|Query|question): (.*)$", re.MULTILINE)
STATED = re.compile(r"^Statement: (.*)$", re.MULTILINE)
SOURCE = re.compile(r"^Source (\d+):\n", re.MULTILINE)
DONT_KNOW = "I don't know."

# How a tool's prompts are recognised and read: the tool, texts that they contain, passages,
# the draft, how it cites, its replies without an answer and without a change; without the
# latter the draft is repeated. They are those of answer/prompt (the last one, too),
# langchain_peer.py, haystack_peer.py, LlamaIndex's CitationQueryEngine and Refine, and
# txtai. The first match counts.
LAYOUTS = [
    ("ibid", ["<evidence "], re.compile(r"<evidence \w+>\n\[(\d+)\] [^\n]*\n(.*?)\n</evidence \w+>", re.DOTALL),
     re.compile(r"<answer \w+>\n(.*?)\n</answer \w+>", re.DOTALL), cite_ibid, "NO ANSWER", "NO CHANGE"),
    ("langchain", ["<document id=", "†source】"], DOCUMENTS, DRAFTS, cite_langchain, DONT_KNOW, ""),
    ("haystack", ["<document id="], DOCUMENTS, DRAFTS, cite_brackets, DONT_KNOW, ""),
    ("llamaindex", ["numbered sources of information"], None,
     re.compile(r"an existing answer: (.*)Below are several numbered sources", re.DOTALL), cite_brackets, DONT_KNOW, ""),
    ("llamaindex", ["\nNew Context: "], re.compile(r"\nNew Context: ()(.*)\nQuery: ", re.DOTALL),
     re.compile(r"\nOriginal Answer: (.*)\nNew Answer:", re.DOTALL), None, DONT_KNOW, ""),
    ("llamaindex", ["Context information is below."], re.compile(r"-{21}\n()(.*)\n-{21}\n", re.DOTALL), DRAFTS, None,
     DONT_KNOW, ""),
    ("txtai", ["question: ", "\ncontext: "], re.compile(r"question: [^\n]*\ncontext: ()(.*)\Z", re.DOTALL), DRAFTS, None,
     DONT_KNOW, ""),
    ("ibid", ["You check a statement"], DOCUMENTS, DRAFTS, None, "", ""),  # and no evidence
]  # fmt: skip


class Prompt:
    """A tool's request, independent of its wording and layout. An unknown one has no question."""

    def __init__(self, system, user):
        both = system + user
        unknown = ("", [], DOCUMENTS, DRAFTS, None, "", "")
        layout = next((l for l in LAYOUTS if all(s in both for s in l[1])), unknown)
        self.tool, _, passages, drafts, self.cite, self.nothing, self.unchanged = layout
        self.judge, self.statement, self.again = self.tool == "ibid" and system.startswith("You decide whether"), "", False
        self.question, self.draft, self.passages, self.structured = "", "", [], False
        if not self.tool:
            return
        stated = STATED.search(user)
        if stated and system.startswith("You check a statement"):
            self.judge, self.statement, self.again = True, stated[1], "of use to a reader" in user
        self.structured = self.cite is None and "query_satisfied" in both
        asked = ASKED.findall(user)
        self.question = asked[-1] if asked else ""
        draft = drafts.search(user)
        self.draft = draft[1] if draft else ""
        found = passages.findall(user) if passages else sources(user)
        self.passages = [(int(label or 0), text) for label, text in found]


def sources(user):
    """Returns the passages of a CitationQueryEngine, after its example."""
    text = user.partition("Now it's your turn.")[2]
    found = list(SOURCE.finditer(text))
    ends = [m.start() for m in found[1:]] + [text.rfind("\n------\n")]
    return [(m[1], text[m.end() : end]) for m, end in zip(found, ends)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-questions", required=True, help="file of questions with their answers, one JSON object per line")
    parser.add_argument("-wrong", type=int, default=1, help="wrong verdicts in ten")
    parser.add_argument("-misled", type=int, default=1, help="of six off-topic sentences that resemble the question, those quoted")
    parser.add_argument("-alike", action="store_true", help="a verdict on a statement is as wrong when asked for again")
    parser.add_argument("-seed", default="", help="changes what it errs about")
    args = parser.parse_args()
    with open(args.questions, encoding="utf-8") as lines:
        writer = Writer([json.loads(line) for line in lines if line.strip()], args)
    for line in sys.stdin:
        prompt = json.loads(line)
        text, record = writer.reply(Prompt(prompt["system"], prompt["user"]))
        print(json.dumps({"text": text, "record": record}), flush=True)


if __name__ == "__main__":
    main()
