"""What ``hopfuse build`` refuses before a reader, an encoder or an endpoint has worked for it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .. import Index
from ..errors import InputError
from ..lexical import BM25, searched_texts


def check_vectors(
    vectors: Path | None, encoder: str | None, entity_vectors: Path | None, metric: Any, storage: Any
) -> None:
    """Refuse vectors that are given twice, and a way to hold them where there are none."""
    if vectors is not None and encoder is not None:
        raise InputError("--vectors and --encoder are both given; each gives the passages their vectors")
    if vectors is None and encoder is None and entity_vectors is None:
        for name, value, default in (("metric", metric, "ip"), ("storage", storage, "float32")):
            if value != default:
                raise InputError(
                    f"--{name} is {value}, but there are no vectors; give --vectors, --encoder or --entity-vectors, or "
                    f"leave --{name} out"
                )


def check_out(out: Path) -> None:
    """Refuse a directory that cannot be written or made. What is tried is taken away again: nothing is made yet."""
    there = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise InputError(f"--out is {str(out)!r}, but {there} is a file; name another directory")
    try:
        TemporaryDirectory(dir=there).cleanup()
    except OSError as error:
        raise InputError(f"--out is {str(out)!r}, but {there} cannot be written: {error.strerror}") from None


def check_language(lexical: str | None) -> None:
    """Refuse a language that BM25 has no stop words or no stems of."""
    if lexical is not None:
        _bm25([], lexical)


def check_fit(passages: Path, **options: Any) -> None:
    """Refuse vectors that cannot be read, or are not one for each passage.

    Parameters
    ----------
    passages : Path
        Rows of id, title, text.
    **options
        ``vectors``, ``metric`` and ``storage`` of :meth:`hopfuse.Index.build`.
    """
    Index.build(passages=passages, **options)


def with_bm25(index: Index, lexical: str) -> Index:
    """The index with BM25 over each passage's title and text."""
    return index.with_lexical(_bm25(searched_texts(index), lexical).matrix)


def _bm25(texts: list[str], lexical: str) -> BM25:
    language = None if lexical == "none" else lexical
    return BM25.build(texts, stopwords=language, stemmer=language)
