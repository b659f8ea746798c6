"""forms.py WORK makes 22 forms and protocols with Chromium, LibreOffice and ReportLab in WORK,
reads them with WORK/ibid, and prints a table of how many values follow their own label, and
are under their own heading."""

import json
import os
import re
import subprocess
import sys

from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

work = os.path.abspath(sys.argv[1])
folder = work + "/forms"

berth = {
    "Skipper": {"Surname": "Okafor", "First name": "Ingrid", "Date of birth": "14 March 1979", "Nationality": "Norwegian"},
    "Vessel": {"Name of vessel": "Petrel", "Length over all": "9.2 m", "Engine": "Diesel, 21 kW", "Insurer": "Norland Mutual"},
    "Stay": {
        "Arrival": "2 June 2025",
        "Departure": "9 June 2025",
        "Berth requested": "Pontoon C, outer side",
        "Remarks": "Needs shore power of 16 A and a berth that a wheelchair reaches, if possible close to the office",
    },
}
trial = {
    "Synopsis": {
        "Study Title": "A pilot trial of night splints in rowers with tendon pain over sixteen weeks on land and at sea",
        "Sponsor": "Harrow Clinic",
        "Phase": "I/II",
        "Sample size": "64",
    },
    "Methods": {
        "Design": "Randomised, open, two arms",
        "Eligibility Criteria": "Age of 18 or more\nPain for at least three months\nNo steroid injection this year",
        "Primary Endpoint": "Pain score at week 16",
        "Secondary Endpoints": "Grip strength\nDays without training",
    },
    "Organisation": {
        "Investigator": "Dr. Lena Marsh",
        "Monitor": "Tomas Reyes",
        "Ethics board": "Board of the Northern Region",
        "Funding": "Own means",
    },
}


def items(value, how):
    lines = value.split("\n")
    if how == "list" and len(lines) > 1:
        return "<ul>" + "".join(f"<li>{x}</li>" for x in lines) + "</ul>"
    return "<br>".join(lines) if how == "lines" else "".join(f"<p>{x}</p>" for x in lines) if len(lines) > 1 else value


def rows(border, valign, how):
    def make(heading, values):
        style = f'style="width:100%;border-collapse:collapse" border={border} cellpadding=4'
        cell = f'<td style="vertical-align:{valign}'
        return f"<h2>{heading}</h2><table {style}>" + "".join(
            f'<tr>{cell};width:32%"><b>{k}</b></td>{cell}">{items(v, how)}</td></tr>' for k, v in values.items()) + "</table>"
    return make


def section_rows(heading, values):  # the heading is a row of the table
    return ('<table border=1 cellpadding=4 style="width:100%;border-collapse:collapse">'
            f"<tr><td colspan=2><b>{heading}</b></td></tr>" +
            "".join(f'<tr><td style="width:30%">{k}</td><td>{items(v, "paragraphs")}</td></tr>' for k, v in values.items()) + "</table>")


def boxes(label):  # two fields in a row
    def make(heading, values):
        cells = [label.format(k, items(v, "list")) for k, v in values.items()]
        return (f'<h2>{heading}</h2><table border=1 cellpadding=4 style="width:100%;border-collapse:collapse">' +
                "".join(f"<tr>{a}{b}</tr>" for a, b in zip(cells[::2], cells[1::2])) + "</table>")
    return make


def each(field, around="{}"):
    return lambda heading, values: f"<h2>{heading}</h2>" + around.format(
        "".join(field.format(k, items(v, "lines")) for k, v in values.items()))


def blocks(heading, values):  # the last block has two fields
    fields = [f"<b>{k}</b><br>{v}" for k, v in values.items()]
    return f'<h2>{heading}</h2><div style="display:flex;gap:30px">' + "".join(
        f'<div style="width:28%">{block}</div>' for block in (fields[0], fields[3], "<br>".join(fields[1:3]))) + "</div>"


above = each('<div style="font-size:8pt">{}</div><div>{}</div>')
cells = boxes("<td><b>{}</b></td><td>{}</td>")
small = boxes('<td style="width:50%;vertical-align:top"><span style="font-size:7pt">{}</span><br>{}</td>')
colons = each("<p><b>{}:</b> {}</p>")
column = '<div style="flex:1">{}</div>'
grid = '<div style="display:grid;grid-template-columns:150px 1fr;gap:6px">{}</div>'
forms = [  # the program, the form's layout, the function that makes it, its content, and the markup around a section
    ("Chromium", "ruled table, lists in cells", rows(1, "top", "list"), trial),
    ("Chromium", "ruled table, labels in the middle", rows(1, "middle", "paragraphs"), trial),
    ("Chromium", "headings in rows of the table", section_rows, trial),
    ("Chromium", "four columns, two labels in a row", cells, berth),
    ("Chromium", "boxes with small labels in them", small, berth),
    ("Chromium", "labels with colons", colons, berth),
    ("Chromium", "grid without rules", each("<b>{}</b><span>{}</span>", grid), trial),
    ("Chromium", "small labels above values", above, berth),
    ("Chromium", "definitions", each("<dt><b>{}</b></dt><dd>{}</dd>", "<dl>{}</dl>"), trial),
    ("Chromium", "columns of labels above values", above, berth, column),
    ("Chromium", "grid, values in paragraphs", each("<b>{}</b><div><p>{}</p></div>", grid), trial),
    ("Chromium", "blocks next to each other", blocks, berth),
    ("LibreOffice", "ruled table, lists in cells", rows(1, "top", "list"), trial),
    ("LibreOffice", "table without rules, lists in cells", rows(0, "middle", "list"), trial),
    ("LibreOffice", "headings in rows of the table", section_rows, berth),
    ("LibreOffice", "four columns, two labels in a row", cells, trial),
    ("LibreOffice", "boxes with small labels in them", small, berth),
    ("LibreOffice", "labels with colons", colons, trial),
    ("ReportLab", "grid, labels at the top", [("GRID", (0, 0), (-1, -1), 0.5, colors.black), ("VALIGN", (0, 0), (-1, -1), "TOP")], berth),
    ("ReportLab", "grid, labels in the middle",
     [("GRID", (0, 0), (-1, -1), 0.5, colors.grey), ("VALIGN", (0, 0), (-1, -1), "MIDDLE")], trial),
    ("ReportLab", "lines below rows", [("LINEBELOW", (0, 0), (-1, -1), 0.25, colors.grey), ("VALIGN", (0, 0), (-1, -1), "TOP")], berth),
    ("ReportLab", "no rules", [("VALIGN", (0, 0), (-1, -1), "TOP")], trial),
]


def report(path, style, content):
    styles = getSampleStyleSheet()
    story = [Paragraph("Application", styles["Title"])]
    for heading, values in content.items():
        story += [Paragraph(heading, styles["Heading2"]), Table(
            [[Paragraph(k, styles["BodyText"]), [Paragraph(x, styles["BodyText"]) for x in v.split("\n")]] for k, v in values.items()],
            colWidths=[130, 330], style=style)]
    SimpleDocTemplate(path).build(story)


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


os.makedirs(folder, exist_ok=True)
paths = [f"{folder}/{i + 1:02}.pdf" for i in range(len(forms))]
for path, (program, _, make, content, *around) in zip(paths, forms):
    if program == "ReportLab":
        report(path, make, content)
        continue
    page = path.replace("pdf", "html")
    body = "".join((around or ["{}"])[0].format(make(*section)) for section in content.items())
    with open(page, "w") as f:
        f.write(f"<html><meta charset=utf-8><style>body{{font:11pt Arial}}</style><body><h1>Application</h1>"
                f'<div style="{"display:flex;gap:30px" if around else ""}">{body}</div></body></html>')
    if program == "Chromium":
        run("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer",
            "--print-to-pdf=" + path, "file://" + page)
pages = [p.replace("pdf", "{}") for p, form in zip(paths, forms) if form[0] == "LibreOffice"]
office = ["soffice", "--headless", f"-env:UserInstallation=file://{work}/office", "--convert-to"]
run(*office, "odt:writer8", "--infilter=HTML (StarWriter)", "--outdir", folder, *[p.format("html") for p in pages])
run(*office, "pdf", "--outdir", folder, *[p.format("odt") for p in pages])


def words(text):
    return " " + " ".join(re.findall(r"\w+", text.lower())) + " "


print("| form | made by | values | after their label | under their heading |\n|---|---|---|---|---|")
total = [0, 0, 0]
out = subprocess.run([work + "/ibid"], input="\n".join(paths), capture_output=True, text=True, check=True).stdout
for read, (program, like, _, content, *_) in zip(map(json.loads, out.splitlines()), forms):
    data, sections = read["text"].encode(), {}
    for (heading, start), (_, end) in zip(read["headings"], read["headings"][1:] + [["", None]]):
        sections[heading] = sections.get(heading, "") + words(data[start:end].decode())
    all_values = [(h, words(k), words(v)) for h, values in content.items() for k, v in values.items()]
    counts = [len(all_values), sum(k + v[1:] in words(read["text"]) for _, k, v in all_values),
              sum(v in sections.get(h, "") for h, _, v in all_values)]
    total = [a + b for a, b in zip(total, counts)]
    print(f"| {like} | {program} | {counts[0]} | {counts[1]} | {counts[2]} |")
print(f"| all | | {total[0]} | {total[1]} | {total[2]} |")
