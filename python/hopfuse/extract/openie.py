"""Read OpenIE files: passages with extracted entities and triples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from .._validation import check_distinct, check_excludes, check_suffix, check_type
from ..errors import InputError
from ..index.contents import PassageId
from ..io.files import existing_file
from ..io.json_lines import check_characters, json_objects, parse_json
from ..io.readers import read_table
from ..io.source import ORDERED
from ..io.tables import Table, integers_or_none, languages, names_or_numbers, row_ids, texts
from .extraction import Extraction, names_in, well_formed

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
