"""A DSPy retriever, whose predictions have passages with ids and scores, and one that takes new texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any
from uuid import uuid4

from .._validation import check_excludes, check_length, checked_texts
from ..errors import InputError, MissingExtraError
from ..index.live import AtLeast
from .searcher import Filter, QuestionHits, as_searcher, passage_metadata
from .store import open_store

try:
    import dspy
except ModuleNotFoundError as _error:
    raise MissingExtraError("dspy", "dspy", "hopfuse.adapters.dspy") from _error


class HopfuseRetriever(dspy.Retrieve):
    """A DSPy retriever over an index here or over ``hopfuse serve``.

    A call with a question returns a ``dspy.Prediction`` with ``passages`` (texts, best first) and, in their order,
    ``ids``, ``scores`` and ``metadata``, and with ``notes`` about the question. A call with a list of questions returns
    a list of predictions, from one search. :meth:`rm` is what ``dspy.configure(rm=...)`` takes for programs that use
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
    at_least : int or "latest", optional
        The seq of a change that must be searched, or ``"latest"`` for all that other processes have committed; what
        this process has committed to an index here is always searched.
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

    def __init__(
        self,
        source: Any,
        *,
        k: int = 3,
        allow: Any = None,
        at_least: AtLeast = None,
        callbacks: list[Any] | None = None,
    ) -> None:
        super().__init__(k=k, callbacks=callbacks)
        self.allow, self.at_least = allow, at_least
        self._searcher = as_searcher(source)

    def forward(
        self, query: str | Sequence[str], k: int | None = None, allow: Any = None, at_least: AtLeast = None
    ) -> Any:
        """Return the prediction of a question, or of each of several."""
        questions = [query] if isinstance(query, str) else list(query)
        made = [_prediction(hits) for hits in self._searcher.search(questions, **self._settings(k, allow, at_least))]
        return made[0] if isinstance(query, str) else made

    async def acall(
        self, query: str | Sequence[str], k: int | None = None, allow: Any = None, at_least: AtLeast = None
    ) -> Any:
        """Return the prediction of a question, or of each of several."""
        questions, settings = [query] if isinstance(query, str) else list(query), self._settings(k, allow, at_least)
        made = [_prediction(hits) for hits in await self._searcher.asearch(questions, **settings)]
        return made[0] if isinstance(query, str) else made

    def rm(self, query: str, k: int | None = None, allow: Any = None, at_least: AtLeast = None) -> list[Any]:
        """Return a prediction for each passage, with ``long_text``, ``id``, ``score`` and ``metadata``."""
        hits = self._searcher.search([query], **self._settings(k, allow, at_least))[0]
        self._searcher.log_notes(hits)
        return [
            dspy.Prediction(long_text=hit.text, id=hit.id, score=float(hit.score), metadata=passage_metadata(hit))
            for hit in hits
        ]

    def refresh(self) -> None:
        """Read later changes of other processes, if the index is here; a server reads them by itself."""
        self._searcher.refresh()

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        """Return the state that a program saves, k; ``json_mode``, which DSPy passes, is not used."""
        return {"k": self.k}

    def _settings(self, k: int | None, allow: Any, at_least: AtLeast) -> dict[str, Any]:
        given = {"k": k, "allow": allow, "at_least": at_least}
        return {name: getattr(self, name) if value is None else value for name, value in given.items()}


class HopfuseMemory(HopfuseRetriever):
    """A DSPy retriever that takes texts, which it finds right after an add.

    :meth:`add` and :meth:`delete` can be tools of an agent: ``dspy.ReAct(signature, tools=[memory.add, memory])``.
    Copies of a program share the memory.

    Parameters
    ----------
    source : path, LiveIndex or str
        A directory, where an empty index is made if there is none, and which this process alone may change while the
        memory is open; a LiveIndex that is open for writing; or the URL of a server with ``--writable``.
    k, allow, at_least, callbacks
        As of :class:`HopfuseRetriever`.
    **settings
        Other arguments of :func:`.store.open_store`, such as ``encoder`` and ``create``, and of
        :class:`.searcher.Searcher`.

    Raises
    ------
    InputError
        ``source`` is not one of the above, or the index is open for writing elsewhere; in a call, the index or the
        server refuses an argument.

    Examples
    --------
    >>> import tempfile
    >>> from hopfuse.adapters.dspy import HopfuseMemory
    >>> memory = HopfuseMemory(tempfile.mkdtemp(), k=1)
    >>> memory.add(["Ada wrote notes.", "Babbage built the engine."], ids=["a", "b"])
    ['a', 'b']
    >>> memory("Who built the engine?").ids, memory.delete(["b"])
    (['b'], 1)
    """

    def __init__(
        self,
        source: Any,
        *,
        k: int = 3,
        allow: Any = None,
        at_least: AtLeast = None,
        callbacks: list[Any] | None = None,
        **settings: Any,
    ) -> None:
        self._store = open_store(source, **settings)
        super().__init__(self._store, k=k, allow=allow, at_least=at_least, callbacks=callbacks)

    def add(
        self,
        texts: str | Iterable[str],
        ids: Sequence[str] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> list[str]:
        """Add one text or several, all or none, and return their ids; a text whose id exists is replaced."""
        given = [texts] if isinstance(texts, str) else checked_texts(texts)
        for name, values in (("ids", ids), ("metadata", metadata)):
            if values is not None:
                check_length(len(values), name, len(given), "text")
        named = [str(uuid4()) for _ in given] if ids is None else list(ids)
        abouts: Iterable[Mapping[str, Any]] = repeat({}, len(given)) if metadata is None else metadata
        self._store.add(
            {"id": id, "text": text, "metadata": about} for id, text, about in zip(named, given, abouts, strict=True)
        )
        return named

    def delete(self, ids: Sequence[str] | None = None, allow: Filter | None = None) -> int:
        """Delete texts by their ids, as far as they exist, or those that a filter allows, and return their number."""
        check_excludes("ids", ids, "allow", allow)
        if ids is None and allow is None:
            raise InputError("missing", "ids", "{field} is missing, and so is {@allow}; give one of them")
        return self._store.delete_all(allow) if ids is None else self._store.delete(ids)

    def close(self) -> None:
        """Let other processes change the directory, once nothing else of this process uses it."""
        self._store.close()


def _prediction(hits: QuestionHits) -> Any:
    return dspy.Prediction(
        passages=[hit.text for hit in hits],
        ids=[hit.id for hit in hits],
        scores=[float(hit.score) for hit in hits],
        metadata=[passage_metadata(hit) for hit in hits],
        notes=[str(note) for note in hits.notes],
    )
