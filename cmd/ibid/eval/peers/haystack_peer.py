"""Haystack: a pipeline of retriever, prompt, model and AnswerBuilder."""

import logging
import sys
from pathlib import Path

from haystack import Pipeline
from haystack.components.builders import AnswerBuilder, ChatPromptBuilder
from haystack.components.converters import CSVToDocument, HTMLToDocument, PyPDFToDocument, TextFileToDocument
from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.components.writers import DocumentWriter
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore

from peer import BASE_URL, MODEL, TOP_K, UNKNOWN, converse, files, source

SYSTEM = f"""Answer the question from the documents below and from nothing else. Cite documents by their
ids in square brackets, like this: It opens at noon [2]. If they do not hold the answer, reply: {UNKNOWN}"""
USER = """{% for document in documents %}<document id={{ loop.index }}>
{{ document.content }}
</document>
{% endfor %}
Question: {{ question }}"""


def convert(path, name):
    kinds = {".pdf": PyPDFToDocument, ".html": HTMLToDocument, ".csv": CSVToDocument}
    converter = kinds.get(path.suffix, TextFileToDocument)()
    return converter.run(sources=[path], meta={"path": name})["documents"]


def ingest(folder, store):
    documents = InMemoryDocumentStore()
    pipeline = Pipeline()
    pipeline.add_component("splitter", DocumentSplitter())
    pipeline.add_component("embedder", OpenAIDocumentEmbedder(model=MODEL, api_base_url=BASE_URL, progress_bar=False))
    pipeline.add_component("writer", DocumentWriter(documents))
    pipeline.connect("splitter", "embedder")
    pipeline.connect("embedder", "writer")
    read = [document for path, name in files(folder) for document in convert(path, name)]
    pipeline.run({"splitter": {"documents": read}})
    Path(store).mkdir(parents=True, exist_ok=True)
    documents.save_to_disk(f"{store}/documents.json")


def load(store):
    documents = InMemoryDocumentStore.load_from_disk(f"{store}/documents.json")
    pipeline = Pipeline()
    pipeline.add_component("embedder", OpenAITextEmbedder(model=MODEL, api_base_url=BASE_URL))
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(documents, top_k=TOP_K))
    template = [ChatMessage.from_system(SYSTEM), ChatMessage.from_user(USER)]
    pipeline.add_component("prompt", ChatPromptBuilder(template=template, required_variables=["documents", "question"]))
    pipeline.add_component("model", OpenAIChatGenerator(model=MODEL, api_base_url=BASE_URL))
    # The default pattern knows [1] or [1,2], without spaces.
    several = r"\[(\d+(?:, ?\d+)*)\]"
    pipeline.add_component("answer", AnswerBuilder(reference_pattern=several, expand_reference_ranges=True))
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    pipeline.connect("retriever", "prompt.documents")
    pipeline.connect("prompt.prompt", "model.messages")
    pipeline.connect("model.replies", "answer.replies")
    pipeline.connect("retriever", "answer.documents")

    def ask(question, say):
        result = pipeline.run(
            {
                "embedder": {"text": question},
                "prompt": {"question": question},
                "model": {"streaming_callback": lambda chunk: chunk.content and say(chunk.content)},
                "answer": {"query": question},
            }
        )
        cited = result["answer"]["answers"][0].documents
        return [source(d.meta["source_index"], d.meta["path"], d.content) for d in cited]

    return ask


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    if sys.argv[1] == "ingest":
        ingest(*sys.argv[2:])
    else:
        converse(load(sys.argv[2]))
