"""Reads the files named on the lines of standard input with markitdown, pymupdf, poppler
or a reader for their format, and prints a JSON line with the text of each."""

import json
import subprocess
import sys

import pymupdf
from markitdown import MarkItDown

pymupdf.TOOLS.mupdf_display_errors(False)
converter = MarkItDown()


def output(*command):
    return subprocess.run(command, capture_output=True, timeout=60).stdout.decode(errors="replace")


def xls(path):
    import xlrd

    book = xlrd.open_workbook(path, formatting_info=True)
    for sheet in filter(lambda s: s.nrows, book.sheets()):
        yield sheet.name
        for cell in (c for row in sheet.get_rows() for c in row):
            if cell.ctype == xlrd.XL_CELL_DATE:
                yield str(xlrd.xldate_as_datetime(cell.value, book.datemode)).removesuffix(" 00:00:00")
            elif cell.ctype == xlrd.XL_CELL_ERROR:
                yield xlrd.error_text_from_code[cell.value]
            else:
                yield bool(cell.value) if cell.ctype == xlrd.XL_CELL_BOOLEAN else cell.value
        for note in sheet.cell_note_map.values():
            yield note.text


def xlsb(path):
    import pyxlsb

    with pyxlsb.open_workbook(path) as book:
        for name in book.sheets:
            with book.get_sheet(name) as sheet:
                yield from [name, *(c.v for row in sheet.rows(sparse=True) for c in row)]


def msg(path):
    import extract_msg

    m = extract_msg.openMsg(path)
    yield from [m.subject, m.sender, m.to, m.cc, m.body]


def ics(path):
    import icalendar

    for event in icalendar.Calendar.from_ical(open(path, "rb").read()).walk():
        for name in "SUMMARY DTSTART DTEND DUE LOCATION DESCRIPTION ORGANIZER ATTENDEE STATUS CATEGORIES".split():
            for value in event.get(name) if isinstance(event.get(name), list) else [event.get(name)]:
                yield str(getattr(value, "dt", value or "")).removeprefix("mailto:")


def rtf(path):
    from striprtf.striprtf import rtf_to_text

    yield rtf_to_text(open(path, encoding="latin1").read(), errors="ignore")


def doc(path):
    yield output("antiword", "-w", "0", "-m", "UTF-8.txt", path).replace("[pic]", "")


own = {f.__name__: f for f in (xls, xlsb, msg, ics, rtf, doc)}


def text_of(tool, path):
    if tool == "markitdown":
        return converter.convert(path).text_content
    if tool == "pymupdf":
        return "\n".join(page.get_text() for page in pymupdf.open(path))
    if tool == "poppler":
        return output("pdftotext", path, "-")
    values = own[path.rsplit(".", 1)[1].lower()](path)
    return "\n".join("%.11g" % v if isinstance(v, float) else str(v) for v in values if v is not None)


for path in sys.stdin.read().splitlines():
    try:
        text = text_of(sys.argv[1], path)
    except Exception as e:  # the reader failed
        print(path, repr(e)[:200], file=sys.stderr)
        text = ""
    print(json.dumps({"path": path, "text": text}), flush=True)
