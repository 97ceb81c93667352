"""The tools of the MCP server; each is run as a request of the HTTP interface."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from ..errors import HopfuseError
from .budget import Held
from .decoding import decode, read_change, read_search
from .errors import RefusalError, status_of
from .http import encode
from .keys import Principal, lacks_right
from .searches import Answer
from .service import Service

#: The single row of a tool's request, whose fields are the tool's arguments.
ROW = re.compile(r"(?:queries|passages)\[0\]\.?")
TEXT = "A question, or words to look for."
ALLOW = (
    "Allowed passages: their ids, or conditions on their metadata, "
    '{"year__ge": 2020, "tags__any": ["a", "b"]}; omit it for all.'
)
ENTITIES = "Names in the question that may be in the graph; omit it to have them found in the text."


class SearchArguments(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The arguments of ``search``, which are fields of a search by HTTP."""

    text: Annotated[str, msgspec.Meta(description=TEXT)]
    k: Annotated[int, msgspec.Meta(ge=1, description="Number of passages to return.")] = 5
    allow: Annotated[list[str | int] | dict[str, Any] | None, msgspec.Meta(description=ALLOW)] = None
    entities: Annotated[list[str] | None, msgspec.Meta(description=ENTITIES)] = None
    per_document: Annotated[int, msgspec.Meta(ge=1, description="At most so many passages of a document.")] | None = (
        None
    )
    strict: Annotated[bool, msgspec.Meta(description="Fail if a name or the text is not known.")] = False
    index: Annotated[str | None, msgspec.Meta(description="By default the server's first index.")] = None


class ExplainArguments(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The arguments of ``explain_hit``: those of a search of all passages of each document, and the id of a hit."""

    text: Annotated[str, msgspec.Meta(description=TEXT)]
    id: Annotated[str | int, msgspec.Meta(description="The id of a passage that search returned for this text.")]
    k: Annotated[int, msgspec.Meta(ge=1, description="As in the search.")] = 5
    allow: Annotated[list[str | int] | dict[str, Any] | None, msgspec.Meta(description="As in the search.")] = None
    entities: Annotated[list[str] | None, msgspec.Meta(description="As in the search.")] = None
    index: Annotated[str | None, msgspec.Meta(description="As in the search.")] = None


class AddArguments(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The arguments of ``add_passage``, which are fields of a passage by HTTP."""

    id: Annotated[str | int, msgspec.Meta(description="Its id, of the type of the index's ids.")]
    text: Annotated[str, msgspec.Meta(description="Its text.")]
    title: str = ""
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
        ``await run(service, arguments, principal)`` returns the answer, as for JSON.
    """

    name: str
    description: str
    arguments: Any
    right: str
    run: Callable[[Service, Any, Principal], Awaitable[dict[str, Any]]]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, without references."""
        (_,), components = msgspec.json.schema_components([self.arguments])
        shown: dict[str, Any] = components[self.arguments.__name__]
        return {key: value for key, value in shown.items() if key not in ("title", "description")}

    def offered(self, service: Service, principal: Principal) -> bool:
        """Return whether the tool is offered to a caller."""
        takes = self.right != "write" or any(service.changes.taken(name) for name in service.config.indexes)
        return takes and principal.may(self.right)

    async def call(self, service: Service, given: Any, principal: Principal) -> dict[str, Any]:
        """Answer a call, and count it.

        Raises
        ------
        HopfuseError
            The field is an argument of the tool.
        """
        route, began = f"/mcp {self.name}", time.perf_counter()
        try:
            if not principal.may(self.right):
                raise lacks_right(principal, self.right)
            arguments = decode(msgspec.json.Decoder(self.arguments), encode(given))
            answer = await self.run(service, arguments, principal)
        except HopfuseError as error:
            service.metrics.answered(route, status_of(error), error.code)
            raise error.at(field=None if error.field is None else ROW.sub("", error.field) or "text") from None
        service.metrics.answered(route, 200)
        service.metrics.stages["total"].observe(time.perf_counter() - began)
        return answer


async def _search(service: Service, asked: SearchArguments, principal: Principal) -> dict[str, Any]:
    own = {"fields": ("title", "text", "metadata"), "per_document": asked.per_document, "strict": asked.strict}
    answer = await _answer(service, asked, principal, **own)
    (result,) = answer.results
    notes = {"notes": msgspec.to_builtins(result.notes)} if result.notes else {}
    return {"hits": msgspec.to_builtins(result.hits), "seq": answer.snapshot.seq, **notes}


async def _explain(service: Service, asked: ExplainArguments, principal: Principal) -> dict[str, Any]:
    answer = await _answer(service, asked, principal, fields=(), trace=True)
    (result,) = answer.results
    trace = result.trace or {}
    for rank, (hit, how) in enumerate(zip(result.hits, trace.get("hits", ()), strict=True), 1):
        if hit.id == asked.id:
            about: dict[str, Any] = {
                name: trace[name] for name in ("ranked_by", "direct", "seeds", "second_seeds") if name in trace
            }
            return {"rank": rank, **about, "hit": how}
    raise RefusalError(
        "unknown",
        "id",
        "{field} is {given!r}, which is not among the {hits} hits of this text; give the id of a hit of search with "
        "the same arguments, or a larger k",
        given=asked.id,
        hits=len(result.hits),
    )


async def _add(service: Service, asked: AddArguments, principal: Principal) -> dict[str, Any]:
    given = msgspec.to_builtins(asked)
    about = {name: given.pop(name) for name in ("replace", "index") if name in given}
    body = encode({"passages": [given], **about})
    with _holding(service, principal, len(body)) as held:
        seq = await service.add(await read_change(service, body, held), principal, held)
    try:
        await service.snapshot_at(asked.index, principal, seq, None)
    except RefusalError:
        return {"seq": seq, "searched": False}  # it is on the disk, and will be searched
    return {"seq": seq, "searched": True}


async def _answer(
    service: Service, asked: SearchArguments | ExplainArguments, principal: Principal, **own: Any
) -> Answer:
    """Return the answer to the search request with these arguments and fields of its ``own``."""
    query = {name: getattr(asked, name) for name in ("text", "allow", "entities")}
    body = msgspec.json.encode({"queries": [query], "k": asked.k, "index": asked.index, **own})
    with _holding(service, principal, len(body)) as held:
        return await service.search(await read_search(service, body, principal, held))


@contextlib.contextmanager
def _holding(service: Service, principal: Principal, nbytes: int) -> Iterator[Held]:
    """Hold the bytes of a call, beside those of the request by HTTP that it is part of."""
    held = service.budget.hold(principal.name)
    try:
        held.add(nbytes)
        yield held
    finally:
        held.release()


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
)
