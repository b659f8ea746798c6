"""Shared by the clients for Python: prints a line for each thing that a client showed."""

import gc
import importlib.metadata
import json
import sys
import time
import urllib.request

QUESTION, NEXT = "When is the lantern lit?", "And who puts it out?"
SLOWLY = QUESTION + " Tell me slowly."
root, left = sys.argv[1:3]
url = root + "/v1"


class Told:
    """Reports what a client shows; package is the package with its version."""

    def __init__(self, client, package):
        self.line = {"client": client, "version": importlib.metadata.version(package)}

    def _print(self, what, how, **more):
        print(json.dumps({**self.line, "what": what, "how": how, **more}), flush=True)

    def answer(self, how, text, annotations=None, citations=None, **more):
        """Reports the answer to QUESTION, whole or joined from a stream."""
        if annotations is not None:  # Python counts characters, as the API does
            annotations = [{"url": n["url"], "title": n["title"], "text": text[n["start_index"] : n["end_index"]]} for n in annotations]
        self._print("stream" if ", stream" in how else "answer", how, text=text, annotations=annotations, citations=citations, **more)

    def follow(self, how, text):
        """Reports the answer to NEXT after QUESTION."""
        self._print("follow-up", how, text=text)

    def json(self, how, when):
        assert when == "at dusk", when
        self._print("JSON", how)

    def stop(self, how, leave):
        """Runs leave, which reads part of the answer to SLOWLY and stops it, and checks that the model's stream is closed."""
        before = closed()
        leave()
        for _ in range(100):
            if closed() > before:
                return self._print("stop", how)
            time.sleep(0.1)
        raise SystemExit(f"{self.line['client']}, {how}: the model continues after a stop")


def closed():
    return int(urllib.request.urlopen(left).read())


def first_of(stream):
    """Reads the first piece with words, and drops the stream; some frameworks close a stream when it is collected."""
    for piece in stream:
        if piece:
            break
    stream.close()
    del stream
    gc.collect()
