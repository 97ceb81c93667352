"""Build a memory from extractions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .._validation import check_distinct, check_type
from ..errors import InputError
from ..index import WordInfo
from ..text import canonical_key
from .extraction import Extraction, LabelCounts, NameCounts, Triple, WordExtractions, neighbours
from .memory import Fact, Memory, resolve_conflicts
from .relations import Predicates, default_predicates


def build_memory(extractions: Iterable[Extraction], predicates: Predicates | None = None) -> Memory:
    """Merge the extractions of passages into entities, facts and links.

    Names that differ only in case, punctuation or a leading article are one entity. A fact that several passages state
    is one fact. Facts with generic predicates, or from an entity to itself, only mention their ends. If passages
    disagree about a functional predicate, the tail that most of them state is kept, in a tie the first one; if one
    passage states several tails, all are kept. Links and words are counted over passages, and consecutive passages of
    a document form a sequence.

    Parameters
    ----------
    extractions : iterable of Extraction
        With distinct ids. What a :class:`WordReader` returns keeps its settings even if there are no passages.
    predicates : Predicates, optional

    Returns
    -------
    Memory

    Raises
    ------
    InputError
        Two extractions with one id, an entry that is not an Extraction, words that were read in different ways or for
        some passages only, or invalid positions in a document.

    Examples
    --------
    >>> from hopfuse.extract import Extraction, build_memory
    >>> memory = build_memory([
    ...     Extraction("a", "Ada", "...", ("Ada Lovelace",), (("Ada Lovelace", "born in", "London"),)),
    ...     Extraction("b", "London", "...", ("london",), (("ada lovelace", "born in", "London"),)),
    ... ])
    >>> memory, memory.aliases[1], memory.specificity.round(2).tolist()
    (Memory(passages=2, entities=2, facts=1, conflicts=0), ('london',), [0.33, 0.33])
    >>> memory.facts[0].family, memory.facts[0].passages
    ('birth', (0, 1))
    """
    predicates = default_predicates() if predicates is None else predicates
    read = list(extractions)
    for at, one in enumerate(read):
        check_type(one, f"extractions[{at}]", Extraction, "an Extraction")
    check_distinct((one.id for one in read), "extractions")
    table, labels, mentions = NameCounts(), LabelCounts(), set[tuple[int, int]]()
    linked: dict[str, Counter[tuple[int, int]]] = {}
    linking: dict[str, list[tuple[int, int, int]]] = {}
    left_out = Counter({"malformed": sum(one.malformed for one in read), "generic": 0, "loop": 0, "outvoted": 0})
    stated: dict[tuple[int, str, int], list[int]] = {}
    writings: dict[str, Counter[str]] = {}
    for passage, one in enumerate(read):
        for name, label in zip(one.entities, one.labels or ("",) * len(one.entities), strict=True):
            if name.strip():
                entity = table.add(name)
                mentions.add((passage, entity))
                labels.add(entity, label)
        for head, relation, tail in one.triples:
            a, b, key = table.add(head), table.add(tail), canonical_key(relation)
            mentions.update(((passage, a), (passage, b)))
            if predicates.is_generic(relation) or a == b:
                left_out["loop" if a == b else "generic"] += 1
                continue
            writings.setdefault(key, Counter())[" ".join(relation.split())] += 1
            passages = stated.setdefault((a, key, b), [])
            if not passages or passages[-1] != passage:
                passages.append(passage)
        for kind, pairs in _links(one.links, table).items():
            mentions.update((passage, entity) for pair in pairs for entity in pair)
            linked.setdefault(kind, Counter()).update(pairs)
            linking.setdefault(kind, []).extend((*pair, passage) for pair in sorted(pairs))
    kept, conflicts = resolve_conflicts(stated, predicates.is_functional)
    left_out["outvoted"] = sum(len(passages) for one in conflicts for passages in one.dropped.values())
    facts = []
    for (a, key, b), passages in kept.items():
        written = writings[key].most_common(1)[0][0]
        facts.append(Fact(a, written, b, predicates.family(written), tuple(passages)))
    names, aliases = table.names()
    words = _read_words(read, len(names), extractions.info if isinstance(extractions, WordExtractions) else None)
    columns = zip(*((one.id, one.title, one.text) for one in read), strict=True)
    ids, titles, texts = columns if read else ((), (), ())
    kinds = tuple(labels.of(entity) for entity in range(len(names)))
    return Memory(
        ids,
        titles,
        texts,
        names + words.names,
        aliases + ((),) * len(words.names),
        np.array(sorted([*mentions, *words.mentions]), np.int64).reshape(-1, 2),
        tuple(facts),
        conflicts,
        dict(left_out),
        kinds + ("",) * len(words.names),
        words.info,
        {kind: np.array([(*pair, n) for pair, n in pairs.items()], np.int64) for kind, pairs in linked.items()},
        neighbours(ids, [one.document for one in read], [one.position for one in read]),
        {kind: np.array(rows, np.int64) for kind, rows in linking.items()},
        tuple(one.document for one in read),
        tuple(one.language for one in read),
        {at: one.failure for at, one in enumerate(read) if one.failure is not None},
    )


def _links(links: Iterable[Triple], table: NameCounts) -> dict[str, set[tuple[int, int]]]:
    """Return a passage's distinct pairs of entities by type, the lower number first."""
    found: dict[str, set[tuple[int, int]]] = {}
    for kind, head, tail in links:
        a, b = sorted(map(table.number, (head, tail)))
        if a != b:
            found.setdefault(kind, set()).add((a, b))
    return found


class _NumberedWords(NamedTuple):
    """Words as entities: how they were read, the most frequent form of each, and their mentions (passage, entity)."""

    info: WordInfo | None
    names: tuple[str, ...]
    mentions: list[tuple[int, int]]


def _read_words(extractions: Sequence[Extraction], first: int, info: WordInfo | None = None) -> _NumberedWords:
    """Return the words of all passages as the entities ``first``, ``first + 1``, ...

    Words are numbered in the order of first occurrence. The name of a word is its most frequent form, in a tie the
    first one. ``info`` describes how words are read if there are no passages.

    Raises
    ------
    InputError
        Words were read in different ways, or for some passages only.
    """
    number: dict[str, int] = {}
    forms: list[dict[str, int]] = []
    mentions: list[tuple[int, int]] = []
    if extractions:
        info = None if extractions[0].words is None else extractions[0].words.info
    for passage, one in enumerate(extractions):
        if (None if one.words is None else one.words.info) != info:
            raise InputError(
                "conflict",
                "extractions",
                "{field} has passages {passage!r} and {other!r}, whose words were read in different ways; read all by "
                "one WordReader",
                passage=extractions[0].id,
                other=one.id,
            )
        if one.words is None:
            continue
        for key, form in zip(one.words.keys, one.words.forms, strict=True):
            at = number.setdefault(key, len(forms))
            if at == len(forms):
                forms.append({})
            forms[at][form] = forms[at].get(form, 0) + 1
            mentions.append((passage, first + at))
    names = tuple(max(counts, key=counts.__getitem__) for counts in forms)
    return _NumberedWords(None if info is None else info.with_first(first), names, mentions)
