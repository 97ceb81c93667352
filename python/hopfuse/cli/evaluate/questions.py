"""Read the judged questions of a file, for an index."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ... import Index
from ..._validation import counted
from ...diagnose import Questions
from ...errors import InputError
from ...evaluate import PassageNames, Qrels, read_qrels
from ...io.queries import read_queries
from ..run.queries import QueryInputs, text_of


def judged_questions(index: Index, queries: Path, judgements: Path, inputs: QueryInputs) -> tuple[Qrels, Questions]:
    """Return the judgements, by row of the index, and the questions that they judge."""
    names = PassageNames(index.passage_ids)
    qrels = read_qrels(judgements, names)
    if len(names) > index.num_passages:
        stranger = names.name(index.num_passages)
        raise InputError(
            "missing",
            None,
            "{judgements} has {count} that the index lacks, such as {stranger!r}",
            judgements=judgements,
            count=counted(len(names) - index.num_passages, "passage"),
            stranger=stranger,
        )
    rows = list(read_queries(queries))
    at = {id: row for row, id in enumerate(qrels.ids)}
    kept = [number for number, row in enumerate(rows) if row.id in at]
    if not kept:
        raise InputError(
            "UNSORTED",
            None,
            "{judgements} judges none of the {number} questions of {queries}",
            judgements=judgements,
            number=len(rows),
            queries=queries,
        )
    asked = [rows[number] for number in kept]
    texts = [text_of(query, "for the lexical leg") for query in asked]
    questions = Questions(texts, inputs.vectors(rows, 0)[kept], inputs.entities(asked))
    return qrels.take(np.array([at[row.id] for row in asked])), questions
