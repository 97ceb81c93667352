"""The contents of an index: columns, vectors, graph, terms and facts, each verified at its first use."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from .._validation import check_list, check_whole
from ..encoders.protocol import first_unencodable
from ..errors import HopfuseError, InputError
from ..types import Corpus, EdgeStatements, Facts, Graph, TermMatrix
from ..types.corpus import Metric, Storage
from . import parts
from .file.columns import RaggedStrings, StringColumn, id_column, string_column
from .file.format import VERSION, Settings, name_of
from .file.sections import Section
from .filters import Where, valid_at
from .ids import PassageRows, passage_rows
from .log.lineage import Lineage, RowMaps, rows_of_slots, slots_of_rows
from .log.records import Slots
from .parts.encoder import EncoderInfo
from .parts.metadata import Metadata
from .parts.passages import DOCUMENT, LANGUAGE, Label, LabelColumn, label_values, load_labels
from .parts.words import WordInfo
from .search_filter import read_mask

PassageId = str | int
#: Takes the row of a passage that an encoder refuses, and the error.
Failed = Callable[[int, HopfuseError], None]


def text_to_index(title: str, text: str) -> str:
    """Return the text that words and vectors are made from: see :meth:`hopfuse.Index.texts_to_index`."""
    return f"{title}\n{text}" if title else text


def check_encodable(encoder: Any, texts: Sequence[str], ids: Sequence[Any]) -> None:
    """Refuse a passage whose title and text, ``texts``, have no words, unless the encoder has a vector for it."""
    at = first_unencodable(encoder.encode_passages, texts)
    if at is not None:
        raise InputError(
            "empty",
            "text",
            "the passage {given!r} has words in neither its title nor its text, so the encoder has no vector for it; "
            "give it some, or leave the passage out",
            given=ids[at],
        )


def passage_vectors(
    encoder: Any, texts: Sequence[str], ids: Sequence[Any], failed: Failed | None = None, metric: str = "ip"
) -> NDArray[np.float32]:
    """Return an encoder's vectors of passages, which :func:`check_encodable` checks before any is made.

    An encoder with a method ``try_passages`` calls ``failed`` for those that it refuses, whose vectors are zeros.
    """
    check_encodable(encoder, texts, ids)
    known = None if failed is None else getattr(encoder, "try_passages", None)
    vectors: NDArray[np.float32]
    if failed is None or known is None:
        vectors = encoder.encode_passages(list(texts))
    else:
        vectors = known(list(texts), failed if metric != "cosine" else partial(_refuse, ids))
    return vectors


def _refuse(ids: Sequence[Any], at: int, error: HopfuseError) -> NoReturn:
    raise InputError(
        "zero",
        "metric",
        "the encoder has no vector for the passage {given!r} ({reason}), and under the {field} cosine each passage "
        "needs one; build with the {field} ip, which is the same for vectors of length 1, or leave the passage out",
        given=ids[at],
        reason=str(error),
    )


T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class Contents:
    """The contents of an index; see :class:`hopfuse.Index`."""

    _sections: Mapping[str, Section]
    _settings: Settings
    _directory: Path | None = None
    _generation: int | None = None
    _cache: dict[str, Any] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _seq: int = 0
    _checksum: str | None = None
    _lineage: Lineage | None = None

    def info(self) -> dict[str, Any]:
        """Return counts, dimensions, dtypes and sizes; nothing large is read.

        Returns
        -------
        dict
            - ``format_version``, ``seq``, and ``generation``: None for an index that was not opened from a directory;
            - ``num_passages``, ``documents`` (how many there are), ``languages`` (their tags);
            - ``num_entities``, ``num_stated`` (entities that a user stated), ``num_aliases``, ``name_rule``;
            - ``dim`` and ``entity_dim`` (None without vectors), ``metric``, ``storage``;
            - ``bytes`` of all sections, and ``sections``: dtype, shape and bytes of each.

            The following are dictionaries, or None if the part is absent:

            - ``encoder``: ``name``, ``dim``, ``normalize``;
            - ``graph``: ``nodes``, ``stored``, ``directed``, ``weighted``, and ``edge_types``: the number of merged
              edges of each type, undirected ones counted once;
            - ``words``: numbers of ``words`` and ``stopwords``, ``stemmer``, ``tagger``, ``rule``;
            - ``lexical``: ``method``, ``k1``, ``b``, ``stemmer``, ``rule``, numbers of ``stopwords``, ``terms`` and
              ``entries``;
            - ``facts``: numbers of ``facts``, ``relations`` and ``statements``;
            - ``metadata``: the type of each column.

        Examples
        --------
        >>> from hopfuse import Index
        >>> index = Index.build(passages=[{"text": "one"}], graph=[{"src": 0, "dst": 1, "type": "mentions"}])
        >>> index.info()["graph"]["edge_types"]
        {'mentions': 1}
        """
        return {
            "format_version": VERSION,
            "generation": self._generation,
            "seq": self._seq,
            "num_passages": self.num_passages,
            "documents": len(label_values(self._sections, DOCUMENT)),
            "languages": [*label_values(self._sections, LANGUAGE)],
            "num_entities": self.num_entities,
            "num_stated": int(self.stated.sum()),
            "num_aliases": self._sections["entity.alias.offsets"].shape[0] - 1,
            "name_rule": self.name_rule,
            "dim": self.dim,
            "entity_dim": parts.encoder.vector_dim(self._sections, "entity.vectors"),
            "encoder": None if self.encoder is None else asdict(self.encoder),
            "metric": self.metric,
            "storage": self.storage,
            "graph": parts.graph.info(self._sections, self._settings),
            "words": parts.words.info(self._sections),
            "lexical": parts.terms.info(self._sections),
            "facts": parts.facts.info(self._sections),
            "metadata": dict(self.metadata.types) or None,
            "bytes": sum(s.nbytes for s in self._sections.values()),
            "sections": {
                name: {"dtype": name_of(s.dtype), "shape": s.shape, "bytes": s.nbytes}
                for name, s in self._sections.items()
            },
        }

    @property
    def sections(self) -> Mapping[str, Section]:
        """The arrays of the file by their names in the format, each verified at its first use."""
        return self._sections

    @property
    def settings(self) -> Settings:
        """Settings in the file's header."""
        return self._settings

    @property
    def directory(self) -> Path | None:
        """The directory that the index was opened from, or None."""
        return self._directory

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return every section as a verified array."""
        return {name: section.whole() for name, section in self._sections.items()}

    def load(self) -> None:
        """Merge the changes of the log now rather than at the first read. Without a log this does nothing."""
        self._sections.get("passage.length")

    @property
    def seq(self) -> int:
        """The number of batches of changes that the index contains, 0 if it was never changed."""
        return self._seq

    @property
    def generation(self) -> int | None:
        """The number of the generation that was opened, or None if the index was not opened from a directory."""
        return self._generation

    @property
    def checksum(self) -> str | None:
        """SHA-256 of the head of the index's file, which holds all other checksums, the log's salt, and the seq.

        None for an index that was not opened from a directory.
        """
        return self._checksum

    @property
    def lineage(self) -> Lineage | None:
        """Which other indexes have the slots of this one; None for an index that was not opened from a directory."""
        return self._lineage

    def rows_since(self, earlier: Contents) -> RowMaps | None:
        """Return where the rows of an earlier state of a live index are in this one.

        Parameters
        ----------
        earlier : Index
            An earlier snapshot of the same :class:`hopfuse.LiveIndex`, at most one compaction before.

        Returns
        -------
        RowMaps or None
            ``passages``, int64 of shape (P of the earlier state,), and ``entities``, likewise: rows of this state, -1
            for what was deleted. A replaced passage was deleted, and is a new row. New rows are those that no row maps
            to. None if this index does not continue the other one, or it is not known how.

        Examples
        --------
        >>> import tempfile, hopfuse as hf
        >>> folder, rows = tempfile.mkdtemp(), [{"id": "a", "text": "The sea."}, {"id": "b", "text": "A river."}]
        >>> saved = hf.Index.build(passages=rows, entities=["Thames"]).save(folder)
        >>> with hf.Index.open(folder, writable=True) as live:
        ...     earlier = live.index
        ...     with live.change() as change:
        ...         change.replace_passages([{"id": "a", "text": "The ocean."}])
        ...     later = live.refresh()
        >>> later.rows_since(earlier), earlier.rows_since(later)
        (RowMaps(passages=array([-1,  0]), entities=array([0])), None)
        """
        if self._lineage is None or earlier._lineage is None or earlier.seq > self.seq:
            return None
        known = self._cached("rows_since", lambda: weakref.WeakKeyDictionary[Contents, RowMaps | None]())
        with self._lock:
            if earlier not in known:
                slots = slots_of_rows(earlier.sections, Slots(earlier.num_passages, earlier.num_entities))
                found = self._lineage.slots_of(earlier._lineage, slots)
                known[earlier] = None if found is None else rows_of_slots(self._sections, found)
            return known[earlier]

    @property
    def num_passages(self) -> int:
        """P, the number of passages."""
        return self._sections["passage.length"].shape[0]

    @property
    def num_entities(self) -> int:
        """E, the number of entities."""
        return self._sections["entity.alias.rows"].shape[0] - 1

    @property
    def dim(self) -> int | None:
        """d, the dimension of the passages' vectors; None if there are none."""
        return parts.encoder.vector_dim(self._sections, "passage.vectors")

    @property
    def metric(self) -> Metric:
        """Similarity of the vectors: ``"ip"`` or ``"cosine"``."""
        return cast(Metric, self._settings.metric)

    @property
    def storage(self) -> Storage:
        """Storage of the vectors: ``"float32"``, ``"float16"``, ``"bfloat16"`` or ``"int8"``."""
        return cast(Storage, self._settings.storage)

    @property
    def encoder(self) -> EncoderInfo | None:
        """The encoder of the vectors, which must also encode questions; None if it is not known."""
        return self._cached("encoder", lambda: parts.encoder.load(self._sections))

    @property
    def source(self) -> str | None:
        """The state that is needed to follow the source, such as how far it was read; None if it is not followed.

        :meth:`Index.with_source` and :meth:`hopfuse.index.Change.set_source` set it; its content is up to their caller.
        """
        if "source.state.offsets" not in self._sections:
            return None
        return string_column(self._sections, "source.state")[0]

    @property
    def passage_ids(self) -> Sequence[PassageId]:
        """P distinct ids, as given: all str or all int."""
        return id_column(self._sections)

    def row_of(self, id: PassageId) -> int:
        """Return the row of the passage with an id. The first call reads all ids.

        Raises
        ------
        InputError
            No passage has the id.

        Examples
        --------
        >>> from hopfuse import Index
        >>> Index.build(passages=[{"id": 70, "text": "one"}, {"id": 7, "text": "two"}]).row_of(7)
        1
        """
        return int(self.rows_of([id])[0])

    def find(self, id: PassageId) -> int:
        """Return the row of the passage with an id, or -1 if there is none. The first call reads all ids.

        Examples
        --------
        >>> from hopfuse import Index
        >>> index = Index.build(passages=[{"id": 70, "text": "one"}, {"id": 7, "text": "two"}])
        >>> index.find(7), index.find(8)
        (1, -1)
        """
        return self._rows_by_id.get(id)

    def rows_of(self, ids: Iterable[PassageId]) -> NDArray[np.int64]:
        """Return the rows of the passages with these ids: int64, shape (n,).

        Raises
        ------
        InputError
            No passage has one of them, or they are of another type than the index's ids; the message names it.

        Examples
        --------
        >>> from hopfuse import Index
        >>> Index.build(passages=[{"id": "b", "text": "one"}, {"id": "a", "text": "two"}]).rows_of(["a", "b", "a"])
        array([1, 0, 1])
        """
        if isinstance(ids, np.ndarray):
            if ids.ndim == 1 and ids.dtype.kind == "i" and self._are_rows(ids):
                return ids.astype(np.int64)
            ids = ids.tolist()
        ids = check_list(ids, "ids", "a list of passage ids")
        rows = self._rows_by_id
        kind = str if "passage.id.offsets" in self._sections else int
        found = []
        for id in ids:
            is_kind = isinstance(id, str if kind is str else int | np.integer) and not isinstance(id, bool)
            row = rows.get(id) if is_kind else -1
            if row < 0:
                raise InputError(
                    "unknown" if is_kind else "type",
                    "ids",
                    "no passage has the id {given!r}; the ids of this index are of the type {kind}",
                    given=id,
                    kind=kind.__name__,
                )
            found.append(row)
        return np.array(found, np.int64)

    def texts_to_index(self) -> list[str]:
        """Return the texts that words and vectors are made from: title, line feed and text, or only the text.

        Examples
        --------
        >>> from hopfuse import Index
        >>> Index.build(passages=[{"title": "Thames", "text": "A river."}, {"text": "The sea."}]).texts_to_index()
        ['Thames\\nA river.', 'The sea.']
        """
        return [text_to_index(title, text) for title, text in zip(self.titles, self.texts, strict=True)]

    @property
    def titles(self) -> StringColumn:
        """P titles, empty if not given."""
        return string_column(self._sections, "passage.title")

    @property
    def texts(self) -> StringColumn:
        """P texts."""
        return string_column(self._sections, "passage.text")

    @property
    def passage_lengths(self) -> NDArray[np.int32]:
        """Number of tokens in each text, without the title, split at whitespace: int32, shape (P,)."""
        return self._sections["passage.length"].whole()

    @property
    def documents(self) -> LabelColumn:
        """The document, or conversation, of each of the P passages, a string or an integer; None where there is none.

        Examples
        --------
        >>> from hopfuse import Index
        >>> rows = [{"text": "one", "document": "report"}, {"text": "two"}]
        >>> list(Index.build(passages=rows).documents)
        ['report', None]
        """
        return self._cached("documents", lambda: load_labels(self._sections, DOCUMENT, self.num_passages))

    @property
    def languages(self) -> LabelColumn:
        """The language of each of the P passages, a BCP 47 tag such as ``"en"``; None where it is not known."""
        return self._cached("languages", lambda: load_labels(self._sections, LANGUAGE, self.num_passages))

    @property
    def entity_names(self) -> StringColumn:
        """E names."""
        return string_column(self._sections, "entity.name")

    @property
    def entity_aliases(self) -> RaggedStrings:
        """A tuple of aliases for each of the E entities."""
        return RaggedStrings(self._sections["entity.alias.rows"], string_column(self._sections, "entity.alias"))

    @property
    def stated(self) -> NDArray[np.bool_]:
        """Which entities a user stated, shape (E,); only a reader of the passages made the others."""
        return self._cached("stated", lambda: parts.entities.load_stated(self._sections, self.num_entities))

    @property
    def name_rule(self) -> int:
        """The number of the rule under which names of entities are folded, compared and found in questions."""
        return self._cached("name_rule", lambda: parts.entities.load_rule(self._sections))

    @property
    def passage_frequency(self) -> NDArray[np.int32] | None:
        """Number of distinct passages adjacent to each entity: int32, shape (E,); None without a graph."""
        return self._array("entity.passage_frequency")

    @property
    def vectors(self) -> NDArray[Any] | None:
        """The passages' vectors as stored, bfloat16 as uint16: (P, d); None if there are none."""
        return self._array("passage.vectors")

    @property
    def entity_vectors(self) -> NDArray[Any] | None:
        """The entities' vectors as stored: (E, d2); None if there are none."""
        return self._array("entity.vectors")

    @property
    def corpus(self) -> Corpus | None:
        """The passages' vectors as a corpus, checked once; None if there are none."""
        return self._cached(
            "corpus", lambda: parts.encoder.load_corpus(self._sections, self._settings, "passage.vectors")
        )

    @property
    def entity_corpus(self) -> Corpus | None:
        """The entities' vectors as a corpus, checked once; None if there are none."""
        return self._cached(
            "entity_corpus", lambda: parts.encoder.load_corpus(self._sections, self._settings, "entity.vectors")
        )

    @property
    def graph(self) -> Graph | None:
        """The graph over passages and entities, verified once; None if there is none."""
        return self._cached("graph", lambda: parts.graph.load(self._sections, self._settings))

    @property
    def edge_statements(self) -> EdgeStatements | None:
        """The graph's edges as stated, with the passages that state them; None if only the graph is stored."""
        return self._cached(
            "edge_statements", lambda: parts.graph.load_statements(self._sections, self.graph, self.num_passages)
        )

    @property
    def words(self) -> WordInfo | None:
        """Which entities are words, and how texts are read as words; None if all entities are names."""
        return self._cached("words", lambda: parts.words.load(self._sections, self.num_entities))

    @property
    def lexical(self) -> TermMatrix | None:
        """The terms that :class:`hopfuse.lexical.BM25` searches, verified once; None if there are none."""
        return self._cached("lexical", lambda: parts.terms.load(self._sections, self.num_passages))

    @property
    def facts(self) -> Facts | None:
        """Triples of entities and the passages that state them, verified once; None if there are none."""
        return self._cached("facts", lambda: parts.facts.load(self._sections, self.num_passages, self.num_entities))

    @property
    def metadata(self) -> Metadata:
        """The passages' metadata by column, each verified once; empty if there is none."""
        return self._cached("metadata", lambda: Metadata(self._sections, self.num_passages))

    def mask(self, allow: Any) -> NDArray[np.bool_]:
        """Return the passages that a filter allows: bool, shape (P,). Recent masks of filters by metadata are cached.

        Parameters
        ----------
        allow : Where, ids of passages, or bool (P,)

        Raises
        ------
        InputError
            An id that no passage has, a mask of another shape, a column that the index does not have, or an operator or
            a value that does not fit the column's type.

        Examples
        --------
        >>> import hopfuse as hf
        >>> rows = [{"text": "one", "metadata": {"tenant": "a"}}, {"text": "two", "metadata": {"tenant": "b"}}]
        >>> hf.Index.build(passages=rows).mask(hf.where(tenant="b"))
        array([False,  True])
        """
        return read_mask(self, allow)

    def valid_at(self, at: Any) -> Where:
        """Return the filter of the passages that are valid at a time, by their metadata.

        A passage is valid from its ``valid_from`` on and until before its ``valid_to``. One that is missing is an open
        end; the columns may be timestamps, numbers or strings, and the index needs one of them.

        Parameters
        ----------
        at : datetime, np.datetime64, str, int or float
            A value of the columns' type, as for :func:`hopfuse.where`.

        Returns
        -------
        Where
            For ``allow=`` of a search, :meth:`part`, or :meth:`mask`.

        Raises
        ------
        InputError
            The index has none of the columns, or one of another type.

        Examples
        --------
        >>> import hopfuse as hf
        >>> rows = [{"text": "Ada lives in Rome.", "metadata": {"valid_to": 2020}}]
        >>> rows.append({"text": "Ada lives in Oslo.", "metadata": {"valid_from": 2020}})
        >>> index = hf.Index.build(passages=rows)
        >>> index.mask(index.valid_at(2019)), index.mask(index.valid_at(2020))
        (array([ True, False]), array([False,  True]))
        """
        return valid_at(self.metadata, at)

    def entity_node(self, entity: int) -> int:
        """Return the graph node of entity 0 .. E-1: P + entity.

        Examples
        --------
        >>> from hopfuse import Index
        >>> Index.build(passages=[{"text": "one"}], entities=["Ada", "Babbage"]).entity_node(1)
        2
        """
        return self.num_passages + check_whole(entity, "entity", self.num_entities - 1, least=0)

    def __repr__(self) -> str:
        return (
            f"Index(passages={self.num_passages}, entities={self.num_entities}, dim={self.dim}, "
            f"graph={'graph.indptr' in self._sections}, lexical={'lexical.indptr' in self._sections}, "
            f"metric={self.metric!r}, storage={self.storage!r})"
        )

    def _cached(self, key: str, make: Callable[[], T]) -> T:
        with self._lock:
            self.load()  # merging also fills _cache
            if key not in self._cache:
                self._cache[key] = make()
            return cast(T, self._cache[key])

    @property
    def _rows_by_id(self) -> PassageRows:
        return self._cached("rows", lambda: passage_rows(self))

    def _are_rows(self, ids: NDArray[np.signedinteger[Any]]) -> bool:
        """Return whether the index's ids are the row numbers, and these are among them."""
        number = self._sections.get("passage.id.number")
        by_row = number and self._cached("by_row", lambda: np.array_equal(number.whole(), np.arange(self.num_passages)))
        return bool(by_row and (ids.size == 0 or 0 <= ids.min() <= ids.max() < self.num_passages))

    def _array(self, name: str) -> NDArray[Any] | None:
        section = self._sections.get(name)
        return None if section is None else section.whole()


def labels_of(contents: Contents, label: Label) -> LabelColumn:
    """Return the documents or the languages of the passages."""
    return contents.documents if label is DOCUMENT else contents.languages
