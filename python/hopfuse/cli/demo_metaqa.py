"""MetaQA: films' facts and questions, as triples that a recipe reads or as passages, one to describe each entity."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import md5
from pathlib import Path

import numpy as np

from .. import Facts, Graph, Index, Triples
from ..encoders import Encoder
from ..errors import InputError
from ..evaluate import Qrels
from .demo_asked import Asked, groups_by_hops
from .demo_files import tsv

#: Facts that an entity's text names at most: a language or a genre has thousands, and would say nothing else.
FACTS_OF_A_TEXT = 20
QUESTIONS = 1000  # of each number of hops


def metaqa_triples(path: Path) -> Triples:
    """All facts; entities in the order of entity2text.txt, some of which no fact has."""
    rows = tsv(path / "kb.tsv", ("head", "relation", "tail"))
    facts = [(head, relation, tail) for _, (head, relation, tail) in rows]
    if not facts:
        raise InputError(f"{path / 'kb.tsv'} has no facts; give it a line of head, relation and tail for each")
    names = [name for _, (_, name) in tsv(path / "entity2text.txt", ("number", "entity"))]
    return Triples(facts, list(dict.fromkeys([*names, *(fact[end] for fact in facts for end in (0, 2))])))


def metaqa_questions(path: Path, entities: Sequence[str]) -> Asked:
    """Questions of each number of hops, those whose texts have the smallest MD5; a topic is what stands in brackets.

    Gold are the answers, by entity; passage i describes entity i.
    """
    number = {name: at for at, name in enumerate(entities)}
    texts, gold, hops, needs = list[str](), list[list[int]](), list[list[tuple[int, ...]]](), list[str]()
    topics = list[list[str]]()
    for steps in (1, 2, 3):
        rows = _questions(path / f"qa_{steps}hop_dev.txt", number)
        rows.sort(key=lambda row: md5(row[0].encode(), usedforsecurity=False).digest())
        for text, answers in rows[:QUESTIONS]:
            texts.append(re.sub(r"[\[\]]", "", text))
            topics.append(re.findall(r"\[(.+)\]", text))
            gold.append(sorted({number[answer] for answer in answers}))
            hops.append([*([()] * (steps - 1)), tuple(gold[-1])])
            needs.append(", ".join(answers))
    if not texts:
        raise InputError(f"{path} has no questions: its files qa_*hop_dev.txt are empty; give one of them some")
    qrels = Qrels([str(at) for at in range(len(gold))], gold, hops)
    return Asked(texts, qrels, groups_by_hops(qrels), needs, mentions=topics, answers=True)


def _questions(path: Path, number: Mapping[str, int]) -> list[tuple[str, list[str]]]:
    """Texts and their answers, all of which are entities."""
    rows = list[tuple[str, list[str]]]()
    for where, (text, said) in tsv(path, ("question", "answers")):
        answers = said.split("|")
        for answer in answers:
            if answer not in number:
                raise InputError(
                    f"{where} has the answer {answer!r}, which is no entity of kb.tsv or entity2text.txt; answers are "
                    "names as they stand there, | between them"
                )
        rows.append((text, answers))
    return rows


def metaqa_index(triples: Triples, encoder: Encoder) -> Index:
    """A passage for each entity, which states the first facts about it and mentions their ends.

    The graph relates the ends of every fact; the index's facts are those that a passage states.
    """
    entities, about = triples.entities, _facts_about(triples)
    return Index.build(
        passages=[
            {"title": name, "text": ". ".join(_said(triples, fact) for fact in facts)}
            for name, facts in zip(entities, about, strict=True)
        ],
        vectors=encoder.encode_passages(entity_texts(triples)),
        entities=list(entities),
        graph=_graph(triples, about),
        facts=Facts.from_numbers(_stated(triples, about), len(entities), len(entities)),
    )


def entity_texts(triples: Triples) -> list[str]:
    """Each entity's name and the first facts about it, as a passage of a text collection would have them.

    Examples
    --------
    >>> import hopfuse as hf
    >>> entity_texts(hf.Triples([("Alien", "directed by", "Ridley Scott")]))
    ['Alien. Alien directed by Ridley Scott', 'Ridley Scott. Alien directed by Ridley Scott']
    """
    about = zip(triples.entities, _facts_about(triples), strict=True)
    return [". ".join([name, *(_said(triples, fact) for fact in facts)]) for name, facts in about]


def _facts_about(triples: Triples) -> list[list[int]]:
    """The first facts that each entity is an end of."""
    about: list[list[int]] = [[] for _ in triples.entities]
    for fact, (head, _, tail) in enumerate(triples.rows.tolist()):
        for end in {head, tail}:
            if len(about[end]) < FACTS_OF_A_TEXT:
                about[end].append(fact)
    return about


def _said(triples: Triples, fact: int) -> str:
    head, relation, tail = triples.rows[fact].tolist()
    return f"{triples.entities[head]} {triples.relations[relation]} {triples.entities[tail]}"


def _graph(triples: Triples, about: list[list[int]]) -> Graph:
    """Passages are joined with what they mention, once each, and the ends of a fact with each other."""
    count, rows = len(about), triples.rows.astype(np.int64)
    mentioned = [np.unique([entity, *rows[facts][:, [0, 2]].flat]) for entity, facts in enumerate(about)]
    passages = np.repeat(np.arange(count), [len(some) for some in mentioned])
    src = np.concatenate([passages, count + rows[:, 0]])
    dst = np.concatenate([*(count + some for some in mentioned), count + rows[:, 2]])
    kinds = np.repeat([0, 1], [passages.size, len(rows)])
    names = ("context", "relation")
    return Graph.from_edges(src, dst, num_nodes=2 * count, edge_type=kinds, edge_type_names=names)


def _stated(triples: Triples, about: list[list[int]]) -> list[tuple[int, str, int, int]]:
    """Facts with the passages that state them, in the triples' order."""
    pairs = sorted((fact, passage) for passage, facts in enumerate(about) for fact in facts)
    rows, relations = triples.rows.tolist(), triples.relations
    return [(rows[fact][0], relations[rows[fact][1]], rows[fact][2], passage) for fact, passage in pairs]
