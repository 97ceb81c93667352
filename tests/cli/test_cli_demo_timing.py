"""What a demo's latency is of: a batch's questions are encoded once or not at all, and the caption says which."""

from __future__ import annotations

import pytest
from cli.demo_folders import FILMS, write_all
from hopfuse.cli import demo_contest, demo_timing
from hopfuse.cli.demo_contest import Job, on_folder
from hopfuse.cli.demo_encoder import BatchEncoder
from hopfuse.cli.demo_folders import checked_folder
from hopfuse.cli.demo_quality import score_questions
from hopfuse.cli.demo_stages import Stages
from hopfuse.cli.demo_timing import latency_table, measure
from hopfuse.encoders import WordLlamaEncoder
from rich.console import Console

for package in ("ahocorasick", "wordllama"):
    pytest.importorskip(package)

OPTIONS = {"alpha": 0.5, "consensus": 0.0, "passage_seeds": 0.0, "dense_k": 100, "graph_k": 30, "damping": 0.5}
#: What is timed beside the search, by the kind of folder: without vectors or names, they are made of the questions.
MADE = {"graph": "", "openie": "Embedding, name matching and ", "metaqa": "Embedding and "}


class Watched(WordLlamaEncoder):
    """Keeps the texts of every call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[list[str]] = []

    def encode_queries(self, texts):
        self.calls.append(list(texts))
        return super().encode_queries(texts)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("data"))


@pytest.fixture
def contest(folders, tmp_path, monkeypatch):
    """A recipe over a folder, and the calls of its encoder since."""

    def make(recipe, kind):
        encoder, console = Watched(), Console(quiet=True)
        monkeypatch.setattr(demo_contest, "WordLlamaEncoder", lambda: encoder)
        job = Job(recipe, None, OPTIONS | {"threads": 1}, tmp_path / "index", None)
        made = on_folder(job, checked_folder(folders[kind]), console, Stages(console))
        encoder.calls.clear()
        return made, encoder.calls

    return make


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("recipe", ["phase-graph", "policy-rag", "hybrid-rrf", "triple-hybrid"])
def test_a_timed_batch_is_encoded_once_and_the_caption_says_so(contest, monkeypatch, recipe, kind) -> None:
    monkeypatch.setattr(demo_timing, "REPEATS", {2: 2, 9: 1})
    made, calls = contest(recipe, kind)
    timings = measure(made)
    caption = str(latency_table(timings, made).caption)
    by_name = recipe != "triple-hybrid"
    embeds = kind != "graph" or recipe in ("policy-rag", "triple-hybrid")
    batches = [2] * (1 + timings[0].repeats) + [9] * (1 + timings[1].repeats)
    assert [len(texts) for texts in calls] == (batches if embeds else [])
    assert all(set(texts) <= set(made.asked.texts) for texts in calls)
    said = MADE[kind] if by_name and not (embeds and kind == "graph") else "Embedding and "
    assert caption.startswith(f"{said}search;" if said else "Search alone;")
    assert [timing.embeds for timing in timings] == [embeds] * 2


def test_names_that_match_none_are_embedded_and_the_caption_says_so(contest, monkeypatch) -> None:
    monkeypatch.setattr(demo_timing, "REPEATS", {2: 1})
    made, calls = contest("phase-graph", "graph")
    made.asked.mentions[:] = [["Ridley Scot"] for _ in FILMS]
    timings = measure(made)
    assert calls
    assert str(latency_table(timings, made).caption).startswith("Embedding and search;")


def test_every_way_of_a_scored_batch_has_the_same_vectors(contest) -> None:
    made, calls = contest("policy-rag", "openie")
    score_questions(made, 4)
    assert calls == [list(made.asked.texts[:4]), list(made.asked.texts[4:])]


def test_texts_are_kept_until_the_next_batch() -> None:
    other = Watched()
    encoder = BatchEncoder(other)
    assert not encoder.used
    first = encoder.encode_queries(["Alien", "Mirror", "Alien"])
    assert (first == other.encode_queries(["Alien", "Mirror", "Alien"])).all()
    assert encoder.encode_queries(("Alien", "Mirror", "Alien")) is first
    encoder.encode_queries(["Mirror"])
    assert encoder.used
    encoder.start()
    assert not encoder.used
    encoder.encode_queries(["Mirror"])
    assert other.calls == [["Alien", "Mirror", "Alien"]] * 2 + [["Mirror"]] * 2
    assert encoder.dim == other.dim
    assert (encoder.encode_passages(["Alien"]) == other.encode_passages(["Alien"])).all()
