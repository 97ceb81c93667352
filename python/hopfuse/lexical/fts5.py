"""Rank passages by SQLite's FTS5, without third-party libraries, and choose between it and BM25."""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from .._validation import check_choice, check_k, checked_texts
from ..errors import BackendError, InputError, MissingExtraError
from ..text import RULE, check_rule, fold, runs_in, spaced, unaccented
from ..types import Hits, TermMatrix
from ..types.hits import pad_rows
from .bm25 import BM25

_FIRST_WORD = re.compile(r"\w+")
_NAME = "passages_fts5"
_TOKENIZER = re.compile(r"tokenize='((?:[^']|'')*)'")
_RANKED = f"SELECT rowid, -bm25({_NAME}) FROM {_NAME} WHERE {_NAME} MATCH ? ORDER BY bm25({_NAME}) LIMIT ?"
#: Passages to fetch beyond 2 k, so that usually one of them scores below the k-th.
EXTRA_HITS = 1000
#: Deleted rows that a database keeps at least, before it is built anew.
LEAST_DELETED = 1000


class FTS5:
    """Rank passages by the words that they share with a question, in an SQLite database.

    Build it from texts with :meth:`build`, or open a database file: ``FTS5("words.sqlite")``.

    A passage's score is SQLite's BM25 with the sign reversed, so that higher is better: k1 = 1.2, b = 0.75, idf(t) =
    ln((N - df + ½)/(df + ½)), or 10⁻⁶ if that is not above 0. It depends only on the question and the passages. A
    passage matches if it has any word of the question, as in :class:`BM25`. Before SQLite sees them, texts are folded
    (:func:`hopfuse.text.fold`, without accents), and scripts without spaces are cut into pairs of characters; marks
    stay within words. There are no stop words; their idf is near 0. A repeated word of the question counts once,
    whatever its case and accents; different words with the same stem each count.

    SQLite scores every passage that has a word of the question, and "the" is in most, so the time of a question grows
    with the number of passages. With 43,614 passages it was a hundred times that of :class:`BM25`, which scores at
    build (101 questions, on a busy machine). Only the best passages are returned to Python, which takes three fifths of
    the time of returning all. Leaving out common words would be faster, but would change scores.

    Parameters
    ----------
    path : str or path
        A database written by :meth:`build`, opened read-only.

    Raises
    ------
    InputError
        The file does not exist, or is not such a database.
    BackendError
        Python's SQLite lacks FTS5.

    References
    ----------
    SQLite FTS5, https://www.sqlite.org/fts5.html, section 5.1.1 (bm25).

    Examples
    --------
    >>> from hopfuse.lexical import FTS5
    >>> leg = FTS5.build(["Ada wrote notes on the Engine.", "Babbage built engines.", "The sea."])
    >>> leg.search(["Who built an engine?", "What?"], k=2).ids
    array([[ 1,  0],
           [-1, -1]])
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        file = Path(path)
        if not file.is_file():
            raise InputError(
                "missing",
                "path",
                "{field} is {given}, which is not a file; FTS5.build(texts, path=...) writes one",
                given=file,
            )
        self._open(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False))

    @classmethod
    def build(
        cls, texts: Sequence[str], *, path: str | PathLike[str] | None = None, tokenizer: str = "porter unicode61"
    ) -> FTS5:
        """Build a database of the words of every passage.

        Parameters
        ----------
        texts : sequence of str, P entries
            The texts of passages 0 .. P-1. To search titles too, put each before its text.
        path : str or path, optional
            A file to write, which must not exist. By default the database stays in memory.
        tokenizer : str
            A tokenizer of FTS5: ``"porter unicode61"`` stems English words, ``"unicode61"`` does not stem, and
            ``"trigram"`` also finds words of three or more characters inside other words; with it, scripts without
            spaces are not cut.

        Returns
        -------
        FTS5

        Raises
        ------
        InputError
            Texts that are not strings, a file that exists or whose folder does not, an unknown tokenizer.
        BackendError
            Python's SQLite lacks FTS5.
        """
        rows = checked_texts(texts)
        _check_encodable(rows)
        file = None if path is None else Path(path)
        if file is not None and file.exists():
            raise _exists(file)
        if file is not None and not file.parent.is_dir():
            raise InputError(
                "missing",
                "path",
                "{field} is {given}, but {parent} is not a folder; create it first",
                given=file,
                parent=file.parent,
            )
        return cls._of(map(_Reading(tokenizer, RULE).text, rows), tokenizer, RULE, file)

    @classmethod
    def _of(cls, rows: Iterable[str], tokenizer: str, rule: int, file: Path | None = None) -> FTS5:
        """Return a database of texts that are read already."""
        made = cls.__new__(cls)
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            _create(connection, tokenizer, rule)
            with connection:
                connection.executemany(f"INSERT INTO {_NAME}(rowid, text) VALUES (?, ?)", enumerate(rows))
            if file is not None:
                _write(connection, file)
        except BaseException:
            connection.close()
            raise
        made._open(connection)
        return made

    @property
    def num_passages(self) -> int:
        """The number of passages, P."""
        return self._passages

    def search(self, questions: Sequence[str], k: int) -> Hits:
        """Return the k best passages for each question, among those that share a word with it.

        Parameters
        ----------
        questions : sequence of str, B entries
            Searched word by word; FTS5's query syntax is not interpreted.
        k : int
            At least 0; it may exceed P.

        Returns
        -------
        Hits
            ids int64 and scores float32, (B, min(k, P)), and counts (B,). Order: higher score, then lower id; the rest
            of a row is padding.

        Raises
        ------
        InputError
            Questions that are not strings, k below 0.
        """
        k = min(check_k(k), self.num_passages)
        return pad_rows([self._best(question, k) for question in checked_texts(questions)], k)

    def part(self, rows: NDArray[np.int64]) -> FTS5:
        """Return an in-memory database of a subset of passages, numbered from 0.

        Parameters
        ----------
        rows : ndarray of int64
            Ascending.

        Examples
        --------
        >>> import numpy as np
        >>> from hopfuse.lexical import FTS5
        >>> FTS5.build(["A river.", "The sea.", "A river by the sea."]).part(np.array([0, 2])).search(["sea"], k=1).ids
        array([[1]])
        """
        if self._rows is not None:
            places = np.flatnonzero(self._rows >= 0)
            rows = places[np.argsort(self._rows[places])][rows]
        with self._lock:
            one = f"SELECT text FROM {_NAME} WHERE rowid = ?"
            texts = [self._connection.execute(one, (row,)).fetchone()[0] for row in rows.tolist()]
        return FTS5._of(texts, self._reading.tokenizer, self._reading.rule)

    def continued(self, kept: NDArray[np.int64], rows: NDArray[np.int64], texts: Sequence[str]) -> FTS5:
        """Return an in-memory database of other passages of which these are some; only new ones are read.

        Parameters
        ----------
        kept : ndarray of int64, shape (P,)
            The number of each passage among the others, ascending, and -1 for those that are not there.
        rows : ndarray of int64
            The numbers of the passages that are new.
        texts : sequence of str
            Their texts.

        Examples
        --------
        >>> import numpy as np
        >>> from hopfuse.lexical import FTS5
        >>> leg = FTS5.build(["A river.", "The sea."])
        >>> leg.continued(np.array([-1, 0]), np.array([1]), ["A sea of sand."]).search(["sea"], k=2).ids
        array([[0, 1]])
        """
        added = checked_texts(texts)
        _check_encodable(added)
        own = np.arange(self._passages) if self._rows is None else self._rows
        mine = np.where(own >= 0, kept[own], -1) if kept.size else own
        gone = np.flatnonzero((mine < 0) & (own >= 0)).tolist()
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        with self._lock:
            self._connection.backup(connection)
        with connection:
            connection.executemany(f"DELETE FROM {_NAME} WHERE rowid = ?", ((row,) for row in gone))
            numbered = enumerate(map(self._reading.text, added), mine.size)
            connection.executemany(f"INSERT INTO {_NAME}(rowid, text) VALUES (?, ?)", numbered)
        made = FTS5.__new__(FTS5)
        made._open(connection)
        made._rows = np.concatenate([mine, rows])
        is_worn = made._rows.size - made._passages > max(LEAST_DELETED, made._passages)
        return made.part(np.arange(made._passages)) if is_worn else made

    def close(self) -> None:
        """Close the database; it is also closed when the object is deleted."""
        self._connection.close()

    def __repr__(self) -> str:
        return f"FTS5(passages={self._passages})"

    def _open(self, connection: sqlite3.Connection) -> None:
        self._connection, self._lock = connection, Lock()
        finalize(self, connection.close)
        self._rows: NDArray[np.int64] | None = None  # of each row of the table, -1 for one that was deleted
        try:
            connection.execute(f"SELECT bm25({_NAME}) FROM {_NAME} WHERE {_NAME} MATCH 'a'").fetchone()
            ((count,),) = connection.execute(f"SELECT count(*) FROM {_NAME}_docsize")
            self._passages = int(count)
            (made,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (_NAME,)).fetchone()
            ((rule,),) = connection.execute("PRAGMA user_version")
        except sqlite3.DatabaseError as error:
            connection.close()
            raise InputError(
                "damaged", "path", "{field} is not a database that FTS5.build wrote: {error}", error=error
            ) from None
        found = _TOKENIZER.search(made)
        assert found is not None
        self._reading = _Reading(found[1].replace("''", "'"), check_rule(rule or 1, "words"))

    def _best(self, question: str, k: int) -> tuple[Any, Any]:
        """Return the k best passages that have a word of the question, best first."""
        words = self._reading.words(question)
        if not words or not k:
            return (), ()
        matched = " OR ".join(f'"{word}"' for word in words)
        for limit in (2 * k + EXTRA_HITS, -1):
            with self._lock:
                rows = self._connection.execute(_RANKED, (matched, limit)).fetchall()
            ids = np.array([row[0] for row in rows], np.int64)
            scores = np.array([row[1] for row in rows], np.float32)
            if len(rows) != limit or scores[-1] < scores[k - 1]:
                break  # passages not fetched are below the k-th even after rounding to float32
        ids = ids if self._rows is None else self._rows[ids]
        order = np.lexsort((ids, -scores))[:k]
        return ids[order], scores[order]


class _Reading(NamedTuple):
    """How a database's texts and its questions are read: its tokenizer, and the reading rule."""

    tokenizer: str
    rule: int

    def text(self, text: str) -> str:
        """Return a text as it is stored."""
        if self.rule == 1:
            return unicodedata.normalize("NFC", text)
        folded = unaccented(fold(text))
        return folded if "trigram" in self.tokenizer else spaced(folded)

    def words(self, question: str) -> list[str]:
        """Return the words of a question; of words that differ in case and accents only, the last one."""
        text = self.text(question)
        if self.rule == 1:
            return list({_bare(word): word for word in _FIRST_WORD.findall(text)}.values())
        return list(dict.fromkeys(runs_in(text)))


def _check_encodable(texts: list[str]) -> None:
    for at, text in enumerate(texts):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                "syntax",
                f"texts[{at}]",
                "{field} has a lone surrogate at {start}, which cannot be encoded; decode the text with "
                "errors='replace'",
                start=error.start,
            ) from None


def _bare(word: str) -> str:
    """Drop case and accents, as FTS5 does."""
    parts = unicodedata.normalize("NFD", word.lower())
    return "".join(part for part in parts if unicodedata.category(part) != "Mn") or word


def _exists(file: Path) -> InputError:
    return InputError(
        "exists",
        "path",
        "{field} is {given}, which exists already; pass the path of a new file, or open this one with FTS5(path)",
        given=file,
    )


def _unknown_tokenizer(tokenizer: Any, problem: str) -> InputError:
    return InputError(
        "choice",
        "tokenizer",
        "{field} is {given!r} ({problem}); allowed: {allowed}",
        given=tokenizer,
        problem=problem,
        allowed="unicode61, ascii, porter and trigram",
    )


def _create(connection: sqlite3.Connection, tokenizer: str, rule: int) -> None:
    if not isinstance(tokenizer, str) or not (tokenizer.isascii() and tokenizer.isprintable()):
        raise _unknown_tokenizer(tokenizer, "its characters are not ASCII")
    if rule != 1 and "unicode61" in tokenizer and "categories" not in tokenizer:
        tokenizer += " categories 'L* M* N* Co'"
    quoted = tokenizer.replace("'", "''")
    try:
        connection.execute(f"PRAGMA user_version = {rule}")
        connection.execute(f"CREATE VIRTUAL TABLE {_NAME} USING fts5(text, tokenize='{quoted}')")
    except sqlite3.OperationalError as error:
        connection.close()
        if "no such module" in str(error):
            raise BackendError(
                "unavailable",
                None,
                "SQLite {version} of this Python lacks FTS5; use BM25",
                version=sqlite3.sqlite_version,
            ) from error
        raise _unknown_tokenizer(tokenizer, str(error)) from None


def _write(connection: sqlite3.Connection, file: Path) -> None:
    """Write the file atomically, without overwriting another."""
    partial = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        with closing(sqlite3.connect(partial)) as target:
            connection.backup(target)
        os.link(partial, file)
    except FileExistsError:
        raise _exists(file) from None
    finally:
        partial.unlink(missing_ok=True)


# ---- BM25 or FTS5 ----------------------------------------------------------------------------------------------------

#: Kinds of legs by name; what follows "fts5:" is a tokenizer of SQLite.
KINDS = ("auto", "bm25", "fts5", "fts5:unicode61", "fts5:trigram")


class _Texts(Protocol):
    """Give what a lexical leg is made from: the texts, and BM25's matrix if there is one."""

    @property
    def lexical(self) -> TermMatrix | None: ...

    def texts_to_index(self) -> list[str]: ...


def words_of(index: _Texts, kind: str | None = None) -> BM25 | FTS5:
    """Return the lexical leg over an index's passages.

    Parameters
    ----------
    index : Index
    kind : {"auto", "bm25", "fts5", "fts5:unicode61", "fts5:trigram"}, optional
        By default the index's own BM25; without one, BM25 over titles and texts, or SQLite's FTS5 if the packages of
        BM25 are not installed. FTS5 stems English words, unless a tokenizer is named (:meth:`FTS5.build`).

    Raises
    ------
    InputError
        Another kind.
    MissingExtraError
        BM25 is required, by name or by the index, and its packages are not installed.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.lexical.words_of(hf.Index.build(passages=[{"text": "A river."}, {"text": "The sea."}]), "fts5")
    FTS5(passages=2)
    """
    if index.lexical is not None and kind in (None, "auto", "bm25"):
        return BM25(index.lexical)
    return leg_of(index.texts_to_index(), kind)


def leg_of(texts: Sequence[str], kind: str | None = None) -> BM25 | FTS5:
    """Return a lexical leg over texts; see :func:`words_of`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.lexical.leg_of(["A river.", "The sea."], "fts5").search(["sea"], k=1).ids
    array([[1]])
    """
    kind = check_choice("auto" if kind is None else kind, "kind", KINDS)
    name, _, tokenizer = kind.partition(":")
    if name != "fts5":
        try:
            return BM25.build(texts)
        except MissingExtraError:
            if kind == "bm25":
                raise
    return FTS5.build(texts, tokenizer=tokenizer) if tokenizer else FTS5.build(texts)
