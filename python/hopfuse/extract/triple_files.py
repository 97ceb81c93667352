"""Read facts from files of triples, and make passages from them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from os import PathLike
from pathlib import Path
from urllib.parse import unquote

from .._validation import check_suffix
from ..errors import InputError
from ..io.files import read_text
from ..io.readers import read_table
from ..io.tables import Spec, texts
from .extraction import Extraction, Triple

_COLUMNS = ("head", "relation", "tail")
_TRIPLES = Spec("triples", _COLUMNS, (), _COLUMNS, others=True)
# For the shape of a name: U for a capital, l for a small letter, s for "s", 9 for a digit, . for other characters.
_BEGINS = re.compile(r"(?<=[ls])(?=U)|(?<=9)(?=U[ls])|(?<=U)(?=U[ls])")
_PLURAL = re.compile(r"(?<=U)Us(?![ls])")  # "ISBNs" is one word
_CODE = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_IRI = rf"<((?:[^\x00-\x20<>\"{{}}|^`\\]|{_CODE})*)>"
_LITERAL = rf"\"((?:[^\"\\\n\r]|\\[tbnrf\"'\\]|{_CODE})*)\"(?:\^\^<[^>]*>|@[A-Za-z]+(?:-[A-Za-z0-9]+)*)?"
_BLANK = r"_:([^\s<>\"]*[^\s<>\".])"
_STATEMENT = re.compile(rf"\s*(?:{_IRI}|{_BLANK})\s*{_IRI}\s*(?:{_IRI}|{_BLANK}|{_LITERAL})\s*\.\s*(?:#.*)?")
_END_OF_LINE = re.compile(r"\r\n?|\n")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[tbnrf\"'\\])")
_CONTROL = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


def read_triples(path: str | PathLike[str]) -> list[Triple]:
    """Read the facts of a file, in order.

    Parameters
    ----------
    path : str or path
        ``.tsv`` (head, relation, tail; fields may be in double quotes, as csv writes them; a first line that contains a
        column name is a header), ``.parquet`` (columns with these names; needs the extra ``arrow``) or ``.nt``
        (N-Triples). An IRI is shortened to the part after its last ``#`` or ``/``, with percent signs decoded and ``_``
        replaced by a space; camelCase in a predicate is split into words ("directedBy" is "directed by", "hasISBN" is
        "has ISBN"). A literal is its text, without type and language; a blank node is its label.

    Returns
    -------
    list of (str, str, str)

    Raises
    ------
    InputError
        The file does not exist or has another suffix, a line is not a triple, or a part is blank or not a string; the
        message names it.
    MissingExtraError
        A Parquet file is given, and pyarrow is not installed.

    References
    ----------
    RDF 1.1 N-Triples, W3C Recommendation, 2014.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from hopfuse.extract import read_triples
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "facts.nt")
    ...     _ = file.write_text('<http://a.org/Ada_Lovelace> <http://a.org#bornIn> "London"@en .')
    ...     read_triples(file)
    [('Ada Lovelace', 'born in', 'London')]
    """
    file = Path(path)
    if file.suffix.lower() == ".nt":
        return _n_triples(file)
    check_suffix(file, "triples", ".tsv", ".parquet", ".nt")
    table = read_table(file, _TRIPLES)
    rows = zip(*(texts(table, name) for name in _COLUMNS), strict=True)
    return [_whole(row, table.where(at)) for at, row in enumerate(rows)]


def described(triples: Iterable[Triple]) -> list[Extraction]:
    """Return a passage for each head with its facts as text; ids and titles are the heads.

    Examples
    --------
    >>> from hopfuse.extract import described
    >>> described([("Alien", "directed by", "Ridley Scott"), ("Alien", "in", "English")])[0].text
    'Alien directed by Ridley Scott. Alien in English.'
    """
    rows: dict[str, list[Triple]] = {}
    for triple in triples:
        rows.setdefault(triple[0], []).append(triple)
    return [
        Extraction(head, head, " ".join(f"{' '.join(row)}." for row in facts), (head,), tuple(facts))
        for head, facts in rows.items()
    ]


def _n_triples(file: Path) -> list[Triple]:
    found = []
    for number, line in enumerate(_END_OF_LINE.split(read_text(file, "triples")), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where, match = f"{file}, line {number}", _STATEMENT.fullmatch(line)
        if match is None:
            raise InputError("syntax", None, "{line!r} is not an N-Triples statement", line=line[:80]).at(where)
        subject, blank, predicate, iri, other, literal = match.groups()
        try:
            head = blank if subject is None else _local(subject)
            tail = _unescaped(literal) if literal is not None else other if iri is None else _local(iri)
        except InputError as error:
            raise error.at(where) from None
        found.append(_whole((head, _words_of(_local(predicate)), tail), where))
    return found


def _whole(row: Triple, where: str) -> Triple:
    if not all(part.strip() for part in row):
        raise InputError(
            "empty", None, "{given!r} has a blank; head, relation and tail must not be blank", given=row
        ).at(where)
    return row


def _local(iri: str) -> str:
    whole = _unescaped(iri)
    name = re.split(r"[#/]", whole.rstrip("#/"))[-1]
    return unquote(name).replace("_", " ") or whole


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda m: _CONTROL.get(m[1]) or _character(m[1]), text)


def _character(escape: str) -> str:
    code = int(escape[1:], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise InputError("syntax", None, "\\{escape} is not a character", escape=escape)
    return chr(code)


def _words_of(name: str) -> str:
    """Split a camelCase name into words, in lower case except for acronyms.

    Examples
    --------
    >>> [_words_of(name) for name in ("placeOfBirth", "hasISBN", "hasISBNs", "inHTMLFormat", "top10Songs", "wrote")]
    ['place of birth', 'has ISBN', 'has ISBNs', 'in HTML format', 'top10 songs', 'wrote']
    >>> [_words_of(name) for name in ("isA", "isAPartOf", "hasXCoordinate")]
    ['is a', 'is a part of', 'has X coordinate']
    """
    shape = _PLURAL.sub("UU", "".join(map(_kind, name)))
    cuts = [0, *(match.start() for match in _BEGINS.finditer(shape)), len(name)]
    first, *others = (name[begin:end] for begin, end in pairwise(cuts))
    return " ".join(" ".join((first, *map(_small, others))).split())


def _kind(character: str) -> str:
    if character.isupper():
        return "U"
    if character.islower():
        return "s" if character == "s" else "l"
    return "9" if character.isdigit() else "."


def _small(word: str) -> str:
    """Return a word with its first letter in lower case, unless it is an acronym; the "A" of "isA" is not."""
    article = word[0] == "A" and not word[1:2].isalnum()
    return word[0].lower() + word[1:] if article or word[1:2].islower() else word
