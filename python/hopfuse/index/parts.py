"""Conversion between the parts of an index and sections: graph, corpora, terms, words, facts and encoder.

Sections from a file are verified on loading; anything wrong is a FormatError.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import check_range
from .._validation import check_needs, check_type, check_whole
from ..errors import FormatError, InputError
from ..text import NAME_RULE, RULE, check_rule
from ..types import Corpus, EdgeStatements, Facts, Graph, Incidence, TermMatrix
from ..types.corpus import Metric, Storage
from ..types.edge_statements import UNKNOWN
from .columns import string_arrays, string_column
from .encoder import EncoderInfo
from .format import Settings
from .graph_check import check_graph
from .schema import GRAPH_ARRAYS
from .sections import Section, damage_of
from .words import WordInfo, check_stemmer

#: The reading rule of a part that does not say its own.
FIRST_RULE = 1

Sections = Mapping[str, Section]
Arrays = dict[str, NDArray[Any]]


# ---- Vectors ----


def load_corpus(sections: Sections, settings: Settings, name: str) -> Corpus | None:
    """Return a corpus over a section of vectors, or None without that section."""
    if name not in sections:
        return None
    metric, storage = cast(Metric, settings.metric), cast(Storage, settings.storage)
    with damage_of(sections[name]):
        return Corpus.from_stored(sections[name].whole(), metric=metric, storage=storage)


def vector_dim(sections: Sections, name: str) -> int | None:
    """Return the dimension of a section of vectors, or None without that section."""
    return sections[name].shape[1] if name in sections else None


# ---- Encoder ----


def encoder_arrays(encoder: EncoderInfo) -> Arrays:
    """Return the sections ``encoder.*``."""
    return {
        **string_arrays("encoder.name", [encoder.name]),
        "encoder.setting": np.array([encoder.dim, encoder.normalize], np.int64),
    }


def load_encoder(sections: Sections) -> EncoderInfo | None:
    """Return the encoder of the vectors, or None if it is not known."""
    if "encoder.setting" not in sections:
        return None
    dim, normalize = sections["encoder.setting"].whole().tolist()
    with damage_of(sections["encoder.setting"]):
        check_whole(normalize, "normalize", 1, least=0)
        encoder = EncoderInfo(string_column(sections, "encoder.name")[0], dim, bool(normalize))
        check_encoder_dim(encoder, *(vector_dim(sections, f"{kind}.vectors") for kind in ("passage", "entity")))
    return encoder


def check_encoder_dim(encoder: EncoderInfo, dim: int | None, entity_dim: int | None) -> None:
    """Refuse an encoder of another dimension than the passages' vectors or, without those, the entities'."""
    own = entity_dim if dim is None else dim
    check_needs("encoder", encoder, "vectors", own)
    if own != encoder.dim:
        raise InputError(
            "shape",
            "encoder",
            "{field} {name!r} makes vectors of {given} dimensions, those of the index have {allowed}",
            name=encoder.name,
            given=encoder.dim,
            allowed=own,
        )


# ---- Entities ----


def stated_arrays(stated: NDArray[Any]) -> Arrays:
    """Return the section ``entity.stated``, or none if a user stated all entities."""
    return {} if stated.all() else {"entity.stated": stated.astype(np.uint8)}


def load_stated(sections: Sections, num_entities: int) -> NDArray[np.bool_]:
    """Return which entities a user stated, verified."""
    if "entity.stated" not in sections:
        return np.ones(num_entities, np.bool_)
    bits = sections["entity.stated"].whole()
    with damage_of(sections["entity.stated"]):
        check_range(bits, "stated", 2)
    return bits.view(np.bool_)


def name_rule_arrays(rule: int = NAME_RULE) -> Arrays:
    """Return the section ``entity.rule``."""
    return {"entity.rule": np.array([rule], np.int64)}


def load_name_rule(sections: Sections) -> int:
    """Return the number of the rule under which names are read."""
    return _load_rule(sections, "entity.rule", "names", NAME_RULE)


def _load_rule(sections: Sections, name: str, what: str, last: int = RULE) -> int:
    if name not in sections:
        return FIRST_RULE
    with damage_of(sections[name]):
        return check_rule(sections[name].whole().tolist()[0], what, last)


# ---- Graph ----


def graph_arrays(graph: Graph, num_passages: int) -> Arrays:
    """Return the sections ``graph.*``, and the counts derived from the graph."""
    mentioned = np.bincount(Incidence.from_graph(graph, num_passages).indices, minlength=graph.num_nodes)
    return {
        "entity.passage_frequency": mentioned[num_passages:].astype(np.int32),
        **string_arrays("graph.type_name", graph.edge_type_names),
        "graph.edge_count": graph.counts_of_types(),
        **{f"graph.{name}": array for name, array in graph.to_arrays().items()},
    }


def load_graph(sections: Sections, settings: Settings) -> Graph | None:
    """Return the graph, verified, or None if there is none."""
    if "graph.indptr" not in sections:
        return None
    label = sections["graph.indptr"].label
    names = list(string_column(sections, "graph.type_name"))
    if len(set(names)) != len(names):
        raise FormatError("duplicate", None, "the edge type names {given} repeat a name", given=names).at(label)
    arrays = {name.removeprefix("graph."): sections[name].whole() for name in GRAPH_ARRAYS if name in sections}
    try:
        check_graph(arrays)
    except FormatError as error:
        raise error.at(label) from None
    return Graph.from_arrays(arrays, directed=settings.directed, edge_type_names=names)


def graph_info(sections: Sections, settings: Settings) -> dict[str, Any] | None:
    """Return the graph's part of ``Index.info``."""
    if "graph.indptr" not in sections:
        return None
    counts = sections["graph.edge_count"].whole().tolist()
    return {
        "nodes": sections["graph.node_of"].shape[0],
        "stored": sections["graph.indices"].shape[0],
        "directed": settings.directed,
        "weighted": "graph.weight" in sections,
        "edge_types": dict(zip(string_column(sections, "graph.type_name"), counts, strict=True)),
    }


def statement_arrays(statements: EdgeStatements) -> Arrays:
    """Return the sections ``edge.*``."""
    return {
        "edge.end": statements.ends,
        "edge.weight": statements.weights,
        "edge.type": statements.types,
        "edge.passage": statements.passages,
    }


def load_statements(sections: Sections, graph: Graph | None, num_passages: int) -> EdgeStatements | None:
    """Return the edges as stated, verified, or None if only the graph is stored."""
    if "edge.end" not in sections or graph is None:
        return None
    end, kind, weight, passage = (sections[f"edge.{name}"].whole() for name in ("end", "type", "weight", "passage"))
    with damage_of(sections["edge.end"]):
        stated = EdgeStatements(end, kind, weight, passage)
        check_range(end, "ends", graph.num_nodes)
        check_range(kind, "types", graph.num_edge_types)
        check_range(passage[passage >= 0], "passages", num_passages)
    return stated


def statements_of(graph: Graph) -> EdgeStatements:
    """Return a graph's merged edges, each stated once by an unknown passage."""
    edges = EdgeStatements.of_no_passage(graph)
    return replace(edges, passages=np.full(len(edges), UNKNOWN, np.int32))


# ---- Terms ----


def lexical_arrays(matrix: TermMatrix, num_passages: int, terms: Mapping[str, Any] | None = None) -> Arrays:
    """Return the sections ``lexical.*`` of a matrix over the passages.

    ``terms``: the sections of its terms, if they are made already.
    """
    check_type(matrix, "matrix", TermMatrix, "a TermMatrix: BM25.build(texts).matrix")
    if matrix.num_passages != num_passages:
        raise InputError(
            "length",
            "matrix",
            "{field} is over {given} passages, the index has {allowed}; build it from the index's own texts, in their "
            "order",
            given=matrix.num_passages,
            allowed=num_passages,
        )
    check_stemmer(matrix.stemmer)
    counts = {} if matrix.counts is None else {"lexical.count": matrix.counts}
    return term_arrays(matrix, terms) | {"lexical.passage": matrix.passages, "lexical.score": matrix.scores} | counts


def term_arrays(matrix: TermMatrix, terms: Mapping[str, Any] | None = None) -> Arrays:
    """Return the sections ``lexical.*`` without those of the entries; ``terms`` as of :func:`lexical_arrays`."""
    return {
        **string_arrays("lexical.setting", (matrix.method, matrix.stemmer or "")),
        "lexical.parameter": np.array([matrix.k1, matrix.b]),
        **string_arrays("lexical.stopword", matrix.stopwords),
        "lexical.rule": np.array([matrix.rule], np.int64),
        **(string_arrays("lexical.term", matrix.terms) if terms is None else terms),
        "lexical.indptr": matrix.indptr,
    }


def load_lexical(sections: Sections, num_passages: int) -> TermMatrix | None:
    """Return the matrix, verified, or None if there is none."""
    if "lexical.indptr" not in sections:
        return None
    method, stemmer = string_column(sections, "lexical.setting")
    k1, b = sections["lexical.parameter"].whole().tolist()
    with damage_of(sections["lexical.indptr"]):
        check_stemmer(stemmer or None)
        return TermMatrix(
            terms=list(string_column(sections, "lexical.term")),
            indptr=sections["lexical.indptr"].whole(),
            passages=sections["lexical.passage"].whole(),
            scores=sections["lexical.score"].whole(),
            num_passages=num_passages,
            method=method,
            k1=k1,
            b=b,
            stopwords=list(string_column(sections, "lexical.stopword")),
            stemmer=stemmer or None,
            counts=sections["lexical.count"].whole() if "lexical.count" in sections else None,
            rule=_load_rule(sections, "lexical.rule", "terms"),
        )


def lexical_info(sections: Sections) -> dict[str, Any] | None:
    """Return the terms' part of ``Index.info``."""
    if "lexical.indptr" not in sections:
        return None
    method, stemmer = string_column(sections, "lexical.setting")
    k1, b = sections["lexical.parameter"].whole().tolist()
    return {
        "method": method,
        "k1": k1,
        "b": b,
        "stemmer": stemmer or None,
        "rule": _load_rule(sections, "lexical.rule", "terms"),
        "stopwords": len(string_column(sections, "lexical.stopword")),
        "terms": len(string_column(sections, "lexical.term")),
        "entries": sections["lexical.score"].shape[0],
    }


# ---- Words ----


def word_arrays(words: WordInfo, num_entities: int) -> Arrays:
    """Return the sections ``word.*``."""
    check_type(words, "words", WordInfo, "a WordInfo")
    _check_first(words, num_entities)
    return {
        **string_arrays("word.setting", [words.stemmer or "", words.tagger or ""]),
        "word.first": np.array([words.first], np.int64),
        **string_arrays("word.stopword", words.stopwords),
        "word.rule": np.array([words.rule], np.int64),
    }


def load_words(sections: Sections, num_entities: int) -> WordInfo | None:
    """Return which entities are words and how they were read, verified, or None if there are none."""
    if "word.first" not in sections:
        return None
    stemmer, tagger = string_column(sections, "word.setting")
    (first,) = sections["word.first"].whole().tolist()
    with damage_of(sections["word.first"]):
        rule = _load_rule(sections, "word.rule", "words")
        words = WordInfo(first, stemmer or None, tagger or None, tuple(string_column(sections, "word.stopword")), rule)
        _check_first(words, num_entities)
    return words


def _check_first(words: WordInfo, num_entities: int) -> None:
    check_whole(words.first, "words.first", num_entities, least=0)


def words_info(sections: Sections) -> dict[str, Any] | None:
    """Return the words' part of ``Index.info``."""
    if "word.first" not in sections:
        return None
    stemmer, tagger = string_column(sections, "word.setting")
    return {
        "words": sections["entity.alias.rows"].shape[0] - 1 - sections["word.first"].whole().tolist()[0],
        "stemmer": stemmer or None,
        "tagger": tagger or None,
        "rule": _load_rule(sections, "word.rule", "words"),
        "stopwords": len(string_column(sections, "word.stopword")),
    }


# ---- Facts ----


def fact_arrays(facts: Facts, num_passages: int, num_entities: int) -> Arrays:
    """Return the sections ``fact.*``."""
    check_type(facts, "facts", Facts, "Facts: Facts.from_names(rows, entities, passages)")
    if (facts.num_passages, facts.num_entities) != (num_passages, num_entities):
        raise InputError(
            "length",
            "facts",
            "{field} are over {given[0]} passages and {given[1]} entities, the index has {allowed[0]} and "
            "{allowed[1]}; number them as the index does",
            given=(facts.num_passages, facts.num_entities),
            allowed=(num_passages, num_entities),
        )
    return {
        **string_arrays("fact.relation", facts.relations),
        "fact.row": facts.rows,
        "fact.indptr": facts.indptr,
        "fact.passage": facts.passages,
    }


def load_facts(sections: Sections, num_passages: int, num_entities: int) -> Facts | None:
    """Return the facts, verified, or None if there are none."""
    if "fact.indptr" not in sections:
        return None
    with damage_of(sections["fact.indptr"]):
        return Facts(
            sections["fact.row"].whole(),
            list(string_column(sections, "fact.relation")),
            sections["fact.indptr"].whole(),
            sections["fact.passage"].whole(),
            num_entities=num_entities,
            num_passages=num_passages,
        )


def facts_info(sections: Sections) -> dict[str, int] | None:
    """Return the facts' part of ``Index.info``."""
    if "fact.indptr" not in sections:
        return None
    return {
        "facts": sections["fact.row"].shape[0],
        "relations": len(string_column(sections, "fact.relation")),
        "statements": sections["fact.passage"].shape[0],
    }
