#!/usr/bin/env python3
"""Writes the chunking cases of the online-softmax lesson (37 keys as 5 + 1 + 13 + 8 + 10) beside this script.

X ~ 10 N(0, 1), rounded to four decimals so that the files stay readable; row 1 is masked for its first 20 keys, row 2
wholly. The expected (m, l), (m, l, acc) and (O, LSE) are computed directly from the whole rows at 50 digits: a left
fold, a tree and any other order of merging the chunks must agree with that.

    python3 corpus/seeds/make.py
"""
import json
import random
from decimal import Decimal, getcontext
from pathlib import Path

getcontext().prec = 50
CHUNKS = [5, 1, 13, 8, 10]
ROWS, KEYS, D_V = 8, sum(CHUNKS), 2
NEG_INF = float("-inf")


def state(scores, values):
    """(m, l, acc) of one row, by the definition; the empty state when no key is visible."""
    visible = [(Decimal(s), v) for s, v in zip(scores, values) if s != NEG_INF]
    if not visible:
        return NEG_INF, Decimal(0), [Decimal(0)] * D_V
    m = max(s for s, _ in visible)
    weights = [(s - m).exp() for s, _ in visible]
    acc = [sum(w * Decimal(v[e]) for w, (_, v) in zip(weights, visible)) for e in range(D_V)]
    return float(m), sum(weights), acc


def normalised(m, l, acc):
    """(LSE, O) of a state."""
    return (NEG_INF, [Decimal(0)] * D_V) if l == 0 else (float(Decimal(m) + l.ln()), [a / l for a in acc])


def numbers(values, columns):
    """A JSON array, `columns` numbers a line."""
    texts = ['"-inf"' if x == NEG_INF else repr(float(x)) for x in values]
    lines = [", ".join(texts[i:i + columns]) for i in range(0, len(texts), columns)]
    return "[\n        " + ",\n        ".join(lines) + "]"


def write(name, about, op, kind, shape, tensors, expected, tiling=None):
    fields = [("schema", json.dumps("attest-case/1")), ("about", json.dumps(about)), ("op", json.dumps(op)),
              ("state", json.dumps(kind)), ("dtype", json.dumps("fp64")), ("shape", json.dumps(shape))]
    if tiling:
        fields.append(("tiling", json.dumps(tiling)))
    body = ",\n".join(f'      "{n}": {numbers(x, columns)}' for n, (x, columns) in tensors.items())
    fields.append(("values", '{\n    "tensors": {\n' + body + "}}"))
    body = ",\n".join(f'      "{n}": {numbers(x, columns)}' for n, (x, columns) in expected.items())
    fields.append(("expected", '{\n    "tolerance": 1e-9,\n    "tensors": {\n' + body + "}}"))
    text = "{\n" + ",\n".join(f'  "{n}": {v}' for n, v in fields) + "\n}\n"
    (Path(__file__).parent / f"{name}.case").write_text(text)


def main():
    generator = random.Random(37)
    x = [[round(10 * generator.gauss(0, 1), 4) for _ in range(KEYS)] for _ in range(ROWS)]
    v = [[round(generator.gauss(0, 1), 4) for _ in range(D_V)] for _ in range(KEYS)]
    x[1][:20] = [NEG_INF] * 20
    x[2] = [NEG_INF] * KEYS
    flat = lambda rows: [entry for row in rows for entry in row]

    whole = [state(row, v) for row in x]
    pairs = [normalised(*s) for s in whole]
    ml = {"m": ([s[0] for s in whole], ROWS), "l": ([s[1] for s in whole], ROWS)}
    mla = ml | {"acc": (flat(s[2] for s in whole), D_V)}
    olse = {"lse": ([p[0] for p in pairs], ROWS), "o": (flat(p[1] for p in pairs), D_V)}

    rows = {"tq": ROWS, "tk": KEYS}
    start = {"m": ([NEG_INF] * ROWS, ROWS), "l": ([0] * ROWS, ROWS)}
    scores = {"scores": (flat(x), 10)}
    source = "37 keys, one row masked in part and one wholly (online-softmax lesson, step 1): "
    write("doc000-chunks-scan", source + "scan to (m, l)", "step", "ml", rows, start | scores, ml)
    write("doc000-chunks-step", source + "any cut into blocks gives the same state", "step", "mla",
          rows | {"d_v": D_V}, start | {"acc": ([0] * ROWS * D_V, D_V)} | scores | {"v": (flat(v), D_V)}, mla,
          {"block_k": 13})

    parts, begin = [], 0
    for size in CHUNKS:
        parts.append([state(row[begin:begin + size], v[begin:begin + size]) for row in x])
        begin += size
    m = ([s[0] for p in parts for s in p], ROWS)
    l = ([s[1] for p in parts for s in p], ROWS)
    acc = (flat(s[2] for p in parts for s in p), D_V)
    part_pairs = [normalised(*s) for p in parts for s in p]
    shape = {"tq": ROWS, "parts": len(CHUNKS)}
    source = "chunks of 5 + 1 + 13 + 8 + 10 keys: left fold = tree = direct (online-softmax lesson, step 1), "
    write("doc000-chunks-merge-ml", source + "(m, l)", "merge", "ml", shape, {"m": m, "l": l}, ml)
    write("doc000-chunks-merge-mla", source + "(m, l, acc)", "merge", "mla", shape | {"d_v": D_V},
          {"m": m, "l": l, "acc": acc}, mla)
    write("doc000-chunks-merge-olse", source + "(O, LSE)", "merge", "olse", shape | {"d_v": D_V},
          {"lse": ([p[0] for p in part_pairs], ROWS), "o": (flat(p[1] for p in part_pairs), D_V)}, olse)


if __name__ == "__main__":
    main()
