"""Checks that all clients got the same text and sources, and that the table of web/CLIENTS.md
says what they showed. The current table is written to the file in the argument."""

import json
import pathlib
import re
import sys

lines = [json.loads(line) for line in sys.stdin if line.startswith("{")]
first = lines[0]
sources = first["citations"]
wrong, clients = [], {}


def plain(text):
    """Returns the text without links and without the list of sources."""
    return re.sub(r"\[\[(\d+)\]\]\([^)\s]+\)", r"[\1]", text).split("\n\n- [1]")[0]


def shown(line):
    """Checks one text, and returns how it shows its sources."""
    name, text = f"{line['client']}, {line['what']}, {line['how']}", line["text"]
    if "sources" in line:  # MCP has no links in the text
        if text != plain(first["text"]) or len(set(line["sources"])) != len(sources):
            wrong.append(f"{name}: {len(line['sources'])} sources under {text!r}")
        return ["structured content, links to resources"]
    links = re.findall(r"\[\[(\d+)\]\]\(([^)\s]+)\)", text)
    if line["what"] == "follow-up":
        if plain(text) != "🌅 The keeper puts out the lantern at dawn.[1]" or len(links) != 1 or "keeper.md" not in links[0][1]:
            wrong.append(f"{name}: {text!r}")
        return ["links in the text"]
    notes, citations = line.get("annotations"), line.get("citations")
    if text != first["text"]:
        wrong.append(f"{name}: another text: {text!r}")
    if {u for _, u in links} != set(sources) or len(sources) < 2:
        wrong.append(f"{name}: the links lead to {links}, the sources are {sources}")
    if citations is not None and citations != sources:
        wrong.append(f"{name}: other citations: {citations}")
    if notes is not None:
        if [n["url"] for n in notes] != [u for _, u in links]:
            wrong.append(f"{name}: annotations {notes} for the links {links}")
        wrong.extend(f"{name}: the annotation {n} is about other words"
                     for n, (number, u) in zip(notes, links) if n["text"] != f"[[{number}]]({u})")
    return ["links in the text"] + ["`annotations`"] * (notes is not None) + [line.get("as", "`citations`")] * (citations is not None)


WHATS = ["answer", "stream", "follow-up", "JSON", "stop"]
for line in lines:
    row = clients.setdefault(line["client"], {"version": line["version"], "sources": [], **{what: [] for what in WHATS}})
    ways = shown(line) if "text" in line else [line["sources"]] if "sources" in line else []
    for cell, value in [(line["what"], line["how"].replace(", stream", "")), *(("sources", way) for way in ways)]:
        if value not in row[cell]:
            row[cell].append(value)

table = ["| client | version | answers | streams | follows up | JSON by a schema | stops | sources |", "|---|---|---|---|---|---|---|---|"]
for client, row in clients.items():
    table.append("| " + " | ".join([client, row["version"], *(", ".join(row[cell]) or "–" for cell in [*WHATS, "sources"])]) + " |")
pathlib.Path(sys.argv[1]).write_text("\n".join(table) + "\n")


def claims(rows):
    return [re.sub(r"^(\| [^|]+ \|) [^|]+ \|", r"\1", row) for row in rows]


page = pathlib.Path("../../web/CLIENTS.md").read_text()
claimed = page[page.index("| client |") :].split("\n\n")[0].splitlines()
if claims(claimed) != claims(table):
    wrong.append(f"the table of web/CLIENTS.md is not what this run shows: {sys.argv[1]}")
elif claimed != table:
    print(f"the table of web/CLIENTS.md has other versions than {sys.argv[1]}")
texts = [line for line in lines if "text" in line]
print("\n".join(table))
print(f"figure: {len(lines)} things shown by {len(clients)} clients; {len(texts)} texts, {len(sources or [])} sources")
sys.exit("\n".join(wrong) or 0)
