"""Arrow tables in memory as a source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from .._validation import wrong_type
from ..errors import MissingExtraError
from .tables import TableReader


class ArrowSource:
    """Arrow tables in memory, with the columns of :class:`hopfuse.io.source.Snapshot`.

    Parameters
    ----------
    passages, entities, edges, facts : Arrow table, record batch, iterable of those, or None
        Any object with the Arrow PyCapsule interface of streams or arrays, such as those of pyarrow, polars and DuckDB.

    Raises
    ------
    InputError
        A table has another type.
    MissingExtraError
        pyarrow is not installed.

    Examples
    --------
    >>> import pyarrow as pa, hopfuse as hf
    >>> passages = pa.table({"id": ["a", "b"], "text": ["Ada wrote.", "Babbage built."]})
    >>> edges = pa.table({"src_passage": ["b"], "dst_entity": ["Babbage"]})
    >>> source = hf.stores.ArrowSource(passages=passages, entities=pa.table({"name": ["Babbage"]}), edges=edges)
    >>> hf.Index.build(source)
    Index(passages=2, entities=1, dim=None, graph=True, lexical=False, metric='ip', storage='float32')
    """

    def __init__(self, *, passages: Any, entities: Any = None, edges: Any = None, facts: Any = None) -> None:
        given = {"passages": passages, "entities": entities, "edges": edges, "facts": facts}
        self._tables = {name: None if one is None else _batches(one, name) for name, one in given.items()}

    @contextmanager
    def snapshot(self) -> Iterator[TableReader]:
        """Return the tables."""
        yield TableReader(self._tables.get)


def _batches(given: Any, what: str) -> list[Any]:
    """Return pyarrow record batches; a table without rows gives one, which has its columns."""
    try:
        arrow = import_module("pyarrow")
    except ImportError:
        raise MissingExtraError("pyarrow", "arrow", f"reading {what} from Arrow") from None
    if hasattr(given, "__arrow_c_stream__"):
        table = arrow.table(given)
        return table.to_batches() or [arrow.RecordBatch.from_pylist([], schema=table.schema)]
    if hasattr(given, "__arrow_c_array__"):
        return [arrow.record_batch(given)]
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        return [batch for one in given for batch in _batches(one, what)]
    raise wrong_type(given, what, "an Arrow table or an iterable of record batches")
