"""The index: build, open, save, and copies with other parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Self, overload
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from .._validation import check_choice, check_needs, check_type, check_whole
from ..encoders import Encoder, as_encoder
from ..errors import FormatError, InputError
from ..types import EdgeStatements, Facts, TermMatrix
from ..types.corpus import Metric, Storage
from . import parts
from .contents import Contents, Failed, PassageId
from .file.columns import string_arrays
from .file.format import Settings
from .file.generations import publish
from .file.mapping import write_file
from .file.sections import Section, as_section
from .file.verify import verify_index
from .left_out import LeftOut
from .log.state import read_state, reopened
from .parts.encoder import EncoderInfo
from .parts.words import WordInfo
from .schema import check_schema, in_file_order
from .subset import LEAST_KEPT, PartCache, PartOf, part_arrays, searched_bytes

if TYPE_CHECKING:
    from .live import LiveIndex

VERIFY = ("lazy", "full")


@dataclass(frozen=True, eq=False, repr=False)
class Index(Contents):
    """Passages, entities, their vectors and the graph between them. Immutable.

    Create one with :meth:`build` or :meth:`from_texts`, write it with :meth:`save`, and map it with :meth:`open`. A
    pickle of an opened index holds its directory, generation and seq; a pickle of any other index holds all of it.

    Row order: row i of every passage column (``passage_ids``, ``titles``, ``texts``, ``documents``, ``languages``,
    ``vectors``, ``passage_lengths``) is passage i in the order of the input, and node i of the graph; row e of every
    entity column is entity e, and node ``num_passages + e``.

    Parts are read and verified at their first use: strings in blocks of 1 MiB, arrays and the graph as a whole.

    Attributes
    ----------
    num_passages, num_entities : int
        P and E.
    metric : {"ip", "cosine"}
    storage : {"float32", "float16", "bfloat16", "int8"}
        Storage of ``corpus``; except for ``"int8"``, also the precision of the vectors.
    """

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Refuse data in place of the parts, and say which method takes them."""
        if len(given) == 1 and not named:
            raise InputError(
                "type",
                None,
                "Index(...) does not take data of the type {given}; call Index.build(...) or Index.from_texts(...), or "
                "Index.open(directory) for a saved one",
                given=type(given[0]).__name__,
            )
        return super().__new__(cls)

    @classmethod
    def build(
        cls,
        passages: Any = None,
        *,
        reader: Any = None,
        language: str | None = None,
        lexical: str | bool | None = None,
        synonyms: float | Mapping[str, float] | None = None,
        metadata_types: Mapping[str, str] | None = None,
        vectors: Any = None,
        graph: Any = None,
        statements: EdgeStatements | None = None,
        entities: Any = None,
        aliases: Mapping[Any, Sequence[str]] | None = None,
        entity_vectors: Any = None,
        facts: Any = None,
        fact_ends: Literal["name", "node"] = "name",
        words: WordInfo | None = None,
        encoder: Any = None,
        metric: Metric = "ip",
        storage: Storage = "float32",
        scratch: str | os.PathLike[str] | None = None,
        failed: Failed | None = None,
        left_out: LeftOut | None = None,
    ) -> Index:
        """Check the arguments and build an index in memory.

        Parameters
        ----------
        passages : path, Arrow table, iterable of mappings, Source or Index
            P rows, possibly none, with ``text`` (str) and, optionally, ``title`` (str, by default empty) and ``id``,
            which BEIR names ``_id`` (distinct, all str or all int; by default the row number). ``document`` is the
            document or conversation that contains the passage: all str or all int; blank or absent is none.
            ``language`` is a BCP 47 tag such as ``"en"``; absent is not known. ``metadata`` maps column names to
            values: bool, int, float, str, a datetime with a time zone or a list of str; absent or None is missing. In a
            file it is a JSON object or a Parquet struct. A mapping may also have ``position``, which readers read, but
            no other key; a warning names other columns of a file or an Arrow table, which are not read. A path has the
            suffix ``.jsonl``, ``.tsv`` or ``.parquet``. Blank lines of ``.jsonl`` are skipped. Fields of ``.tsv`` may
            be in double quotes, as csv writes them, and ids are str. Its first line is a header if it contains a column
            name; without one the columns are id, text, title. Parquet and Arrow tables need the extra ``arrow``. A
            database or another store of ``hopfuse.stores`` also has vectors, graph, entities, aliases and facts; its
            texts and vectors go to temporary files, from which :meth:`save` copies them. Of an Index, its passages are
            taken, with their metadata, and with their vectors, encoder, metric and storage if no vectors are given.
        reader : {"words", "spacy"}, a reader, or a list of both kinds, optional
            Makes entities, graph and facts from the texts: ``"words"`` is :class:`hopfuse.extract.WordReader`, which
            needs no model, ``"spacy"`` :class:`hopfuse.extract.SpacyReader`; an object has a method ``read`` as these
            have. At most one of them may be a reader of facts, and at most one of words. Consecutive passages of a
            document are joined, in the order of the column ``position`` if rows have it. Of a store, readers read the
            passages; it may have no other table, and ``position`` is a column of its metadata.
        language : str, optional
            With ``reader="words"``: the language of its stems and stop words, by name or code; ``"none"`` for neither.
            By default the main language of the passages, by their tags, words and scripts.
        lexical : str or bool, optional
            Store BM25 over titles and texts, as :attr:`lexical`: in a language, such as ``"german"``, or ``"plain"``,
            with neither stop words nor stems. False or ``"none"`` leave it out. By default it is made if there is a
            reader, in the language of its words, else in the main language of the passages; if its packages are not
            installed, a warning says so.
        synonyms : float, or mapping of str to float, optional
            With a reader of facts and an encoder: join entities of at least this similarity, or one for each label
            (:func:`hopfuse.extract.synonym_bounds`), and abbreviations with their long forms.
        metadata_types : mapping of str to str, optional
            Types of metadata columns: ``"bool"``, ``"int64"``, ``"float64"``, ``"string"``, ``"timestamp"`` or
            ``"strings"`` (a list of strings). These columns come first, in this order. Any other column has the type of
            its first value. Every value must have its column's type. ``"flatten"`` makes columns of a column's objects:
            ``loc.page`` of ``page`` in ``loc``; for the name ``"*"``, of all objects.
        vectors : array_like of float, shape (P, d), or path of an .npy file, optional
            An array with the dtype ``storage`` is referenced, not copied: do not change it. Under ``"int8"``, this
            holds for float32 and float16, which are saved unchanged.
        graph : Graph, or an edge table (as ``passages``), optional
            N = P + E nodes: 0 .. P-1 are the passages in their order, P .. N-1 the entities. A table has ``src`` and
            ``dst`` (nodes) and, optionally, ``type`` (str), ``weight`` (>= 0) and ``passage`` (the row of the passage
            that states the edge; -1 or missing if no passage states it, such as a synonym from a dictionary). Other
            columns are refused. Its edges are undirected. A TSV without a header has the columns src, dst, type,
            weight, passage. An edge at a passage belongs to that passage. If edges between entities have no
            ``passage``, isolated searches (docs/filters.md) are refused.
        statements : EdgeStatements, optional
            For a Graph, its edges as passages state them, like the column ``passage`` of a table.
        entities : list of str, or a table with the column ``name``, optional
            E names, which may repeat. A table may have ``stated`` (bool, by default true): false for an entity that a
            reader found in the passages (:attr:`stated`). By default, the graph's nodes after the passages are entities
            whose names are their numbers 0 .. E-1.
        aliases : mapping of int or str to list or tuple of str, optional
            Other names of an entity, by its index 0 .. E-1 or its name.
        entity_vectors : array_like of float, shape (E, d2), path of an .npy file, or an encoder of the names, optional
        facts : Facts, or a table (as ``passages``), optional
            A table has ``head``, ``relation``, ``tail`` (str) and ``passage`` (the row of the passage that states the
            fact); other columns are refused. Rows with the same triple are one fact. A TSV without a header has the
            columns in this order.
        fact_ends : {"name", "node"}
            Whether a table's heads and tails are names of entities, matched exactly, or nodes P .. N-1.
        words : WordInfo, optional
            Which entities are words, and how they were read. A question's words are read in the same way.
        encoder : EncoderInfo, or an encoder or its name, optional
            The encoder that made ``vectors``, stored as :attr:`encoder`. Without ``vectors``, an encoder makes those of
            the passages, from the texts of :meth:`texts_to_index`, and those of named entities, unless
            ``entity_vectors`` are given; in that case an EncoderInfo describes ``entity_vectors``. Names are as for
            :func:`hopfuse.encoders.open_encoder`, such as ``"wordllama"``.
        metric : {"ip", "cosine"}
        storage : {"float32", "float16", "bfloat16", "int8"}
            Precision of both kinds of vectors, to which values are rounded once. ``"int8"`` keeps each kind in its own
            precision, for vectors that do not fit in memory: see ``Corpus.from_array``.
        scratch : path, optional
            Directory for the temporary files of a source, by default the system's; they are removed with the index.
        failed : callable, optional
            Takes the row of a passage whose text the encoder refuses, such as one that is too long for an endpoint, and
            the error. The vector of this passage is zeros, which the metric ``"ip"`` allows: dense search does not find
            it. An error that it raises ends the build. By default, and for encoders without a method ``try_passages``
            (:meth:`hopfuse.encoders.EndpointEncoder.try_passages`), the encoder's error does.
        left_out : LeftOut, optional
            Leaves out the rows of a store that an index cannot hold, such as those with a NULL for a vector, and
            collects them. By default, such a row is an error.

        Returns
        -------
        Index

        Raises
        ------
        InputError
            An argument that is not as above; the message names the row and, for a file, the line. With an encoder, a
            passage without words for it.
        MissingExtraError
            A source, a Parquet file or an Arrow table is given, and pyarrow is not installed; or the packages of a
            reader, or of BM25 if ``lexical`` is given.
        StoreError
            The source fails.

        Examples
        --------
        >>> from hopfuse.index import Index
        >>> Index.build([{"text": "Ada wrote notes."}, {"text": "Her notes are famous."}], reader="words")
        Index(passages=2, entities=4, dim=None, graph=True, lexical=True, metric='ip', storage='float32')
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
        given = locals()  # every argument, by name
        from .build import build_parts  # readers are imported only by those who build
        from .input import Inputs

        inputs = Inputs.of(given)
        if reader is not None:
            building: Any = import_module("hopfuse.extract.building")  # above this room
            return building.index_of(inputs)  # type: ignore[no-any-return]
        parts = build_parts(inputs)
        index = cls._of_arrays(parts.arrays, parts.settings, parts.made)
        index = index._with_derived(parts.encoder, parts.name_encoder, failed)
        return index if parts.terms is None else index.with_lexical(parts.terms.matrix(index.texts_to_index()))

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[Any],
        *,
        ids: Iterable[PassageId] | None = None,
        titles: Iterable[str] | None = None,
        reader: Any = None,
        encoder: Any = None,
        metric: Metric = "cosine",
        **options: Any,
    ) -> Index:
        """Build an index of texts in memory: :meth:`build` with rows of them, and cosine as the metric.

        Parameters
        ----------
        texts : iterable of str, or of mappings with ``text`` and the optional columns of :meth:`build`
        ids : iterable of str or of int, optional
            Distinct, one for each text; by default the row number.
        titles : iterable of str, optional
        reader : {"words", "spacy"}, a reader, or a list of both kinds, optional
            As in :meth:`build`. Without one, the index has no graph.
        encoder : Encoder or its name, optional
            Object with ``encode_passages``, or sentence-transformers' ``encode_document``, for the texts of
            :meth:`texts_to_index`; stored as :attr:`encoder`. Without one, the index has no vectors.
        metric : {"ip", "cosine"}
        **options
            Other arguments of :meth:`build`.

        Raises
        ------
        InputError
            Texts, ids or titles that are not as above, an encoder that cannot encode them, or a passage without words
            for it.

        Examples
        --------
        >>> import hopfuse as hf
        >>> index = hf.Index.from_texts(["A river.", "The sea."], ids=["thames", "sea"], titles=["Thames", ""])
        >>> index.texts_to_index(), index.row_of("sea")
        (['Thames\\nA river.', 'The sea.'], 1)
        """
        from .input import rows_of_texts

        rows = rows_of_texts(texts, ids, titles)
        return cls.build(rows, reader=reader, encoder=encoder, metric=metric, **options)

    @overload
    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        verify: Literal["lazy", "full"] = ...,
        live: Literal[False] = ...,
        writable: Literal[False] = ...,
    ) -> Index: ...
    @overload
    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        verify: Literal["lazy", "full"] = ...,
        live: Literal[True],
        writable: Literal[False] = ...,
    ) -> LiveIndex[Index]: ...
    @overload
    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        verify: Literal["lazy", "full"] = ...,
        live: bool = ...,
        writable: Literal[True],
        encoder: Any = ...,
    ) -> LiveIndex[Index]: ...
    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        verify: Literal["lazy", "full"] = "lazy",
        live: bool = False,
        writable: bool = False,
        encoder: Any = None,
    ) -> Index | LiveIndex[Index]:
        """Map the current generation of an index, with the changes in its log; nothing large is read.

        Changes are merged when the index is first read: see :attr:`seq`.

        Parameters
        ----------
        directory : path
            The directory that :meth:`save` wrote.
        verify : {"lazy", "full"}
            ``"lazy"`` verifies the header, the section table, all shapes and the checksums of the log now, and each
            payload at its first use. ``"full"`` reads and verifies everything now, so that later uses find no damage
            that exists now.
        live : bool
            Return a :class:`hopfuse.LiveIndex`, which follows later commits.
        writable : bool
            Return a LiveIndex that takes changes. It holds the directory's lock until it is closed; there can be one at
            a time.
        encoder : Encoder or its name, optional
            With ``writable``, encodes additions that are given without vectors. Names are as for
            :func:`hopfuse.encoders.open_encoder`, such as ``"wordllama:64"``.

        Returns
        -------
        Index or LiveIndex
            An Index keeps its generation and its seq, whatever is saved over it later.

        Raises
        ------
        FormatError
            The files are torn, damaged, or of another format version. With ``"lazy"``, damage of a payload is raised
            at its first use.
        InputError
            There is no such directory, it is open for writing elsewhere, or the encoder is not the index's.

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
        check_type(directory, "directory", (str, os.PathLike), "the path of a directory that Index.save wrote")
        check_choice(verify, "verify", VERIFY)
        if live or writable:
            from .live import LiveIndex  # only those who change or follow an index need it

            opened = LiveIndex(cls, directory, writable=writable, encoder=encoder)
            if verify == "full":
                verify_index(opened.index)
            return opened
        check_needs("encoder", encoder, "writable", None, "which it is for")
        state = read_state(cls, Path(directory))
        index = state.snapshot()
        if verify == "full":
            verify_index(state.base)
            verify_index(index)
        return index

    def save(self, directory: str | os.PathLike[str]) -> int:
        """Write the index as a new generation of a directory, and make it the current one.

        If the process is killed, the previous generation stays current. Open indexes are not affected. Concurrent saves
        wait for each other. POSIX systems only.

        Parameters
        ----------
        directory : path
            Created if absent. Files that do not belong to an index are kept.

        Returns
        -------
        int
            The generation's number, 1 for the first.

        Raises
        ------
        FormatError
            This index is mapped from a damaged file; the directory keeps its current generation.
        OSError
            The directory cannot be written; it keeps its current generation.

        Examples
        --------
        >>> import tempfile
        >>> from hopfuse.index import Index
        >>> index = Index.build(passages=[{"text": "one"}])
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     index.save(directory), index.save(directory)
        (1, 2)
        """

        folder = Path(directory)

        def write(path: Path, generation: int) -> None:
            write_file(path, generation, self._settings, self._sections, seq=self._next_seq(folder))

        return publish(folder, write)

    def copy_to(self, directory: str | os.PathLike[str]) -> int:
        """Write a copy of the index with its seq to another directory, and make it current there.

        An index that was opened from a directory can be copied while a writer changes it: the copy is the state that
        was opened. All checksums are verified. If the process is killed, the directory keeps the copy before. Servers
        of the copy change to the new one. POSIX systems only.

        Parameters
        ----------
        directory : path
            Created if absent; it may have an earlier copy.

        Returns
        -------
        int
            The seq.

        Raises
        ------
        FormatError
            This index is mapped from a damaged file; the directory keeps the copy before.
        InputError
            The directory contains this index, or one at a later seq.

        Examples
        --------
        >>> import tempfile
        >>> from hopfuse.index import Index
        >>> with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as copy:
        ...     saved = Index.build(passages=[{"text": "one"}]).save(directory)
        ...     with Index.open(directory, writable=True) as live, live.change() as change:
        ...         change.add_passages([{"id": 1, "text": "two"}])
        ...     Index.open(directory).copy_to(copy), list(Index.open(copy).texts)
        (1, ['one', 'two'])
        """
        folder = Path(directory)
        if self._directory is not None and folder.exists() and folder.samefile(self._directory):
            raise InputError(
                "conflict", "directory", "{given} is the directory of this index; give another", given=str(directory)
            )

        def write(path: Path, generation: int) -> None:
            before = self._next_seq(folder) - 1
            if before > self._seq:
                raise InputError(
                    "conflict",
                    "directory",
                    "{given} has an index at seq {before}, and this one is at {seq}: it is no copy of this one; give "
                    "another directory",
                    given=str(directory),
                    before=before,
                    seq=self._seq,
                )
            write_file(path, generation, self._settings, self._sections, seq=self._seq)

        publish(folder, write)
        return self._seq

    def with_vectors(self, vectors: Any, *, encoder: Any = None) -> Index:
        """Return the index with other vectors of its passages, or with none; other parts are shared.

        Parameters
        ----------
        vectors : array_like of float, shape (P, d), path of an .npy file, or None
            As in :meth:`build`, under the index's metric and storage.
        encoder : EncoderInfo, or an encoder, optional
            The encoder that made them.

        Raises
        ------
        InputError
            Vectors that are not as above, or an encoder of another dimension.

        Examples
        --------
        >>> import hopfuse as hf
        >>> index = hf.Index.build(passages=[{"text": "A river."}, {"text": "The sea."}])
        >>> index.with_vectors([[1.0, 0.0], [0.0, 1.0]]).dim
        2
        """
        from .build import load_vectors

        corpus = load_vectors(vectors, "vectors", self.num_passages, self.metric, self.storage)
        info = None if encoder is None else EncoderInfo.of(encoder)
        new = {} if corpus is None else {"passage.vectors": corpus.vectors}
        if info is not None:
            parts.encoder.check_dim(
                info, None if corpus is None else corpus.dim, parts.encoder.vector_dim(self._sections, "entity.vectors")
            )
            new |= parts.encoder.build(info)
        return self._with(("passage.vectors", "encoder."), new, {"corpus": corpus, "encoder": info})

    def with_encoder(self, encoder: Any, *, failed: Failed | None = None) -> Index:
        """Return the index with an encoder, and with its vectors of passages and named entities where there are none.

        Parameters
        ----------
        encoder : Encoder
            As for :meth:`from_texts`.
        failed : callable, optional
            As for :meth:`build`.

        Raises
        ------
        InputError
            An encoder that cannot encode them, or of another dimension than the passages' vectors, or a passage without
            words for it.

        Examples
        --------
        >>> import hopfuse as hf
        >>> index = hf.Index.build([{"text": "A river."}], entities=["river"])
        >>> index = index.with_encoder(hf.encoders.ArrayEncoder(1, passages={"A river.": [1.0], "river": [0.5]}))
        >>> index.dim, index.entity_vectors
        (1, array([[1.]], dtype=float32))
        """
        maker = as_encoder(encoder)
        return self._with_derived(maker, maker, failed)

    def _with_derived(self, passages: Encoder | None, names: Encoder | None, failed: Failed | None = None) -> Index:
        from .derive import derived_vectors

        if passages is None and names is None:
            return self
        new, made = derived_vectors(self, passages, names, failed)
        return self._with(("encoder.",) if passages is not None else (), new, made)

    def with_lexical(self, matrix: TermMatrix | None) -> Index:
        """Return the index with another lexical part, or with none; other parts are shared.

        Parameters
        ----------
        matrix : TermMatrix or None
            Over the P passages in their order, such as :attr:`hopfuse.lexical.BM25.matrix`.

        Raises
        ------
        InputError
            The argument is not a matrix over this number of passages.

        Examples
        --------
        >>> from hopfuse.index import Index
        >>> from hopfuse.lexical import BM25
        >>> index = Index.build(passages=[{"text": "A river."}, {"text": "The sea."}])
        >>> index = index.with_lexical(BM25.build(index.texts).matrix)
        >>> BM25(index.lexical).search(["the sea"], k=1).ids
        array([[1]])
        """
        new = {} if matrix is None else parts.terms.build(matrix, self.num_passages)
        return self._with(("lexical.",), new, {"lexical": matrix})

    def with_facts(self, facts: Facts | None) -> Index:
        """Return the index with other facts, or with none; other parts are shared.

        Parameters
        ----------
        facts : Facts or None
            Over the P passages and E entities, in their order.

        Raises
        ------
        InputError
            The argument is not Facts over these numbers of passages and entities.

        Examples
        --------
        >>> from hopfuse import Facts, Index
        >>> index = Index.build(passages=[{"text": "Ada wrote notes."}], entities=["Ada", "notes"])
        >>> facts = Facts.from_names([("Ada", "wrote", "notes", 0)], index.entity_names, index.num_passages)
        >>> index.with_facts(facts).info()["facts"]
        {'facts': 1, 'relations': 1, 'statements': 1}
        """
        new = {} if facts is None else parts.facts.build(facts, self.num_passages, self.num_entities)
        return self._with(("fact.",), new, {"facts": facts})

    def with_metadata(self, metadata: Any, *, metadata_types: Mapping[str, str] | None = None) -> Index:
        """Return the index with other metadata of its passages, or with none; other parts are shared.

        Parameters
        ----------
        metadata : path, Arrow table, iterable of mappings, or None
            Rows with ``metadata`` as in :meth:`build`, and the ``id`` of the passage; a passage without a row has no
            values. Without ids, P rows in the passages' order.
        metadata_types : mapping of str to str, optional
            As in :meth:`build`.

        Raises
        ------
        InputError
            Rows that are not as above, an id that no passage has or that two rows have, or without ids another number
            of rows.

        Examples
        --------
        >>> from hopfuse import Index
        >>> index = Index.build(passages=[{"id": "a", "text": "one"}, {"id": "b", "text": "two"}])
        >>> list(index.with_metadata([{"id": "b", "metadata": {"year": 2024}}]).metadata["year"])
        [None, 2024]
        """
        from .build import metadata_of

        new = {} if metadata is None else metadata_of(metadata, metadata_types, self.num_passages, self.rows_of)
        return self._with(("metadata.",), new, {}, dropped="metadata")

    def with_source(self, state: str | None) -> Index:
        """Return the index with another state of its source, or with none: see :attr:`source`.

        Examples
        --------
        >>> import hopfuse as hf
        >>> hf.Index.build(passages=[{"text": "one"}]).with_source("row 1").source
        'row 1'
        """
        if state is not None:
            check_type(state, "state", str, "a string")
        return self._with(("source.",), {} if state is None else string_arrays("source.state", [state]), {})

    def part(self, allow: Any) -> IndexPart:
        """Return the index of some passages alone, equal to one built from their rows.

        Its passages, entities, edges and facts are in the order of this index. It contains the entities that an edge
        joins to one of the passages, or about which a passage states an edge or a fact, with all their names and
        aliases. It has the edges at these passages, those that they state, and those that no passage states; their
        facts; all edge types; and BM25's scores among these passages, if this index keeps counts. Its strings are read
        from this index. The last used parts are cached, up to the bytes of :meth:`keep_parts`.

        Parameters
        ----------
        allow : Where, ids of passages, or bool (P,)

        Raises
        ------
        InputError
            A filter that :meth:`mask` refuses, or a graph with edges between entities for which the index does not
            record which passages state them.

        Examples
        --------
        >>> import numpy as np, hopfuse as hf
        >>> index = hf.Index.build(
        ...     passages=[{"text": "Ada wrote notes."}, {"text": "Ada met Babbage."}],
        ...     entities=["Ada", "Babbage"],
        ...     graph=[{"src": 0, "dst": 2}, {"src": 1, "dst": 2}, {"src": 1, "dst": 3}],
        ... )
        >>> part = index.part(np.array([True, False]))
        >>> part.index, part.entities
        (Index(passages=1, entities=1, dim=None, graph=True, lexical=False, metric='ip', storage='float32'), array([0]))
        """
        mask = self.mask(allow)

        def make() -> IndexPart:
            made = part_arrays(self, mask)
            of = {"part_of": PartOf(self, made.passages, made.entities)}
            index = type(self)._of_arrays(made.arrays, self._settings, made.made | of)
            return IndexPart(index, made.passages, made.entities, made.facts)

        return self.parts.get(mask, make)

    @property
    def parts(self) -> PartCache[IndexPart]:
        """The parts that are cached."""

        def make() -> PartCache[IndexPart]:
            return PartCache(max(LEAST_KEPT, searched_bytes(self._sections)))

        return self._cached("parts", make)

    def keep_parts(self, nbytes: int) -> None:
        """Set how many bytes of parts are cached, the most recently used ones, with what is laid out for searches.

        By default 256 MiB, or as many bytes as a search of the whole index lays out if that is more, so that the parts
        of tenants that share no passage are all cached.

        Examples
        --------
        >>> import hopfuse as hf
        >>> index = hf.Index.build(passages=[{"text": "one"}, {"text": "two"}])
        >>> index.keep_parts(0)  # the last one alone
        >>> _ = index.part([0]), index.part([1])
        >>> len(index.parts)
        1
        """
        self.parts.keep(check_whole(nbytes, "nbytes", least=0))

    @property
    def part_of(self) -> PartOf[Index] | None:
        """Return what :meth:`part` made this index from; None for any other index."""
        return self._cache.get("part_of")

    def __reduce__(self) -> tuple[Any, ...]:
        if self._directory is not None:
            return reopened, (type(self), str(self._directory.absolute()), self._generation, self._seq)
        return type(self)._of_arrays, (self.arrays(), self._settings)

    @classmethod
    def _next_seq(cls, directory: Path) -> int:
        """Return the seq for a save, which counts as one change of the index that it replaces."""
        try:
            return read_state(cls, directory).seq + 1
        except FormatError:  # there is no index that can be read
            return 0

    @classmethod
    def _of_arrays(
        cls, arrays: Mapping[str, NDArray[Any] | Section], settings: Settings, made: Mapping[str, Any] | None = None
    ) -> Index:
        sections = {name: as_section(name, one) for name, one in in_file_order(arrays).items()}
        check_schema(sections, settings)
        return cls(sections, settings, _cache=dict(made or {}))

    def _with(
        self,
        groups: tuple[str, ...],
        new: Mapping[str, NDArray[Any]],
        made: Mapping[str, Any],
        dropped: str | None = None,
    ) -> Index:
        """Return the index with the sections of ``groups`` replaced; the cached part ``dropped`` is made again."""
        kept = {name: section for name, section in self._sections.items() if not name.startswith(groups)}
        sections = in_file_order({**kept, **{name: Section(name, array) for name, array in new.items()}})
        check_schema(sections, self._settings)
        with self._lock:
            kept_parts = {key: part for key, part in self._cache.items() if key not in (dropped, "parts", "part_of")}
            return type(self)(sections, self._settings, _cache={**kept_parts, **made})


@dataclass(frozen=True, eq=False)
class IndexPart:
    """An index of some passages of another index, and the rows that it was made from.

    Attributes
    ----------
    index : Index
    passages, entities, facts : ndarray of int64
        The rows of its passages, entities and facts in the other index, ascending.

    Examples
    --------
    >>> import numpy as np, hopfuse as hf
    >>> hf.Index.build(passages=[{"text": "one"}, {"text": "two"}]).part(np.array([False, True])).passages
    array([1])
    """

    index: Index
    passages: NDArray[np.int64]
    entities: NDArray[np.int64]
    facts: NDArray[np.int64]
    _cache: WeakKeyDictionary[Any, Any] = field(default_factory=WeakKeyDictionary, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def once(self, of: Any, make: Callable[[IndexPart], Any]) -> Any:
        """Return what an object, such as a recipe, needs of this part, made at its first use and kept with the part."""
        with self._lock:
            if of not in self._cache:
                self._cache[of] = make(self)
            return self._cache[of]

    @property
    def nbytes(self) -> int:
        """About how many bytes the part takes while it is searched, without its strings, which are the whole's."""
        return searched_bytes(self.index.sections) + self.passages.nbytes + self.entities.nbytes + self.facts.nbytes

    def __reduce__(self) -> tuple[Any, ...]:
        return IndexPart, (self.index, self.passages, self.entities, self.facts)
