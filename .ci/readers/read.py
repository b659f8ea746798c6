"""Reads the files that are named on the lines of standard input by markitdown, pymupdf
or poppler, and prints a JSON line with the text of each."""

import json
import subprocess
import sys

tool = sys.argv[1]
if tool == "markitdown":
    from markitdown import MarkItDown

    converter = MarkItDown()
elif tool == "pymupdf":
    import pymupdf

    pymupdf.TOOLS.mupdf_display_errors(False)
for path in sys.stdin.read().splitlines():
    try:
        if tool == "markitdown":
            text = converter.convert(path).text_content
        elif tool == "pymupdf":
            text = "\n".join(page.get_text() for page in pymupdf.open(path))
        else:
            text = subprocess.run(["pdftotext", path, "-"], capture_output=True, timeout=60).stdout.decode(errors="replace")
    except Exception as e:  # it is not read
        print(path, repr(e)[:200], file=sys.stderr)
        text = ""
    print(json.dumps({"path": path, "text": text}), flush=True)
