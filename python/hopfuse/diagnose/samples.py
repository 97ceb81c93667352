"""Make questions from an index itself: titles taken out of their passages, and pairs of passages that a name joins."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import md5
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..evaluate import Qrels
from ..extract import FUNCTION_WORDS, EntityLinker, WordMatcher, canonical_key
from ..index import Index
from ..lexical import BM25
from ..retriever import Retriever
from ..types import Graph, Incidence
from .rankings import retriever_of

#: Questions of a sample, at most and at least.
SIZE, LEAST = 300, 10
#: A title or first sentence is a question if it has so many characters, and its passage keeps at least so many.
LENGTHS, KEPT = range(4, 201), 40
#: The most passages of a name that joins a pair.
RARE = 10
#: General words of the second passage in the question of a pair.
CLUES = 3
#: Passages that are read to count in how many a word is.
COUNTED = 20_000
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
#: The speaker of a turn.
_SPEAKER = re.compile(r"[^\W\d_a-z][\w.'’-]*(?: [^\W_a-z][\w.'’-]*){0,2}: +(?=\S)")
_WORD, _LETTERS = re.compile(r"[^\W\d_]{3,}"), re.compile(r"[^\W\d_]+")


class Sample(NamedTuple):
    """Questions made from an index, with what searches them.

    Attributes
    ----------
    questions : list of str
    qrels : Qrels
    retriever : Retriever
        Over the index, without what was taken out of it.
    """

    questions: list[str]
    qrels: Qrels
    retriever: Retriever


def letters_of(text: str) -> str:
    """Return the words of a text in lower case, without digits and punctuation, to find equal texts.

    Examples
    --------
    >>> from hopfuse.diagnose.samples import letters_of
    >>> letters_of("Page 1: The Sea."), letters_of("page 22, the sea")
    ('page the sea', 'page the sea')
    """
    return " ".join(_LETTERS.findall(text.lower()))


def drawn_rows(index: Index) -> list[int]:
    """Return the rows of all passages in the order of the MD5 hashes of their ids.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import drawn_rows
    >>> drawn_rows(hf.Index.build(passages=[{"id": id, "text": id} for id in "abc"]))
    [0, 2, 1]
    """
    keys = [md5(str(id).encode(), usedforsecurity=False).digest() for id in index.passage_ids]
    return sorted(range(len(keys)), key=keys.__getitem__)


def one_passage_sample(retriever: Retriever | Index, size: int = SIZE) -> Sample:
    """Return titles as questions, each to be found in its passage without the title.

    The title of a passage is its question if no other passage has it, else the first sentence of the text, without the
    speaker of a turn ("Ada: "). It is taken out of the passage: its text, its vector (made again by the encoder), BM25,
    and the graph's edges to names and words that only the title has. The index itself is not changed. Passages are
    drawn by the MD5 hash of their ids; those with equal texts are left out.

    Parameters
    ----------
    retriever : Retriever or Index
        With an encoder if the index has vectors.
    size : int
        Most questions.

    Raises
    ------
    InputError
        ``size`` is below 10, fewer passages have a title or first sentence that can be taken out, there is no encoder,
        or it has another dimension than the index's vectors.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import one_passage_sample
    >>> text = "It flows past the town of {0}, and ends in the North Sea, far from its source in {0}."
    >>> rows = [{"title": f"The river {name}", "text": text.format(name)} for name in "ABCDEFGHIJ"]
    >>> sample = one_passage_sample(hf.Index.from_texts(rows))
    >>> sample.questions[0], sample.retriever.index.titles[0]
    ('The river G', '')
    """
    whole = retriever_of(retriever)
    index = whole.index
    if index.corpus is not None and whole.encoder is None:
        raise InputError("missing", "encoder", "{field} is missing, so passages without their titles have no vectors")
    if index.corpus is not None and whole.encoder.dim != index.dim:
        raise InputError(
            "shape",
            "encoder",
            "{field} has {given} dimensions, and the vectors of the index {allowed}, so passages without their titles "
            "have no vectors",
            given=whole.encoder.dim,
            allowed=index.dim,
        )
    titles, texts = list(index.titles), list(index.texts)
    times, copies = Counter(map(canonical_key, titles)), Counter(map(letters_of, texts))
    found = list[tuple[int, str]]()
    for row in drawn_rows(index):
        if len(found) == size:
            break
        if copies[letters_of(texts[row])] > 1:
            continue  # its copy would answer too
        title = titles[row].strip()
        if times[canonical_key(title)] > 1 or not title:
            question, kept = _first_sentence(texts[row])
            is_title = False
        else:
            question, kept, is_title = title, texts[row].strip(), True
        if len(question) in LENGTHS and _WORD.search(question) and len(kept) >= max(KEPT, len(question)):
            found.append((row, question))
            titles[row], texts[row] = ("", texts[row]) if is_title else (titles[row], kept)
    _check_enough(found, size, "a title, or a first sentence, that can be taken out")
    rows = [row for row, _ in found]
    changed = _changed(whole, dict(found), titles, texts)
    return Sample([text for _, text in found], _judged([(row,) for row in rows]), whole.of_state(changed))


def two_passage_sample(retriever: Retriever | Index, size: int = SIZE) -> Sample:
    """Return questions about pairs of passages that a rare name joins, which the question does not name.

    A question is the title of the first passage (or its first sentence, if other passages have the title) and the three
    most general words of the second one's first sentence. Both passages are to be found. The pairs follow the graph's
    own edges, so they show what a walk can reach, and not how often people ask so.

    Parameters
    ----------
    retriever : Retriever or Index
        Its index has a graph.
    size : int
        Most questions.

    Raises
    ------
    InputError
        ``size`` is below 10, or the index has no graph, or fewer than 10 such pairs.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import two_passage_sample
    >>> names = [f"Name{at}" for at in range(10)]
    >>> rows = [{"title": f"Person {at}", "text": f"A painter, born in {name}."} for at, name in enumerate(names)]
    >>> rows += [{"title": name, "text": f"{name} is a quiet town near the sea."} for name in names]
    >>> edges = [{"src": row, "dst": 20 + row % 10} for row in range(20)]
    >>> index = hf.Index.build(passages=rows, entities=names, graph=edges)
    >>> sample = two_passage_sample(index)
    >>> at = sample.questions.index("Person 3 quiet town sea")
    >>> sample.qrels.gold[at]
    (3, 13)
    """
    whole = retriever_of(retriever)
    index = whole.index
    if index.graph is None or index.passage_frequency is None:
        raise InputError("missing", "index", "{field} has no graph; build it with a reader, such as words")
    pairs = []
    for pair in _pairs(index):
        pairs.append(pair)
        if len(pairs) == size:
            break
    _check_enough(pairs, size, f"a title, and a name of at most {RARE} passages that joins it to another")
    return Sample([question for question, _ in pairs], _judged([both for _, both in pairs]), whole)


# ---- One passage ----------------------------------------------------------------------------------------------------


def _first_sentence(text: str) -> tuple[str, str]:
    """Return the first sentence of a text, without the mark at its end, and the rest, which keeps a speaker."""
    stripped = text.strip()
    said_by = _SPEAKER.match(stripped)
    speaker = "" if said_by is None else said_by[0]
    said = stripped.removeprefix(speaker)
    cut = _SENTENCE_END.search(said)
    if cut is None:
        return "", stripped
    return said[: cut.start()].strip(" .。"), speaker + said[cut.end() :].strip()


def _changed(retriever: Retriever, taken: dict[int, str], titles: list[str], texts: list[str]) -> Index:
    """Return the index with other titles and texts of the passages from which texts were taken."""
    index, rows = retriever.index, list(taken)
    passages = [
        {"id": id, "title": title, "text": text}
        for id, title, text in zip(index.passage_ids, titles, texts, strict=True)
    ]
    given: dict[str, Any] = {"metric": index.metric, "storage": index.storage}
    if index.corpus is not None:
        vectors = np.array(index.corpus.as_float32())
        read = Index.build(passages=[passages[row] for row in rows]).texts_to_index()
        vectors[rows] = retriever.encoder.encode_passages(read)
        given["vectors"] = vectors
    if index.entity_corpus is not None:
        given["entity_vectors"] = np.array(index.entity_corpus.as_float32())
    if index.num_entities:
        aliases = {at: row for at, row in enumerate(index.entity_aliases) if row}
        given |= {"entities": list(index.entity_names), "aliases": aliases, "words": index.words, "facts": index.facts}
    if index.graph is not None:
        given["graph"] = _without_edges(index, index.graph, taken, [texts[row] for row in rows])
    changed = Index.build(passages=passages, encoder=index.encoder, **given)
    own = index.lexical
    if own is None:
        return changed
    how = {"method": own.method, "k1": own.k1, "b": own.b, "stopwords": tuple(own.stopwords), "stemmer": own.stemmer}
    return changed.with_lexical(BM25.build(changed.texts_to_index(), **how).matrix)  # type: ignore[arg-type]


def _without_edges(index: Index, graph: Graph, taken: dict[int, str], kept: Sequence[str]) -> Graph:
    """Return the graph without edges of passages to what only the texts taken out of them name."""
    before, after = _entities_in(index, list(taken.values())), _entities_in(index, kept)
    nodes = graph.num_nodes
    gone = [
        row * nodes + index.num_passages + entity
        for row, own, rest in zip(taken, before, after, strict=True)
        for entity in own - rest
    ]
    src, dst, weight, kind = graph.edges()
    keep = ~(np.isin(src * nodes + dst, gone) | np.isin(dst * nodes + src, gone))
    ends = src[keep], dst[keep], weight[keep]
    more = {"directed": graph.directed, "edge_type_names": graph.edge_type_names}
    return Graph.from_edges(*ends, num_nodes=nodes, edge_type=kind[keep], **more)  # type: ignore[arg-type]


def _entities_in(index: Index, texts: Sequence[str]) -> list[set[int]]:
    """Return the entities that each text names: names, and words."""
    found: list[set[int]] = [set() for _ in texts]
    matchers: list[Any] = []
    if index.words is None or index.words.first:
        matchers.append(EntityLinker(index))
    if index.words is not None:
        matchers.append(WordMatcher(index))
    for matcher in matchers:
        for own, row in zip(found, matcher.match(list(texts)), strict=True):
            own |= {match.entity for match in row}
    return found


# ---- Two passages ---------------------------------------------------------------------------------------------------


def _pairs(index: Index) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield a question and its two passages, in the order of the MD5 hashes of the first one's id."""
    assert index.graph is not None
    names_of = Incidence.from_graph(index.graph, index.num_passages)
    passages_of = names_of.transposed()
    titles, texts, names = list(index.titles), list(index.texts), index.entity_names
    times, frequency = Counter(map(canonical_key, titles)), _frequencies(index)
    rows, first_word = drawn_rows(index), index.num_entities if index.words is None else index.words.first
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    for row in rows:
        title = titles[row].strip()
        subject = title if title and times[canonical_key(title)] == 1 else _first_sentence(texts[row])[0]
        if len(subject) not in LENGTHS:
            continue
        for node in _by_rarity(names_of, passages_of, row, index.num_passages):
            entity = node - index.num_passages
            name = names[entity]
            others = [p for p in _row(passages_of, node).tolist() if p != row]
            other = min(others, key=place.__getitem__)
            if _names(subject, name):
                continue
            if entity >= first_word and not (_capital(name, texts[row]) and _capital(name, texts[other])):
                continue  # a word that is not a name
            clue = _general_words(texts[other], f"{name} {subject} {titles[other]}", frequency)
            if len(clue) == CLUES:
                yield f"{subject} {' '.join(clue)}", (row, other)
                break


def _by_rarity(names_of: Incidence, passages_of: Incidence, row: int, passages: int) -> list[int]:
    """Return the nodes of the names of a passage that 1 to RARE - 1 other passages have, the rarest first."""
    found = [(_row(passages_of, node).size, node) for node in _row(names_of, row).tolist() if node >= passages]
    return [node for size, node in sorted(found) if 2 <= size <= RARE]


def _row(of: Incidence, at: int) -> NDArray[np.int32]:
    return of.indices[of.indptr[at] : of.indptr[at + 1]]


def _frequencies(index: Index) -> Counter[str]:
    """Return in how many passages each word is, among the first COUNTED in the order of drawing."""
    found, texts = Counter[str](), index.texts
    for row in drawn_rows(index)[:COUNTED]:
        found.update(set(_WORD.findall(texts[row].lower())))
    return found


def _general_words(text: str, known: str, frequency: Counter[str]) -> list[str]:
    """Return the most frequent words of the first sentence that are neither names nor known, in their order."""
    sentence = _first_sentence(text)[0] or text[: LENGTHS.stop]
    left_out = set(_WORD.findall(known.lower()))
    words = [w for w in dict.fromkeys(_WORD.findall(sentence)) if w.islower() and w not in FUNCTION_WORDS | left_out]
    chosen = sorted(words, key=lambda word: (-frequency[word], word))[:CLUES]
    return [word for word in words if word in chosen]


def _names(text: str, name: str) -> bool:
    return canonical_key(name) in canonical_key(text)


def _capital(word: str, text: str) -> bool:
    """Return whether a text has a word with a capital, and nowhere without one."""
    return word.capitalize() in text and re.search(rf"\b{re.escape(word)}\b", text) is None


# ---- Both -----------------------------------------------------------------------------------------------------------


def _judged(gold: Sequence[tuple[int, ...]]) -> Qrels:
    return Qrels([str(at) for at in range(len(gold))], gold)


def _check_enough(found: Sequence[Any], size: int, lack: str) -> None:
    if size < LEAST:
        raise InputError(
            "range",
            "size",
            "{field}: a sample of at most {given} questions is too small; it needs {least}",
            given=size,
            least=LEAST,
        )
    if len(found) < LEAST:
        raise InputError(
            "range",
            "index",
            "{count} of the {field}'s passages have {lack}; a sample needs {least}",
            count=len(found),
            lack=lack,
            least=LEAST,
        )
