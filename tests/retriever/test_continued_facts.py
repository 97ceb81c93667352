"""Vectors of facts that follow an index through random changes: those of all texts, each encoded once."""

from __future__ import annotations

from pathlib import Path

import hopfuse as hf
import numpy as np
import pytest
from retriever.shapes import Letters

pytest.importorskip("ahocorasick", reason="names are found by pyahocorasick")
NAMES = ["Ada", "Engine", "Babbage", "London", "Thames", "Notes", "Byron", "Sea"]
KINDS = ["built", "knew", "flows by"]
QUESTIONS = ["Who built the Engine?", "What flows by London and the Sea?", "Did Ada know Byron?"]


@pytest.mark.parametrize("seed", range(4))
def test_fact_vectors_that_follow_an_index_are_those_of_its_facts(seed: int, tmp_path: Path) -> None:
    random, encoder = np.random.default_rng(seed), Letters()

    def fact(passage: int | str) -> tuple[str, str, str, int | str]:
        head, tail = random.choice(NAMES, 2, replace=False).tolist()
        return head, str(random.choice(KINDS)), tail, passage

    rows = [{"id": f"{at}", "text": f"{NAMES[at]} passage {at}"} for at in range(6)]
    hf.Index.build(
        rows,
        vectors=Letters().encode_passages([row["text"] for row in rows]),
        entities=NAMES,
        entity_vectors=Letters().encode_passages(NAMES),
        facts=[dict(zip(("head", "relation", "tail", "passage"), fact(at % 6), strict=True)) for at in range(9)],
        graph=[{"src": at, "dst": 6 + at} for at in range(6)],
    ).save(tmp_path)
    ids = [row["id"] for row in rows]
    with hf.Index.open(tmp_path, writable=True) as live:
        retriever = hf.Retriever(live, "policy-rag", encoder=encoder)
        for step in range(12):
            index = live.refresh()
            found = retriever.search(QUESTIONS, k=4, trace=True)
            wanted = hf.Retriever(index, "policy-rag", encoder=Letters()).search(QUESTIONS, k=4, trace=True)
            assert np.array_equal(found.hits.ids, wanted.hits.ids)
            assert np.array_equal(found.hits.scores, wanted.hits.scores)
            assert (found.facts, found.traces) == (wanted.facts, wanted.traces)
            assert set(encoder.passages) >= set(index.facts.texts(index.entity_names))
            assert set(encoder.passages.values()) == {1}
            with live.change() as change:
                kind = random.integers(4)
                if kind == 0 and len(ids) > 2:
                    change.delete_passages([ids.pop(random.integers(len(ids)))])
                    continue
                id = f"new {step}" if kind > 1 else ids[random.integers(len(ids))]
                row, vectors = {"id": id, "text": f"passage {step}"}, Letters().encode_passages([f"passage {step}"])
                if kind > 1:
                    ids.append(id)
                    change.add_passages([row], vectors=vectors)
                else:
                    change.replace_passages([row], vectors=vectors)
                change.add_facts([fact(id), fact(ids[0])])
