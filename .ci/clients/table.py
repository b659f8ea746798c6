"""Checks that all clients got the same text and sources."""

import json
import re
import sys

lines = [json.loads(line) for line in sys.stdin if line.startswith("{")]
first = lines[0]
sources = first["citations"]
wrong = []


def plain(text):
    """Returns the text without links and without the list of sources."""
    return re.sub(r"\[\[(\d+)\]\]\([^)\s]+\)", r"[\1]", text).split("\n\n- [1]")[0]


print(f"{'client':<24}{'how':<15}{'text':>6}{'links':>7}{'annotations':>13}{'citations':>11}")
for line in lines:
    text = line["text"]
    if "sources" in line:  # MCP has no links in the text
        if text != plain(first["text"]) or len(set(line["sources"])) != len(sources):
            wrong.append(f"{line['client']}, {line['how']}: {len(line['sources'])} sources under {text!r}")
        print(f"{line['client']:<24}{line['how']:<15}{len(text):>6}{'-':>7}{'-':>13}{len(line['sources']):>11}")
        continue
    links = re.findall(r"\[\[(\d+)\]\]\(([^)\s]+)\)", text)
    notes, citations = line.get("annotations"), line.get("citations")
    name = f"{line['client']}, {line['how']}"
    if text != first["text"]:
        wrong.append(f"{name}: another text: {text!r}")
    if {u for _, u in links} != set(sources) or len(sources) < 2:
        wrong.append(f"{name}: the links lead to {links}, the sources are {sources}")
    if citations is not None and citations != sources:
        wrong.append(f"{name}: other citations: {citations}")
    if notes is not None:
        if [n["url"] for n in notes] != [u for _, u in links]:
            wrong.append(f"{name}: annotations {notes} for the links {links}")
        wrong += [f"{name}: the annotation {n} is about other words" for n, (number, u) in zip(notes, links) if n["text"] != f"[[{number}]]({u})"]
    shown = ["-" if x is None else str(len({n["url"] for n in x})) for x in (notes,)]
    print(f"{line['client']:<24}{line['how']:<15}{len(text):>6}{len({u for _, u in links}):>7}{shown[0]:>13}{'-' if citations is None else len(citations):>11}")
if len(lines) != 39:
    wrong.append(f"{len(lines)} lines of 39")
print(f"figure: {len(lines)} ways of {len({line['client'] for line in lines})} clients, {len({plain(line['text']) for line in lines})} text, {len(sources or [])} sources")
sys.exit("\n".join(wrong) or 0)
