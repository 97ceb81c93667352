"""Read the folder of a HippoRAG 2 memory: embeddings (Parquet) and OpenIE results (JSON). No pickle is read."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import UNREADABLE, check_number, check_type
from ..errors import InputError
from ..extract import similar_pairs
from ..index import Index
from ..io.arrow import arrow_values
from ..io.json_lines import parse_json
from ..io.parquet import open_parquet, read_groups
from ..types.edge_statements import NO_PASSAGE

__all__ = ["is_folder", "read_folder"]

#: HippoRAG's default ``synonymy_edge_sim_threshold``, and its limit of synonyms of an entity.
SYNONYMS, MOST_SYNONYMS = 0.8, 101
COLUMNS = ("hash_id", "content", "embedding")


class _Store(NamedTuple):
    """An embedding store: keys, texts and vectors (n, d)."""

    keys: list[str]
    texts: list[str]
    vectors: NDArray[np.float32]


class _Statement(NamedTuple):
    weight: float
    type: str
    passage: int


def is_folder(path: str | PathLike[str]) -> bool:
    """Return whether a folder is a HippoRAG ``save_dir``, or the folder of a model in one.

    Examples
    --------
    >>> from hopfuse.adapters.hipporag_folder import is_folder
    >>> is_folder("/nowhere")
    False
    """
    return Path(path).is_dir() and bool(_model_folders(Path(path)))


def read_folder(
    folder: str | PathLike[str], *, synonyms: float = SYNONYMS, metric: Any = "ip", storage: Any = "float32"
) -> Index:
    """Return an index of a HippoRAG folder: passages, entities, vectors, facts and the graph.

    The graph is rebuilt from OpenIE's results and the entities' vectors by the rules of HippoRAG 2.0.0a4, since
    HippoRAG's own graph file is a pickle, which could run code. Each statement of a fact by a passage adds 2 to the
    weight between the fact's ends. An edge of weight 1 joins a passage and each of its entities. Entities whose vectors
    have a cosine of at least ``synonyms`` are joined by an edge of that weight, once for each of the two that looks up
    the other; it replaces the edges of their facts. Passage ids are HippoRAG's keys. A passage's first line is its
    title if more lines follow.

    Parameters
    ----------
    folder : path
        HippoRAG's ``save_dir``, or the folder in it of one language model and encoder.
    synonyms : float in [-1, 1]
        HippoRAG's ``synonymy_edge_sim_threshold``.
    metric, storage
        As in :meth:`hopfuse.Index.build`.

    Returns
    -------
    Index
        With edge types "relation", "context" and "synonym". It has no encoder; encode questions with HippoRAG's.

    Raises
    ------
    InputError
        The folder is not HippoRAG's or has several models, its files are inconsistent, or passages lack OpenIE
        results.
    MissingExtraError
        pyarrow is not installed.

    References
    ----------
    HippoRAG 2: Gutiérrez et al., From RAG to Memory, ICML 2025. https://github.com/OSU-NLP-Group/HippoRAG

    Examples
    --------
    >>> from hopfuse.adapters.hipporag_folder import read_folder
    >>> read_folder("/nowhere")
    Traceback (most recent call last):
    hopfuse.errors.InputError: folder is '/nowhere', which is not a folder
    """
    check_number(synonyms, "synonyms", low=-1, high=1)
    model = _model_folder(Path(folder))
    passages, entities = _store(model, "chunk"), _store(model, "entity")
    triples = _triples(_openie_file(model), passages)
    number = {name: row for row, name in enumerate(entities.texts)}
    for row, stated in enumerate(triples):
        for name in (end for head, _, tail in stated for end in (head, tail)):
            if name not in number:
                raise InputError(
                    "missing",
                    None,
                    "{model}: OpenIE finds {entity!r} in passage {passage}, and entity_embeddings lacks it; let "
                    "HippoRAG finish its index()",
                    model=model.name,
                    entity=name,
                    passage=passages.keys[row],
                )
    stated_edges = _statements(triples, number, entities, len(passages.keys), float(synonyms))
    rows = ({"id": key, **_titled(text)} for key, text in zip(passages.keys, passages.texts, strict=True))
    facts = [
        {"head": head, "relation": relation, "tail": tail, "passage": row}
        for row, stated in enumerate(triples)
        for head, relation, tail in stated
    ]
    return Index.build(
        passages=rows,
        vectors=passages.vectors,
        graph=stated_edges,
        entities=[{"name": name, "stated": False} for name in entities.texts],
        entity_vectors=entities.vectors,
        facts=facts,
        metric=metric,
        storage=storage,
    )


def _titled(text: str) -> dict[str, str]:
    title, _, rest = text.partition("\n")
    return {"title": title, "text": rest} if rest.strip() else {"title": "", "text": text}


# ---- The graph ------------------------------------------------------------------------------------------------------


def _statements(
    triples: list[list[tuple[str, str, str]]], number: dict[str, int], entities: _Store, first: int, bound: float
) -> list[dict[str, Any]]:
    """Return HippoRAG's edges as rows; in one direction, later edges of a pair replace earlier ones as in HippoRAG."""
    edges: dict[tuple[int, int], list[_Statement]] = defaultdict(list)
    for passage, stated in enumerate(triples):
        for head, _, tail in stated:
            a, b = first + number[head], first + number[tail]
            edges[a, b].append(_Statement(1.0, "relation", passage))
            edges[b, a].append(_Statement(1.0, "relation", passage))
        for name in {end for head, _, tail in stated for end in (head, tail)}:
            edges[passage, first + number[name]] = [_Statement(1.0, "context", NO_PASSAGE)]
    for a, b, similarity in _synonyms(entities, bound):
        edges[first + a, first + b] = [_Statement(similarity, "synonym", NO_PASSAGE)]
    return [
        {"src": a, "dst": b, "type": one.type, "weight": one.weight, "passage": one.passage}
        for (a, b), statements in edges.items()
        for one in statements
        if a != b and one.weight > 0
    ]


def _synonyms(entities: _Store, bound: float) -> Iterator[tuple[int, int, float]]:
    """Yield pairs of an entity and one that it looks up, with their cosine."""
    nonzero = np.flatnonzero(entities.vectors.any(axis=1))
    pairs, similarities = similar_pairs(entities.vectors[nonzero], bound)
    pairs = nonzero[pairs]
    found: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for (a, b), similarity in zip(pairs.tolist(), similarities.tolist(), strict=True):
        found[a].append((similarity, b))
        found[b].append((similarity, a))
    for a, others in found.items():
        if len(re.sub("[^A-Za-z0-9]", "", entities.texts[a])) > 2:
            named = [(similarity, b) for similarity, b in others if entities.texts[b]]
            for similarity, b in sorted(named, key=lambda one: (-one[0], one[1]))[:MOST_SYNONYMS]:
                yield a, b, similarity


# ---- Files ----------------------------------------------------------------------------------------------------------


def _model_folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise InputError("missing", "folder", "{field} is {given!r}, which is not a folder", given=str(folder))
    found = _model_folders(folder)
    if not found:
        raise InputError(
            "missing",
            "folder",
            "{field} is {given!r}; neither it nor a folder in it has HippoRAG's chunk_embeddings",
            given=str(folder),
        )
    if len(found) > 1:
        raise InputError(
            "choice",
            "folder",
            "{field} is {given!r}, which has several models; give the folder of one: {allowed}",
            given=str(folder),
            allowed=", ".join(one.name for one in found),
        )
    return found[0].absolute()


def _model_folders(folder: Path) -> list[Path]:
    return [one for one in (folder, *sorted(folder.iterdir())) if (one / "chunk_embeddings").is_dir()]


def _openie_file(model: Path) -> Path:
    """Return the OpenIE file for a folder LLM_ENCODER: that of the language model whose name is its prefix."""
    stem, found = "openie_results_ner_", sorted(model.parent.glob("openie_results_ner_*.json"))
    fitting = [one for one in found if model.name.startswith(one.stem.removeprefix(stem) + "_")]
    if not fitting:
        raise InputError(
            "missing",
            None,
            "{folder} has no file {file}; HippoRAG writes it with save_openie=True",
            folder=model.parent,
            file=f"{stem}LLM.json for the LLM of {model.name}",
        )
    return max(fitting, key=lambda one: len(one.name))


def _store(model: Path, kind: str) -> _Store:
    path = model / f"{kind}_embeddings" / f"vdb_{kind}.parquet"
    if not path.is_file():
        raise InputError(
            "missing",
            None,
            "{path}, in which HippoRAG keeps embeddings, does not exist; run its index() first",
            path=path,
        )
    file = open_parquet(path, "reading HippoRAG's embeddings")
    lacking = set(COLUMNS) - set(file.schema_arrow.names)
    if lacking:
        raise InputError(
            "missing",
            None,
            "{path} has no column {column!r}; HippoRAG's files have {allowed}",
            path=path,
            column=min(lacking),
            allowed=", ".join(COLUMNS),
        )
    keys: list[str] = []
    texts: list[str] = []
    vectors: list[NDArray[np.float32]] = []
    for table in read_groups(file, path, COLUMNS):
        keys += _strings(table, "hash_id", path)
        texts += _strings(table, "content", path)
        dim = vectors[0].shape[1] if vectors else None
        block = _vectors(table["embedding"].combine_chunks(), path, dim)
        if len(block):
            vectors.append(block)
    return _Store(keys, texts, np.concatenate(vectors) if vectors else np.zeros((0, 1), np.float32))


def _strings(table: Any, name: str, path: Path) -> list[str]:
    """Return a column of strings."""
    found = list(arrow_values(table[name], name, str(path)))
    for row, value in enumerate(found):
        if not isinstance(value, str):
            raise InputError(
                "type",
                None,
                "{path}: row {row} of the column {column!r} is {given!r}; it must be a string",
                path=path,
                row=row,
                column=name,
                given=value.item() if isinstance(value, np.generic) else value,
            )
    return found


def _vectors(column: Any, path: Path, dim: int | None) -> NDArray[np.float32]:
    """Return a column of lists of ``dim`` numbers, or of as many as the first has, as (n, d)."""
    count = len(column)
    try:
        with np.errstate(over="ignore"):  # what float32 cannot hold is refused with its row
            flat = column.flatten().to_numpy(zero_copy_only=False).astype(np.float32)
        lengths = np.asarray(column.value_lengths().to_numpy(zero_copy_only=False))
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(
            "dtype", None, "{path}: embeddings must be lists of numbers ({error})", path=path, error=error
        ) from None
    if count and not (lengths == (lengths[0] if dim is None else dim)).all():
        raise InputError("shape", None, "{path} has vectors of several dimensions", path=path)
    return flat.reshape(count, -1) if count else np.zeros((0, 0), np.float32)


def _triples(file: Path, passages: _Store) -> list[list[tuple[str, str, str]]]:
    """Return the distinct facts of each passage, three texts each, normalised as in HippoRAG."""
    try:
        documents = parse_json(file.read_text(encoding="utf-8-sig"))["docs"]
        stated = {
            "chunk-" + _md5(check_type(one["passage"], "passage", str, "a string")): _valid(
                check_type(one["extracted_triples"], "extracted_triples", list, "a list of triples")
            )
            for one in documents
        }
    except InputError as error:
        raise error.at(file) from None
    except UNREADABLE as error:
        raise InputError(
            "syntax",
            None,
            "{file} is not an OpenIE file of HippoRAG, {{'docs': [...]}}: {error!r}",
            file=file,
            error=error,
        ) from None
    lacking = [key for key in passages.keys if key not in stated]
    if lacking:
        raise InputError(
            "missing",
            None,
            "{file} has no OpenIE results for {count} of {total} passages, such as {passage}; let HippoRAG finish its "
            "index()",
            file=file,
            count=len(lacking),
            total=len(passages.keys),
            passage=lacking[0],
        )
    return [stated[key] for key in passages.keys]


def _valid(triples: list[Any]) -> list[tuple[str, str, str]]:
    distinct = dict.fromkeys(tuple(map(str, one)) for one in triples if isinstance(one, list) and len(one) == 3)
    return [(_plain(head), _plain(relation), _plain(tail)) for head, relation, tail in distinct]


def _plain(text: str) -> str:
    """Return a text as HippoRAG normalises it: lower case, with spaces for all but ASCII letters and digits."""
    return re.sub("[^A-Za-z0-9 ]", " ", text.lower()).strip()


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
