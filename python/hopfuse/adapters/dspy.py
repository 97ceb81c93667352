"""A DSPy retriever, whose predictions have passages with ids and scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import MissingExtraError
from .searcher import QuestionHits, as_searcher, passage_metadata

try:
    import dspy
except ModuleNotFoundError as _error:
    raise MissingExtraError("dspy", "dspy", "hopfuse.adapters.dspy") from _error


class HopfuseRetriever(dspy.Retrieve):
    """A DSPy retriever over an index here or over ``hopfuse serve``.

    Called with a question it returns a ``dspy.Prediction`` with ``passages`` (texts, best first) and, in their order,
    ``ids``, ``scores`` and ``metadata``, and with ``notes`` about the question; called with a list of questions, a list
    of those, all found by one search. :meth:`rm` is what ``dspy.configure(rm=...)`` takes for programs that use
    ``dspy.Retrieve``; it logs notes as warnings.

    Parameters
    ----------
    source : str, path, Index, LiveIndex, Retriever or Searcher
        The URL of a server, or what a :class:`.searcher.Searcher` searches here. To give an encoder, a recipe or a
        server's key, pass a Searcher.
    k : int
        Passages per question.
    allow : ids, mapping of conditions, or Where, optional
        Passages that may be found, as in :meth:`.searcher.Searcher.search`.
    callbacks : list, optional
        DSPy's.

    Raises
    ------
    InputError
        ``source`` is not one of the above; in a search, the retriever or the server refuses an argument.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.adapters.dspy import HopfuseRetriever
    >>> rows = [{"id": "a", "text": "Ada wrote notes."}, {"id": "b", "text": "Babbage built the engine."}]
    >>> retriever = HopfuseRetriever(hf.Index.build(passages=rows), k=1)
    >>> retriever("Who built the engine?").passages
    ['Babbage built the engine.']
    """

    def __init__(self, source: Any, *, k: int = 3, allow: Any = None, callbacks: list[Any] | None = None) -> None:
        super().__init__(k=k, callbacks=callbacks)
        self.allow = allow
        self._searcher = as_searcher(source)

    def forward(self, query: str | Sequence[str], k: int | None = None, allow: Any = None) -> Any:
        """Return the prediction of a question, or of each of several."""
        questions = [query] if isinstance(query, str) else list(query)
        made = [_prediction(hits) for hits in self._searcher.search(questions, **self._settings(k, allow))]
        return made[0] if isinstance(query, str) else made

    async def acall(self, query: str | Sequence[str], k: int | None = None, allow: Any = None) -> Any:
        """Return the prediction of a question, or of each of several."""
        questions = [query] if isinstance(query, str) else list(query)
        made = [_prediction(hits) for hits in await self._searcher.asearch(questions, **self._settings(k, allow))]
        return made[0] if isinstance(query, str) else made

    def rm(self, query: str, k: int | None = None, allow: Any = None) -> list[Any]:
        """Return a prediction for each passage, with ``long_text``, ``id``, ``score`` and ``metadata``."""
        hits = self._searcher.search([query], **self._settings(k, allow))[0]
        self._searcher.log_notes(hits)
        return [
            dspy.Prediction(long_text=hit.text, id=hit.id, score=float(hit.score), metadata=passage_metadata(hit))
            for hit in hits
        ]

    def refresh(self) -> None:
        """Read later changes of the index, if it is here; a server reads them by itself."""
        self._searcher.refresh()

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        """Return the state that a program saves, k; ``json_mode``, which DSPy passes, is not used."""
        return {"k": self.k}

    def _settings(self, k: int | None, allow: Any) -> dict[str, Any]:
        return {"k": self.k if k is None else k, "allow": self.allow if allow is None else allow}


def _prediction(hits: QuestionHits) -> Any:
    return dspy.Prediction(
        passages=[hit.text for hit in hits],
        ids=[hit.id for hit in hits],
        scores=[float(hit.score) for hit in hits],
        metadata=[passage_metadata(hit) for hit in hits],
        notes=[str(note) for note in hits.notes],
    )
