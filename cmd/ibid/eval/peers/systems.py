"""How Ibid and its peers are started, asked and measured."""

import contextlib
import http.client
import json
import os
import queue
import subprocess
import threading
import time
import urllib.parse
from pathlib import Path

HERE = Path(__file__).parent
REFUSALS = ("I don't know.", "Empty Response")


class Watched:
    """A process with the peak memory of its tree, sampled every 20 ms."""

    def __init__(self, command, env, log):
        self.peak = 0
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=env
        )
        self.lines = queue.SimpleQueue()
        threading.Thread(target=self.read, daemon=True).start()
        threading.Thread(target=self.watch, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put((time.monotonic(), line))
        self.lines.put((time.monotonic(), None))

    def watch(self):
        while self.process.poll() is None:
            self.peak = max(self.peak, memory(self.process.pid))
            time.sleep(0.02)

    def line(self):
        """Returns the time and text of the next line of output."""
        at, line = self.lines.get(timeout=600)
        if line is None:
            raise RuntimeError(f"{self.process.args} ended with exit code {self.process.wait()}")
        return at, line

    def say(self, what):
        self.process.stdin.write(what)
        self.process.stdin.flush()

    def spent(self):
        """Returns its CPU seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def memory(pid):
    """Returns the resident memory of a process and its descendants, in bytes."""
    total = 0
    with contextlib.suppress(OSError):  # it ended meanwhile
        total = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            total += sum(memory(child) for child in children.read_text().split())
    return total


class Peer:
    """A Python script that follows the protocol of peer.py. instead has the table
    cells of features that the library lacks; passages is its default number."""

    def __init__(self, name, venv, *script, passages, instead):
        self.name, self.venv, self.script, self.passages, self.instead = name, venv, script, passages, instead

    def commands(self, work, folder, store):
        python = [work / self.venv / "bin/python", HERE / self.script[0], *self.script[1:]]
        return [*python, "ingest", folder, store], [*python, "ask", store]

    def files(self, work):
        """Returns the files on which its results depend."""
        return [HERE / self.script[0], HERE / "peer.py", HERE / f"requirements-{self.venv}.txt"]

    def begin(self, process):
        pass

    def ask(self, process, question):
        start = time.monotonic()
        process.say(json.dumps(question["question"]) + "\n")
        answer = {"text": "", "first": None, "asked": time.time()}
        while True:
            at, line = process.line()
            said = json.loads(line)
            if "text" in said:
                answer["text"] += said["text"]
                answer["first"] = answer["first"] or at - start
            else:
                refused = answer["text"].strip() in REFUSALS
                return answer | {"sources": said["sources"], "refused": refused, "total": at - start}

    def size(self, work):
        """Returns the bytes that pip installed, without pip and compiled files."""
        site = next((work / self.venv).glob("lib/python*/site-packages"))
        tools = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
        return sum(
            f.lstat().st_size
            for top in site.iterdir()
            if not top.name.startswith(tools)
            for f in (top.rglob("*") if top.is_dir() else [top])
            if f.is_file() and "__pycache__" not in f.parts
        )


class Ibid:
    """The binary, asked over HTTP as by its page."""

    venv, instead, passages = None, {}, 12

    def __init__(self, name, both=(), ingest=(), serve=(), program="ibid"):
        self.name, self.program = name, program
        self.ingest, self.serve = (*both, *ingest), (*both, *serve)

    def commands(self, work, folder, store):
        ibid = work / self.program
        serve = [
            ibid,
            "serve",
            "--data",
            store,
            "--addr",
            "127.0.0.1:0",
            "--log-level",
            "error",
            "--model",
            "scripted",
            "--no-self-test",
            *self.serve,
        ]
        return [ibid, "ingest", "--data", store, *self.ingest, folder], serve

    def files(self, work):
        program = work / self.program
        return [program, *sorted(program.parent.glob("*.ibidmodel"))]

    def begin(self, process):
        self.address = urllib.parse.urlparse(process.line()[1].removeprefix("listening on ").strip())

    def ask(self, process, question):
        start = time.monotonic()
        http_ = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=600)
        body = json.dumps({"question": question["question"], "record": False})
        http_.request("POST", "/api/ask", body, {"Content-Type": "application/json", "Accept": "text/event-stream"})
        answer = {"text": "", "first": None, "asked": time.time()}
        passages, kind = {}, ""
        for line in http_.getresponse():
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                kind = value
            elif field == "data":
                event = json.loads(value)
                if kind in ("text", "unanswered"):
                    answer["first"] = answer["first"] or time.monotonic() - start
                    answer["text"] += event.get("text", "")
                elif kind == "retrieved":
                    for p in event["passages"]:
                        passages.setdefault(p["document"], []).append(p["text"])
                elif kind == "done":
                    sources = [
                        {
                            "number": s["number"],
                            "document": s["document"].split("/", 1)[1],
                            "text": "\n".join(passages[s["document"]]),
                        }
                        for s in event["sources"]
                    ]
                    return answer | {
                        "sources": sources,
                        "refused": not event["answered"],
                        "total": time.monotonic() - start,
                    }
        raise RuntimeError(f"the answer to {question['id']} is incomplete")

    def size(self, work):
        program = work / self.program
        parts = program.parent.glob("*.ibidmodel")
        return program.stat().st_size + sum(p.stat().st_size for p in parts)


NO_GATE, NO_CITATIONS = {"gate": "no gate"}, {"citations": "no citations"}
SYSTEMS = [
    Ibid("Ibid"),
    Ibid("Ibid, --gate score", serve=["--gate", "score"]),
    Ibid("Ibid, released", ingest=["--encode"], program="release/ibid"),
    Ibid("Ibid, served vectors", both=["--embed-model", "scripted"]),
    Peer("LangChain refine", "langchain", "langchain_peer.py", "refine", passages=4, instead=NO_GATE),
    Peer("LangChain stuff", "langchain", "langchain_peer.py", "stuff", passages=4, instead=NO_GATE),
    Peer(
        "LlamaIndex Refine",
        "llamaindex",
        "llamaindex_peer.py",
        "refine",
        passages=2,
        instead=NO_CITATIONS | {"gate": "each of them"},
    ),
    Peer("LlamaIndex citations", "llamaindex", "llamaindex_peer.py", "citation", passages=2, instead=NO_GATE),
    Peer("Haystack", "haystack", "haystack_peer.py", passages=10, instead=NO_GATE),
    Peer("txtai", "txtai", "txtai_peer.py", passages=3, instead=NO_GATE | NO_CITATIONS),
]
MODES = [
    Ibid(" ".join(("Ibid", *flags)), serve=flags)
    for flags in (
        (),
        ("--unproved", "mark"),
        ("--gate", "score"),
        ("--gate", "off"),
        ("--gate", "both"),
        ("--gate", "model"),
    )
]
