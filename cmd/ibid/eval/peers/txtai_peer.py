"""txtai: an embeddings database, and its RAG pipeline with the reference of
each answer."""

import sys

from pypdf import PdfReader
from txtai import RAG, Embeddings
from txtai.pipeline import Segmentation

from peer import BASE_URL, MODEL, TOP_K, UNKNOWN, converse, files, source

SYSTEM = (
    f"You answer questions from the context and from nothing else. If it does not hold the answer, reply: {UNKNOWN}"
)
TEMPLATE = "question: {question}\ncontext: {context}"
SERVICE = {"api_base": BASE_URL, "api_key": "none"}


def text(path):
    if path.suffix == ".pdf":
        return "\n\n".join(page.extract_text() for page in PdfReader(path).pages)
    return path.read_text(encoding="utf-8")


def ingest(folder, store):
    segments = Segmentation(paragraphs=True)
    rows = [(f"{name}#{n}", x) for path, name in files(folder) for n, x in enumerate(segments(text(path)))]
    embeddings = Embeddings(path=f"openai/{MODEL}", method="litellm", vectors=SERVICE, content=True)
    embeddings.index(rows)
    embeddings.save(store)


def load(store):
    embeddings = Embeddings()
    embeddings.load(store)
    # Streaming returns no reference.
    rag = RAG(
        embeddings,
        f"openai/{MODEL}",
        method="litellm",
        **SERVICE,
        context=TOP_K,
        separator="\n\n",
        system=SYSTEM,
        template=TEMPLATE,
        output="reference",
    )

    def ask(question, say):
        result = rag(question)
        say(result["answer"])
        found = embeddings.search("select id, text from txtai where id = :id", parameters={"id": result["reference"]})
        return [source(None, row["id"].split("#")[0], row["text"]) for row in found]

    return ask


if __name__ == "__main__":
    if sys.argv[1] == "ingest":
        ingest(*sys.argv[2:])
    else:
        converse(load(sys.argv[2]))
