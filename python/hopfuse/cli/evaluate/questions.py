"""Read the judged questions of a file, for an index."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ... import Index
from ...diagnose import Questions
from ...evaluate import PassageNames, Qrels, read_qrels
from ...io.queries import read_queries
from ..run.queries import QueryInputs, text_of, unjudged, unknown_gold


def judged_questions(index: Index, queries: Path, judgements: Path, inputs: QueryInputs) -> tuple[Qrels, Questions]:
    """Return the judgements, by row of the index, and the questions that they judge."""
    names = PassageNames(index.passage_ids)
    qrels = read_qrels(judgements, names)
    if len(names) > index.num_passages:
        raise unknown_gold(judgements, len(names) - index.num_passages, names.name(index.num_passages))
    rows = list(read_queries(queries))
    at = {id: row for row, id in enumerate(qrels.ids)}
    kept = [number for number, row in enumerate(rows) if row.id in at]
    if not kept:
        raise unjudged(judgements, rows)
    asked = [rows[number] for number in kept]
    texts = [text_of(query, "for the lexical leg") for query in asked]
    questions = Questions(texts, inputs.vectors(rows, 0)[kept], inputs.entities(asked))
    return qrels.take(np.array([at[row.id] for row in asked])), questions
