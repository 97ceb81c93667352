"""The Model Context Protocol over stdio and streamable HTTP (extra ``mcp``)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from .. import __version__
from .._validation import import_extra
from ..errors import HopfuseError
from .answers import PartedResponse
from .errors import RefusalError, body_of, gone_away
from .http import BodyReader
from .keys import Principal
from .service import Service
from .tools import TOOLS, Caller

log = logging.getLogger("hopfuse.serve")
INSTRUCTIONS = (
    "Passages, and a graph of the names in them. search finds passages for a question, including questions that need "
    "several steps; explain_hit says how a passage was found; add_passage and delete_passages, if offered, "
    "add and delete them. Scores are comparable only within one answer."
)


def mcp_server(service: Service, caller_of: Callable[[Any], Caller]) -> Any:
    """Return an ``mcp.server.lowlevel.Server`` over a service.

    Parameters
    ----------
    service : Service
    caller_of : callable
        Returns who calls from the call's context.
    """
    types = _module("mcp_types")

    async def list_tools(context: Any, params: Any) -> Any:
        principal = caller_of(context).principal
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.description,
                    input_schema=tool.schema,
                    annotations=types.ToolAnnotations(read_only_hint=tool.right == "read", open_world_hint=False),
                )
                for tool in TOOLS
                if tool.offered(service, principal)
            ]
        )

    async def call_tool(context: Any, params: Any) -> Any:
        tool = next((one for one in TOOLS if one.name == params.name), None)
        try:
            if tool is None:
                known = ", ".join(one.name for one in TOOLS)
                raise RefusalError(
                    "unknown",
                    "name",
                    "there is no tool {given!r}; there are: {allowed}",
                    given=params.name,
                    allowed=known,
                )
            answer = await tool.call(service, params.arguments or {}, caller_of(context))
        except HopfuseError as error:
            return types.CallToolResult(
                content=[_text(types, error.sentence(str))], structured_content=body_of(error), is_error=True
            )
        except Exception:
            log.exception("a call of %s failed", params.name)
            failed = "the call failed; the server's log says why"
            return types.CallToolResult(content=[_text(types, failed)], is_error=True)
        return types.CallToolResult(content=[_text(types, answer.text)], structured_content=answer.plain)

    return _module("mcp.server.lowlevel").Server(
        "hopfuse",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_stdio(service: Service, principal: Principal) -> None:
    """Answer calls from standard input, until it ends."""
    server = mcp_server(service, lambda context: Caller(principal, principal.name))
    await service.start()
    try:
        async with _module("mcp.server.stdio").stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        await service.stop()


class OverHttp:
    """Answers ``POST /mcp`` with JSON, without sessions: nothing is kept between calls.

    Parameters
    ----------
    service : Service
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        server = mcp_server(service, lambda context: _caller_of(context.request))
        self._manager = _module("mcp.server.streamable_http_manager").StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=service.config.limits.tool_bytes
        )

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return the context manager within which calls are answered."""
        running: AbstractAsyncContextManager[None] = self._manager.run()
        return running

    async def answer(self, request: Request) -> Response:
        """Answer a request; each tool checks the right of its key."""
        service = self._service
        request.state.principal = await service.principal_of(request)
        service.requests.begin(request)
        async with BodyReader(request, service.budget, service.config.limits, "tool_bytes") as body:
            return await self._answer(request, body)

    async def _answer(self, request: Request, body: bytes) -> Response:
        arrived, sent = [body], list[Any]()

        async def receive() -> Any:
            if arrived:
                return {"type": "http.request", "body": arrived.pop(), "more_body": False}
            return await request.receive()

        async def send(message: Any) -> None:
            sent.append(message)

        await self._manager.handle_request(request.scope, receive, send)
        if not sent:
            raise gone_away()
        head, *bodies = sent
        headers = {name.decode().lower(): value.decode() for name, value in head["headers"]}
        parts = [message.get("body", b"") for message in bodies]
        return PartedResponse(parts, headers=headers, status=head["status"]).hold(request.state.held)


def _caller_of(request: Request) -> Caller:
    return Caller(request.state.principal, request.state.held.owner)


def _text(types: Any, text: str) -> Any:
    return types.TextContent(type="text", text=text)


def _module(name: str) -> Any:
    return import_extra(name, "hopfuse mcp")
