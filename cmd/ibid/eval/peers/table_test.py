"""Tests judge and the tables. Run with python3 -m unittest table_test.py."""

import unittest

from judge import bare, judge, waited
from table import brief, spread

QUESTION = {
    "id": "q1",
    "question": "When does it open?",
    "kind": "single",
    "documents": ["library/about.md", "library/faq.md"],
    "answers": ["nine o'clock"],
}


def call(start, end, plain="", quoted=(), **more):
    what = {"start": start, "end": end, "plain": plain, "quoted": list(quoted), "tokens_in": 10, "tokens_out": 2}
    return what | {"judge": False, "vectors": False} | more


def answer(text, *sources, refused=False):
    listed = [{"number": n, "document": d, "text": t} for n, d, t in sources]
    return {"text": text, "sources": listed, "refused": refused, "asked": 0, "first": 0.1, "total": 3.0}


class Judge(unittest.TestCase):
    def judged(self, said, *calls, **question):
        figures = judge(QUESTION | question, said, list(calls))
        return lambda *keys: [figures[key] for key in keys]

    def test_right(self):
        wrote = call(1, 2, "It opens at nine o'clock.", ["It opens at nine o'clock"])
        verdict = call(0, 1, judge=True)
        vectors = call(0, 0.5, vectors=True)
        said = answer("It opens at nine o'clock.[1]", (1, "about.md", "It opens\nat nine o'clock. It closes."))
        of = self.judged(said, wrote, verdict, vectors)
        self.assertEqual(of("holds", "right", "listed", "wrong", "unused"), [True, True, 1, 0, 0])
        self.assertEqual(of("marks", "nowhere", "changed"), [1, 0, False])
        self.assertEqual(of("calls", "judges", "before", "tokens_in", "own"), [2, 1, 1, 20, 1.0])

    def test_wrong(self):
        wrote = call(0, 1, "It opens late. See [the notes](notes.md).", ["It opens late"])
        said = answer(
            "It opens [1][99]. See [the notes] (notes.md).", (1, "a.md", "It opens late."), (2, "b.md", "No.")
        )
        of = self.judged(said, wrote)
        self.assertEqual(of("holds", "right", "listed", "wrong", "unused"), [False, False, 2, 2, 1])
        self.assertEqual(of("marks", "nowhere", "changed", "lost", "added"), [2, 1, True, 5, 1])

    def test_two_documents(self):
        wrote = call(0, 1, "At nine o'clock.", ["At nine o'clock"])
        one, two = (1, "about.md", "At nine o'clock."), (2, "faq.md", "At nine o'clock.")
        for sources, right in (([one], False), ([one, two], True)):
            of = self.judged(answer("At nine o'clock [1].", *sources), wrote, kind="two-documents")
            self.assertEqual(of("right"), [right])

    def test_refused(self):
        of = self.judged(answer("I don't know.", (None, "about.md", "It opens."), refused=True), call(0, 1))
        self.assertEqual(of("right", "listed", "unused", "changed", "numbered"), [False, 1, 1, False, False])

    def test_bare(self):
        self.assertEqual(bare("One [1, 2].\n Two[1][99]. `row[2]`"), "One. Two. `row[2]`")

    def test_waited(self):
        self.assertEqual(waited([call(0, 2), call(1, 3), call(1, 2), call(5, 6)]), 4)

    def test_spread(self):
        self.assertEqual([spread([2.04, 2.0], 1), spread([1, 4, 2], 0)], ["2.0", "2 (1–4)"])

    def test_brief(self):
        said = judge(QUESTION, answer("At nine o'clock [1].", (1, "a.md", "No.")), [call(0, 1, "At nine o'clock.", ["At nine"])])
        refused = judge(QUESTION | {"documents": []}, answer("I don't know.", refused=True), [call(0, 1)])
        runs = [{"answers": [said, refused]}, {"answers": [refused | {"refused": False}, said]}]
        self.assertEqual(brief(runs), ["1", "0", "1 of 1", "1 / 0, 0 / 0", "10", "1.0"])


if __name__ == "__main__":
    unittest.main()
