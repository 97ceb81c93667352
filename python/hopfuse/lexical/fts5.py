"""Rank passages by SQLite's FTS5, without third-party libraries."""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
import unicodedata
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_k, checked_texts
from ..errors import BackendError, InputError
from ..types import Hits
from ..types.hits import pad_rows

_WORD = re.compile(r"\w+")
_NAME = "passages_fts5"
_TOKENIZER = re.compile(r"tokenize='((?:[^']|'')*)'")
_RANKED = f"SELECT rowid, -bm25({_NAME}) FROM {_NAME} WHERE {_NAME} MATCH ? ORDER BY bm25({_NAME}) LIMIT ?"
#: Passages to fetch beyond 2 k, so that usually one of them scores below the k-th.
EXTRA_HITS = 1000
_EXISTS = "{0} already exists; pass the path of a new file, or open this one with FTS5({0!r})"


class FTS5:
    """Rank passages by the words that they share with a question, in an SQLite database.

    Build it from texts with :meth:`build`, or open a database file: ``FTS5("words.sqlite")``.

    A passage's score is SQLite's BM25 with the sign reversed, so that higher is better: k1 = 1.2, b = 0.75, idf(t) =
    ln((N - df + ½)/(df + ½)), or 10⁻⁶ if that is not above 0. It depends only on the question and the passages. A
    passage matches if it has any word of the question, as in :class:`BM25`. There are no stop words; their idf is near
    0. A repeated word of the question counts once, whatever its case and accents; different words with the same stem
    each count.

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
            raise InputError("unknown", None, "{file} is not a file; FTS5.build(texts, path=...) writes one", file=file)
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
            ``"trigram"`` also finds words of three or more characters inside other words.

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
            raise InputError("UNSORTED", None, "{message}", message=_EXISTS.format(file))
        if file is not None and not file.parent.is_dir():
            raise InputError(
                "unknown",
                None,
                "{file} cannot be written, because {parent} is not a folder; create it first",
                file=file,
                parent=file.parent,
            )
        made = cls.__new__(cls)
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        _create(connection, tokenizer)
        with connection:
            connection.executemany(f"INSERT INTO {_NAME}(rowid, text) VALUES (?, ?)", enumerate(map(_composed, rows)))
        if file is not None:
            _write(connection, file)
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
        with self._lock:
            one = f"SELECT text FROM {_NAME} WHERE rowid = ?"
            texts = [self._connection.execute(one, (row,)).fetchone()[0] for row in rows.tolist()]
            (made,) = self._connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (_NAME,)).fetchone()
        found = _TOKENIZER.search(made)
        assert found is not None
        return FTS5.build(texts, tokenizer=found[1].replace("''", "'"))

    def close(self) -> None:
        """Close the database; it is also closed when the object is deleted."""
        self._connection.close()

    def __repr__(self) -> str:
        return f"FTS5(passages={self._passages})"

    def _open(self, connection: sqlite3.Connection) -> None:
        self._connection, self._lock = connection, Lock()
        try:
            connection.execute(f"SELECT bm25({_NAME}) FROM {_NAME} WHERE {_NAME} MATCH 'a'").fetchone()
            ((count,),) = connection.execute(f"SELECT count(*) FROM {_NAME}_docsize")
            self._passages = int(count)
        except sqlite3.DatabaseError as error:
            connection.close()
            raise InputError("UNSORTED", None, "not a database that FTS5.build wrote: {error}", error=error) from None

    def _best(self, question: str, k: int) -> tuple[Any, Any]:
        """Return the k best passages that have a word of the question, best first."""
        words = {_bare(word): word for word in _WORD.findall(_composed(question))}.values()
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
        order = np.lexsort((ids, -scores))[:k]
        return ids[order], scores[order]


def _check_encodable(texts: list[str]) -> None:
    for at, text in enumerate(texts):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                "UNSORTED",
                "texts",
                "{field}[{at}] has a lone surrogate at {start}, which cannot be encoded; decode the text "
                "with errors='replace'",
                at=at,
                start=error.start,
            ) from None


def _composed(text: str) -> str:
    """Compose letters and accents to single characters (NFC), as FTS5 expects."""
    return unicodedata.normalize("NFC", text)


def _bare(word: str) -> str:
    """Drop case and accents, as FTS5 does."""
    parts = unicodedata.normalize("NFD", word.lower())
    return "".join(part for part in parts if unicodedata.category(part) != "Mn") or word


def _create(connection: sqlite3.Connection, tokenizer: str) -> None:
    if not isinstance(tokenizer, str) or not (tokenizer.isascii() and tokenizer.isprintable()):
        raise InputError(
            "UNSORTED",
            "tokenizer",
            "{field} is {given!r}; FTS5 has unicode61, ascii, porter and trigram",
            given=tokenizer,
        )
    quoted = tokenizer.replace("'", "''")
    try:
        connection.execute(f"CREATE VIRTUAL TABLE {_NAME} USING fts5(text, tokenize='{quoted}')")
    except sqlite3.OperationalError as error:
        connection.close()
        if "no such module" in str(error):
            raise BackendError(
                "unavailable",
                None,
                "SQLite {sqlite_version} of this Python lacks FTS5; use BM25",
                sqlite_version=sqlite3.sqlite_version,
            ) from error
        raise InputError(
            "UNSORTED",
            "tokenizer",
            "{field} is {given!r}; FTS5 has unicode61, ascii, porter and trigram: {error}",
            given=tokenizer,
            error=error,
        ) from None


def _write(connection: sqlite3.Connection, file: Path) -> None:
    """Write the file atomically, without overwriting another."""
    partial = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        target = sqlite3.connect(partial)
        connection.backup(target)
        target.close()
        os.link(partial, file)
    except FileExistsError:
        raise InputError("UNSORTED", None, "{message}", message=_EXISTS.format(file)) from None
    finally:
        partial.unlink(missing_ok=True)
