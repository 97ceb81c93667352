"""A model behind the server that knows cities, without any package: it answers as told about some of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from llm.chat_server import Reply

PASSAGE = re.compile(r"Now this one\n\nTitle: (?P<title>.*)\nPassage: (?P<text>.*)\n")


def rows(count: int, **more: Any) -> list[dict[str, Any]]:
    """Return passages ``p0``, ``p1``, … about a city each."""
    return [
        {"id": f"p{at}", "title": f"City{at}", "text": f"City{at} is in Land{at % 3}.", **more} for at in range(count)
    ]


class Cities:
    """Answers both steps; ``odd`` has the replies about titles, for both steps or, as (step, title), for one.

    Attributes
    ----------
    odd : dict
    asked : Counter of (step, title)
    """

    def __init__(self, odd: Mapping[Any, Any] | None = None) -> None:
        self.odd, self.asked = dict(odd or {}), Counter[tuple[str, str]]()

    def __call__(self, request: dict[str, Any]) -> Reply | str | dict[str, Any]:
        found = next(hit for one in request["messages"] if (hit := PASSAGE.search(one["content"])))
        title, land = found["title"], found["text"].split()[-1].rstrip(".")
        step = (
            "triples" if "Entities: [" in request["messages"][0]["content"].partition("Now this one")[2] else "entities"
        )
        self.asked[step, title] += 1
        reply = self.odd.get(title, self.odd.get((step, title)))
        if reply is not None:
            return reply
        return {"entities": [title, land]} if step == "entities" else {"triples": [[title, "city in", land]]}
