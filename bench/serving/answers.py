"""Check that answers over HTTP equal the recipe's own."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

import hopfuse as hf

from ..errors import GateError
from .inputs import K, Questions
from .processes import Server
from .setting import Setting

CALLERS = 16
Ranking = list[tuple[Any, float]]


def own_answers(setting: Setting, questions: Questions) -> list[Ranking]:
    """Return the recipe's own ranking of each question, searched by itself."""
    recipe = hf.recipes.PhaseGraph(hf.Index.open(setting.index))
    found = (recipe.search(**questions.some(at, 1), k=K) for at in range(len(questions)))
    return [[(hit.id, float(hit.score)) for hit in one[0]] for one in found]


def sample(setting: Setting) -> dict[str, Any]:
    """Send questions from many callers at once, and check that every answer is the recipe's own.

    Raises
    ------
    GateError
        One is not.
    """
    expected, count = own_answers(setting, setting.questions), setting.lengths.sample
    with setting.hopfuse() as server:
        different = wrong_answers(server, setting.one.bodies, expected, count)
    if different:
        raise GateError(f"{len(different)} of {count} answers are not the recipe's own; the first: {different[0]}")
    return {"answers": count, "callers": CALLERS}


def wrong_answers(server: Server, bodies: Sequence[bytes], expected: Sequence[Ranking], count: int) -> list[int]:
    """Return the numbers of requests whose answers differ from those expected."""

    def differing(first: int) -> list[int]:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
            found = []
            for number in range(first, count, CALLERS):
                at = number % len(bodies)
                if ranking_of(asked(connection, bodies[at])) != expected[at]:
                    found.append(number)
            return found

    with ThreadPoolExecutor(CALLERS) as pool:
        return sorted(chain.from_iterable(pool.map(differing, range(CALLERS))))


def check_peer(setting: Setting, server: Server) -> None:
    """Raise GateError if another server does not answer the first question as the recipe does."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        found = ranking_of(asked(connection, setting.one.bodies[0]))
    if found != own_answers(setting, Questions(setting.questions.vectors[:1], setting.questions.entities[:1]))[0]:
        raise GateError("a server that hopfuse serve is compared with gives other answers")


def asked(connection: http.client.HTTPConnection, body: bytes) -> Any:
    """Return the answer to a request, decoded."""
    connection.request("POST", "/v1/search", body, {"content-type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise GateError(f"a question was answered {answer.status}: {content[:200]!r}")
    return json.loads(content)


def ranking_of(answer: Any) -> Ranking:
    """Return the first ranking of an answer, of hopfuse or of the other servers.

    Examples
    --------
    >>> ranking_of([[{"id": "p1", "score": 0.5}]])
    [('p1', 0.5)]
    """
    hits = answer["results"][0]["hits"] if isinstance(answer, dict) else answer[0]
    return [(hit["id"], hit["score"]) for hit in hits]
