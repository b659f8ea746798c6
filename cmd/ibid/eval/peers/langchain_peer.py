"""LangChain with Chroma and langchain-references: the refine strategy as a
LangGraph (mode refine), and all documents in one prompt (mode stuff)."""

import sys
from typing import TypedDict

from langchain_chroma import Chroma
from langchain_community.document_loaders import BSHTMLLoader, CSVLoader, PyPDFLoader, TextLoader
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langchain_references import FORMAT_REFERENCES, TextReferenceStyle, manage_references
from langchain_text_splitters import RecursiveCharacterTextSplitter
from langgraph.graph import END, START, StateGraph

from peer import MODEL, TOP_K, UNKNOWN, converse, files, source

SYSTEM = f"You answer a question from documents and from nothing else. {FORMAT_REFERENCES}"
ANSWER = ChatPromptTemplate(
    [
        ("system", f"{SYSTEM} If they do not hold the answer, reply: {UNKNOWN}"),
        (
            "human",
            """{context}

Question: {question}""",
        ),
    ]
)
REFINE = ChatPromptTemplate(
    [
        ("system", f"{SYSTEM} Refine the answer so far with the new document. If it does not help, repeat the answer."),
        (
            "human",
            """<answer>
{answer}
</answer>

{context}

Question: {question}""",
        ),
    ]
)

model = ChatOpenAI(model=MODEL)
# Without this option texts are sent as token numbers.
vectors = OpenAIEmbeddings(model=MODEL, check_embedding_ctx_length=False)


def database(store):
    return Chroma("library", vectors, persist_directory=store)


def ingest(folder, store):
    loaders = {".pdf": PyPDFLoader, ".html": BSHTMLLoader, ".csv": CSVLoader}
    documents = []
    for path, name in files(folder):
        for document in loaders.get(path.suffix, TextLoader)(str(path)).load():
            document.metadata["path"] = name
            documents.append(document)
    splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200)
    database(store).add_documents(splitter.split_documents(documents))


def show(documents, first=1):
    return "\n".join(f"<document id={n}>\n{d.page_content}\n</document>" for n, d in enumerate(documents, first))


class State(TypedDict):
    question: str
    documents: list[Document]
    done: int
    answer: str


def step(state: State):
    done = state["done"]
    given = {
        "question": state["question"],
        "answer": state["answer"],
        "context": show([state["documents"][done]], done + 1),
    }
    return {"answer": ((REFINE if done else ANSWER) | model).invoke(given).content, "done": done + 1}


builder = StateGraph(State)
builder.add_node("step", step)
builder.add_edge(START, "step")
builder.add_conditional_edges("step", lambda state: END if state["done"] == len(state["documents"]) else "step")
graph = builder.compile()


def refine(given):
    """Streams the last step."""
    state = {"question": given["question"], "documents": given["documents"], "done": 0, "answer": ""}
    for chunk, about in graph.stream(state, {"recursion_limit": TOP_K + 5}, stream_mode="messages"):
        if about["langgraph_step"] == len(given["documents"]):
            yield chunk


class Style(TextReferenceStyle):
    """Puts numbers into the text, and keeps the list of sources separate."""

    source_id_key = "path"

    def __init__(self):
        self.listed = []

    def format_all_references(self, refs):
        self.listed = [(number, document.metadata["path"]) for number, document in refs]
        return ""


def load(mode, store):
    retriever = database(store).as_retriever(search_kwargs={"k": TOP_K})
    answer = RunnableLambda(refine) if mode == "refine" else ANSWER | model

    def ask(question, say):
        style = Style()
        documents = retriever.invoke(question)
        chain = manage_references(answer, style=style)
        for chunk in chain.stream({"question": question, "documents": documents, "context": show(documents)}):
            if chunk.content:
                say(chunk.content)
        text = {
            path: "\n".join(d.page_content for d in documents if d.metadata["path"] == path) for _, path in style.listed
        }
        return [source(number, path, text[path]) for number, path in style.listed]

    return ask


if __name__ == "__main__":
    if sys.argv[2] == "ingest":
        ingest(*sys.argv[3:])
    else:
        converse(load(sys.argv[1], sys.argv[3]))
