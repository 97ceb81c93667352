"""The atlas as each recipe needs it: an index or triples, and questions that passages or entities answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .. import Graph, Index, Triples
from ..evaluate import Qrels
from ..extract.atlas import Atlas, Question
from .demo_asked import Asked


def atlas_index(atlas: Atlas, vectors: NDArray[np.float32], recipe: str) -> Index:
    """The index of an atlas; for policy-rag with its facts, and alternate names as the synonyms that they are."""
    facts = atlas.facts() if recipe == "policy-rag" else None
    named = tuple("synonym" if name == "alias" else name for name in atlas.edge_type_names)
    graph: Graph = atlas.graph() if facts is None else replace(atlas, edge_type_names=named).graph()
    rows = zip(atlas.ids, atlas.titles, atlas.texts, strict=True)
    return Index.build(
        passages=[{"id": id, "title": title, "text": text} for id, title, text in rows],
        vectors=vectors,
        graph=graph,
        entities=list(atlas.entities),
        aliases={entity: names for entity, names in enumerate(atlas.aliases) if names},
        facts=facts,
    )


def atlas_triples(atlas: Atlas) -> Triples:
    """The facts of an atlas by name; all entities, alternate names among them."""
    names, relations = atlas.entities, atlas.relations
    rows = ((names[head], relations[kind], names[tail]) for head, kind, tail, _ in atlas.fact_rows.tolist())
    return Triples(rows, names)


def answered_by_passages(atlas: Atlas) -> Asked:
    """All questions; each needs a passage a hop."""
    return _asked(
        atlas,
        atlas.questions,
        Qrels(
            [q.id for q in atlas.questions],
            [q.hops for q in atlas.questions],
            [[[row] for row in q.hops] for q in atlas.questions],
            [[q.last_hop] for q in atlas.questions],
            [q.type for q in atlas.questions],
        ),
    )


def answered_by_entities(atlas: Atlas) -> Asked:
    """The questions whose answer is the name of an entity that the last passage is about or mentions."""
    called = _called(atlas)
    found = [sorted(called.get((q.last_hop, q.answer), [])) for q in atlas.questions]
    kept = [(q, right) for q, right in zip(atlas.questions, found, strict=True) if right]
    return _asked(
        atlas,
        [q for q, _ in kept],
        Qrels(
            [q.id for q, _ in kept],
            [right for _, right in kept],
            [[*([()] * (q.num_hops - 1)), right] for q, right in kept],
            types=[q.type for q, _ in kept],
        ),
        answers=True,
    )


def _called(atlas: Atlas) -> dict[tuple[int, str], list[int]]:
    """Entities by a passage beside them and one of their names."""
    context = atlas.edge_type == atlas.edge_type_names.index("context")
    called: dict[tuple[int, str], list[int]] = {}
    for passage, node in zip(atlas.src[context].tolist(), atlas.dst[context].tolist(), strict=True):
        entity = node - atlas.num_passages
        for name in {atlas.entities[entity], *atlas.aliases[entity]}:
            called.setdefault((passage, name), []).append(entity)
    return called


def _asked(
    atlas: Atlas, questions: list[Question] | tuple[Question, ...], qrels: Qrels, *, answers: bool = False
) -> Asked:
    hops = np.array([q.num_hops for q in questions])
    alias = np.array([q.by_alias for q in questions])
    groups = {"all": np.ones(hops.size, bool), "2 hops": hops == 2, "3 hops": hops == 3, "by alias": alias}
    needs = [" → ".join(atlas.titles[row] for row in q.hops) + f"; the answer is {q.answer}" for q in questions]
    return Asked([q.text for q in questions], qrels, groups, needs, answers=answers)
