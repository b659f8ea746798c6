"""A client of an Ibid server: questions to your documents, answers with sources.

    from ibid import Ibid

    ibid = Ibid("http://127.0.0.1:8080", key="ibid_…")   # a key if the server needs one
    answer = ibid.ask("What does a mooring cost?")
    print(answer["text"])
    for event in ibid.stream("And in winter?", history=turns("What does a mooring cost?", answer)):
        if event.kind == "text":
            print(event.data["text"], end="", flush=True)

It needs Python 3.10 or newer and nothing else. A client may be used by several threads.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from .types import Answer, AskRequest, Change, Collection, DocumentInfo, Passage, Run, Turn

__all__ = ["Event", "Ibid", "IbidError", "turns"]


class Event(NamedTuple):
    """An event of an answer: "retrieved", "judged", "text", "cited", "quoted", "unanswered", "done" and others.

    The data of "done" is the whole Answer. Other kinds may be added: ignore those you do not know.
    """

    kind: str
    data: dict[str, Any]
    id: str = ""


class IbidError(Exception):
    """An error reply of the server, or status 0 and the code "unreachable" if there was no reply.

    code is stable and meant for programs ("too_fast", "bad_key", …), detail for people.
    request is the id of the request in the server's log. retry_after is in seconds, if the server sent it.
    """

    def __init__(self, status: int, code: str, detail: str, request: str = "", retry_after: float | None = None):
        super().__init__(f"{detail} ({code})")
        self.status, self.code, self.detail, self.request, self.retry_after = status, code, detail, request, retry_after


def turns(question: str, answer: Answer) -> list[Turn]:
    """Return a question and its answer as the history of the next question."""
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer["text"]}]


class Ibid:
    """The server at url. key defaults to the variable IBID_KEY. timeout is how long a reply may pause, in seconds.

    headers are sent with every request, for example the end user's name for a trusted proxy.
    """

    def __init__(self, url: str = "http://127.0.0.1:8080", key: str | None = None, *, timeout: float = 120,
                 headers: Mapping[str, str] | None = None):
        self.url, self.timeout, key = url.rstrip("/"), timeout, os.environ.get("IBID_KEY", "") if key is None else key
        self.headers = {"User-Agent": "ibid-python"} | ({"Authorization": f"Bearer {key}"} if key else {}) | dict(headers or {})

    def ask(self, question: str, *, history: Iterable[Turn] = (), collection: str | None = None, **more: Any) -> Answer:
        """Answer a question. more are members of AskRequest: strategy, top_k, filter, style, record."""
        return self._json("POST", "/api/ask", _asked(question, history, collection, more))

    def stream(self, question: str, *, history: Iterable[Turn] = (), collection: str | None = None, **more: Any) -> Iterator[Event]:
        """Answer a question event by event. After a lost connection it continues where it was; closing the iterator stops the answer."""
        run, ended = self._json("POST", "/api/runs", _asked(question, history, collection, more))["id"], False
        try:
            for event in self.follow(run):
                ended = event.kind in ("done", "error")
                yield event
        finally:
            if not ended:
                with suppress(IbidError):  # without a reader it ends by itself
                    self._open("DELETE", f"/api/runs/{run}").close()

    def follow(self, run: str, after: str = "") -> Iterator[Event]:
        """Yield the events of a run, from the first or after the event with an id, until it ends."""
        lost = 0
        while True:
            headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
            try:
                with self._open("GET", f"/api/runs/{quote(run, safe='')}", None, headers) as reply:
                    for event in _events(reply):
                        lost, after = 0, event.id or after
                        if event.kind == "error":
                            raise _refusal(event.data, event.data.get("status") or 500)
                        yield event
                        if event.kind == "done":
                            return
            except IbidError as err:
                if err.status or (lost := lost + 1) > 6:
                    raise
            except (OSError, HTTPException) as err:
                if (lost := lost + 1) > 6:
                    raise IbidError(0, "unreachable", f"the connection to {self.url} was lost: {err}") from err
            else:
                if (lost := lost + 1) > 6:
                    raise IbidError(0, "unreachable", f"the stream of the run {run} ends early again and again")
            time.sleep(min(0.25 * 2**lost, 5))

    def batch(self, questions: Iterable[str | AskRequest]) -> list[dict[str, Any]]:
        """Answer up to 50 questions. Each has its "run" and "answer", or its "error", a problem with a code."""
        asked = [{"question": q} if isinstance(q, str) else q for q in questions]
        return self._json("POST", "/api/ask/batch", {"questions": asked})["answers"]

    def search(self, question: str, *, top_k: int = 12, collection: str | None = None, **more: Any) -> list[Passage]:
        """Return the passages nearest to a question, best first."""
        return self._json("POST", "/api/search", _asked(question, (), collection, more | {"top_k": top_k}))["passages"]

    def summarize(self, document: str | None = None, **more: Any) -> Answer:
        """Summarize a document, or with collection= or filter= several."""
        return self._json("POST", "/api/summarize", ({"document": document} if document else {}) | more)

    def cite(self, text: str, documents: Iterable[Any], **more: Any) -> dict[str, Any]:
        """Number the citations in any model's text, given the documents that it cites (style, source_key, exclude, …)."""
        return self._json("POST", "/api/cite", {"text": text, "documents": list(documents)} | more)

    def documents(self, page: int = 500) -> Iterator[DocumentInfo]:
        """Yield the stored documents."""
        after = ""
        while True:
            listed = self._json("GET", "/api/documents?" + urlencode({"limit": page} | ({"after": after} if after else {})))
            yield from listed["documents"]
            if not listed["more"]:
                return
            after = listed["documents"][-1]["document"]

    def upload(self, name: str, data: bytes | str, collection: str | None = None, *, tags: Iterable[str] = (), **labels: str) -> Change:
        """Add a file, or replace the file with this name. The reply has its id ("document") and the number of its chunks.

        tags, author, date and language are for filters, and are kept when the file is replaced without them.
        """
        query = urlencode({"name": name} | ({"collection": collection} if collection else {}) | {"tag": list(tags)} | labels, doseq=True)
        body = data.encode() if isinstance(data, str) else data
        with self._open("POST", f"/api/documents?{query}", body, {"Content-Type": "application/octet-stream"}) as reply:
            return json.load(reply)

    def label(self, document: str, **labels: Any) -> Change:
        """Give an uploaded document other tags (a list), author, date or language."""
        return self._json("PATCH", f"/api/documents/{quote(document)}", labels)

    def delete(self, document: str) -> None:
        """Delete an uploaded document, and the answers that quote it."""
        self._open("DELETE", f"/api/documents/{quote(document)}").close()

    def collections(self) -> list[Collection]:
        """Return the collections that the key may read."""
        return self._json("GET", "/api/collections")["collections"]

    def run(self, run: str) -> Run:
        """Return the record of an answer. Its sources have their current state: unchanged, moved, changed or gone."""
        return self._json("GET", f"/api/runs/{quote(run, safe='')}")

    def rate(self, run: str, rating: int, comment: str = "") -> None:
        """Rate an answer: 1 if it helped, -1 if not."""
        self._open("POST", "/api/feedback", {"run": run, "rating": rating} | ({"comment": comment} if comment else {})).close()

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        with self._open(method, path, body) as reply:
            return json.load(reply)

    def _open(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Any:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = self.headers | ({"Content-Type": "application/json"} if data else {}) | dict(headers or {})
        try:
            return urlopen(Request(self.url + path, data, sent, method=method), timeout=self.timeout)
        except HTTPError as err:
            with err:
                text = err.read()
            try:
                problem = json.loads(text)
            except ValueError:  # a page of a proxy
                problem = {}
            raise _refusal(problem if isinstance(problem, dict) else {}, err.code, err.headers.get("Retry-After")) from None
        except (OSError, HTTPException) as err:
            raise IbidError(0, "unreachable", f"there is no reply from {self.url}: {getattr(err, 'reason', err)}") from err


def _asked(question: str, history: Iterable[Turn], collection: str | None, more: Mapping[str, Any]) -> dict[str, Any]:
    return {"question": question, "history": list(history)} | ({"collection": collection} if collection else {}) | dict(more)


def _refusal(problem: Mapping[str, Any], status: int, retry: str | None = None) -> IbidError:
    detail = problem.get("detail") or problem.get("title") or f"the server replied with status {status}"
    return IbidError(status, problem.get("code", "unknown"), detail, problem.get("request", ""),
                     float(retry) if retry and retry.isdigit() else None)


def _events(lines: Iterable[bytes]) -> Iterator[Event]:
    """Yield the events of a stream of server-sent events."""
    kind, number, data = "", "", []
    for raw in lines:
        line = raw.decode().rstrip("\r\n")
        if not line:
            if data:
                yield Event(kind, json.loads("\n".join(data)), number)
            kind, data = "", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            kind = value
        elif name == "id":
            number = value
        elif name == "data":
            data.append(value)
