"""Read files of facts: OpenIE, which are passages with extracted entities and triples, and triples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from .._validation import check_distinct, check_excludes, check_suffix, check_type
from ..errors import InputError
from ..index.contents import PassageId
from ..io.files import existing_file, read_text
from ..io.json_lines import check_characters, json_objects, parse_json
from ..io.readers import read_table
from ..io.source import ORDERED
from ..io.tables import Spec, Table, integers_or_none, languages, names_or_numbers, row_ids, texts
from .extraction import Extraction, Triple, names_in, well_formed

_KEYS = ("idx", "passage", "extracted_entities", "extracted_triples")


def read_openie(path: str | PathLike[str], passages: Any = None) -> list[Extraction]:
    """Read extractions from an OpenIE file.

    Parameters
    ----------
    path : str or path
        ``.json``: HippoRAG's published format, {"docs": [{"idx", "passage", "extracted_entities",
        "extracted_triples"}, ...]}; if a passage has several lines, the first one is its title. The files of HippoRAG 1
        have no "idx"; the ids are then the documents' numbers.
        ``.jsonl``: a line {"id", "entities", "triples"} for each passage of the other file.
    passages : path, Arrow table or iterable of mappings, optional
        For ``.jsonl``: rows of ``text`` and, optionally, ``id``, ``title``, ``document``, ``position`` and
        ``language``, as for other readers. A passage without a line in ``path`` has no entities.

    Returns
    -------
    list of Extraction
        In the order of the passages. Triples that are not three texts, and names that are none, which language models
        sometimes write, are left out and counted in ``malformed``; numbers and objects that name one are read.

    Raises
    ------
    InputError
        A file that does not exist or is not as above, an id that occurs twice, or an id that no passage has. The
        message names the file and the line or document.
    FormatError
        A line of ``path`` is not an object with these keys.
    MissingExtraError
        Passages are an Arrow table or a Parquet file and pyarrow is not installed.

    References
    ----------
    HippoRAG 2 (Gutiérrez et al., From RAG to Memory, 2025): https://github.com/OSU-NLP-Group/HippoRAG.

    Examples
    --------
    >>> import json, tempfile, pathlib
    >>> from hopfuse.extract import read_openie
    >>> doc = {"idx": "a", "passage": "Ada\\nAda wrote notes.", "extracted_entities": ["Ada"],
    ...        "extracted_triples": [["Ada", "wrote", "notes"], ["Ada", "wrote"]]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "openie.json")
    ...     _ = file.write_text(json.dumps({"docs": [doc]}))
    ...     (found,) = read_openie(file)
    >>> found.title, found.entities, found.malformed
    ('Ada', ('Ada',), 1)
    """
    file = existing_file(Path(path), "facts")
    suffix = file.suffix.lower()
    check_suffix(file, "path", ".json", ".jsonl")
    if suffix == ".json":  # HippoRAG's format
        check_excludes("passages", passages, "path", path, "a .json file, which holds its own passages")
        return _documents(file)
    if passages is None:
        raise InputError(
            "missing", "passages", "{field} is missing; {file} needs rows of id, title and text", file=file.name
        )
    return _joined(file, read_table(passages, ORDERED))


def _documents(file: Path) -> list[Extraction]:
    try:
        whole = parse_json(file.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError("syntax", None, "{file} is not JSON: {error!r}", file=file, error=error) from None
    documents = whole.get("docs") if isinstance(whole, dict) else None
    if not isinstance(documents, list):
        raise InputError(
            "syntax", None, "{file} is not HippoRAG's OpenIE file, an object with 'docs', a list", file=file
        )
    found, numbered = [], not any(isinstance(one, dict) and "idx" in one for one in documents)
    for at, document in enumerate(documents):
        place = f"{file}, docs[{at}]"
        check_characters(document, place, InputError)
        try:
            found.append(_document({"idx": at, **document} if numbered and isinstance(document, dict) else document))
        except InputError as error:
            raise error.at(place) from None
    try:
        check_distinct((str(one.id) for one in found), "idx")
    except InputError as error:
        raise error.at(file) from None
    return found


def _document(document: Any) -> Extraction:
    lacking = [key for key in _KEYS if not isinstance(document, dict) or key not in document]
    if lacking:
        raise InputError(
            "missing", lacking[0], "{field} is missing; a document has {allowed}", allowed=", ".join(_KEYS)
        )
    passage = check_type(document["passage"], "passage", str, "a string")
    title, _, text = passage.partition("\n")
    title, text = (title, text) if text.strip() else ("", passage)
    names, no_names = names_in(document["extracted_entities"])
    triples, malformed = well_formed(document["extracted_triples"])
    return Extraction(document["idx"], title, text, names, triples, malformed + no_names)


def _joined(file: Path, passages: Table) -> list[Extraction]:
    extracted: dict[str, Mapping[str, Any]] = {}
    for line, row in json_objects(file, ("id", "entities", "triples")):
        if extracted.setdefault(str(row["id"]), row) is not row:
            raise InputError(
                "duplicate", "id", "{field} {given!r} is there already; give each passage one line", given=row["id"]
            ).at(f"{file}, line {line}")
    ids: Sequence[PassageId] = row_ids(passages)
    about = zip(
        names_or_numbers(passages, "document"),
        integers_or_none(passages, "position"),
        languages(passages, "language"),
        strict=True,
    )
    columns = zip(ids, texts(passages, "title", default=""), texts(passages, "text"), about, strict=True)
    found = []
    for at, (id, title, text, (document, position, language)) in enumerate(columns):
        read = extracted.get(str(id), {"entities": (), "triples": ()})
        try:
            triples, malformed = well_formed(read["triples"])
            names, no_names = names_in(read["entities"])
            where: dict[str, Any] = {"document": document, "position": position, "language": language}
            found.append(Extraction(id, title, text, names, triples, malformed + no_names, **where))
        except InputError as error:
            raise error.at(f"{passages.where(at)}, with its entities and triples in {file}") from None
    unknown = sorted(set(extracted) - set(map(str, ids)))
    if unknown:
        raise InputError("unknown", "id", "{field} {given!r} belongs to no passage", given=unknown[0]).at(file)
    return found


# ---- Triples ---------------------------------------------------------------------------------------------------------


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
