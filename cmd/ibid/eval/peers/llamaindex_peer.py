"""LlamaIndex: Refine with structured answer filtering (mode refine), and
CitationQueryEngine (mode citation)."""

import sys

from llama_index.core import (
    Settings,
    SimpleDirectoryReader,
    StorageContext,
    VectorStoreIndex,
    get_response_synthesizer,
    load_index_from_storage,
)
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike

from peer import BASE_URL, MODEL, TOP_K, converse, source

Settings.llm = OpenAILike(model=MODEL, api_base=BASE_URL, api_key="none", is_chat_model=True, context_window=4096)
Settings.embed_model = OpenAILikeEmbedding(model_name=MODEL, api_base=BASE_URL, api_key="none")


def ingest(folder, store):
    documents = SimpleDirectoryReader(folder, recursive=True).load_data()
    for document in documents:
        document.metadata["path"] = document.metadata["file_path"].removeprefix(f"{folder}/")
    VectorStoreIndex.from_documents(documents).storage_context.persist(store)


def load(mode, store):
    index = load_index_from_storage(StorageContext.from_defaults(persist_dir=store))
    if mode == "citation":
        engine = CitationQueryEngine.from_args(index, similarity_top_k=TOP_K, streaming=True)
    else:
        # Structured answers of OpenAI-compatible models do not stream.
        refine = get_response_synthesizer(response_mode="refine", structured_answer_filtering=True)
        engine = index.as_query_engine(response_synthesizer=refine, similarity_top_k=TOP_K)

    def ask(question, say):
        response = engine.query(question)
        for piece in getattr(response, "response_gen", None) or [response.response]:
            say(piece)
        nodes = enumerate(response.source_nodes, 1)
        return [source(n if mode == "citation" else None, x.metadata["path"], x.text) for n, x in nodes]

    return ask


if __name__ == "__main__":
    if sys.argv[2] == "ingest":
        ingest(*sys.argv[3:])
    else:
        converse(load(sys.argv[1], sys.argv[3]))
