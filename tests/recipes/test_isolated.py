"""An isolated answer is that of an index built from the rows of the allowed passages alone: ids, scores and traces."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.extract import EntityLinker
from hopfuse.index import IndexPart
from hopfuse.lexical import BM25, FTS5
from hopfuse.recipes import GuidedWalk, HybridRRF, PhaseGraph, Policy, PolicyRAG, TripleHybrid
from hypothesis import given, settings
from hypothesis import strategies as st
from index.index_files import assert_same

NAMES = ["Ada", "Babbage", "Engine", "London", "Ada", "Byron"]
WORDS = ["engine", "notes", "london", "poem", "wrote", "the"]
TYPES = ["context", "met", "synonym"]
QUESTIONS = ["Who wrote the notes of Ada on the Engine?", "Byron in London", "the poem of Babbage"]
D = 3
World = dict[str, Any]


@st.composite
def worlds(draw: Any) -> World:
    """Rows: passages, names, edges with who states them, facts in the order of the index, vectors."""
    passages, entities = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    edges = []
    for p in range(passages):
        for e in random.permutation(entities)[: random.integers(0, 4)].tolist():
            edges.append({"src": p, "dst": passages + e, "type": "context", "weight": 1.0 + random.integers(0, 3) / 7})
    for _ in range(random.integers(0, 8)):
        a, b = random.integers(0, entities, 2).tolist()
        said = random.integers(-1, passages)
        kind, weight = ("synonym" if said < 0 else "met"), random.random() + 0.1
        edges.append({"src": passages + a, "dst": passages + b, "type": kind, "weight": weight, "passage": int(said)})
    random.shuffle(edges)
    facts: list[tuple[int, str, int, int]] = []
    triples = {
        (int(random.integers(entities)), "rn"[int(random.integers(2))], int(random.integers(entities)))
        for _ in range(5)
    }
    for head, relation, tail in sorted(triples):
        for p in np.flatnonzero(random.random(passages) < 0.5).tolist():
            facts.append((head, relation, tail, p))
    return {
        "texts": [" ".join(random.choice(WORDS, random.integers(0, 6))) for _ in range(passages)],
        "titles": [NAMES[random.integers(len(NAMES))] if random.random() < 0.7 else "" for _ in range(passages)],
        "names": NAMES[:entities],
        "aliases": {e: [WORDS[random.integers(4)]] for e in range(entities) if random.random() < 0.3},
        "edges": edges,
        "facts": facts,
        "vectors": random.integers(-2, 3, (passages, D)).astype(np.float32) + np.float32(0.5),
        "entity_vectors": random.integers(-2, 3, (entities, D)).astype(np.float32) + np.float32(0.5),
        "years": [int(random.integers(2000, 2003)) if random.random() < 0.7 else None for _ in range(passages)],
    }


def build(world: World, passages: list[int], entities: list[int]) -> hf.Index:
    """Build the index of some rows of a world, in their order."""
    whole = len(world["texts"])
    node = {p: at for at, p in enumerate(passages)}
    node |= {whole + e: len(passages) + at for at, e in enumerate(entities)}
    rows = [
        edge | {"src": node[edge["src"]], "dst": node[edge["dst"]], "passage": node.get(edge.get("passage", -1), -1)}
        for edge in world["edges"]
        if edge["src"] in node and edge["dst"] in node and (edge.get("passage", -1) in (-1, *passages))
    ]
    statements = hf.types.EdgeStatements(
        np.array([(r["src"], r["dst"]) for r in rows], np.int32).reshape(-1, 2),
        np.array([TYPES.index(r["type"]) for r in rows], np.uint8),
        np.array([r["weight"] for r in rows], np.float64),
        np.array([r["passage"] for r in rows], np.int32),
    )
    size = len(passages) + len(entities)
    graph = hf.Graph.from_edges(
        statements.ends[:, 0],
        statements.ends[:, 1],
        statements.weights,
        edge_type=statements.types,
        edge_type_names=TYPES,
        num_nodes=size,
    )
    place = {e: at for at, e in enumerate(entities)}
    facts = [(place[h], r, place[t], node[p]) for h, r, t, p in world["facts"] if p in passages]
    years = [{"year": world["years"][p]} if world["years"][p] is not None else None for p in passages]
    index = hf.Index.build(
        passages=[
            {"id": f"p{p}", "title": world["titles"][p], "text": world["texts"][p], "metadata": m}
            for p, m in zip(passages, years, strict=True)
        ],
        metadata_types={"year": "int64"},
        vectors=world["vectors"][passages],
        entities=[world["names"][e] for e in entities],
        aliases={place[e]: row for e, row in world["aliases"].items() if e in place},
        entity_vectors=world["entity_vectors"][entities],
        graph=graph,
        statements=statements,
        facts=hf.Facts.from_numbers(facts, len(entities), len(passages)),
        metric="cosine",
    )
    return index.with_lexical(BM25.build(index.texts_to_index(), method="robertson").matrix)


def visible(world: World, passages: list[int]) -> list[int]:
    """Return the entities that some passages mention, or of which they state an edge or a fact."""
    whole, seen = len(world["texts"]), set[int]()
    for edge in world["edges"]:
        own = {end for end in (edge["src"], edge["dst"]) if end < whole} | {edge.get("passage", -1)} - {-1}
        if own and own <= set(passages):
            seen |= {end - whole for end in (edge["src"], edge["dst"]) if end >= whole}
    seen |= {end for h, _, t, p in world["facts"] if p in passages for end in (h, t)}
    return sorted(seen)


class Encoder:
    """Vectors of texts by their lengths."""

    name, dim, normalize = "test", D, False

    def encode_queries(self, texts: list[str]) -> np.ndarray:
        return np.array([[1 + len(t) % 3, len(t) % 5, -1] for t in texts], np.float32)

    encode_passages = encode_queries


def recipes(index: hf.Index) -> dict[str, Any]:
    """Every recipe over an index, with all of its collaborators."""
    words = BM25(index.lexical)
    linker, encoder = EntityLinker(index), Encoder()
    named = BM25.build(list(index.entity_names), stopwords=None, stemmer=None)
    policy = Policy.from_toml("version = 1\n[walk]\nrelation = 0.4\nsynonym = 0.2\ncontext = 0.4\n")
    return {
        "phase": PhaseGraph(index, encoder=encoder, matcher=linker, lexical=words, passage_seeds=0.1),
        "paper": PhaseGraph(index, PhaseGraph.paper(), encoder=encoder),
        "guided": GuidedWalk(index, encoder=encoder, matcher=linker, lexical=words),
        "hybrid": HybridRRF(index, encoder=encoder, matcher=linker, lexical=words, exact_bonus=0.5),
        "convex": HybridRRF(index, fusion="convex", encoder=encoder, lexical=FTS5.build(index.texts_to_index())),
        "policy": PolicyRAG(index, policy, encoder=encoder, matcher=linker),
        "triples": TripleHybrid(index, encoder=encoder),
        "nearest": TripleHybrid(index, mode="vector", encoder=encoder),
        "names": TripleHybrid(index, mode="lexical", lexical=named),
    }


def plain(value: Any, part: IndexPart | None, key: str = "") -> Any:
    """Return a trace with the whole index's numbers, as every key that has one says."""
    if isinstance(value, dict):
        kinds = {"number": value["kind"]} if value.get("kind") in ("passage", "entity") else {}
        return {
            k: plain(v, part, kinds.get(k, k)) for k, v in value.items() if k not in ("allowed", "query", "left_out")
        }
    if isinstance(value, list | tuple):
        return [plain(one, part) for one in value]
    rows = {"passage": "passages", "entity": "entities", "fact": "facts", "triple": "facts"}.get(key)
    return int(getattr(part, rows)[value]) if part is not None and rows and type(value) is int else value


def rows_of(hits: hf.Hits, part: IndexPart | None, entities: bool) -> list[list[tuple[int, float]]]:
    numbers = None if part is None else part.entities if entities else part.passages
    listed = [hits.row(b) for b in range(len(hits))]
    return [[(i if numbers is None else int(numbers[i]), s) for i, s in row] for row in listed]


def ask(name: str, recipe: Any, **options: Any) -> Any:
    mentions: dict[str, Any] = {} if name in ("triples", "nearest", "names") else {"entities": MENTIONS}
    if name in ("phase", "guided", "policy"):
        mentions = {}  # the matcher finds them
    return recipe.search(QUESTIONS, k=4, trace=True, **mentions, **options)


MENTIONS = [["Ada", "nobody"], ["engine", "Byron"], []]


@settings(max_examples=settings().max_examples // 3)
@given(worlds(), st.data())
def test_every_recipe_answers_as_an_index_built_from_the_allowed_rows(world: World, data: Any) -> None:
    count = len(world["texts"])
    whole = build(world, list(range(count)), list(range(len(world["names"]))))
    sets = data.draw(st.lists(st.sets(st.integers(0, count - 1), min_size=1), min_size=3, max_size=3))
    masks = [np.isin(np.arange(count), sorted(one)) for one in sets]
    found = {name: ask(name, recipe, allow=masks) for name, recipe in recipes(whole).items()}
    for b, mask in enumerate(masks):
        passages = np.flatnonzero(mask).tolist()
        part = whole.part(mask)
        assert part.entities.tolist() == visible(world, passages)
        alone = build(world, passages, part.entities.tolist())
        assert_same(part.index, alone)
        for name, recipe in recipes(alone).items():
            expected, got = ask(name, recipe), found[name]
            entities = name in ("triples", "nearest", "names")
            assert rows_of(got.hits, None, entities)[b] == rows_of(expected.hits, part, entities)[b], name
            assert set(got.lists) == set(expected.lists)
            for leg in got.lists:
                ours, theirs = (rows_of(r.lists[leg], p, entities)[b] for r, p in ((got, None), (expected, part)))
                assert ours == theirs, (name, leg)
            assert plain(got.traces[b], None) == plain(expected.traces[b], part), name
            if got.fell_back is not None:
                assert got.fell_back[b] == expected.fell_back[b]
