"""Write testdata/golden.json: features and first components that Go must give too.

    python golden.py TABLE OUT
"""

import json
import pathlib
import struct
import sys

import table as tables

TEXTS = [
    "",
    " \t\n--- !?",
    "The quick brown fox jumps over the lazy dog.",
    "Paris is the capital of France; 1879, 2024, 123456789 and 3.14.",
    "parseHTTPRequest max_open_conns YouTube iPhone XMLHttpRequest2 kebab-case URLs",
    "Caf\u00e9 na\u00efve \u00c5ngstr\u00f6m cafe\u0301 co\u00f6perate \ufb01nal \u2460 \uff21\uff22\uff23",
    "Donaudampfschifffahrtsgesellschaft Stra\u00dfe Zyzzyva xkcdqwv",
    "\u041c\u043e\u0441\u043a\u0432\u0430 \u2014 \u0441\u0442\u043e\u043b\u0438\u0446\u0430 \u0420\u043e\u0441\u0441\u0438\u0438",
    "\u5317\u4eac\u662f\u4e2d\u56fd\u7684\u9996\u90fd\u3002\u6771\u4eac\u30bf\u30ef\u30fc abc",
    "\ud55c\uad6d\uc5b4 \ubb38\uc11c",
    "\u0627\u0644\u0639\u064e\u0631\u064e\u0628\u0650\u064a\u064e\u0651\u0629 \u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd",
    "\u092d\u093e\u0930\u0924 \u0915\u0940 \u0930\u093e\u091c\u0927\u093e\u0928\u0940 \u0661\u0662\u0663",
    "\u0e01\u0e23\u0e38\u0e07\u0e40\u0e17\u0e1e",
    "a" * 200 + " " + "7" * 130,
    "don't re\u00adport co\u200doperate \U0001f600 x\u0130z",
]


def main():
    embed = tables.Embedder(*tables.read(pathlib.Path(sys.argv[1])))
    cases = []
    for text in TEXTS:
        features = [f"{f[1]}" if f[0] == "row" else f"{f[1]:016x}/{f[2]}" for f in embed.tokeniser.features(text)]
        bits = [struct.pack(">f", x).hex() for x in embed(text)[:6]]
        cases.append({"text": text, "features": features, "bits": bits})
    pathlib.Path(sys.argv[2]).write_text(json.dumps(cases, indent=1, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
