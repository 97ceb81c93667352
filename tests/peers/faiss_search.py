"""Run by a process of its own, since faiss brings its own OpenMP: x.npy and q.npy in, scores.npy and ids.npy out."""

import sys
from pathlib import Path

import faiss
import numpy as np

folder, k = Path(sys.argv[1]), int(sys.argv[2])
x, q = np.load(folder / "x.npy"), np.load(folder / "q.npy")
index = faiss.IndexFlatIP(x.shape[1])
index.add(x)
scores, ids = index.search(q, k)
np.save(folder / "scores.npy", scores)
np.save(folder / "ids.npy", ids)
