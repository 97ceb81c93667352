"""The tools of the MCP server; each is run as a request of the HTTP interface."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import msgspec

from ..errors import HopfuseError, InputError
from .answers import counted_of
from .budget import Held
from .config import Limits
from .decoding import decode, on_desk, read_change, read_deletion, read_search
from .errors import RefusalError, status_of
from .http import encode
from .keys import Principal, lacks_right
from .schema import AtLeast
from .searches import SearchAnswer
from .service import Service

#: How many times as long an answer may be estimated as it is, whose numbers are short.
ESTIMATE = 4
#: The single row of a tool's request, whose fields are the tool's arguments.
ROW = re.compile(r"(?:queries|passages)\[0\]\.?")
TEXT = "A question, or words to look for."
ALLOW = (
    "Allowed passages: their ids, or conditions on their metadata, "
    '{"year__ge": 2020, "tags__any": ["a", "b"]}; omit it for all.'
)
AT = 'Search the passages that are valid at this time, such as "2024-05-01T12:00:00Z"; omit it for all.'
AT_LEAST = (
    "The seq of a change that must be searched, or "
    '"latest": all that any process has committed until now. What this server has added is searched in any case.'
)
ENTITIES = "Names in the question that may be in the graph; omit it to have them found in the text."


class SearchArguments(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The arguments of ``search``, which are fields of a search by HTTP."""

    text: Annotated[str, msgspec.Meta(description=TEXT)]
    k: Annotated[int, msgspec.Meta(ge=1, description="Number of passages to return.")] = 5
    allow: Annotated[list[str | int] | dict[str, Any] | None, msgspec.Meta(description=ALLOW)] = None
    entities: Annotated[list[str] | None, msgspec.Meta(description=ENTITIES)] = None
    at: Annotated[str | int | float | None, msgspec.Meta(description=AT)] = None
    per_document: Annotated[int, msgspec.Meta(ge=1, description="At most so many passages of a document.")] | None = (
        None
    )
    strict: Annotated[bool, msgspec.Meta(description="Fail if a name or the text is not known.")] = False
    at_least: Annotated[AtLeast, msgspec.Meta(description=AT_LEAST)] = None
    index: Annotated[str | None, msgspec.Meta(description="By default the server's first index.")] = None


class ExplainArguments(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The arguments of ``explain_hit``: as for a search without ``per_document``, and the id of a hit."""

    text: Annotated[str, msgspec.Meta(description=TEXT)]
    id: Annotated[str | int, msgspec.Meta(description="The id of a passage that search returned for this text.")]
    k: Annotated[int, msgspec.Meta(ge=1, description="As in the search.")] = 5
    allow: Annotated[list[str | int] | dict[str, Any] | None, msgspec.Meta(description="As in the search.")] = None
    entities: Annotated[list[str] | None, msgspec.Meta(description="As in the search.")] = None
    at: Annotated[str | int | float | None, msgspec.Meta(description="As in the search.")] = None
    at_least: Annotated[AtLeast, msgspec.Meta(description="As in the search.")] = None
    index: Annotated[str | None, msgspec.Meta(description="As in the search.")] = None


class AddArguments(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The arguments of ``add_passage``, which are fields of a passage by HTTP."""

    id: Annotated[str | int, msgspec.Meta(description="Its id, of the type of the index's ids.")]
    text: Annotated[str, msgspec.Meta(description="Its text.")]
    title: str = ""
    document: Annotated[str | int | None, msgspec.Meta(description="Its document or conversation.")] = None
    language: Annotated[str | None, msgspec.Meta(description='Its language, a BCP 47 tag such as "en".')] = None
    metadata: Annotated[
        dict[str, Any], msgspec.Meta(description="Values by name, with the types of other passages' metadata.")
    ] = {}
    entities: Annotated[
        list[str], msgspec.Meta(description="Names in it, which link it to other passages with the same names.")
    ] = []
    facts: Annotated[
        list[tuple[str, str, str]], msgspec.Meta(description="The facts that it states: head, relation, tail.")
    ] = []
    replace: Annotated[bool, msgspec.Meta(description="Replace the passage with this id.")] = False
    index: Annotated[str | None, msgspec.Meta(description="By default the server's first index.")] = None


class DeleteArguments(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The arguments of ``delete_passages``, which are fields of a deletion by HTTP."""

    ids: Annotated[list[str | int] | None, msgspec.Meta(description="Ids of passages; all must exist.")] = None
    where: Annotated[
        dict[str, Any] | None, msgspec.Meta(description='Conditions on metadata, {"user": "ada", "year__lt": 2020}.')
    ] = None
    document: Annotated[str | int | None, msgspec.Meta(description="All passages of this document.")] = None
    dry_run: Annotated[bool, msgspec.Meta(description="Count what would be deleted, and change nothing.")] = False
    index: Annotated[str | None, msgspec.Meta(description="By default the server's first index.")] = None


class Caller(NamedTuple):
    """Who calls a tool.

    Attributes
    ----------
    principal : Principal
    owner : str
        Who that is for limits of one key (:func:`~hopfuse.serve.http.owner_of`).
    """

    principal: Principal
    owner: str


class ToolAnswer(NamedTuple):
    """The answer of a tool as JSON, and as plain values."""

    text: str
    plain: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool.

    Attributes
    ----------
    name, description : str
    arguments : type
    right : str
        The right that a key needs.
    run
        ``await run(service, arguments, principal, held)`` returns the answer; ``held`` accounts for the call's bytes.
    """

    name: str
    description: str
    arguments: Any
    right: str
    run: Callable[[Service, Any, Principal, Held], Awaitable[ToolAnswer]]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, without references."""
        (_,), components = msgspec.json.schema_components([self.arguments])
        shown: dict[str, Any] = components[self.arguments.__name__]
        return {key: value for key, value in shown.items() if key not in ("title", "description")}

    def offered(self, service: Service, principal: Principal) -> bool:
        """Return whether the tool is offered to a caller."""
        takes = self.right != "write" or any(service.changes.accepts_writes(name) for name in service.config.indexes)
        return takes and principal.may(self.right)

    async def call(self, service: Service, given: Any, caller: Caller) -> ToolAnswer:
        """Answer a call, and count it.

        Its bytes are held beside those of the request by HTTP that it is part of.

        Raises
        ------
        HopfuseError
            The field is an argument of the tool.
        """
        route, began, held = f"/mcp {self.name}", time.perf_counter(), service.budget.hold(caller.owner)
        try:
            if not caller.principal.may(self.right):
                raise lacks_right(caller.principal, self.right)
            body = encode(given)
            held.add(len(body))
            arguments = decode(msgspec.json.Decoder(self.arguments), body)
            answer = await self.run(service, arguments, caller.principal, held)
        except HopfuseError as error:
            service.metrics.answered(route, status_of(error), error.code)
            raise _about_argument(error) from None
        finally:
            held.release()
        service.metrics.answered(route, 200)
        service.metrics.stages["total"].observe(time.perf_counter() - began)
        return answer


def _about_argument(error: HopfuseError) -> HopfuseError:
    """Return an error about a field of a request as one about a tool's argument."""
    field = None if error.field is None else ROW.sub("", error.field) or "text"
    if field == "vector" and error.code == "missing":  # no tool takes one
        return InputError(
            "missing",
            "text",
            "the server has no encoder to make a vector of {field}, which the index needs; its operator can start it "
            "with one",
        )
    return error.at(field=field)


async def _search(service: Service, asked: SearchArguments, principal: Principal, held: Held) -> ToolAnswer:
    own = {"fields": ("title", "text", "metadata"), "per_document": asked.per_document, "strict": asked.strict}
    answer = await _answer(service, asked, principal, held, **own)
    if answer.nbytes > ESTIMATE * service.config.limits.tool_answer_bytes:  # do not read what will be refused
        raise _too_long(asked.k, service.config.limits)
    held.add(counted_of(answer))
    return await on_desk(service, held, answer.is_large, _found, answer, asked, service.config.limits)


def _found(answer: SearchAnswer, asked: SearchArguments, limits: Limits) -> ToolAnswer:
    (result,) = answer.results
    notes = {"notes": result.notes} if result.notes else {}
    return _written({"hits": result.hits, "seq": answer.snapshot.seq, **notes}, asked.k, limits)


async def _explain(service: Service, asked: ExplainArguments, principal: Principal, held: Held) -> ToolAnswer:
    answer = await _answer(service, asked, principal, held, fields=(), trace=True)
    held.add(counted_of(answer))
    return await on_desk(service, held, answer.is_large, _explanation, answer, asked, service.config.limits)


def _explanation(answer: SearchAnswer, asked: ExplainArguments, limits: Limits) -> ToolAnswer:
    (result,) = answer.results
    trace = result.trace or {}
    for rank, (hit, how) in enumerate(zip(result.hits, trace.get("hits", ()), strict=True), 1):
        if hit.id == asked.id:
            about: dict[str, Any] = {
                name: trace[name] for name in ("ranked_by", "direct", "seeds", "second_seeds") if name in trace
            }
            return _written({"rank": rank, **about, "hit": how}, asked.k, limits)
    raise RefusalError(
        "unknown",
        "id",
        "{field} is {given!r}, which is not among the {hits} hits of this text; give the id of a hit of search with "
        "the same arguments, or a larger k",
        given=asked.id,
        hits=len(result.hits),
    )


def _written(answer: dict[str, Any], k: int, limits: Limits) -> ToolAnswer:
    """Return an answer as JSON, and without NumPy values."""
    shown = encode(answer)
    if len(shown) > limits.tool_answer_bytes:
        raise _too_long(k, limits)
    return ToolAnswer(shown.decode(), msgspec.json.decode(shown))


def _too_long(k: int, limits: Limits) -> InputError:
    return InputError(
        "limit",
        "k",
        "{field} is {given}, and the answer has more than {allowed} bytes ({limit} of the server); give a smaller one",
        given=k,
        allowed=limits.tool_answer_bytes,
        limit="limits.tool_answer_bytes",
    )


async def _add(service: Service, asked: AddArguments, principal: Principal, held: Held) -> ToolAnswer:
    given = msgspec.to_builtins(asked)
    about = {name: given.pop(name) for name in ("replace", "index") if name in given}
    body = encode({"passages": [given], **about})
    seq = await service.add(await read_change(service, body, held), principal, held)
    plain = {"seq": seq, "searched": await _is_searched(service, asked.index, principal, seq)}
    return ToolAnswer(encode(plain).decode(), plain)


async def _delete(service: Service, asked: DeleteArguments, principal: Principal, held: Held) -> ToolAnswer:
    deleted = await service.delete_some(await read_deletion(service, encode(asked), held), principal, held)
    plain = msgspec.to_builtins(deleted)
    if deleted.seq is not None:
        plain["searched"] = await _is_searched(service, asked.index, principal, deleted.seq)
    return ToolAnswer(encode(plain).decode(), plain)


async def _is_searched(service: Service, index: str | None, principal: Principal, seq: int) -> bool:
    """Wait until searches see a change that is on the disk, and return whether they do in time."""
    try:
        await service.snapshot_at(index, principal, seq, None)
    except RefusalError:
        return False
    return True


async def _answer(
    service: Service, asked: SearchArguments | ExplainArguments, principal: Principal, held: Held, **own: Any
) -> SearchAnswer:
    """Return the answer to the search request with these arguments and fields of its ``own``."""
    query = {name: getattr(asked, name) for name in ("text", "allow", "entities")}
    about = {name: getattr(asked, name) for name in ("k", "at", "at_least", "index")}
    body = msgspec.json.encode({"queries": [query], **about, **own})
    return await service.search(await read_search(service, body, principal, held))


TOOLS = (
    Tool(
        name="search",
        description=(
            "Find passages that answer a question, by their vectors and by a walk over the graph of names from those "
            "in the question, which also reaches passages several steps away."
        ),
        arguments=SearchArguments,
        right="read",
        run=_search,
    ),
    Tool(
        name="explain_hit",
        description=(
            "Explain how a search found a passage: its rank in each list and the list's share of its score, the "
            "names at which the walk started, and the strongest paths of the graph from them to the passage."
        ),
        arguments=ExplainArguments,
        right="read",
        run=_explain,
    ),
    Tool(
        name="add_passage",
        description=(
            "Add a passage, with the names in it and the facts that it states. It is on the disk when this returns; "
            "searched says whether searches find it already."
        ),
        arguments=AddArguments,
        right="write",
        run=_add,
    ),
    Tool(
        name="delete_passages",
        description=(
            "Delete passages by one of ids, where and document; names and words in them that no other passage has go "
            "too. dry_run only counts. It is on the disk when this returns; searched says whether searches see it."
        ),
        arguments=DeleteArguments,
        right="write",
        run=_delete,
    ),
)
