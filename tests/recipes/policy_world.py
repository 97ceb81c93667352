"""A drawn memory for PolicyRAG: passages that state facts between named people and places, and questions about them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import hopfuse as hf
import numpy as np
from hopfuse.extract import Extraction, Memory, build_memory
from numpy.typing import NDArray

PASSAGES, PEOPLE, PLACES, DIM = 30, 16, 8, 16
RELATIONS = ["born in", "works with", "directed", "moved to", "is the mother of", "painted"]


class WordVectors:
    """An encoder whose vectors depend on a text's words alone: each word's own drawn vector, added."""

    dim = DIM

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [sum((_vector(word) for word in text.lower().split()), np.zeros(DIM)) for text in texts]
        return np.array(rows, np.float32).reshape(-1, DIM)

    encode_passages = encode_queries


def _vector(word: str) -> NDArray[np.float64]:
    return np.random.default_rng(zlib.crc32(word.encode())).standard_normal(DIM)


class PolicyWorld:
    """Names, facts, passages and questions, all drawn."""

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng(seed)
        letters = np.array(list("bdfgklmnprstvz"))
        vowels = np.array(list("aeiou"))

        def name() -> str:
            return "".join(
                f"{a}{b}" for a, b in zip(draw.choice(letters, 3), draw.choice(vowels, 3), strict=True)
            ).title()

        self.names = [f"{name()} {name()}" for _ in range(PEOPLE)] + [name() for _ in range(PLACES)]
        rows = []
        for p in range(PASSAGES):
            facts = []
            for _ in range(int(draw.integers(1, 4))):
                a, b = draw.choice(len(self.names), 2, replace=False)
                facts.append((self.names[a], str(draw.choice(RELATIONS)), self.names[b]))
            text = ". ".join(" ".join(fact) for fact in facts) + "." + " word" * int(draw.integers(0, 20))
            others = tuple(self.names[e] for e in draw.choice(len(self.names), 2, replace=False))
            rows.append(Extraction(f"p{p}", facts[0][0] if p % 3 else "", text, others, tuple(facts)))
        self.memory: Memory = build_memory(rows)
        entities = len(self.memory.entities)
        pairs = {tuple(sorted(draw.choice(entities, 2, replace=False).tolist())) for _ in range(8)}
        self.encoder = WordVectors()
        graph = self.memory.graph(sorted(pairs), draw.uniform(0.8, 1.0, len(pairs)))
        self.index: hf.Index = self.memory.index(
            graph,
            vectors=self.encoder.encode_passages(self.memory.texts),
            entity_vectors=self.encoder.encode_passages(self.memory.entities),
            metric="cosine",
        )
        facts = self.memory.facts
        self.fact_texts = [f"{self.memory.entities[f.head]} {f.relation} {self.memory.entities[f.tail]}" for f in facts]
        asked = draw.choice(entities, (6, 2))
        self.questions = [
            f"who {draw.choice(RELATIONS)} {self.memory.entities[a]} or {self.memory.entities[b]}" for a, b in asked
        ]
        self.mentions: list[list[Any]] = [[self.memory.entities[a], int(b)] for a, b in asked]
        self.mentions[2], self.mentions[4] = [], [self.memory.entities[asked[4][0]].upper()]

    def alone(self, mask: NDArray[np.bool_]) -> tuple[hf.Index, list[int], list[int], list[int]]:
        """An index of some passages alone, in the whole's order: with its passages, entities and facts there."""
        index, first = self.index, self.index.num_passages
        assert index.graph is not None
        assert index.facts is not None
        stated = index.edge_statements
        assert stated is not None
        said = (stated.passages < 0) | mask[np.maximum(stated.passages, 0)]
        (src, dst), weight, kind = stated.ends[said].T, stated.weights[said], stated.types[said]
        seen = np.concatenate([mask, np.zeros(index.num_entities, bool)])
        seen[dst[(dst >= first) & mask[np.minimum(src, first - 1)] & (src < first)]] = True
        seen[src[(src >= first) & mask[np.minimum(dst, first - 1)] & (dst < first)]] = True
        number, kept = np.cumsum(seen) - 1, seen[src] & seen[dst]
        passages, entities = np.flatnonzero(mask), np.flatnonzero(seen[first:])
        rows, facts = [], []
        for fact, (head, relation, tail) in enumerate(index.facts.rows.tolist()):
            stated = index.facts.passages[index.facts.indptr[fact] : index.facts.indptr[fact + 1]]
            ends = [int(number[first + end]) - passages.size for end in (head, tail)]
            some = [(ends[0], index.facts.relations[relation], ends[1], int(number[p])) for p in stated if mask[p]]
            rows, facts = rows + some, facts + [fact] * bool(some)
        names = index.graph.edge_type_names
        graph = hf.Graph.from_edges(
            number[src[kept]],
            number[dst[kept]],
            weight[kept],
            num_nodes=int(seen.sum()),
            edge_type=kind[kept],
            edge_type_names=names,
        )
        assert self.index.vectors is not None
        assert self.index.entity_vectors is not None
        built = hf.Index.build(
            passages=[{"title": index.titles[p], "text": index.texts[p]} for p in passages.tolist()],
            vectors=np.asarray(self.index.vectors)[passages],
            entities=[index.entity_names[e] for e in entities.tolist()],
            aliases={at: list(index.entity_aliases[e]) for at, e in enumerate(entities.tolist())},
            entity_vectors=np.asarray(self.index.entity_vectors)[entities],
            graph=graph,
            facts=hf.Facts.from_numbers(rows, entities.size, passages.size),
            metric="cosine",
        )
        return built, passages.tolist(), entities.tolist(), facts

    def ask(self, recipe: hf.recipes.PolicyRAG, **how: Any) -> hf.recipes.PolicyRAGResult:
        entities = self.mentions if recipe.needs.entities else None
        return recipe.search(self.questions, entities=entities, **how)
