"""The count of names that are found and not meant."""

from __future__ import annotations

import hopfuse as hf
import pytest
from hopfuse.extract import EntityLinker

from experiments.false_names import mentions

pytest.importorskip("ahocorasick", reason="names are found by pyahocorasick (extra text)")


def test_mentions_by_a_rule_are_counted_apart_from_whole_words() -> None:
    names = ["مصر", "Москва", "São Paulo", "北京"]
    linker = EntityLinker(hf.Index.build([{"text": "-"}], entities=names))
    texts = ["مصر، ومصر", "Москва в Москве", "Sao Paulo", "我在北京大学", "nothing"]
    whole, others = mentions(linker, names, texts)
    assert whole == 2
    assert others == {("مصر", "ومصر"): 1, ("Москва", "Москве"): 1, ("São Paulo", "Sao"): 1, ("北京", "我在北京大学"): 1}
