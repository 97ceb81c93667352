"""Terms: the matrix that BM25 searches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import check_type
from ...errors import InputError
from ...types import TermMatrix
from ..file.columns import string_arrays, string_column
from ..file.sections import Section, damage_of
from .words import check_stemmer, load_rule

Sections = Mapping[str, Section]
Arrays = dict[str, NDArray[Any]]


def build(matrix: TermMatrix, num_passages: int, terms: Mapping[str, Any] | None = None) -> Arrays:
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
    return build_terms(matrix, terms) | {"lexical.passage": matrix.passages, "lexical.score": matrix.scores} | counts


def build_terms(matrix: TermMatrix, terms: Mapping[str, Any] | None = None) -> Arrays:
    """Return the sections ``lexical.*`` without those of the entries; ``terms`` as of :func:`build`."""
    return {
        **string_arrays("lexical.setting", (matrix.method, matrix.stemmer or "")),
        "lexical.parameter": np.array([matrix.k1, matrix.b]),
        **string_arrays("lexical.stopword", matrix.stopwords),
        "lexical.rule": np.array([matrix.rule], np.int64),
        **(string_arrays("lexical.term", matrix.terms) if terms is None else terms),
        "lexical.indptr": matrix.indptr,
    }


def load(sections: Sections, num_passages: int) -> TermMatrix | None:
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
            rule=load_rule(sections, "lexical.rule", "terms"),
        )


def info(sections: Sections) -> dict[str, Any] | None:
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
        "rule": load_rule(sections, "lexical.rule", "terms"),
        "stopwords": len(string_column(sections, "lexical.stopword")),
        "terms": len(string_column(sections, "lexical.term")),
        "entries": sections["lexical.score"].shape[0],
    }
