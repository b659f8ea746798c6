"""What the scripts of the peers share: how run.py speaks to them.

    NAME_peer.py [MODE] ingest FOLDER STORE
    NAME_peer.py [MODE] ask STORE      questions on stdin, one JSON text a line

Each piece of an answer is a line {"text": …} on stdout, as soon as it is there;
its end is a line {"sources": [{"number", "document", "text"}]}. A number is
null where the reader is shown none.
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
    """The files of a folder, with the paths by which the questions name them."""
    return [(path, path.relative_to(folder).as_posix()) for path in sorted(Path(folder).rglob("*")) if path.is_file()]


def source(number, document, text):
    return {"number": number, "document": document, "text": text}


def converse(ask):
    """Answers the questions on stdin by ask(question, say), which says the
    pieces of the answer and gives its sources."""
    out = sys.stdout
    sys.stdout = sys.stderr  # what a library prints is no answer

    def line(**what):
        out.write(json.dumps(what) + "\n")
        out.flush()

    for question in sys.stdin:
        line(sources=ask(json.loads(question), lambda text: line(text=text)))
