"""The texts of an index that are searched by words: title and text of each passage."""

from __future__ import annotations

import hopfuse as hf
from hopfuse.lexical import FTS5, searched_texts


def test_a_passage_is_found_by_its_title_and_by_its_text(tmp_path) -> None:
    rows = [{"title": "Thames", "text": "A river."}, {"text": "The sea.\nIt is salt."}, {"title": "Nile", "text": ""}]
    index = hf.Index.build(passages=rows)
    index.save(tmp_path)
    texts = searched_texts(hf.Index.open(tmp_path))
    assert texts == searched_texts(index) == ["Thames\nA river.", "\nThe sea.\nIt is salt.", "Nile\n"]
    leg = FTS5.build(texts)
    assert leg.search(["Thames", "river", "salt", "Nile"], 1).ids.tolist() == [[0], [0], [1], [2]]


def test_an_index_without_passages_has_none() -> None:
    assert searched_texts(hf.Index.build(passages=[])) == []
