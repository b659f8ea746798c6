# Generated from openapi.json: go test ./web -run TestClientTypes -update

from __future__ import annotations

from typing import Any, Literal, TypedDict

class Answer(TypedDict, total=False):
    answered: bool
    citations: list[Citation]
    closest: list[Closest]
    drafts: list[dict[str, Any]]
    fallback: str
    html: str
    incomplete: bool
    indexing: dict[str, Any]
    judged: list[Judged]
    list: str
    markdown: str
    nearest: list[Passage]
    places: list[dict[str, Any]]
    plain: bool
    reason: str
    searched: str
    sources: list[Source]
    steps: list[dict[str, Any]]
    text: str
    unknown_addresses: list[str]
    unsupported: list[dict[str, Any]]
    usage: dict[str, Any]
    verified: list[dict[str, Any]]
    warnings: list[str]
class AskRequest(TypedDict, total=False):
    collection: str
    conversation: str
    filter: dict[str, Any]
    history: list[Turn]
    name: str
    question: str
    record: bool
    run: str
    strategy: Literal["auto", "refine", "stuff", "map-reduce", "map-rerank", "extract"]
    style: str
    top_k: int
    user: str
class Change(TypedDict, total=False):
    action: Literal["added", "updated", "unchanged", "renamed", "removed", "skipped", "failed"]
    chunks: int
    copy_of: str
    document: str
    pages: int
    path: str
    reason: str
    root: str
    url: str
class Citation(TypedDict, total=False):
    by: Literal["written", "found"]
    digest: str
    document: str
    end: int
    end_chars: int
    heading: str
    link: str
    number: int
    original: str
    page: int
    passage: str
    quote: str
    start: int
    start_chars: int
    support: float
    text_end: int
    text_end_chars: int
    text_start: int
    text_start_chars: int
    verdict: Literal["quoted", "supported", "weak"]
class Closest(TypedDict, total=False):
    document: str
    end: int
    end_chars: int
    heading: str
    link: str
    marks: list[dict[str, Any]]
    page: int
    start: int
    start_chars: int
    text: str
    title: str
class Collection(TypedDict, total=False):
    bytes: int
    chunks: int
    collection: str
    documents: int
    roots: list[dict[str, Any]]
    uploads: bool
class DocumentInfo(TypedDict, total=False):
    bytes: int
    chunks: int
    collection: str
    digest: str
    document: str
    format: str
    meta: dict[str, Any]
    pages: int
    path: str
    root: str
    title: str
class Judged(TypedDict, total=False):
    by: str
    calls: int
    chance: float
    document: str
    heading: str
    page: int
    passage: str
    reason: str
    scores: dict[str, Any]
    title: str
    tokens: int
    verdict: Literal["relevant", "irrelevant", "unparsable", "error"]
    wider: bool
class Passage(TypedDict, total=False):
    also_in: list[str]
    anchor: str
    digest: str
    document: str
    end: int
    end_chars: int
    format: str
    heading: str
    id: str
    line: int
    ordinal: int
    page: int
    path: str
    root: str
    score: float
    scores: dict[str, Any]
    start: int
    start_chars: int
    text: str
    title: str
    tokens: int
class Run(TypedDict, total=False):
    answer: Answer
    ended: str
    error: dict[str, Any]
    events: str
    html: str
    id: str
    kind: str
    markdown: str
    question: str
    request: Any
    resumable: bool
    shared: bool
    sources: Literal["unchanged", "moved", "changed", "gone"]
    started: str
    state: str
    url: str
class Source(TypedDict, total=False):
    also_in: list[str]
    document: str
    link: str
    now: str
    number: int
    original: str
    passages: list[SourcePassage]
    state: str
    title: str
class SourcePassage(TypedDict, total=False):
    end: int
    end_chars: int
    heading: str
    id: str
    link: str
    original: str
    page: int
    quote: str
    start: int
    start_chars: int
class Turn(TypedDict, total=False):
    content: str
    role: Literal["user", "assistant"]
