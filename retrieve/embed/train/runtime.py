"""Write the vectors that ONNX Runtime computes in float32 from a checkpoint of BERT's family.

    python runtime.py model.safetensors HEADS tokenizer.json < texts > vectors.jsonl
    python runtime.py tiny.safetensors 2 < ids > vectors.jsonl

A line of the input is a text, or without a tokenizer the ids of its tokens. A line of the
output has the ids and the vector: the mean of the tokens' vectors. The graph is built here
from the operators of ONNX, so that it shares nothing with the encoder but the weights.
"""

import json
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def checkpoint(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    header.pop("__metadata__", None)
    return {
        name.removeprefix("bert."): np.frombuffer(data[slice(*t["data_offsets"])], "<f4").reshape(t["shape"])
        for name, t in header.items() if t["dtype"] == "F32"
    }


class Graph:
    def __init__(self, tensors):
        self.tensors, self.nodes, self.constants = tensors, [], []

    def constant(self, value):
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def add(self, kind, *inputs, **attributes):
        self.nodes.append(helper.make_node(kind, list(inputs), [f"n{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def dense(self, name, x):
        product = self.add("MatMul", x, self.constant(self.tensors[name + ".weight"].T))
        return self.add("Add", product, self.constant(self.tensors[name + ".bias"]))

    def norm(self, name, x, y):
        gain, shift = (self.constant(self.tensors[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.add("LayerNormalization", self.add("Add", x, y), gain, shift, axis=-1, epsilon=1e-12)

    def heads(self, name, x, heads):
        shaped = self.add("Reshape", self.dense(name, x), self.constant(np.array([0, heads, -1], "i8")))
        return self.add("Transpose", shaped, perm=[1, 0, 2])

    def layer(self, name, x, heads):
        query, key, value = (self.heads(f"{name}.attention.self.{part}", x, heads) for part in ("query", "key", "value"))
        width = self.tensors[name + ".output.dense.weight"].shape[0]
        scores = self.add("MatMul", query, self.add("Transpose", key, perm=[0, 2, 1]))
        scores = self.add("Softmax", self.add("Div", scores, self.constant(np.float32((width / heads) ** .5))), axis=-1)
        joined = self.add("Transpose", self.add("MatMul", scores, value), perm=[1, 0, 2])
        joined = self.add("Reshape", joined, self.constant(np.array([0, width], "i8")))
        x = self.norm(name + ".attention.output.LayerNorm", x, self.dense(name + ".attention.output.dense", joined))
        inner = self.add("Gelu", self.dense(name + ".intermediate.dense", x))
        return self.norm(name + ".output.LayerNorm", x, self.dense(name + ".output.dense", inner))


def session(tensors, heads):
    graph = Graph(tensors)
    embeddings = "embeddings."
    words = graph.add("Gather", graph.constant(tensors[embeddings + "word_embeddings.weight"]), "ids")
    places = tensors[embeddings + "position_embeddings.weight"] + tensors[embeddings + "token_type_embeddings.weight"][0]
    places = graph.add("Slice", graph.constant(places), graph.constant(np.array([0], "i8")), graph.add("Shape", "ids"))
    x = graph.norm(embeddings + "LayerNorm", words, places)
    layers = 0
    while f"encoder.layer.{layers}.output.dense.weight" in tensors:
        x = graph.layer(f"encoder.layer.{layers}", x, heads)
        layers += 1
    graph.nodes.append(helper.make_node("ReduceMean", [x, graph.constant(np.array([0], "i8"))], ["vector"], keepdims=0))
    model = helper.make_model(
        helper.make_graph(
            graph.nodes, "encoder", [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])],
            [helper.make_tensor_value_info("vector", TensorProto.FLOAT, ["width"])], graph.constants),
        opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model)
    return onnxruntime.InferenceSession(model.SerializeToString())


def tokenizer(path):
    import tokenizers
    words = tokenizers.Tokenizer.from_file(str(path))
    words.no_padding()
    return words


def main():
    model = session(checkpoint(sys.argv[1]), int(sys.argv[2]))
    words = tokenizer(sys.argv[3]) if sys.argv[3:] else None
    for line in sys.stdin:
        line = line.rstrip("\n")
        ids = words.encode(line).ids if words else [int(i) for i in line.split()]
        vector = model.run(None, {"ids": np.array(ids)})[0]
        vector /= np.linalg.norm(vector)
        print(json.dumps({"text": line if words else "", "ids": ids, "vector": [round(float(x), 5) for x in vector]}))


if __name__ == "__main__":
    main()
