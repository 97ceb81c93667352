"""Check, before any work, which options of ``hopfuse build`` need or exclude others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._validation import check_needs, counted
from ..encoders.named import ENDPOINT
from ..errors import InputError
from ..index.input import CHOICES
from .options import ENDPOINT_OPTIONS, Rule, check_rules, stated

WORDS, FACT_READERS = "words", frozenset(("spacy", "endpoint"))
OF_FACTS = ("from", "reader spacy", "reader endpoint")
#: Options of builds from files.
FILE_OPTIONS = (
    *("vectors", "nodes", "aliases", "entity_vectors"),
    *(name for name, one in CHOICES.items() if one.of_table),
)
#: Options whose values are queries if the store is a database, and --slot, which only a database has.
QUERY_OPTIONS = ("edges", "entities", "facts", "slot")
#: Options of files whose contents --from and --reader make themselves.
TABLES = ("edges", "entities", "nodes", "aliases", "facts", "entity_vectors")

#: What may fail on a passage; the encoder only if the command reads a file of passages; and rows of a store.
MAY_FAIL = ("reader endpoint", "reader spacy", "tagger", "encoder endpoint", "store")
READER_NEEDS: tuple[Rule, ...] = (
    *((name, "reader words", "the only reader that uses it") for name in ("language", "tagger")),
    ("spacy_model", "reader spacy", "the only reader that uses it"),
    *((name, "reader endpoint", "the only reader that uses it") for name in ("model", *ENDPOINT_OPTIONS, "prompts")),
    *((name, MAY_FAIL, "which may fail") for name in ("skip_failed", "failed")),
)
NEEDS: tuple[Rule, ...] = (
    ("passage_query", "from a database", "which it queries"),
    ("slot", "from a database", "which it makes the slot in"),
    *((name, one.others, one.reason) for name, one in CHOICES.items()),
    ("vectors_by", "vectors", "which that encoder made"),
    ("metadata_types", "passages", "whose metadata it describes"),
    ("reader", ("passages", "from"), "which it reads"),
    ("synonyms", OF_FACTS, "which find the names that it joins"),
    ("synonyms", "encoder", "which gives the names their vectors"),
    ("conflicts", OF_FACTS, "which find the facts that may conflict"),
)
EXCLUDES: tuple[Rule, ...] = (
    ("entities", "nodes", "which names the entities, too"),
    ("from", ("reader spacy", "reader endpoint"), "which finds facts, too"),
    *((name, "from", "which makes its own") for name in TABLES),
    *((name, "reader", "which makes its own") for name in TABLES),
)
#: Options of facts of a store's passages, which a reader finds there.
OF_STORED_FACTS = ("reader spacy", "reader endpoint")
STORE_NEEDS: tuple[Rule, ...] = (
    ("synonyms", OF_STORED_FACTS, "which find the names that it joins"),
    ("synonyms", "encoder", "which gives the names their vectors"),
    ("conflicts", OF_STORED_FACTS, "which find the facts that may conflict"),
)
STORE_EXCLUDES: tuple[Rule, ...] = (
    *((name, "reader", "which makes its own") for name in ("edges", "entities", "facts")),
    ("synonyms", "slot", "since `hopfuse follow` joins no names of later rows"),
)


def _with_readers(given: Mapping[str, Any]) -> dict[str, Any]:
    named = {f"reader {name}": name in given["reader"] for name in (WORDS, *FACT_READERS)}
    return {**given, **named, "encoder endpoint": may_refuse(given)}


def may_refuse(given: Mapping[str, Any]) -> bool:
    """Return whether the encoder of the passages that a command reads is an endpoint."""
    own = given.get("passages") is not None and given.get("vectors") is None
    return own and (given.get("encoder") or "").startswith(f"{ENDPOINT}:")


def check_reader(given: Mapping[str, Any]) -> None:
    """Refuse two readers of facts, options of a reader that is not used, and an endpoint without a model."""
    if set(given["reader"]) >= FACT_READERS:
        raise InputError("conflict", "reader", "{field} is both spacy and endpoint, which both find facts; choose one")
    known = _with_readers(given)
    check_rules(known, READER_NEEDS)
    check_needs(
        "reader", stated(known, "reader endpoint"), "model", given["model"], "the language model at the endpoint"
    )


def check_files(given: Mapping[str, Any]) -> None:
    """Refuse options of a build from files that do not fit together.

    Parameters
    ----------
    given : mapping
        All options by name; ``from`` is ``--from``, ``passage_query`` is ``--passages``.
    """
    if len(given["edges"]) > 1:
        raise InputError(
            "duplicate",
            "edges",
            "{field} is given {times}; only a database takes several",
            times=counted(len(given["edges"]), "time"),
        )
    named = any(stated(given, name) is not None for name in ("entities", "nodes", "from", "reader"))
    all_given = given["vectors"] is not None and (not named or given["entity_vectors"] is not None)
    if all_given and given["encoder"] is not None:
        raise InputError(
            "unused",
            "encoder",
            "{field} has nothing to encode beside the vectors that are given; leave it out, or say by {@vectors_by} "
            "which encoder made them",
        )
    check_reader(given)
    check_rules(_with_readers(given), NEEDS, EXCLUDES)
    if stated(given, "passages") is None and given["from"] is None:
        raise InputError("missing", "passages", "{field} is missing; give it, or {@from}")


def check_store(given: Mapping[str, Any]) -> None:
    """Refuse options of a build from a store that do not fit together; ``given`` are all options by name."""
    known = {**given, "passages": given["from"], "store": True}
    check_reader(known)
    check_rules(_with_readers(known), STORE_NEEDS, STORE_EXCLUDES)


def check_origin(given: Mapping[str, Any], names: Sequence[str], origin: str) -> None:
    """Refuse options for what the store or folder of ``--from`` has itself; ``origin`` says which it is."""
    named = f"from {origin}"
    check_rules({**given, named: True}, excludes=[(name, named, "which has its own") for name in names])
