"""The protocol between run.py and the scripts of the peers.

    NAME_peer.py [MODE] ingest FOLDER STORE
    NAME_peer.py [MODE] ask STORE      questions on stdin, one JSON text per line

Each piece of an answer is a line {"text": …} on stdout, written at once; the end
is a line {"sources": [{"number", "document", "text"}]}. The number is null if
the reader sees none.
"""

import json
import os
import sys
from pathlib import Path

TOP_K = int(os.environ.get("TOP_K", "12"))
MODEL = "scripted"
BASE_URL = os.environ["OPENAI_BASE_URL"]
UNKNOWN = "I don't know."


def files(folder):
    """Returns the files of a folder with their relative paths."""
    return [(path, path.relative_to(folder).as_posix()) for path in sorted(Path(folder).rglob("*")) if path.is_file()]


def source(number, document, text):
    return {"number": number, "document": document, "text": text}


def converse(ask):
    """Answers the questions on stdin with ask(question, say), which calls say with
    pieces of the answer and returns its sources."""
    out = sys.stdout
    sys.stdout = sys.stderr  # libraries print too

    def line(**what):
        out.write(json.dumps(what) + "\n")
        out.flush()

    for question in sys.stdin:
        line(sources=ask(json.loads(question), lambda text: line(text=text)))
