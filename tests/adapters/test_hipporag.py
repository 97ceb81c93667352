"""The HippoRAG adapter against HippoRAG's own retrieve, on memories that its own index made."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapters.hipporag_memory import PASSAGES, QUESTIONS, small_rag, some_facts
from hopfuse.adapters import hipporag as adapter
from hopfuse.adapters.hipporag import accelerate
from hopfuse.errors import InputError
from refusals import refused

from bench.drop_ins.hipporag_models import hipporag_module, write_openie

TOLERANCE = 1e-6

#: HippoRAG divides 0 by 0 on its way, and leaves files to the collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore:invalid value:RuntimeWarning",
    "ignore::ResourceWarning",
    "ignore::DeprecationWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)


def test_other_objects_are_refused() -> None:
    with refused(InputError, "type", "rag", given="list"):
        accelerate([])


@pytest.fixture(scope="module")
def module() -> Any:
    if find_spec("hipporag") is None:
        pytest.skip("hipporag is not installed; the part integrations of .ci/full installs it")
    return hipporag_module()


def assert_equal(own: list[Any], made: list[Any], tolerance: float = TOLERANCE) -> None:
    """Scores at each place differ by at most the tolerance, and so do those of each passage."""
    assert [one.question for one in made] == [one.question for one in own]
    for one, other in zip(own, made, strict=True):
        assert len(other.docs) == len(one.docs)
        np.testing.assert_allclose(other.doc_scores, one.doc_scores, atol=tolerance, rtol=0)
        scores = dict(zip(one.docs, one.doc_scores.tolist(), strict=True))
        for doc, score in zip(other.docs, other.doc_scores, strict=True):
            assert abs(scores.get(doc, one.doc_scores[-1]) - score) <= 2 * tolerance


def both(rag: Any, *args: Any, **options: Any) -> tuple[Any, Any]:
    """Return what HippoRAG's own code answers, and the adapter."""
    own = type(rag).retrieve(rag, *args, **options)
    return own, accelerate(rag).retrieve(*args, **options)


@pytest.fixture(scope="module")
def folder(module: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("hipporag")
    small_rag(path)
    return path


@pytest.fixture
def rag(folder: Path) -> Any:
    """HippoRAG as it opens the folder that it wrote."""
    return small_rag(folder)


@pytest.mark.parametrize(
    "config", [{}, {"linking_top_k": 1}, {"linking_top_k": 3, "damping": 0.85}, {"passage_node_weight": 0.5}]
)
@pytest.mark.parametrize("most", [None, 0, 3, 100])
def test_its_passages_and_scores_are_hipporags(folder: Path, config: dict[str, Any], most: int | None) -> None:
    rag = small_rag(folder, **config)
    own, made = both(rag, QUESTIONS, num_to_retrieve=most)
    assert_equal(own, made)
    for one, other in zip(own, made, strict=True):
        assert one.docs == other.docs  # no two of these scores are near


def test_a_batch_is_its_questions(rag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    together = accelerate(rag).retrieve(QUESTIONS)
    monkeypatch.setattr(adapter, "BATCH", 2)
    for some in (rag.retrieve(QUESTIONS), [rag.retrieve([one])[0] for one in QUESTIONS]):
        for one, other in zip(together, some, strict=True):
            assert one.docs == other.docs
            np.testing.assert_array_equal(one.doc_scores, other.doc_scores)
    assert rag.retrieve([]) == []


def test_questions_without_facts_get_dense_retrieval(folder: Path) -> None:
    rag = small_rag(folder, keep=lambda question, facts: [] if "capital" in question else some_facts(question, facts))
    own, made = both(rag, QUESTIONS)
    assert_equal(own, made)
    assert made[-1].doc_scores[0] == 1.0  # a cosine, scaled


def test_a_filter_that_fails_is_dense_retrieval_and_is_logged(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    rag = small_rag(folder)

    def fails(*args: Any, **options: Any) -> Any:
        raise RuntimeError("no connection")

    rag.rerank_filter = fails
    with caplog.at_level(logging.ERROR):
        own, made = both(rag, QUESTIONS[:2])
    assert_equal(own, made)
    assert "the filter of facts failed for 'Where was the designer" in caplog.text


def test_its_own_errors_and_other_filters_stay(folder: Path) -> None:
    rag = small_rag(folder)
    rag.rerank_filter = lambda query, facts, places, len_after_rerank: ([places[0]], [("a", "is no", "phrase")], {})
    with pytest.raises(AssertionError):
        type(rag).retrieve(rag, QUESTIONS[:1])
    with pytest.raises(AssertionError):
        accelerate(rag).retrieve(QUESTIONS[:1])
    other = len(rag.fact_node_keys) - 1  # a filter that names a fact which was no candidate

    def names_another(query: str, facts: Any, places: Any, len_after_rerank: int) -> Any:
        return [*places[:2], other], [*facts[:2], ("London", "is the capital of", "England")], {}

    rag.rerank_filter = names_another
    rag.global_config.linking_top_k = 2
    assert_equal(*both(rag, QUESTIONS[:3]))


def test_memories_that_change_are_read_again(module: Any, tmp_path: Path) -> None:
    texts = list(PASSAGES)
    rag = small_rag(tmp_path, {text: PASSAGES[text] for text in texts[:6]})
    assert_equal(*both(rag, QUESTIONS))
    write_openie(rag, PASSAGES)
    rag.index(texts)
    rag.ready_to_retrieve = False
    own, made = both(rag, QUESTIONS)
    assert_equal(own, made)
    assert len(made[0].docs) == len(texts)
    rag.delete(texts[2:4])
    own, made = both(rag, QUESTIONS)
    assert_equal(own, made)
    assert len(made[0].docs) == len(texts) - 2


def test_what_did_not_change_is_not_read_again(rag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, read = [], adapter.from_igraph
    monkeypatch.setattr(adapter, "from_igraph", lambda *args, **options: reads.append(1) or read(*args, **options))
    accelerate(rag)
    for question in QUESTIONS[:3]:
        rag.retrieve([question])
        accelerate(rag)
    assert len(reads) == 1
    rag.graph.add_vertices(1)
    rag.retrieve(QUESTIONS[:1])
    assert len(reads) == 2
    del rag.retrieve
    assert rag.retrieve.__func__ is type(rag).retrieve


def test_an_evaluation_is_hipporags(rag: Any) -> None:
    gold = [[text] for text in list(PASSAGES)[:2]]
    (own, overall), (made, ours) = both(rag, QUESTIONS[:2], gold_docs=gold)
    assert_equal(own, made)
    assert ours == overall
    assert rag.all_retrieval_time > 0
    rag.global_config.linking_top_k = 0  # no fact is kept: dense retrieval
    assert_equal(*both(rag, QUESTIONS))


def test_unknown_code_is_refused(rag: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(type(rag)):  # type: ignore[misc]
        def run_ppr(self, reset_prob: Any, damping: float = 0.5) -> Any:
            return super().run_ppr(reset_prob, damping)

    rag.__class__ = Mine
    with refused(InputError, "unsupported", "rag", method="Mine.run_ppr"):
        accelerate(rag)
    rag.__class__ = Mine.__base__
    rag.get_fact_scores = lambda query: None
    with refused(InputError, "unsupported", "rag", method="HippoRAG.get_fact_scores"):
        accelerate(rag)
    del rag.get_fact_scores
    assert accelerate(rag) is rag
    monkeypatch.setattr(adapter, "KNOWN", {"1.9": "0" * 64})
    with refused(InputError, "version", "rag", given="2.0.0a4", allowed="1.9"):
        accelerate(rag)
