"""Systems that PyPI offers, run: a function each, giving what it is and its cases."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

Ranked = list[tuple[int, float]]
Case = tuple[dict[str, Any], Callable[..., Ranked], dict[str, Any]]
WEIGHTS = {2: [0.75, 0.5], 3: [2.0, 1.0, 0.5]}
#: Systems that order equal scores of a list as they please, asked for ranks.
UNTIED = ("ties", "equal", "equal at zero")


def about(package: str, page: str) -> dict[str, str]:
    return {"system": package, "version": version(package), "made by": "running it", "source": page}


def ranx() -> tuple[dict[str, str], list[Case]]:
    import ranx as library

    def fuser(method: str, norm: str | None, **params: Any) -> Callable[..., Ranked]:
        def fuse(lists: list[Ranked], weights: list[float] | None = None) -> Ranked:
            runs = [library.Run({"q": {str(i): s for i, s in one}}) for one in lists]
            given = {**params, **({"weights": weights} if weights else {})}
            return pairs(library.fuse(runs, norm=norm, method=method, params=given).to_dict()["q"])

        return fuse

    skip = {"skip": ("empty",)}
    norms = {"min_max": "min-max", "max": "max", "sum": "sum", "z_score": "zmuv", "rank": "rank", "none": None}
    cases: list[Case] = []
    for ours, theirs in norms.items():
        given = {"skip": ("empty", *(UNTIED if ours == "rank" else ())), "signed": True}
        call = {"method": "comb_sum", **({"calibration": ours} if ours != "min_max" else {})}
        cases.append((call, fuser("sum", theirs), given))
    for name in ("anz", "min", "max", "med", "mnz"):
        cases.append(({"method": f"comb_{name}"}, fuser(name, "min-max"), skip))
    cases.append(({"method": "comb_mnz", "gamma": 2.0}, fuser("gmnz", "min-max", gamma=2.0), skip))
    cases.append(({"method": "linear"}, fuser("wsum", "min-max"), {**skip, "weights": WEIGHTS}))
    cases.append(({"method": "wmnz"}, fuser("wmnz", "min-max"), {**skip, "weights": WEIGHTS}))
    cases.append(({"method": "mixed"}, fuser("mixed", "min-max"), {**skip, "weights": WEIGHTS}))
    ranks = {"skip": ("empty", *UNTIED)}
    cases.append(({"method": "rrf"}, fuser("rrf", None), ranks))
    cases.append(({"method": "rrf", "rank_constant": 10}, fuser("rrf", None, k=10), ranks))
    cases.append(({"method": "isr"}, fuser("isr", None), ranks))
    cases.append(({"method": "log_isr"}, fuser("log_isr", None), ranks))
    cases.append(({"method": "log_isr", "sigma": 0.25}, fuser("logn_isr", None, sigma=0.25), ranks))
    cases.append(({"method": "borda"}, fuser("bordafuse", None), ranks))
    cases.append(({"method": "borda"}, fuser("w_bordafuse", None), {**ranks, "weights": WEIGHTS}))
    cases.append(({"method": "rbc", "phi": 0.75}, fuser("rbc", None, phi=0.75), ranks))
    return about("ranx", "https://amenra.github.io/ranx/fusion/"), cases


def qdrant() -> tuple[dict[str, str], list[Case]]:
    from qdrant_client import QdrantClient, models

    def fuser(query: Any) -> Callable[..., Ranked]:
        def fuse(lists: list[Ranked]) -> Ranked:
            # A list is a vector of one number, searched by dot product with 1: its scores are the numbers.
            client = QdrantClient(":memory:")
            dot = models.VectorParams(size=1, distance=models.Distance.DOT)
            client.create_collection("c", vectors_config={str(at): dot for at in range(len(lists))})
            held: dict[int, dict[str, list[float]]] = {}
            for at, ranked in enumerate(lists):
                for i, score in ranked:
                    held.setdefault(i, {})[str(at)] = [score]
            client.upsert("c", [models.PointStruct(id=i, vector=vector) for i, vector in held.items()])
            prefetch = [models.Prefetch(query=[1.0], using=str(at), limit=100) for at in range(len(lists))]
            found = client.query_points("c", prefetch=prefetch, query=query, limit=100).points
            return [(int(point.id), float(point.score)) for point in found]

        return fuse

    rrf, dbsf = (models.FusionQuery(fusion=fusion) for fusion in (models.Fusion.RRF, models.Fusion.DBSF))
    cases: list[Case] = [
        ({"method": "rrf"}, fuser(rrf), {"skip": UNTIED}),
        ({"method": "dbsf"}, fuser(dbsf), {"signed": True}),
    ]
    if hasattr(models, "RrfQuery"):
        ten = models.RrfQuery(rrf=models.Rrf(k=10))
        cases.append(({"method": "rrf", "rank_constant": 10}, fuser(ten), {"skip": UNTIED}))
    return about("qdrant-client", "https://qdrant.tech/documentation/concepts/hybrid-queries/"), cases


def lancedb() -> tuple[dict[str, str], list[Case]]:
    import pyarrow as pa
    from lancedb.rerankers import RRFReranker

    def fuser(k: int | None) -> Callable[..., Ranked]:
        def fuse(lists: list[Ranked]) -> Ranked:
            tables = []
            for ranked, column, sign in zip(lists, ("_distance", "_score"), (-1.0, 1.0), strict=True):
                ids, scores = [i for i, _ in ranked], [sign * s for _, s in ranked]
                tables.append(pa.table({"_rowid": pa.array(ids, pa.uint64()), column: pa.array(scores, pa.float32())}))
            reranker = RRFReranker() if k is None else RRFReranker(K=k)
            found = reranker.rerank_hybrid("q", *tables).to_pylist()
            return [(row["_rowid"], row["_relevance_score"]) for row in found]

        return fuse

    cases: list[Case] = [
        ({"method": "rrf"}, fuser(None), {"skip": ("three",)}),
        ({"method": "rrf", "rank_constant": 10}, fuser(10), {"skip": ("three",)}),
    ]
    return about("lancedb", "https://docs.lancedb.com/integrations/reranking/rrf"), cases


def langchain() -> tuple[dict[str, str], list[Case]]:
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Given(BaseRetriever):
        ids: list[int]

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document(page_content=str(i)) for i in self.ids]

    def fuser(c: int) -> Callable[..., Ranked]:
        def fuse(lists: list[Ranked], weights: list[float] | None = None) -> Ranked:
            retrievers = [Given(ids=[i for i, _ in ranked]) for ranked in lists]
            more = {"weights": weights} if weights else {}
            found = EnsembleRetriever(retrievers=retrievers, c=c, **more).invoke("q")
            # The order is the system's; it keeps no scores, which are those of its documented formula.
            used, scores = weights or [1 / len(lists)] * len(lists), {}
            for ranked, weight in zip(lists, used, strict=True):
                for rank, (i, _) in enumerate(ranked, start=1):
                    scores[i] = scores.get(i, 0.0) + weight / (rank + c)
            return [(int(document.page_content), scores[int(document.page_content)]) for document in found]

        return fuse

    cases: list[Case] = [
        ({"method": "rrf"}, fuser(60), {}),
        ({"method": "rrf"}, fuser(60), {"weights": WEIGHTS}),
        ({"method": "rrf", "rank_constant": 10}, fuser(10), {}),
    ]
    page = "https://reference.langchain.com/python/langchain-classic/retrievers/ensemble/EnsembleRetriever"
    return about("langchain-classic", page), cases


def llamaindex() -> tuple[dict[str, str], list[Case]]:
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class Given(BaseRetriever):
        def __init__(self, ranked: Ranked) -> None:
            self.ranked = ranked
            super().__init__()

        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return [NodeWithScore(node=TextNode(text=str(i), id_=str(i)), score=score) for i, score in self.ranked]

    def fuser(mode: str) -> Callable[..., Ranked]:
        def fuse(lists: list[Ranked], weights: list[float] | None = None) -> Ranked:
            fusion = QueryFusionRetriever(
                [Given(ranked) for ranked in lists],
                llm=MockLLM(),
                mode=mode,
                num_queries=1,
                use_async=False,
                similarity_top_k=100,
                retriever_weights=weights,
            )
            return [(int(found.node.get_content()), float(found.score)) for found in fusion.retrieve("q")]

        return fuse

    cases: list[Case] = [({"method": "rrf"}, fuser("reciprocal_rerank"), {})]
    for ours, theirs in (("relative_score", "relative_score"), ("dbsf", "dist_based_score")):
        cases.append(({"method": ours}, fuser(theirs), {"signed": True}))
        cases.append(({"method": ours}, fuser(theirs), {"weights": WEIGHTS}))
    cases.append(({"method": "comb_max"}, fuser("simple"), {}))
    return about(
        "llama-index-core", "https://docs.llamaindex.ai/en/stable/examples/retrievers/relative_score_dist_fusion/"
    ), cases


def haystack() -> tuple[dict[str, str], list[Case]]:
    from haystack import Document
    from haystack.components.joiners import DocumentJoiner

    def fuser(mode: str) -> Callable[..., Ranked]:
        def fuse(lists: list[Ranked], weights: list[float] | None = None) -> Ranked:
            documents = [[Document(id=str(i), content=str(i), score=s) for i, s in ranked] for ranked in lists]
            found = DocumentJoiner(join_mode=mode, weights=weights).run(documents=documents)["documents"]
            return [(int(document.id), float(document.score)) for document in found]

        return fuse

    cases: list[Case] = []
    for ours, theirs in (("rrf", "reciprocal_rank_fusion"), ("linear", "merge")):
        cases.append(({"method": ours}, fuser(theirs), {}))
        cases.append(({"method": ours}, fuser(theirs), {"weights": WEIGHTS}))
    cases.append(({"method": "comb_max"}, fuser("concatenate"), {"signed": True}))
    cases.append(({"method": "dbsf"}, fuser("distribution_based_rank_fusion"), {"signed": True}))
    return about("haystack-ai", "https://docs.haystack.deepset.ai/docs/documentjoiner"), cases


def pairs(found: dict[str, float]) -> Ranked:
    return [(int(i), float(s)) for i, s in found.items()]


SYSTEMS = {
    "ranx": ranx,
    "qdrant": qdrant,
    "lancedb": lancedb,
    "langchain": langchain,
    "llamaindex": llamaindex,
    "haystack": haystack,
}
