"""Read OpenIE files: passages with extracted entities and triples."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..io.files import existing_file
from ..io.json_lines import json_objects, parse_json
from .extraction import Extraction, well_formed


def read_openie(path: str | PathLike[str], passages: str | PathLike[str] | None = None) -> list[Extraction]:
    """Read extractions from an OpenIE file.

    Parameters
    ----------
    path : str or path
        ``.json``: HippoRAG's published format, {"docs": [{"idx", "passage", "extracted_entities",
        "extracted_triples"}, ...]}; if a passage has several lines, the first one is its title.
        ``.jsonl``: a line {"id", "entities", "triples"} for each passage of the other file.
    passages : str or path, optional
        For ``.jsonl``: lines of {"id", "title", "text"}, ``title`` optional. A passage without a line in ``path`` has
        no entities.

    Returns
    -------
    list of Extraction
        In the order of the passages. Triples that are not three strings, which language models sometimes write, are
        left out and counted in ``malformed``.

    Raises
    ------
    InputError
        A file that does not exist or is not as above, an id that occurs twice, or an id that no passage has. The
        message names the file and the line or document.
    FormatError
        A line is not an object with these keys.

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
    if suffix == ".json":
        if passages is not None:
            raise InputError(f"passages are given beside {file.name}, which holds its own; leave them out")
        return _distinct(_documents(file), file)
    if suffix != ".jsonl":
        raise InputError(f"{file} has the suffix {file.suffix!r}; allowed: .json (HippoRAG's format), .jsonl")
    if passages is None:
        raise InputError(f"{file.name} needs passages=, a .jsonl file of id, title and text")
    return _joined(file, existing_file(Path(passages), "passages"))


def _documents(file: Path) -> list[Extraction]:
    try:
        whole = parse_json(file.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not JSON: {error!r}") from None
    documents = whole.get("docs") if isinstance(whole, dict) else None
    if not isinstance(documents, list):
        raise InputError(f"{file} is not HippoRAG's OpenIE file, an object with 'docs', a list")
    found = []
    for at, document in enumerate(documents):
        try:
            passage, entities = document["passage"], document["extracted_entities"]
            title, _, text = passage.partition("\n")
            title, text = (title, text) if text.strip() else ("", passage)
            triples, malformed = well_formed(document["extracted_triples"])
            found.append(Extraction(document["idx"], title, text, _names(entities), triples, malformed))
        except (KeyError, TypeError, AttributeError, InputError) as error:
            raise InputError(
                f"{file}, docs[{at}]: {error!r}; it must have idx, passage, extracted_entities and extracted_triples"
            ) from None
    return found


def _joined(file: Path, passages: Path) -> list[Extraction]:
    extracted: dict[str, Mapping[str, Any]] = {}
    for line, row in json_objects(file, ("id", "entities", "triples")):
        if extracted.setdefault(str(row["id"]), row) is not row:
            raise InputError(f"{file}, line {line}: id {row['id']!r} is there already; it must be distinct")
    found = []
    for line, row in json_objects(passages, ("id", "text")):
        read = extracted.get(str(row["id"]), {"entities": (), "triples": ()})
        try:
            triples, malformed = well_formed(read["triples"])
            names = _names(read["entities"])
            found.append(Extraction(row["id"], row.get("title", ""), row["text"], names, triples, malformed))
        except (TypeError, InputError) as error:
            raise InputError(f"{passages}, line {line}, with its entities and triples in {file}: {error}") from None
    _distinct(found, passages)
    unknown = sorted(set(extracted) - {str(extraction.id) for extraction in found})
    if unknown:
        raise InputError(f"{file} has the id {unknown[0]!r}, which no passage in {passages} has")
    return found


def _names(entities: Any) -> tuple[str, ...]:
    """Return names without empty ones, which language models sometimes write."""
    if not isinstance(entities, list | tuple):
        raise InputError(f"entities are a {type(entities).__name__}; they must be a list of names")
    return tuple(name for name in entities if not isinstance(name, str) or name.strip())


def _distinct(found: list[Extraction], file: Path) -> list[Extraction]:
    seen: set[str] = set()
    for extraction in found:
        if str(extraction.id) in seen:
            raise InputError(f"{file}: two passages have the id {extraction.id!r}; ids must be distinct")
        seen.add(str(extraction.id))
    return found
