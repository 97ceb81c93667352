"""The sections ``lexical.*``: the matrix of terms and passages that a lexical leg searches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, InputError
from ..types import TermMatrix
from .sections import Section
from .strings import StringColumn, encode

Sections = Mapping[str, Section]


def lexical_arrays(matrix: TermMatrix, num_passages: int) -> dict[str, NDArray[Any]]:
    """The sections of a matrix over this many passages, in file order."""
    if not isinstance(matrix, TermMatrix):
        raise InputError(f"matrix is a {type(matrix).__name__}; give a TermMatrix: BM25.build(texts).matrix")
    if matrix.num_passages != num_passages:
        raise InputError(
            f"the matrix is over {matrix.num_passages} passages, the index has {num_passages}; build it from the "
            "index's own texts, in their order"
        )
    return {
        **_strings("setting", (matrix.method, matrix.stemmer or "")),
        "lexical.parameter": np.array([matrix.k1, matrix.b]),
        **_strings("stopword", matrix.stopwords),
        **_strings("term", matrix.terms),
        "lexical.indptr": matrix.indptr,
        "lexical.passage": matrix.passages,
        "lexical.score": matrix.scores,
    }


def load_lexical(sections: Sections, num_passages: int) -> TermMatrix | None:
    """The matrix, after a check of everything that a search relies on; None where there is none."""
    if "lexical.indptr" not in sections:
        return None
    method, stemmer = _column(sections, "setting")
    k1, b = sections["lexical.parameter"].whole().tolist()
    try:
        return TermMatrix(
            terms=list(_column(sections, "term")),
            indptr=sections["lexical.indptr"].whole(),
            passages=sections["lexical.passage"].whole(),
            scores=sections["lexical.score"].whole(),
            num_passages=num_passages,
            method=method,
            k1=k1,
            b=b,
            stopwords=list(_column(sections, "stopword")),
            stemmer=stemmer or None,
        )
    except InputError as error:
        raise FormatError(f"{sections['lexical.indptr'].label}: {error}") from None


def check_lexical(sections: Sections) -> None:
    """Verify every string of the part, and its offsets as a whole."""
    if "lexical.indptr" in sections:
        for name in ("setting", "stopword", "term"):
            _column(sections, name).check()


def lexical_info(sections: Sections) -> dict[str, Any] | None:
    """What ``Index.info`` says about the part."""
    if "lexical.indptr" not in sections:
        return None
    method, stemmer = _column(sections, "setting")
    k1, b = sections["lexical.parameter"].whole().tolist()
    return {
        "method": method,
        "k1": k1,
        "b": b,
        "stemmer": stemmer or None,
        "stopwords": len(_column(sections, "stopword")),
        "terms": len(_column(sections, "term")),
        "entries": sections["lexical.score"].shape[0],
    }


def _strings(name: str, values: Any) -> dict[str, NDArray[Any]]:
    offsets, data = encode(values, f"lexical.{name}")
    return {f"lexical.{name}.offsets": offsets, f"lexical.{name}.bytes": data}


def _column(sections: Sections, name: str) -> StringColumn:
    return StringColumn(sections[f"lexical.{name}.offsets"], sections[f"lexical.{name}.bytes"])
