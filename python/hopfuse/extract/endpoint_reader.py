"""Extract entities and facts from passages with a language model."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from .._validation import check_type, wrong_value
from ..errors import HopfuseError, InputError
from ..io.skips import SKIP_FAILED, Skips, check_share
from ..llm import ChatEndpoint
from .extraction import (
    Extraction,
    Passage,
    Progress,
    extracted,
    listed_passages,
    name_of,
    names_in,
    well_formed,
)

PROMPTS = Path(__file__).with_name("prompts")
#: The prompt files, and the placeholders that each must contain.
ENTITIES, TRIPLES = ("entities.txt", ("text",)), ("triples.txt", ("text", "entities"))
_PLACE = re.compile(r"\{(title|text|entities)\}")
_TEXTS = {"type": "array", "items": {"type": "string"}}


def _answer_with(name: str, rows: dict[str, Any]) -> dict[str, Any]:
    whole = {"type": "array", "items": rows}
    return {"type": "object", "properties": {name: whole}, "required": [name], "additionalProperties": False}


SCHEMAS = {"entities": _answer_with("entities", {"type": "string"}), "triples": _answer_with("triples", _TEXTS)}


class EndpointReader:
    """Reads passages with a language model in two steps: entities, then facts between them.

    Parameters
    ----------
    endpoint : ChatEndpoint
        With a cache, an interrupted run continues where it stopped.
    prompts : path, optional
        A folder with ``entities.txt`` and ``triples.txt``, by default ``hopfuse.extract.endpoint_reader.PROMPTS``. The
        placeholders ``{title}``, ``{text}`` and, in the second file, ``{entities}`` (a JSON list) are filled in for
        each passage.
    skip_failed : float in [0, 100]
        Per cent of the passages that may be left out, because the endpoint refuses them, or the model gives no usable
        answer about them; one passage always may be, unless this is 0. A passage that is left out has ``failure``, and
        no facts. With a cache, another run asks only about these.

    Raises
    ------
    InputError
        An endpoint that is not a ChatEndpoint, a prompt that cannot be read or lacks a placeholder, or another share.

    References
    ----------
    Two steps, entities and then triples: Gutiérrez et al., HippoRAG, NeurIPS 2024, section 2.2.

    Examples
    --------
    >>> from hopfuse.llm import ChatEndpoint
    >>> from hopfuse.extract import EndpointReader
    >>> EndpointReader(ChatEndpoint("http://localhost:8000/v1", model="qwen3"))
    EndpointReader(ChatEndpoint('http://localhost:8000/v1/', model='qwen3'))
    """

    def __init__(
        self,
        endpoint: ChatEndpoint,
        *,
        prompts: str | PathLike[str] | None = None,
        skip_failed: float = SKIP_FAILED,
    ) -> None:
        check_type(endpoint, "endpoint", ChatEndpoint, "a hopfuse.llm.ChatEndpoint")
        self._skip_failed = check_share(skip_failed)
        folder = PROMPTS if prompts is None else _folder(prompts)
        self._entities, self._triples = (_prompt(folder / name, needed) for name, needed in (ENTITIES, TRIPLES))
        self._endpoint = endpoint

    @property
    def skip_failed(self) -> float:
        """Per cent of the passages that may be left out."""
        return self._skip_failed

    def read(self, passages: Any, *, progress: Progress | None = None, skips: Skips | None = None) -> list[Extraction]:
        """Return the entities and facts of each passage.

        Parameters
        ----------
        passages : path, Arrow table, or iterable of mappings
            Rows of ``text`` and, optionally, ``id`` and ``title``, as :meth:`hopfuse.Index.build` takes them.
        progress : callable, optional
            Called with the number of prompts that are done and the number of all, two per passage.
        skips : Skips, optional
            Counts the passages that are left out over several calls; by default in this one.

        Returns
        -------
        list of Extraction
            In the order of the passages. Facts that are not three texts are left out, and counted in ``malformed``.

        Raises
        ------
        InputError
            The argument is not a table of passages.
        EndpointError
            As in :meth:`hopfuse.llm.ChatEndpoint.ask`; the message names the step and the passage. Or more passages
            failed than ``skip_failed`` allows.
        """
        listed = listed_passages(passages)
        skips, reasons = skips or Skips(self._skip_failed, len(listed)), dict[int, str]()

        def failed(at: int, error: HopfuseError) -> None:
            reasons[at] = skips.add(error)

        prompts = {at: _filled(self._entities, passage, ()) for at, passage in enumerate(listed)}
        named = self._asked("entities", prompts, listed, progress, failed)
        prompts = {at: _filled(self._triples, listed[at], names) for at, names in named.items()}
        stated = self._asked("triples", prompts, listed, progress, failed)
        return [
            _extraction(passage, named.get(at, []), stated.get(at, []), reasons.get(at))
            for at, passage in enumerate(listed)
        ]

    def _asked(
        self,
        step: str,
        prompts: dict[int, str],
        passages: list[Passage],
        progress: Progress | None,
        failed: Callable[[int, HopfuseError], None],
    ) -> dict[int, list[Any]]:
        """Ask one step about some passages; return the answers, by passage."""
        before = 0 if step == "entities" else 2 * len(passages) - len(prompts)  # with the prompts that are not needed
        told = None if progress is None else lambda done, _: progress(before + done, 2 * len(passages))
        rows = list(prompts)
        names = [f"{step} of passage {passages[at].id!r}" for at in rows]
        found = self._endpoint.ask(
            list(prompts.values()),
            SCHEMAS[step],
            progress=told,
            names=names,
            fit=FITS[step],
            failed=lambda at, error: failed(rows[at], error.at(names[at])),
        )
        return {at: answer[step] for at, answer in zip(rows, found, strict=True) if answer is not None}

    def __repr__(self) -> str:
        return f"EndpointReader({self._endpoint!r})"


def _extraction(passage: Passage, entities: list[str], facts: list[Any], failure: str | None) -> Extraction:
    triples, malformed = well_formed(facts)
    names = tuple(dict.fromkeys(names_in(entities)[0]))
    return extracted(passage, entities=names, triples=triples, malformed=malformed, failure=failure)


def _rows_in(value: Any, step: str) -> list[Any] | None:
    """Return the list in an answer: the answer, the value of the step's key, or the only list under another key."""
    if isinstance(value, Mapping):
        lists = [value[step]] if step in value else [rows for rows in value.values() if isinstance(rows, list)]
        value = lists[0] if len(lists) == 1 else None
    return value if isinstance(value, list) else None


def _fitting_names(value: Any) -> dict[str, list[str]] | None:
    """Return the names in an answer as the schema has them, or None if none of its rows is one."""
    rows = _rows_in(value, "entities")
    if rows is None or (rows and not names_in(rows)[0]):
        return None
    return {"entities": [name_of(row) or "" for row in rows]}


def _fitting_facts(value: Any) -> dict[str, list[list[str]]] | None:
    """Return the facts in an answer as the schema has them, ``[]`` for what is none, or None if none of its rows is."""
    rows = _rows_in(value, "triples")
    if rows is None:
        return None
    facts = [list(triple) for row in rows for triple in well_formed([row])[0] or ((),)]
    return {"triples": facts} if any(facts) or not rows else None


FITS = {"entities": _fitting_names, "triples": _fitting_facts}


def _filled(prompt: str, passage: Passage, entities: Sequence[str]) -> str:
    """Return the prompt for a passage; braces in the passage's text are not placeholders."""
    words = {**passage._asdict(), "entities": json.dumps(list(entities), ensure_ascii=False)}
    return _PLACE.sub(lambda place: words[place[1]], prompt)


def _folder(prompts: Any) -> Path:
    path = os.fspath(prompts) if isinstance(prompts, str | PathLike) else None
    if not isinstance(path, str) or not path or "\0" in path:
        raise wrong_value(prompts, "prompts", "the path of a folder with entities.txt and triples.txt", "type")
    return Path(path)


def _prompt(file: Path, needed: Sequence[str]) -> str:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(
            "missing",
            "prompts",
            "{field} has no file {file!r}; the folder needs both files: copy the one you keep",
            file=str(file),
        ) from None
    except (UnicodeDecodeError, OSError) as error:
        raise InputError(
            "failed", "prompts", "{field}: {file!r} cannot be read as UTF-8: {error}", file=str(file), error=error
        ) from None
    for name in needed:
        if f"{{{name}}}" not in text:
            raise InputError(
                "missing",
                "prompts",
                "{field}: {file!r} has no {{{name}}}, which stands for the passage's {name}; add it",
                file=str(file),
                name=name,
            )
    return text
