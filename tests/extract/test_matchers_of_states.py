"""Matchers of the later states of an index: those that are made anew, whatever was shared."""

from __future__ import annotations

import hopfuse as hf
import pytest
from hopfuse.extract import EntityLinker, QuestionMatcher

pytest.importorskip("ahocorasick", reason="names are found by pyahocorasick")

QUESTIONS = ["Is it nice in Nice or in nizza?", "what of of", "the sea of Reading, reading of the sea", "Bath?"]


@pytest.mark.parametrize("kind", [EntityLinker, QuestionMatcher])
def test_a_matcher_of_a_later_state_is_one_that_is_made_anew(kind, tmp_path):
    hf.Index.build(
        passages=[{"id": "a", "text": "Nice is nice."}, {"id": "b", "text": "Of and Reading, for reading."}],
        entities=["Nice", "Of", "Reading"],
        aliases={"Nice": ["Nizza"]},
        graph=[{"src": 0, "dst": 2}, {"src": 1, "dst": 3}, {"src": 1, "dst": 4}],
    ).save(tmp_path)
    with hf.Index.open(tmp_path, writable=True) as live:
        matcher = kind(live.index)
        matcher.match(QUESTIONS)
        for step in range(5):
            with live.change() as change:
                if step in (0, 1):  # names stay, and what is common changes
                    texts = [{"id": f"{step}{at}", "text": "reading is nice, of course"} for at in range(4)]
                    change.add_passages(texts)
                    change.add_edges([{"src": ("passage", f"{step}0"), "dst": ("entity", "Reading")}])
                elif step == 2:
                    change.add_entities(["Bath"])
                elif step == 3:
                    change.add_aliases({"Bath": ["the sea"]})
                else:
                    change.delete_entities(["Nice"])
            index = live.refresh()
            matcher = matcher.of_state(index)
            anew = kind(index)
            assert matcher.match(QUESTIONS) == anew.match(QUESTIONS)
            mask = [at % 2 == 0 for at in range(index.num_passages)]
            if kind is EntityLinker:
                assert matcher.match(QUESTIONS, allow=mask) == anew.match(QUESTIONS, allow=mask)
