"""Check that operations of an installed wheel agree with the float64 oracle.

Run by cibuildwheel and by .ci/run in an environment with the wheel and its dependencies only.
"""

from __future__ import annotations

import importlib.metadata

import hopfuse as hf
import numpy as np


def main() -> None:
    version = importlib.metadata.version("hopfuse")
    if version != hf.__version__:
        raise SystemExit(f"the wheel's metadata has version {version}, but hopfuse.__version__ is {hf.__version__}")

    rng = np.random.default_rng(0)
    nodes, queries = 500, 8
    graph = hf.Graph.from_edges(*rng.integers(0, nodes, (2, 3000)), rng.uniform(0.5, 2, 3000), num_nodes=nodes)
    restart = [{int(node): 1.0 for node in rng.integers(0, nodes, 3)} for _ in range(queries)]
    result = hf.ppr(graph, restart)
    expected = hf.reference.ppr(graph, restart)  # float64
    distance = np.abs(result.scores - expected).sum(axis=1)
    if not (result.converged.all() and (distance <= result.bound + 1e-9).all()):
        raise SystemExit(f"ppr is not within its bound of the oracle: {distance} > {result.bound}")

    vectors, questions = (rng.standard_normal((n, 32), dtype=np.float32) for n in (nodes, queries))
    corpus = hf.Corpus.from_array(vectors, metric="cosine")
    dense = hf.dense_topk(questions, corpus, k=10)
    exact = hf.reference.dense_topk(questions, corpus, k=10)
    if not np.allclose(dense.scores, exact.scores, atol=1e-6):
        raise SystemExit("dense_topk differs from the oracle")

    walk = hf.ppr_topk(graph, restart, k=10)
    fused = hf.fuse([dense, walk], method="rrf", k=5)
    if not np.array_equal(fused.ids, hf.reference.fuse([dense, walk], method="rrf", k=5).ids):
        raise SystemExit("fuse differs from the oracle")
    print(f"hopfuse {version}: {hf.backend_info()['backends']['cpu']['variant']}, results agree with the oracle")


if __name__ == "__main__":
    main()
