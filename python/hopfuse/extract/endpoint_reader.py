"""Extract entities and facts from passages with a language model."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from .._validation import check_type, wrong_value
from ..errors import InputError
from ..llm import ChatEndpoint
from .extraction import Extraction, Passage, Progress, listed_passages, well_formed

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

    Raises
    ------
    InputError
        An endpoint that is not a ChatEndpoint, or a prompt that cannot be read or lacks a placeholder.

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

    def __init__(self, endpoint: ChatEndpoint, *, prompts: str | PathLike[str] | None = None) -> None:
        check_type(endpoint, "endpoint", ChatEndpoint, "a hopfuse.llm.ChatEndpoint")
        folder = PROMPTS if prompts is None else _folder(prompts)
        self._entities, self._triples = (_prompt(folder / name, needed) for name, needed in (ENTITIES, TRIPLES))
        self._endpoint = endpoint

    def read(self, passages: Any, *, progress: Progress | None = None) -> list[Extraction]:
        """Return the entities and facts of each passage.

        Parameters
        ----------
        passages : path, Arrow table, or iterable of mappings
            Rows of ``text`` and, optionally, ``id`` and ``title``, as :meth:`hopfuse.Index.build` takes them.
        progress : callable, optional
            Called with the number of answered prompts and the number of all, two per passage.

        Returns
        -------
        list of Extraction
            In the order of the passages. Facts that are not three strings are left out, and counted in ``malformed``.

        Raises
        ------
        InputError
            The argument is not a table of passages.
        EndpointError
            As in :meth:`hopfuse.llm.ChatEndpoint.ask`; the message names the step and the passage.
        """
        listed = listed_passages(passages)
        prompts = [_filled(self._entities, passage, ()) for passage in listed]
        named = self._asked("entities", prompts, listed, progress, 0)
        prompts = [_filled(self._triples, *row) for row in zip(listed, named, strict=True)]
        stated = self._asked("triples", prompts, listed, progress, len(listed))
        return [_extraction(*row) for row in zip(listed, named, stated, strict=True)]

    def _asked(
        self, step: str, prompts: list[str], passages: list[Passage], progress: Progress | None, before: int
    ) -> list[list[Any]]:
        """Ask one step for all passages; ``before`` is the number of prompts of earlier steps."""
        told = None if progress is None else lambda done, _: progress(before + done, 2 * len(passages))
        names = [f"{step} of passage {passage.id!r}" for passage in passages]
        return [row[step] for row in self._endpoint.ask(prompts, SCHEMAS[step], progress=told, names=names)]

    def __repr__(self) -> str:
        return f"EndpointReader({self._endpoint!r})"


def _extraction(passage: Passage, entities: list[str], facts: list[Any]) -> Extraction:
    triples, malformed = well_formed(facts)
    names = tuple(dict.fromkeys(name.strip() for name in entities if name.strip()))
    return Extraction(
        passage.id,
        passage.title,
        passage.text,
        names,
        triples,
        malformed,
        document=passage.document,
        position=passage.position,
        language=passage.language,
    )


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
