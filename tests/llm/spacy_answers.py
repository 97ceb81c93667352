"""A model behind the server that can read: it answers the prompts of a passage by spaCy."""

from __future__ import annotations

import re
import threading
from typing import Any

from hopfuse.extract import SpacyReader

PASSAGE = re.compile(r"Now this one\n\nTitle: (?P<title>.*)\nPassage: (?P<text>.*)\n")


class Reads:
    """Entities or triples, whichever the schema asks for; the triples get a row that is none."""

    def __init__(self) -> None:
        self._reader, self._lock = SpacyReader(), threading.Lock()

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        found = PASSAGE.search(request["messages"][-1]["content"])
        assert found is not None
        with self._lock:
            (read,) = self._reader.read([found.groupdict()])
        if "entities" in request["response_format"]["json_schema"]["schema"]["properties"]:
            return {"entities": list(read.entities)}
        return {"triples": [*map(list, read.triples), ["no", "triple"]]}
