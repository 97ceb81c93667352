"""The index: what a recipe retrieves from, in memory or mapped from a file."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, InputError
from ..types import Corpus, Facts, Graph, TermMatrix
from ..types.corpus import Metric, Storage
from .facts import fact_arrays, facts_info, load_facts
from .files import open_file, write_file
from .format import VERSION, Settings, name_of
from .generations import open_current, publish
from .lexical import lexical_arrays, lexical_info, load_lexical
from .loading import graph_info, load_corpus, load_graph
from .schema import check_schema, in_file_order
from .sections import Section
from .strings import RaggedStrings, StringColumn

VERIFY = ("lazy", "full")

T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class Index:
    """Passages, entities, their vectors and the graph between them. Immutable.

    Make one with :meth:`build`, keep it with :meth:`save`, map it with :meth:`open`.

    Row order: row i of every passage column (``passage_ids``, ``titles``, ``texts``, ``vectors``,
    ``passage_lengths``) is passage i in the order of the input, and node i of the graph; row e of
    every entity column is entity e, and node ``num_passages + e``.

    Everything is read when it is first asked for, and verified then: a column of strings block by
    block (1 MiB), an array or the graph as a whole.

    Attributes
    ----------
    num_passages, num_entities : int
        P and E.
    metric : {"ip", "cosine"}
    storage : {"float32", "float16", "bfloat16", "int8"}
        How ``corpus`` holds its vectors, and their precision but for ``"int8"``.
    """

    _sections: Mapping[str, Section]
    _settings: Settings
    _generation: int | None = None
    _version: int = VERSION
    _made: dict[str, Any] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @classmethod
    def build(
        cls,
        *,
        passages: Any,
        vectors: Any = None,
        graph: Any = None,
        entities: Any = None,
        aliases: Mapping[Any, Sequence[str]] | None = None,
        entity_vectors: Any = None,
        facts: Any = None,
        fact_ends: Literal["name", "node"] = "name",
        metric: Metric = "ip",
        storage: Storage = "float32",
    ) -> Index:
        """Check what is given and put an index together in memory.

        Parameters
        ----------
        passages : path, Arrow table, or iterable of mappings
            P rows with ``text`` (str) and, optionally, ``title`` (str, absent is empty) and ``id``
            (distinct str or int; by default the row number). Other columns are not kept. A path is
            ``.jsonl``, ``.tsv`` (no quoting; a first line that holds a column's name is a header,
            without one the columns are id, text, title) or ``.parquet``; that and an Arrow table
            need the extra ``arrow``. May be empty.
        vectors : array_like of float, shape (P, d), or path of an .npy file, optional
            An array of the dtype ``storage`` is referenced, not copied: do not change it. Under ``"int8"``, float32
            and float16 files are, and are saved as they are.
        graph : Graph, or an edge table (as ``passages``), optional
            N = P + E nodes; 0 .. P-1 are the passages in their order, P .. N-1 the entities. A table
            has ``src`` and ``dst`` (nodes) and, optionally, ``type`` (str) and ``weight`` (>= 0), no
            other columns; its edges are undirected. A TSV without a header has the columns src, dst,
            type, weight.
        entities : list of str, or a table with the column ``name``, optional
            E names, which may repeat. By default the graph's nodes beyond the passages, each named
            by its index 0 .. E-1.
        aliases : mapping of int or str to list or tuple of str, optional
            Other names of an entity, by its index 0 .. E-1 or its name.
        entity_vectors : array_like of float, shape (E, d2), or path of an .npy file, optional
        facts : Facts, or a table (as ``passages``) of what passages state, optional
            A table has ``head``, ``relation``, ``tail`` (str) and ``passage`` (its row 0 .. P-1), no other columns; a
            triple that several rows have is one fact. A TSV without a header has the columns in this order.
        fact_ends : {"name", "node"}
            What a table's heads and tails are: names of entities, matched exactly, or their nodes P .. N-1.
        metric : {"ip", "cosine"}
        storage : {"float32", "float16", "bfloat16", "int8"}
            Precision of both kinds of vectors; values are rounded to it here, once. ``"int8"`` keeps each kind in
            its own precision, for vectors that memory has no room for: see ``Corpus.from_array``.

        Returns
        -------
        Index

        Raises
        ------
        InputError
            Anything that is not as above; the message names the row, for a file its line.
        MissingExtraError
            A Parquet file or an Arrow table is given and pyarrow is not installed.

        Examples
        --------
        >>> from hopfuse.index import Index
        >>> index = Index.build(
        ...     passages=[{"id": "a", "text": "Ada wrote notes."}, {"id": "b", "text": "Babbage built engines."}],
        ...     vectors=[[1.0, 0.0], [0.0, 1.0]],
        ...     entities=["Ada", "Babbage"],
        ...     graph=[{"src": 0, "dst": 2}, {"src": 1, "dst": 3}, {"src": 2, "dst": 3}],
        ... )
        >>> index
        Index(passages=2, entities=2, dim=2, graph=True, lexical=False, metric='ip', storage='float32')
        >>> index.passage_frequency
        array([1, 1], dtype=int32)
        """
        from . import build, fact_tables  # readers are imported only by those who build

        build.check_settings(metric, storage)
        fact_tables.check_ends(fact_ends)
        arrays = build.passage_arrays(passages)
        num_passages = arrays["passage.length"].size
        corpus = build.load_vectors(vectors, "vectors", num_passages, metric, storage)
        names = build.entity_names(entities)
        made_graph = build.load_graph(graph, num_passages, None if names is None else len(names))
        if names is None:
            names = [str(e) for e in range(0 if made_graph is None else made_graph.num_nodes - num_passages)]
        entity_corpus = build.load_vectors(entity_vectors, "entity_vectors", len(names), metric, storage)
        arrays |= build.entity_arrays(names, aliases)
        if corpus is not None:
            arrays["passage.vectors"] = corpus.vectors
        if entity_corpus is not None:
            arrays["entity.vectors"] = entity_corpus.vectors
        if made_graph is not None:
            arrays |= build.graph_arrays(made_graph, num_passages)
        made_facts = fact_tables.given_facts(facts, fact_ends, names, num_passages)
        if made_facts is not None:
            arrays |= fact_arrays(made_facts, num_passages, len(names))
        sections = {name: Section(name, array) for name, array in in_file_order(arrays).items()}
        settings = build.settings_of(metric, storage, made_graph)
        check_schema(sections, settings)
        made = {"graph": made_graph, "corpus": corpus, "entity_corpus": entity_corpus, "facts": made_facts}
        return cls(sections, settings, _made=made)

    @classmethod
    def open(cls, directory: str | os.PathLike[str], *, verify: Literal["lazy", "full"] = "lazy") -> Index:
        """Map the current generation of an index; nothing large is read.

        Parameters
        ----------
        directory : path
            Where :meth:`save` wrote.
        verify : {"lazy", "full"}
            ``"lazy"`` verifies the header, the section table and all shapes now, and each payload
            when it is first used. ``"full"`` reads and verifies everything now: after it, no use
            of the index can find damage that was there when it was opened.

        Returns
        -------
        Index
            It keeps its generation, whatever is saved over it later.

        Raises
        ------
        FormatError
            The files are torn, damaged, or not of this format version. With ``"lazy"``, damage of
            a payload is raised where it is first used.
        InputError
            There is no such directory.

        Examples
        --------
        >>> import tempfile
        >>> from hopfuse.index import Index
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     generation = Index.build(passages=[{"text": "one"}, {"text": "two"}]).save(directory)
        ...     index = Index.open(directory)
        >>> index.texts[1]
        'two'
        """
        if verify not in VERIFY:
            raise InputError(f"verify is {verify!r}; allowed: {', '.join(VERIFY)}")
        index = open_current(Path(directory), cls._read)
        if verify == "full":
            from .verify import verify_index

            verify_index(index, index._sections)
        return index

    def save(self, directory: str | os.PathLike[str]) -> int:
        """Write the index as a new generation of a directory, and make it the current one.

        A kill at any moment leaves the previous generation current. Indexes that are open, this one
        or others, are not disturbed. Concurrent saves wait for each other. POSIX systems only.

        Parameters
        ----------
        directory : path
            Made where absent. Files that are not an index's own are left alone.

        Returns
        -------
        int
            The generation's number, 1 for the first.

        Raises
        ------
        FormatError
            This index is mapped from a file that is damaged; nothing is published.
        OSError
            The directory cannot be written; nothing is published.

        Examples
        --------
        >>> import tempfile
        >>> from hopfuse.index import Index
        >>> index = Index.build(passages=[{"text": "one"}])
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     index.save(directory), index.save(directory)
        (1, 2)
        """

        def write(path: Path, generation: int) -> None:
            arrays = {name: section.whole() for name, section in self._sections.items()}
            write_file(path, generation, self._settings, arrays)

        return publish(Path(directory), write)

    def with_lexical(self, matrix: TermMatrix | None) -> Index:
        """The same index with another lexical part, or with none; nothing large is copied.

        Parameters
        ----------
        matrix : TermMatrix or None
            Over the P passages in their order: :attr:`hopfuse.lexical.BM25.matrix`.

        Returns
        -------
        Index
            Of no generation yet; :meth:`save` keeps the part in the index's own file.

        Raises
        ------
        InputError
            Something else, or a matrix over another number of passages.

        Examples
        --------
        >>> from hopfuse.index import Index
        >>> from hopfuse.lexical import BM25
        >>> index = Index.build(passages=[{"text": "A river."}, {"text": "The sea."}])
        >>> index = index.with_lexical(BM25.build(index.texts).matrix)
        >>> BM25(index.lexical).search(["the sea"], k=1).ids
        array([[1]])
        """
        new = {} if matrix is None else lexical_arrays(matrix, self.num_passages)
        return self._with("lexical", new, {"lexical": matrix})

    def with_facts(self, facts: Facts | None) -> Index:
        """The same index with other facts, or with none; nothing large is copied.

        Parameters
        ----------
        facts : Facts or None
            Over the P passages and E entities, in their order.

        Returns
        -------
        Index
            Of no generation yet; :meth:`save` keeps the facts in the index's own file.

        Raises
        ------
        InputError
            Something else, or facts over other numbers of passages or entities.

        Examples
        --------
        >>> from hopfuse import Facts, Index
        >>> index = Index.build(passages=[{"text": "Ada wrote notes."}], entities=["Ada", "notes"])
        >>> facts = Facts.from_names([("Ada", "wrote", "notes", 0)], index.entity_names, index.num_passages)
        >>> index.with_facts(facts).info()["facts"]
        {'facts': 1, 'relations': 1, 'statements': 1}
        """
        new = {} if facts is None else fact_arrays(facts, self.num_passages, self.num_entities)
        return self._with("fact", new, {"facts": facts})

    def info(self) -> dict[str, Any]:
        """Counts, dimensions, dtypes and sizes; reads nothing large.

        Returns
        -------
        dict
            ``format_version`` (:meth:`save` writes the newest), ``generation`` (None for an index that
            was not opened from a directory), ``num_passages``, ``num_entities``, ``num_aliases``,
            ``dim``, ``entity_dim`` (None without vectors), ``metric``, ``storage``, ``graph`` (None, or a dict with
            ``nodes``, ``stored``, ``directed``, ``weighted`` and ``edge_types``: merged edges by
            type, an undirected one once), ``lexical`` (None, or a dict with ``method``, ``k1``, ``b``, ``stemmer``,
            ``stopwords``, ``terms`` and ``entries``, the last three counted), ``facts`` (None, or how many ``facts``,
            ``relations`` and ``statements``: passages of facts), ``bytes`` (of all sections) and ``sections`` (dtype,
            shape and bytes of each).

        Examples
        --------
        >>> from hopfuse.index import Index
        >>> index = Index.build(passages=[{"text": "one"}], graph=[{"src": 0, "dst": 1, "type": "mentions"}])
        >>> index.info()["graph"]["edge_types"]
        {'mentions': 1}
        """
        entity_vectors = self._sections.get("entity.vectors")
        return {
            "format_version": self._version,
            "generation": self._generation,
            "num_passages": self.num_passages,
            "num_entities": self.num_entities,
            "num_aliases": self._sections["entity.alias.offsets"].shape[0] - 1,
            "dim": self.dim,
            "entity_dim": None if entity_vectors is None else entity_vectors.shape[1],
            "metric": self.metric,
            "storage": self.storage,
            "graph": graph_info(self._sections, self._settings),
            "lexical": lexical_info(self._sections),
            "facts": facts_info(self._sections),
            "bytes": sum(s.nbytes for s in self._sections.values()),
            "sections": {
                name: {"dtype": name_of(s.dtype), "shape": s.shape, "bytes": s.nbytes}
                for name, s in self._sections.items()
            },
        }

    @property
    def num_passages(self) -> int:
        """P."""
        return self._sections["passage.length"].shape[0]

    @property
    def num_entities(self) -> int:
        """E."""
        return self._sections["entity.alias.rows"].shape[0] - 1

    @property
    def dim(self) -> int | None:
        """d, the dimension of the passages' vectors; None where there are none."""
        section = self._sections.get("passage.vectors")
        return None if section is None else section.shape[1]

    @property
    def metric(self) -> Metric:
        """What the vectors are compared by: ``"ip"`` or ``"cosine"``."""
        return cast(Metric, self._settings.metric)

    @property
    def storage(self) -> Storage:
        """How vectors are held: ``"float32"``, ``"float16"``, ``"bfloat16"`` or ``"int8"``."""
        return cast(Storage, self._settings.storage)

    @property
    def passage_ids(self) -> StringColumn:
        """P distinct ids."""
        return self._strings("passage.id")

    @property
    def titles(self) -> StringColumn:
        """P titles; empty where none was given."""
        return self._strings("passage.title")

    @property
    def texts(self) -> StringColumn:
        """P texts."""
        return self._strings("passage.text")

    @property
    def passage_lengths(self) -> NDArray[np.int32]:
        """Tokens in each text (not the title), split at whitespace: int32, shape (P,)."""
        return self._sections["passage.length"].whole()

    @property
    def entity_names(self) -> StringColumn:
        """E names."""
        return self._strings("entity.name")

    @property
    def entity_aliases(self) -> RaggedStrings:
        """For each of the E entities, a tuple of its aliases."""
        return RaggedStrings(self._sections["entity.alias.rows"], self._strings("entity.alias"))

    @property
    def passage_frequency(self) -> NDArray[np.int32] | None:
        """Distinct passages adjacent to each entity: int32, shape (E,); None without a graph."""
        return self._array("entity.passage_frequency")

    @property
    def vectors(self) -> NDArray[Any] | None:
        """The passages' vectors as ``corpus`` holds them, bfloat16 by its bits: (P, d); None where there are none."""
        return self._array("passage.vectors")

    @property
    def entity_vectors(self) -> NDArray[Any] | None:
        """The entities' vectors, likewise: (E, d2); None where there are none."""
        return self._array("entity.vectors")

    @property
    def corpus(self) -> Corpus | None:
        """The passages' vectors, checked for search once; None where there are none."""
        return self._once("corpus", lambda: load_corpus(self._sections, self._settings, "passage.vectors"))

    @property
    def entity_corpus(self) -> Corpus | None:
        """The entities' vectors, checked for search once; None where there are none."""
        return self._once("entity_corpus", lambda: load_corpus(self._sections, self._settings, "entity.vectors"))

    @property
    def graph(self) -> Graph | None:
        """The graph over passages and entities, verified once; None where there is none."""
        return self._once("graph", lambda: load_graph(self._sections, self._settings))

    @property
    def lexical(self) -> TermMatrix | None:
        """What :class:`hopfuse.lexical.BM25` searches, verified once; None where there is none."""
        return self._once("lexical", lambda: load_lexical(self._sections, self.num_passages))

    @property
    def facts(self) -> Facts | None:
        """Triples of the entities and the passages that state each, verified once; None where there are none."""
        return self._once("facts", lambda: load_facts(self._sections, self.num_passages, self.num_entities))

    def entity_node(self, entity: int) -> int:
        """The graph node of entity 0 .. E-1: P + entity.

        Examples
        --------
        >>> from hopfuse.index import Index
        >>> Index.build(passages=[{"text": "one"}], entities=["Ada", "Babbage"]).entity_node(1)
        2
        """
        if not 0 <= entity < self.num_entities:
            raise InputError(f"entity is {entity}; there are {self.num_entities}: 0 .. {self.num_entities - 1}")
        return self.num_passages + int(entity)

    def __repr__(self) -> str:
        return (
            f"Index(passages={self.num_passages}, entities={self.num_entities}, dim={self.dim}, "
            f"graph={'graph.indptr' in self._sections}, lexical={'lexical.indptr' in self._sections}, "
            f"metric={self.metric!r}, storage={self.storage!r})"
        )

    @classmethod
    def _read(cls, path: Path, generation: int) -> Index:
        head, sections = open_file(path)
        try:
            if head.generation != generation:
                raise FormatError(f"the header says generation {head.generation}; the file was renamed")
            check_schema(sections, head.settings, head.version)
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from None
        return cls(sections, head.settings, generation, head.version)

    def _with(self, group: str, new: Mapping[str, NDArray[Any]], made: Mapping[str, Any]) -> Index:
        """With these sections in the place of the group's, and what they are made of."""
        kept = {name: section for name, section in self._sections.items() if not name.startswith(f"{group}.")}
        sections = in_file_order({**kept, **{name: Section(name, array) for name, array in new.items()}})
        check_schema(sections, self._settings)
        with self._lock:
            return type(self)(sections, self._settings, _made={**self._made, **made})

    def _once(self, key: str, make: Callable[[], T]) -> T:
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return cast(T, self._made[key])

    def _strings(self, name: str) -> StringColumn:
        return StringColumn(self._sections[f"{name}.offsets"], self._sections[f"{name}.bytes"])

    def _array(self, name: str) -> NDArray[Any] | None:
        section = self._sections.get(name)
        return None if section is None else section.whole()
