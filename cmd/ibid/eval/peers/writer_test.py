"""Tests the writer. Run with python3 -m unittest writer_test.py."""

import types
import unittest

from writer import Prompt, Question, Writer, brackets

ASKED = "When does the office open?"
OFFICE = "The office opens at nine o'clock. It closes at five."
BOATS = "Boats lie ashore in winter."
FIXED = {"misled": 1, "alike": False, "seed": ""}


def writer(wrong=1):
    return Writer([{"question": ASKED, "answers": ["nine o'clock"]}], types.SimpleNamespace(wrong=wrong, **FIXED))


def evidence(label, text):
    return f"<evidence ab12>\n[{label}] About › Hours\n{text}\n</evidence ab12>\n\n"


class Prompts(unittest.TestCase):
    def test_every_tool(self):
        """The prompts of every tool give the same passages and question."""
        one, two = f"<document id=1>\n{OFFICE}\n</document>\n", f"<document id=2>\n{BOATS}\n</document>\n"
        asked, query = f"\nQuestion: {ASKED}", f"Query: {ASKED}\nAnswer: "
        turn = "Now it's your turn. "
        for name, system, user, labels, draft, mark in [
            ("ibid", "", evidence(3, OFFICE) + evidence(4, BOATS) + asked, [3, 4], "", "S.[1]"),
            ("ibid refines", "", f"<answer ab12>\nAt ten.[1]\n</answer ab12>\n\n{evidence(3, OFFICE)}{asked}", [3], "At ten.[1]", "S.[1]"),
            ("langchain", 'Use "【ID_NUMBER†source】".', one + two + asked, [1, 2], "", "S 【1†source】."),
            ("langchain refines", 'Use "【ID_NUMBER†source】".', f"<answer>\nAt ten.\n</answer>\n\n{one}{asked}", [1], "At ten.",
             "S 【1†source】."),
            ("haystack", "Answer.", one + asked, [1], "", "S [1]."),
            ("llamaindex cites", "", "Source 1:\nThe sky is red.\nQuery: When?\nAnswer: [2].\n" + turn +
             f"Below are several numbered sources of information:\n------\nSource 1:\n{OFFICE}\n\nSource 2:\n{BOATS}\n\n------\n" + query,
             [1, 2], "", "S [1]."),
            ("llamaindex cites and refines", "", turn + "We have provided an existing answer: At ten [1].Below are several numbered "
             f"sources of information. Begin refining!\n------\nSource 5:\n{OFFICE}\n\n------\n" + query, [5], "At ten [1].", "S [1]."),
            ("llamaindex", "", f"Context information is below.\n---------------------\n{OFFICE}\n---------------------\n" + query,
             [0], "", ""),
            ("llamaindex refines", "", f"\nNew Context: {OFFICE}\nQuery: {ASKED}\nOriginal Answer: At ten.\nNew Answer: ",
             [0], "At ten.", ""),
            ("txtai", "", f"question: {ASKED}\ncontext: {OFFICE}\n\n{BOATS}", [0], "", ""),
        ]:  # fmt: skip
            with self.subTest(name):
                p = Prompt(system, user)
                self.assertEqual((p.question, p.draft, p.judge), (ASKED, draft, False))
                self.assertEqual([label for label, _ in p.passages], labels)
                self.assertTrue(p.passages[0][1].strip().startswith(OFFICE))
                self.assertEqual(p.cite("S", [[1]]) if p.cite else "", mark)
        self.assertEqual(Prompt("", "Give this chat a title.").question, "")

    def test_brackets(self):
        self.assertEqual(brackets([[1], [99], [2, 3]]), "[1][99][2, 3]")


class Replies(unittest.TestCase):
    def ask(self, w, draft, *texts):
        before = f"<answer ab12>\n{draft}\n</answer ab12>\n\n" if draft else ""
        return w.reply(Prompt("", before + "".join(evidence(i + 1, t) for i, t in enumerate(texts)) + f"\nQuestion: {ASKED}"))

    def test_drafts(self):
        w = writer()
        first, record = self.ask(w, "", BOATS, OFFICE)
        self.assertTrue(first.startswith("The office opens at nine o'clock.[2"), first)
        self.assertTrue(record["plain"].startswith("The office opens at nine o'clock."))
        self.assertNotIn("2", record["plain"])
        self.assertEqual(self.ask(w, "", BOATS)[0], "NO ANSWER")
        self.assertEqual(self.ask(w, first, BOATS)[0], "NO CHANGE")
        more = self.ask(w, first, "In winter the office opens at nine o'clock, too.")[0]
        self.assertTrue(more.startswith(first + " In winter"), more)

    def test_structured(self):
        user = f"query_satisfied Context information is below.\n{'-' * 21}\n{BOATS}\n{'-' * 21}\nQuery: {ASKED}"
        self.assertEqual(writer().reply(Prompt("", user))[0], '{"query_satisfied":false,"answer":"I don\'t know."}')

    def test_statements(self):
        """A statement belongs in the answer if it holds one, and the evidence does."""
        system = "You check a statement before a reader sees it. Reply with one word: yes or no."
        for before, statement, want in [
            ("", "The office opens at nine o'clock.", "yes"),
            ("", BOATS, "no"),
            (evidence(1, OFFICE), "It opens at nine o'clock.", "yes"),
            (evidence(1, BOATS), "It opens at nine o'clock.", "no"),
        ]:
            user = f"{before}Question: {ASKED}\nStatement: {statement}\n\nDoes the statement answer?"
            got, record = writer().reply(Prompt(system, user))
            self.assertEqual((got, record["judge"], record["tool"]), (want, True, "ibid"), statement)
        self.assertEqual(writer(wrong=10).reply(Prompt(system, f"Question: {ASKED}\nStatement: {BOATS}"))[0], "yes")

    def test_errors(self):
        """The model errs at the stated rate, whatever surrounds the sentence."""
        questions = [Question(f"What is fact {'x' * (i % 50)}{'y' * (i // 50)}?", [], writer().errors) for i in range(3000)]
        share = sum(q.verdict(BOATS) for q in questions) / len(questions)
        self.assertTrue(0.07 < share < 0.13, share)
        self.assertTrue(all(q.verdict(BOATS) == q.verdict(f"  {BOATS}\n") for q in questions))


if __name__ == "__main__":
    unittest.main()
