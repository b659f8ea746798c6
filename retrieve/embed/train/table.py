"""The table's file format and its arithmetic, exactly as table.go reads and embed.go computes.

    magic "IBIDVEC1" · dims u16 · rows u32 · words u32 · hash u16 · levels 16 x i8
    scales    rows x u16
    nibbles   rows x dims/2 bytes, the lower half first
    names     gzip: every word, then every piece, in order of the rows, each ended by \n
    checksum  SHA-256 of all the bytes before it

All little endian. A component of a row is levels[nibble] * scale, an integer.
"""

import gzip
import hashlib
import math
import struct

import numpy as np

MAGIC = b"IBIDVEC1"
MASK = 0xFFFFFFFFFFFFFFFF


def levels():
    """The 16 Lloyd-Max levels of a normal distribution, scaled to the range of int8."""
    grid = np.linspace(-6, 6, 120001)
    weight = np.exp(-grid * grid / 2)
    level = np.linspace(-2.5, 2.5, 16)
    for _ in range(3000):
        bound = (level[1:] + level[:-1]) / 2
        part = np.searchsorted(bound, grid)
        level = np.bincount(part, weight * grid, 16) / np.bincount(part, weight, 16)
    return np.rint(level * 127 / level.max()).astype(np.int8)


LEVELS = levels()


def nearest(values):
    """The index of the nearest level."""
    l = LEVELS.astype(np.float64)
    return np.searchsorted((l[1:] + l[:-1]) / 2, values)


def quantise(table, rounds=8):
    """Scales and indices with the least squared error row by row; table is float, any range."""
    # Components times scale fit an int64 for texts of any length in reach.
    unit = np.percentile(np.abs(table), 99.9) / (127 * 4096)
    scaled = table / unit
    rms = np.sqrt((scaled**2).mean(1, keepdims=True))
    best = rms / np.sqrt((LEVELS.astype(float) ** 2).mean()) * 0.8
    l = LEVELS.astype(np.float64)
    for _ in range(rounds):
        chosen = l[nearest(scaled / np.maximum(best, 1e-9))]
        best = (scaled * chosen).sum(1, keepdims=True) / np.maximum((chosen**2).sum(1, keepdims=True), 1e-9)
    scales = np.clip(np.rint(best), 1, 65535)
    return scales[:, 0].astype(np.uint16), nearest(scaled / scales).astype(np.uint8), unit


def write(path, words, pieces, table, hash_norm):
    """Quantise and write; words and pieces are lists in the order of the rows.

    hash_norm is the Euclidean length, in the table's own measure, of a word
    that has no row.
    """
    rows, dims = table.shape
    scales, index, unit = quantise(table)
    magnitude = int(round(hash_norm / unit / math.sqrt(dims)))
    body = b"".join(
        [
            MAGIC,
            struct.pack("<HIIH", dims, rows, len(words), min(magnitude, 65535)),
            LEVELS.tobytes(),
            scales.astype("<u2").tobytes(),
            (index[:, 0::2] | index[:, 1::2] << 4).astype(np.uint8).tobytes(),
            gzip.compress("".join(w + "\n" for w in words + pieces).encode(), 9, mtime=0),
        ]
    )
    path.write_bytes(body + hashlib.sha256(body).digest())
    return len(body) + 32


def read(path):
    data = path.read_bytes()
    body = data[:-32]
    assert hashlib.sha256(body).digest() == data[-32:]
    assert body[:8] == MAGIC
    dims, rows, words, magnitude = struct.unpack_from("<HIIH", body, 8)
    at = 8 + 12
    level = np.frombuffer(body, np.int8, 16, at).astype(np.int64)
    at += 16
    scales = np.frombuffer(body, "<u2", rows, at).astype(np.int64)
    at += 2 * rows
    packed = np.frombuffer(body, np.uint8, rows * dims // 2, at).reshape(rows, dims // 2)
    at += rows * dims // 2
    names = gzip.decompress(body[at:]).decode().split("\n")[:-1]
    assert len(names) == rows
    table = np.empty((rows, dims), np.int64)
    table[:, 0::2] = level[packed & 15]
    table[:, 1::2] = level[packed >> 4]
    return names[:words], names[words:], table * scales[:, None], magnitude


def mix(state):
    """One step of SplitMix64: the next state and 64 bits."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return state, z ^ (z >> 31)


class Embedder:
    """Integer arithmetic throughout; the last step is one float64 division a component."""

    def __init__(self, names, pieces, table, magnitude):
        import tokens

        self.tokeniser = tokens.Tokeniser(
            {w: i for i, w in enumerate(names)}, {w: len(names) + i for i, w in enumerate(pieces)}
        )
        self.table, self.magnitude = table, magnitude
        self.dims = table.shape[1]
        self.signs = {}

    def sign(self, h):
        found = self.signs.get(h)
        if found is None:
            bits, state = [], h
            while len(bits) < self.dims:
                state, word = mix(state)
                bits.extend(1 if word >> i & 1 else -1 for i in range(64))
            found = self.signs[h] = np.array(bits[: self.dims], np.int64)
        return found

    def sum(self, text):
        features = self.tokeniser.features(text)
        total = np.zeros(self.dims, np.int64)
        rows = [f[1] for f in features if f[0] == "row"]
        if rows:
            total += self.table[rows].sum(0)
        for f in features:
            if f[0] == "hash":
                total += self.sign(f[1]) * int(self.magnitude / math.sqrt(f[2]))
        if not total.any():
            # A text without any feature points along the first axis.
            total[0] = 1
        return total

    def __call__(self, text):
        total = self.sum(text)
        square = 0.0
        for x in total.tolist():
            square += float(x) * float(x)
        return (total.astype(np.float64) / math.sqrt(square)).astype(np.float32)
