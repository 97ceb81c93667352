"""``hopfuse build``: an index from files or a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from rich.console import Console

from .. import Index
from .._validation import check_unused, counted
from ..adapters.hipporag_folder import SYNONYMS, is_folder, read_folder
from ..encoders import open_encoder
from ..errors import InputError
from ..extract import Memory, synonym_bounds
from ..extract.building import Readers, build_index, stored_passages
from ..index import EncoderInfo, LeftOut
from ..index.derive import terms_of
from ..index.file.generations import POINTER
from ..index.input import Inputs
from ..io.readers import read_table
from ..io.skips import SKIP_FAILED
from ..io.source import ORDERED, PASSAGES
from ..io.tables import Table
from ..stores import Source, is_place, open_source
from ..stores.failures import Failures
from .build_rules import FACT_READERS, FILE_OPTIONS, QUERY_OPTIONS, check_files, check_origin, check_store, may_refuse
from .console import note
from .filters import read_types
from .info import index_table
from .options import DIRECTORY, FILE, choice_options, choices_of, encoder_option
from .outputs import (
    FACTS,
    MENDED,
    MENDED_OR_FOLLOWED,
    PLACE,
    RETRY,
    VECTOR,
    FailedFile,
    RefusedPassages,
    check_conflicts,
    save_with_conflicts,
)
from .readers import (
    FactFile,
    guesses_language,
    make_fact_reader,
    make_word_reader,
    read_aliases,
    read_nodes,
    reader_options,
    reading_bar,
    report,
)


@click.command()
@click.argument("passages", type=FILE, required=False)
@click.option(
    "--from",
    "origin",
    metavar="FILE|STORE",
    help="Extracted facts: OpenIE (.json as HippoRAG writes it, or .jsonl with PASSAGES) or triples (.tsv, .nt, "
    ".parquet). Or a store of passages, vectors, entities, edges and facts: a folder of Parquet files, a folder "
    "written by HippoRAG 2, or postgresql://user@host/database with --passages and the other queries (password from "
    "PGPASSWORD or ~/.pgpass).",
)
@reader_options
@click.option(
    "--synonyms",
    metavar="SIMILARITY",
    help="Join entities whose --encoder vectors are at least this similar, and abbreviations with their long forms. "
    "With --reader spacy, also one similarity per label: PERSON=0.85,ORG=0.8,*=0.9.",
)
@click.option("--conflicts", type=FILE, help="Record what was kept and dropped where passages disagree: .jsonl.")
@click.option("--overwrite", is_flag=True, help="Replace the index at --out and the file of --conflicts if they exist.")
@click.option("--vectors", type=FILE, help="One vector per passage: .npy.")
@click.option(
    "--vectors-by",
    metavar="NAME",
    help="Encoder that made the vectors of a file or a store, named as for --encoder: searches encode questions by it.",
)
@encoder_option
@click.option(
    "--passages",
    "passage_query",
    metavar="QUERY",
    help="For a database: returns id, text, and optionally title, a vector and metadata.",
)
@click.option(
    "--edges",
    metavar="FILE|QUERY",
    multiple=True,
    help="Rows of src, dst, type, weight: .jsonl, .tsv or .parquet. For a database: returns src_passage or "
    "src_entity, dst_passage or dst_entity, type, weight, passage; may be given several times.",
)
@click.option(
    "--entities",
    metavar="FILE|QUERY",
    help="Rows of name: .jsonl, .tsv or .parquet. For a database: returns name, and optionally a vector and aliases.",
)
@click.option(
    "--nodes", type=FILE, help="Instead of --entities: lines of node number, kind (passage or entity) and name: .tsv."
)
@click.option(
    "--aliases",
    type=FILE,
    help="Other names of entities: rows of entity (name or number) and aliases (a list): .jsonl.",
)
@click.option("--entity-vectors", type=FILE, help="One vector per entity: .npy.")
@click.option(
    "--facts",
    metavar="FILE|QUERY",
    help="Rows of head, relation, tail, passage (row number): .jsonl, .tsv or .parquet. For a database: returns the "
    "same columns, passage being an id.",
)
@click.option(
    "--slot",
    metavar="NAME",
    help="For PostgreSQL: create a replication slot of this name, so that `hopfuse follow` can keep the index equal to "
    "the tables.",
)
@click.option(
    "--metadata-type",
    "metadata_types",
    metavar="COLUMN=TYPE",
    multiple=True,
    help="Type of a metadata column: bool, int64, float64, string, timestamp or strings; or flatten, which makes "
    "columns of its objects (*=flatten: of all). May be given several times.  [default: the type of the first value]",
)
@choice_options
@click.option(
    "--lexical",
    is_flag=False,
    flag_value="english",
    metavar="[LANGUAGE]",
    help="Store BM25 over titles and texts, with the stop words and stems of LANGUAGE: by default english; plain for "
    "neither. With --reader it is stored anyway, in the language of words or the main one of the passages; none leaves "
    "it out.",
)
@click.option("--out", type=DIRECTORY, required=True, help="Directory of the index; created if absent.")
def build(
    passages: Path | None,
    origin: str | None,
    synonyms: str | None,
    conflicts: Path | None,
    overwrite: bool,
    vectors_by: str | None,
    encoder: str | None,
    lexical: str | None,
    out: Path,
    **given: Any,
) -> None:
    """Build an index from files or a store.

    PASSAGES has rows of id (or BEIR's _id), title, text, document, language (a tag such as en) and metadata (an
    object): .jsonl, .tsv or .parquet. Encoders, BM25 and --reader words read title and text together. If there are only
    passages, --reader words makes a graph of their words. With --reader, consecutive passages of a document are joined,
    in the order of the column position if there is one.

    Passages are nodes 0 .. P-1 of the graph, in file order; entities are nodes P .. N-1. --from and --reader make the
    entities, edges, aliases and facts from what was extracted. A HippoRAG folder has its own passages and vectors; its
    graph is rebuilt, joining entities of similarity 0.8 (as HippoRAG does) or --synonyms, and its pickle is not read.
    """
    terms_of(lexical)  # refuses a language without stop words and stems
    everything = {**given, "passages": passages, "from": origin, "synonyms": synonyms, "conflicts": conflicts}
    everything |= {"vectors_by": vectors_by, "encoder": encoder, "lexical": lexical}
    own = ("passages", "conflicts", "reader", *FILE_OPTIONS)  # what a store and a folder have themselves
    if origin is not None and is_folder(origin):
        queries = ("passage_query", *QUERY_OPTIONS)
        check_origin(everything, (*own, "vectors_by", "encoder", "metadata_types", *queries), "a HippoRAG folder")
        check_directory(out, overwrite)
        index = _index_of_folder(origin, synonyms, given)
        terms = terms_of(lexical)
        _save(index if terms is None else index.with_lexical(terms.matrix(index.texts_to_index())), out)
        return
    if origin is not None and is_place(origin):
        _refuse_results_alone(origin)
        check_origin(everything, ("passages", *FILE_OPTIONS), "a store")
        check_store(everything)
        check_conflicts(conflicts, {"failed": given["failed"]}, out, overwrite=overwrite)
        build = _StoreBuild(everything, out)
        check_directory(out, overwrite)
        build.save()
        return
    if origin is not None and given["passage_query"] is not None:
        open_source(origin)  # refuses it: only a store has queries
    bounds = None if synonyms is None else synonym_bounds(synonyms)
    check_files(everything)
    file = None if origin is None else FactFile(Path(origin))
    inputs = {"from": None if file is None else file.path, "passages": passages, "vectors": given["vectors"]}
    failed = FailedFile(given["failed"], inputs)
    check_conflicts(conflicts, {**inputs, "failed": given["failed"]}, out, overwrite=overwrite)
    check_directory(out, overwrite)
    model = None if encoder is None else open_encoder(encoder)
    options = {**choices_of(given), "vectors": given["vectors"], "lexical": lexical}
    options["metadata_types"] = read_types(given["metadata_types"]) or None
    # Only --vectors-by says which encoder made the vectors of a file: beside them, --encoder makes those of the names.
    options |= (
        {"encoder": model} if given["vectors"] is None else {"encoder": _named(vectors_by), "entity_vectors": model}
    )
    if file is not None:
        file.check(passages)
    extracted = file is not None or bool(given["reader"])
    table = None if passages is None else read_table(passages, ORDERED if extracted else PASSAGES)
    if table is not None and not table.num_rows:
        note(f"{passages} has no passages; `hopfuse add {out}` or a server with --writable adds some")
    refused = None
    if table is not None and may_refuse(everything):
        refused = options["failed"] = RefusedPassages(given["skip_failed"], table.num_rows)
    if not extracted:
        with _about_vectors_by(vectors_by):
            index = _index_of_tables(table, given, options)
        if table is not None and refused is not None:
            failed.add(index.passage_ids, {VECTOR: refused.reasons}, table.row)
            failed.report(RETRY)
        _save(index, out)
        return
    bar = reading_bar if file is None else lambda what: nullcontext()
    facts = make_fact_reader(given) if FACT_READERS & set(given["reader"]) else file
    readers = Readers(facts, make_word_reader(given), guesses_language(given))
    with _about_vectors_by(vectors_by):
        built = build_index(Inputs(passages=table, synonyms=bounds, **options), readers, bar)
    reasons = {FACTS: built.memory.failures, VECTOR: {} if refused is None else refused.reasons}
    failed.add(built.memory.ids, reasons, lambda at: {} if table is None else table.row(at))
    report(built)
    again = "The same command with --overwrite and the same --cache asks about them alone"
    failed.report(again if refused is None else RETRY)
    if conflicts is None:
        _save(built.index, out)
    else:
        _save(built.index, out, lambda save: save_with_conflicts(conflicts, built.memory, save))


def _named(encoder: str | None) -> EncoderInfo | None:
    """Return what an index keeps of the encoder that made its vectors."""
    return None if encoder is None else EncoderInfo.of(open_encoder(encoder))


@contextmanager
def _about_vectors_by(encoder: str | None) -> Iterator[None]:
    """Say of ``--vectors-by`` that its encoder makes vectors of another dimension, or that there are no vectors."""
    try:
        yield
    except InputError as error:
        if encoder is None or error.field != "encoder":
            raise
        if error.code == "unused":
            _check_vectors_by(encoder, None)
        raise error.about("vectors_by") from None


def _check_vectors_by(encoder: str | None, dim: int | None) -> None:
    """Refuse the name of an encoder that made no vectors."""
    if dim is None:
        check_unused("vectors_by", encoder, "the passages have no vectors")


def _save(index: Index, out: Path, through: Callable[[Callable[[], int]], int] = lambda save: save()) -> None:
    """Save an index, and print what it holds; ``through`` wraps the call that saves it."""
    generation = through(lambda: index.save(out))
    note(f"Saved generation {generation} in {out}")
    Console().print(index_table(index.info() | {"generation": generation}))


def _index_of_tables(passages: Table | None, given: Mapping[str, Any], options: dict[str, Any]) -> Index:
    nodes = None if given["nodes"] is None else read_nodes(given["nodes"])
    edges, entities, facts = (
        None if name is None else Path(name)
        for name in (given["edges"][0] if given["edges"] else None, given["entities"], given["facts"])
    )
    if given["entity_vectors"] is not None:
        options["entity_vectors"] = given["entity_vectors"]
    index = Index.build(
        passages,
        graph=edges,
        entities=entities if nodes is None else nodes.entities,
        aliases=None if given["aliases"] is None else read_aliases(given["aliases"]),
        facts=facts,
        **options,
    )
    if nodes is not None and nodes.passages != index.num_passages:
        raise InputError(
            "length",
            "nodes",
            "{field} has {given}, and {@passages} {allowed}; they must agree",
            given=counted(nodes.passages, "passage"),
            allowed=index.num_passages,
        )
    return index


def check_directory(out: Path, overwrite: bool) -> None:
    """Refuse a directory that holds an index, or that cannot be written or created; leave nothing behind."""
    if (out / POINTER).exists() and not overwrite:
        raise InputError(
            "exists",
            "out",
            "{field} is {given!r}, which holds an index; choose another directory, or replace the index "
            "with {@overwrite}",
            given=str(out),
        )
    there = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise InputError(
            "exists",
            "out",
            "{field} is {given!r}, but {file} is a file; name another directory",
            given=str(out),
            file=there,
        )
    try:
        TemporaryDirectory(dir=there).cleanup()
    except OSError as error:
        raise InputError(
            "failed",
            "out",
            "{field} is {given!r}, but {folder} cannot be written: {reason}",
            given=str(out),
            folder=there,
            reason=error.strerror,
        ) from None


# ---- A store, and a folder written by HippoRAG -----------------------------------------------------------------------


class _StoreBuild:
    """The index of a store's rows; if the passages have no vectors there, an encoder makes those of the index.

    Parameters
    ----------
    given : mapping
        All options by name; ``from`` is the place of the store.
    out : Path
        The directory of the index.
    """

    def __init__(self, given: Mapping[str, Any], out: Path) -> None:
        self._given, self._out = given, out
        self._failed = FailedFile(given["failed"], {})
        self._bounds = None if given["synonyms"] is None else synonym_bounds(given["synonyms"])
        self._left_out = LeftOut(SKIP_FAILED if given["skip_failed"] is None else given["skip_failed"])
        self._memory: Memory | None = None
        self._failures = Failures()

    def save(self) -> None:
        """Build the index and save it; with ``--slot``, create the slot first."""
        given = self._given
        queries = {
            "passages": [given["passage_query"]],
            "entities": [given["entities"]],
            "edges": list(given["edges"]),
            "facts": [given["facts"]],
        }
        source = open_source(
            given["from"], {table: [text for text in texts if text] for table, texts in queries.items()}
        )
        if given["slot"] is None:
            self._write(self._index(source))
            return
        from ..stores.postgres import PostgresSource, followed

        if not isinstance(source, PostgresSource):
            raise InputError(
                "unsupported",
                "slot",
                "{field} is given, but the store is not PostgreSQL and cannot be followed; leave it out",
            )
        with followed(source, given["slot"], self._index, lambda: self._failures) as index:
            self._write(index)

    def _write(self, index: Index) -> None:
        path = self._given["conflicts"]
        if path is None or self._memory is None:
            _save(index, self._out)
        else:
            _save(index, self._out, partial(save_with_conflicts, path, self._memory))

    def _index(self, source: Source) -> Index:
        given = self._given
        about = choices_of(given)
        scratch = next(folder for folder in (self._out, *self._out.absolute().parents) if folder.is_dir())
        stored: Any = {"metadata_types": read_types(given["metadata_types"]), "scratch": scratch, **about}
        stored["left_out"] = self._left_out
        made_by = _named(given["vectors_by"])
        if given["reader"]:
            return self._read(stored_passages(source, **stored), made_by, about)
        with _about_vectors_by(given["vectors_by"]):
            index = Index.build(source, lexical=given["lexical"], encoder=made_by, **stored)
        if index.dim is not None:
            self._check_no_encoder()
        refused = None if given["encoder"] is None else self._refused(index)
        if given["encoder"] is not None:
            index = index.with_encoder(open_encoder(given["encoder"]), failed=refused)
        self._report(index, {VECTOR: {} if refused is None else refused.reasons})
        return index

    def _check_no_encoder(self) -> None:
        """Refuse an encoder that would have nothing to encode."""
        if self._given["encoder"] is not None:
            raise InputError(
                "unused",
                "encoder",
                "{field} is given, and the store's passages have vectors; say by {@vectors_by} which encoder made them",
            )

    def _refused(self, index: Index) -> RefusedPassages | None:
        endpoint = may_refuse({**self._given, "passages": self._given["from"]})
        return RefusedPassages(self._given["skip_failed"], index.num_passages) if endpoint else None

    def _read(self, passages: Index, made_by: EncoderInfo | None, about: Mapping[str, Any]) -> Index:
        """Return the index of what readers find in the passages."""
        given = self._given
        facts = FACT_READERS & set(given["reader"])
        _check_vectors_by(given["vectors_by"], passages.dim)
        if passages.dim is not None and not facts:
            self._check_no_encoder()
        model = None if given["encoder"] is None else open_encoder(given["encoder"])
        refused = self._refused(passages) if passages.dim is None else None
        options: dict[str, Any] = {"failed": refused, **about}
        options |= {"encoder": model} if passages.dim is None else {"encoder": made_by, "entity_vectors": model}
        inputs = Inputs(passages=passages, synonyms=self._bounds, lexical=given["lexical"], **options)
        readers = Readers(make_fact_reader(given) if facts else None, make_word_reader(given), guesses_language(given))
        with _about_vectors_by(given["vectors_by"]):
            built = build_index(inputs, readers, reading_bar)
        self._memory = built.memory
        reasons = {FACTS: built.memory.failures, VECTOR: {} if refused is None else refused.reasons}
        report(built)
        self._report(passages, reasons)
        return built.index

    def _report(self, index: Index, reasons: Mapping[str, Mapping[int, str]]) -> None:
        self._failures.add_rows(self._left_out.rows)
        for lacks, own in reasons.items():
            for at, reason in own.items():
                text = f"{index.titles[at]} {index.texts[at]}"
                self._failures.add_part(index.passage_ids[at], lacks, reason, text)
        self._failed.leave_out(self._left_out.rows, PLACE)
        self._failed.add(index.passage_ids, reasons, partial(_row_of, index))
        self._failed.report(MENDED if self._given["slot"] is None else MENDED_OR_FOLLOWED)


def _row_of(index: Index, at: int) -> dict[str, Any]:
    """Return a passage of an index as a row of a file."""
    row = {"title": index.titles[at], "text": index.texts[at], "document": index.documents[at]}
    return {**row, "language": index.languages[at], "metadata": index.metadata.row(at) or None}


def _refuse_results_alone(folder: str) -> None:
    """Refuse a folder that has HippoRAG's OpenIE results, but no vectors of a model."""
    found = sorted(Path(folder).glob("openie_results_ner_*.json")) if Path(folder).is_dir() else []
    if found:
        raise InputError(
            "missing",
            "from",
            "{field} is {given!r}, which has HippoRAG's {file}, but no folder of a model with vectors; let HippoRAG "
            "index first, or give the file: {@from} {given}/{file} {@encoder} ...",
            given=folder,
            file=found[0].name,
        )


def _index_of_folder(folder: str, synonyms: str | None, given: Mapping[str, Any]) -> Index:
    """Return the index of a folder, entities joined from the given similarity on, by default HippoRAG's."""
    bound = SYNONYMS if synonyms is None else synonym_bounds(synonyms)
    if isinstance(bound, Mapping):
        raise InputError(
            "unsupported",
            "synonyms",
            "{field} has labels, but HippoRAG's entities have none; give one similarity for all",
        )
    return read_folder(folder, synonyms=bound, **choices_of(given))
