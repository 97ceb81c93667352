"""Small indexes over which a walk wins, or loses, and their judged questions."""

from __future__ import annotations

from typing import Any, NamedTuple

import hopfuse as hf
import numpy as np
from hopfuse.evaluate import Qrels
from numpy.typing import NDArray

#: Questions, unless a test wants fewer.
COUNT = 40


class Set(NamedTuple):
    """An index, with judged questions and their vectors."""

    index: hf.Index
    questions: list[str]
    qrels: Qrels
    vectors: NDArray[np.float32]


def walk_wins(count: int = COUNT) -> Set:
    """The second passage of each question is joined to the first by a name that the question does not have."""
    rows = [{"text": f"Anna{at} worked with Bert{at} for years."} for at in range(count)]
    rows += [{"text": f"Bert{at} has a house by the sea."} for at in range(count)]
    names = [f"{name}{at}" for name in ("Anna", "Bert") for at in range(count)]
    first, second, anna, bert = (part * count + np.arange(count) for part in range(4))
    ends = ((first, anna), (first, bert), (second, bert))
    edges = [{"src": int(a), "dst": int(b)} for src, dst in ends for a, b in zip(src, dst, strict=True)]
    vectors, asked = _vectors(2 * count, count)
    index = hf.Index.build(passages=rows, vectors=vectors, entities=names, graph=edges)
    questions = [f"Which house has the colleague of Anna{at}?" for at in range(count)]
    return Set(index, questions, Qrels(_ids(count), [[at, count + at] for at in range(count)]), asked)


def walk_loses(count: int = COUNT, misled: int = 8) -> Set:
    """The answer resembles the question, and the name in it leads to ``misled`` other passages."""
    rows = [{"text": f"An answer of topic {at}."} for at in range(count)]
    rows += [{"text": f"May {at} was a cold month, says report {n}."} for at in range(count) for n in range(misled)]
    edges = [{"src": count + misled * at + n, "dst": len(rows) + at} for at in range(count) for n in range(misled)]
    vectors, asked = _vectors(len(rows), count)
    names = [f"May {at}" for at in range(count)]
    index = hf.Index.build(passages=rows, vectors=vectors, entities=names, graph=edges)
    questions = [f"What is the answer of topic {at} since May {at}?" for at in range(count)]
    return Set(index, questions, Qrels(_ids(count), [[at] for at in range(count)]), asked)


def both(won: int, lost: int) -> Set:
    """Questions of both kinds over one index."""
    a, b = walk_wins(won), walk_loses(lost)
    passages = a.index.num_passages
    edges: list[dict[str, Any]] = []
    rows = a.index.num_passages + b.index.num_passages
    for part, first, entity in ((a, 0, 0), (b, passages, a.index.num_entities)):
        assert part.index.graph is not None
        own = part.index.num_passages
        for src, dst, *_ in zip(*part.index.graph.edges(), strict=True):
            low, high = sorted((int(src), int(dst)))
            edges.append({"src": first + low, "dst": rows + entity + high - own})
    index = hf.Index.build(
        passages=[{"text": text} for text in [*a.index.texts, *b.index.texts]],
        vectors=np.concatenate([part.index.corpus.as_float32() for part in (a, b) if part.index.corpus is not None]),
        entities=[*a.index.entity_names, *b.index.entity_names],
        graph=edges,
    )
    gold = [*a.qrels.gold, *([passages + one for one in row] for row in b.qrels.gold)]
    return Set(index, a.questions + b.questions, Qrels(_ids(won + lost), gold), np.concatenate([a.vectors, b.vectors]))


def retriever(index: hf.Index, **more: Any) -> hf.Retriever:
    """A retriever that needs no package beyond SQLite."""
    return hf.Retriever(index, **{"encoder": "none", "words": "fts5", **more})


def _vectors(passages: int, questions: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Vectors of passages, and of questions near the first ones."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(passages, 16)).astype(np.float32)
    return vectors, vectors[:questions] + 0.1 * rng.normal(size=(questions, 16)).astype(np.float32)


def _ids(count: int) -> list[str]:
    return [f"q{at}" for at in range(count)]
