"""The examples of docs/triple-hybrid.md run, one after another, and its defaults are the recipe's."""

from __future__ import annotations

import re
from dataclasses import fields

import hopfuse as hf
import numpy as np
from recipes.doc_pages import DOCS, run_examples

PAGE = DOCS / "triple-hybrid.md"


def test_the_examples_run() -> None:
    known = run_examples(PAGE, 9, hf.recipes.TripleHybridResult)
    assert known["found"].lists.keys() == {"vector", "graph"}
    assert known["tied"].hits.scores[0, 0] > known["tied"].hits.scores[0, 1] == 1.0


def test_it_names_every_option_and_every_mode() -> None:
    text = PAGE.read_text(encoding="utf-8")
    made = {field.name for field in fields(hf.recipes.TripleHybridConfig)}
    for name in made | {"queries", "vectors", "encoder", "lexical", "threads", "allow", "allow_scope", "trace"}:
        assert re.search(rf"`{name}\b|{name}=|\"{name}\"", text), name
    choices = {field.name: field.metadata["choices"] for field in fields(hf.recipes.TripleHybridConfig)}
    for value in (*choices["mode"], *choices["calibration"]):
        assert f'"{value}"' in text


def test_the_steps_of_float32_that_it_states() -> None:
    bias = np.float32(1e-6)
    for score, steps in ((1.0, 8), (0.75, 17)):
        here = np.float32(score)
        assert round(float(here + bias - here) / float(np.spacing(here))) == steps


def test_case_spaces_and_characters_count_as_the_page_says() -> None:
    """ß, final sigma, a no-break space and characters beyond U+FFFF, each by a coefficient."""
    pairs = [("ab\u00a0cd", "abcd"), ("\U0001f600", "\U0001f600"), ("x", "x")]
    for own, other in pairs:
        labels = hf.LabelSets.from_labels([own], repeats=True)
        assert hf.dice_scores([other], labels, [0], indptr=[0, 1])[0] < 1.0, own
    labels = hf.LabelSets.from_labels(["ab cd", "Straße", "οδος", "é"], repeats=True)
    asked = ["ab\u00a0CD", "STRASSE", "οδοσ", "xe\u0301"]
    assert hf.dice_scores(asked, labels, [0, 1, 2, 3], indptr=[0, 1, 2, 3, 4]).tolist() == [1.0, 1.0, 1.0, 0.0]
