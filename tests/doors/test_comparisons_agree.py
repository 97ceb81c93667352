"""``hopfuse compare`` ranks as ``hopfuse.Retriever`` does: by metrics of which each shows the place of one passage."""

from __future__ import annotations

import hopfuse as hf
import pytest
from doors.doors import House
from doors.shapes import QUESTIONS
from hopfuse.diagnose import compare_recipes
from hopfuse.evaluate import Qrels

#: The ranking that is a recipe with its defaults, over an index with words of its own, and without.
SAME = {
    "guided-walk": ("guided-walk+words", "guided-walk"),
    "phase-graph": ("phase-graph", "phase-graph"),
    "hybrid-rrf": ("hybrid-rrf", "hybrid-rrf"),
    "policy-rag": ("policy-rag", "policy-rag"),
}
TEXTS = [one.text for one in QUESTIONS if one.text and one.text.strip() and one.given == {"text"}]


@pytest.mark.parametrize("recipe", SAME)
@pytest.mark.parametrize("shape", ["vectors and graph", "facts", "all", "live"])
def test_the_same_places(house: House, shape: str, recipe: str) -> None:
    retriever = hf.Retriever(hf.Index.open(house.path(shape)), recipe)
    index = retriever.index
    ranking = SAME[recipe][index.lexical is None]
    texts = [text for text in TEXTS for _ in range(index.num_passages)]
    gold = [[passage] for _ in TEXTS for passage in range(index.num_passages)]
    qrels = Qrels([f"{text}: {at}" for at, text in enumerate(texts)], gold)
    own = retriever.search(texts, k=index.num_passages).hits
    comparison = compare_recipes(retriever, texts, qrels, ["mrr"], rankings=[ranking], runs={"own": own})
    values = comparison.evaluation.per_query
    assert values["own"]["mrr"].tolist() == values[ranking]["mrr"].tolist()
    assert len(set(values["own"]["mrr"].tolist())) > index.num_passages // 2
