"""A Haystack retriever component, which can be saved and loaded with its pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from .._validation import wrong_type
from ..errors import InputError, MissingExtraError
from .searcher import Filter, QuestionHits, Searcher, as_where, condition, joined, passage_metadata, refuse_settings

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.utils import Secret, deserialize_secrets_inplace
except ModuleNotFoundError as _error:
    raise MissingExtraError("haystack-ai", "haystack", "hopfuse.adapters.haystack") from _error

#: Haystack's operators in terms of those of :func:`hopfuse.where`.
OPERATORS = {"==": "eq", "!=": "ne", ">": "gt", ">=": "ge", "<": "lt", "<=": "le", "in": "in", "not in": "nin"}


@component
class HopfuseRetriever:
    """A Haystack retriever over an index here or over ``hopfuse serve``.

    A document has the passage's id as a string, its text as content, its metadata and title as meta, and a score. A
    second output, ``notes``, is a list of str about what was not known or not used of the question. The index is opened
    by ``warm_up`` or the first run. To load a saved pipeline, Haystack needs
    ``Pipeline.loads(text, allowed_modules=["hopfuse.adapters.haystack"])``.

    Parameters
    ----------
    source : str, path, Index, LiveIndex, Retriever or Searcher
        The URL of a server or the directory of an index; a component with any other source runs but cannot be saved.
    top_k : int
        Documents for a question.
    filters : dict, optional
        Haystack's filters on fields ``meta.NAME``; missing values are treated as Haystack does. A run's filters replace
        them. With a server, conditions must be joined by AND, and ``!=`` and ``not in`` are refused.
    key : Secret, optional
        A server's key: ``Secret.from_env_var("HOPFUSE_KEY")``.
    **settings
        Other arguments of :class:`.searcher.Searcher`, unless the source is one. A component is saved if they are plain
        values, such as ``recipe="hybrid-rrf"`` or an encoder's name.

    Raises
    ------
    InputError
        Filters are malformed, or an argument belongs to the Searcher given as source. ``warm_up`` refuses any other
        source; in a run, the retriever or the server refuses an argument.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.adapters.haystack import HopfuseRetriever
    >>> rows = [{"id": "a", "text": "Ada wrote notes."}, {"id": "b", "text": "Babbage built the engine."}]
    >>> retriever = HopfuseRetriever(hf.Index.build(passages=rows), top_k=1)
    >>> [document.content for document in retriever.run("Who built the engine?")["documents"]]
    ['Babbage built the engine.']
    """

    def __init__(
        self,
        source: Any,
        *,
        top_k: int = 10,
        filters: dict[str, Any] | None = None,
        key: Secret | None = None,
        **settings: Any,
    ) -> None:
        self.source = str(source) if isinstance(source, PathLike) else source
        self.top_k, self.filters, self.key, self.settings = top_k, filters, key, settings
        self._searcher: Searcher | None = source if isinstance(source, Searcher) else None
        if isinstance(source, Searcher):
            refuse_settings({**settings, "key": key}, "a Searcher")
        read_filters(filters)

    def warm_up(self) -> None:
        """Open the index, or connect to the server."""
        if self._searcher is None:
            key = None if self.key is None else self.key.resolve_value()
            self._searcher = Searcher(self.source, key=key, **self.settings)

    @component.output_types(documents=list[Document], notes=list[str])
    def run(self, query: str, top_k: int | None = None, filters: dict[str, Any] | None = None) -> dict[str, list[Any]]:
        """Return the documents of a question, best first, and notes about it."""
        return _outputs(self._opened().search([query], **self._search_options(top_k, filters)))

    @component.output_types(documents=list[Document], notes=list[str])
    async def run_async(
        self, query: str, top_k: int | None = None, filters: dict[str, Any] | None = None
    ) -> dict[str, list[Any]]:
        """Return the documents of a question, best first, and notes about it."""
        return _outputs(await self._opened().asearch([query], **self._search_options(top_k, filters)))

    def to_dict(self) -> dict[str, Any]:
        """Return the component as a pipeline saves it.

        Raises
        ------
        InputError
            The source or a setting, such as the encoder, is an object in memory.
        """
        for name, value in {"source": self.source, **self.settings}.items():
            if not isinstance(value, str if name == "source" else str | float | int | dict | None):
                raise InputError(
                    "unsupported",
                    name,
                    "{field} is an object in memory ({kind}), which a pipeline does not save; give the directory of an "
                    "index with a known encoder, or the URL of a server",
                    kind=type(value).__name__,
                )
        about = {"source": self.source, "top_k": self.top_k, "filters": self.filters, **self.settings}
        saved: dict[str, Any] = default_to_dict(self, **about, key=None if self.key is None else self.key.to_dict())
        return saved

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HopfuseRetriever:
        """Return the component from its saved form."""
        deserialize_secrets_inplace(data["init_parameters"], keys=["key"])
        made: HopfuseRetriever = default_from_dict(cls, data)
        return made

    def refresh(self) -> None:
        """Read later changes of the index, if it is here; a server reads them by itself."""
        self._opened().refresh()

    def _opened(self) -> Searcher:
        self.warm_up()
        assert self._searcher is not None
        return self._searcher

    def _search_options(self, top_k: int | None, filters: dict[str, Any] | None) -> dict[str, Any]:
        chosen = read_filters(self.filters if filters is None else filters)
        return {"k": self.top_k if top_k is None else top_k, "allow": chosen}


def _outputs(rows: list[QuestionHits]) -> dict[str, list[Any]]:
    documents = [
        Document(id=str(hit.id), content=hit.text, meta=passage_metadata(hit), score=float(hit.score))
        for hit in rows[0]
    ]
    return {"documents": documents, "notes": [str(note) for note in rows[0].notes]}


def read_filters(filters: Mapping[str, Any] | None) -> Filter | None:
    """Return Haystack's filters as ``allow=``.

    Raises
    ------
    InputError
        The filters are malformed.
    """
    return _filter(filters) if filters else None


def _filter(filters: Any) -> Filter:
    if not isinstance(filters, Mapping):
        raise wrong_type(filters, "filters", "a dictionary")
    operator = filters.get("operator")
    if operator in ("AND", "OR", "NOT") and filters.get("conditions"):
        parts = [_filter(one) for one in filters["conditions"]]
        if operator == "NOT":  # not all of them hold
            return ~as_where(joined(parts, "and"))
        return joined(parts, "and" if operator == "AND" else "or")
    if operator not in OPERATORS or "field" not in filters or "value" not in filters:
        raise InputError(
            "syntax",
            "filters",
            "{field} has {given!r}; a condition has field, value and operator ({allowed}), and a group has operator "
            "(AND, OR, NOT) and conditions",
            given=dict(filters),
            allowed=", ".join(OPERATORS),
        )
    field, value = str(filters["field"]).removeprefix("meta."), filters["value"]
    if value is None and operator in ("==", "!="):
        return condition(field, "exists", operator == "!=")
    return condition(field, OPERATORS[operator], value)
