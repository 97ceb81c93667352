"""Six judged queries and two runs, small enough to compute by hand."""

import hopfuse as hf
from hopfuse.evaluate import Qrels

QRELS = Qrels(
    list("abcdef"),
    gold=[[1, 2], [3, 4], [5, 6, 7], [8], [9, 10], [11]],
    hops=[[[1], [2]], [[3], [4]], [[5], [6], [7]], [[8]], [[9], [10]], []],
    last_hop=[[2], [4], [7], [8], [], []],
)
DENSE = hf.Hits([[1, 30], [30, 31], [5, 6], [8, 30], [9, 10], [30, 31]], [[0.9, 0.8]] * 6)
GRAPH = hf.Hits([[1, 2], [4, 31], [7, 6], [31, 30], [9, 10], [11, 31]], [[0.9, 0.8]] * 6)
RUNS = {"dense": DENSE, "graph": GRAPH}
METRICS = ("recall@2", "hit@1", "last_hop@2", "mrr")
