"""At most a given number of hits of a document, from the ranking as far as it reaches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, overload

import numpy as np

from ..index import Index
from ..index.contents import text_to_index
from ..types import Hits


def first_of_documents(hits: Hits, index: Index, most: int, k: int) -> Hits:
    """Return the first k hits of each question of which at most ``most`` are of a document; of equal texts the first.

    A passage without a document is a document of its own; passages without texts have no equal ones. One text is in
    memory at a time: only those are read whose length another one has, and their digests are compared.
    """
    documents = index.documents
    rows: list[list[tuple[int, float]]] = []
    for question in range(len(hits)):
        kept: list[tuple[int, float]] = []
        seen, counts = set[bytes](), Counter[str | int]()
        ranking = hits.row(question)
        lengths = index.texts.lengths(np.array([passage for passage, _ in ranking], np.int64)).tolist()
        alike = Counter(lengths)
        for (passage, score), length in zip(ranking, lengths, strict=True):
            if len(kept) == k:
                break
            document, digest = documents[passage], None
            if document is not None and counts[document] >= most:
                continue
            if length and alike[length] > 1:
                digest = sha256(index.texts[passage].encode()).digest()
                if digest in seen:
                    continue
                seen.add(digest)
            if document is not None:
                counts[document] += 1
            kept.append((passage, score))
        rows.append(kept)
    return Hits.from_lists(rows)


class TitledTexts(Sequence[str]):
    """The texts of passages with their titles, as encoders and rerankers read them; each is read when needed."""

    def __init__(self, index: Index) -> None:
        self._titles, self._texts = index.titles, index.texts

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self[at] for at in range(*row.indices(len(self)))]
        return text_to_index(self._titles[row], self._texts[row])


def traces_of(traces: list[dict[str, Any]] | None, hits: Hits) -> list[dict[str, Any]] | None:
    """Return traces of these passages alone, in their order."""
    if traces is None:
        return None
    told = []
    for b, trace in enumerate(traces):
        by_row = {hit["passage"]: hit for hit in trace["hits"]}
        told.append({**trace, "hits": [by_row[row] for row, _ in hits.row(b)]})
    return told
