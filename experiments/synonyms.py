"""Time the search for all pairs of similar names: 60,000 random vectors of 384 dimensions in groups of about three.

python -m experiments.synonyms [--count 60000] [--out FILE]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from hopfuse.extract import similar_pairs

from bench.machine import machine
from bench.result_file import ResultFile, add_out_option

DIM, NEAR = 384, 0.8
SPREAD = 0.5  # cosines within a group are about 1 / (1 + SPREAD^2) = 0.8


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.synonyms", description=__doc__)
    parser.add_argument("--count", type=int, default=60_000, help="number of vectors")
    add_out_option(parser)
    args = parser.parse_args()
    count, file = args.count, ResultFile("python -m experiments.synonyms")
    draw = np.random.default_rng(0)
    centres = draw.standard_normal((max(1, count // 3), DIM))
    group = draw.integers(0, len(centres), count)
    vectors = (centres[group] + SPREAD * draw.standard_normal((count, DIM))).astype(np.float32)
    begin = time.process_time()
    pairs, similarities = similar_pairs(vectors, NEAR)
    taken = time.process_time() - begin
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    sample = draw.integers(0, count, min(count, 200))
    expected = {
        (min(i, j), max(i, j)) for i in sample.tolist() for j in np.flatnonzero(unit @ unit[i] >= NEAR + 1e-5) if i != j
    }
    assert expected <= set(map(tuple, pairs.tolist()))
    assert len(pairs) == len(similarities)
    host = machine()
    print(f"{count:,} vectors of {DIM}, cosine at least {NEAR}: {len(pairs):,} pairs in {taken:.1f} s of CPU time")
    print(f"{host['cpu']}, {host['cores']} cores; pairs of {len(sample)} vectors checked against NumPy")
    file.add(vectors=count, dim=DIM, cosine=NEAR, pairs=len(pairs), **{"CPU, s": taken})
    file.write(args.out)


if __name__ == "__main__":
    main()
