"""A searcher answers alike from a directory, an index, a retriever and a server, and refuses what it cannot use."""

from __future__ import annotations

import asyncio
import gc
import weakref

import hopfuse as hf
import numpy as np
import pytest
from adapters.frameworks import QUESTIONS, small_index
from adapters.memories import add_elsewhere
from hopfuse.adapters.searcher import Searcher, as_searcher, passage_metadata
from hopfuse.encoders import ArrayEncoder
from hopfuse.errors import EndpointError, InputError
from hopfuse.recipes import Hit
from refusals import refused

pytest.importorskip("ahocorasick", reason="names in questions are found by pyahocorasick (extra text)")


def told(rows):
    return [[(hit.id, hit.score, hit.title, hit.text, hit.metadata) for hit in row] for row in rows]


@pytest.fixture
def expected(folder):
    """Of the same index, by its recipe made by hand."""
    index = hf.Index.open(folder)
    words = hf.lexical.BM25.build(index.texts_to_index())
    return hf.recipes.HybridRRF(index, matcher=hf.extract.QuestionMatcher(index), lexical=words)


def test_every_source_gives_the_recipes_own_hits(source, folder, expected):
    pytest.importorskip("bm25s", reason="words are counted by bm25s (extra text)")
    own = told(expected.search(QUESTIONS, k=3))
    assert [len(row) for row in own] == [3, 3, 3]
    index = hf.Index.open(folder)
    for one in (source, folder, index, hf.Index.open(folder, live=True), hf.Retriever(index)):
        assert told(Searcher(one).search(QUESTIONS, k=3)) == own


FILTERS = [
    ({"tenant": "a", "number__ge": 2}, {"p2", "p4", "p6"}),
    (hf.where(tenant="a") & hf.where(number__ge=2, number__in=[2, 4, 5]), {"p2", "p4"}),
    (["p1", "p3"], {"p1", "p3"}),
    ([], set()),
]


@pytest.mark.parametrize(("allow", "ids"), FILTERS)
def test_filters_are_isolated_and_alike(source, folder, allow, ids):
    found = Searcher(source).search(QUESTIONS, k=8, allow=allow)
    assert told(found) == told(Searcher(folder).search(QUESTIONS, k=8, allow=allow))
    assert all({hit.id for hit in row} <= ids for row in found)
    assert any(row for row in found) == bool(ids)


def test_one_filter_for_each_question(source):
    searcher = Searcher(source)
    each = [None, {"tenant": "b"}, ["p5"]]
    found = searcher.search(QUESTIONS, k=8, allow=each)
    alone = [searcher.search([q], k=8, allow=one)[0] for q, one in zip(QUESTIONS, each, strict=True)]
    assert told(found) == told(alone)
    with refused(InputError, "length", "allow", given=2):
        searcher.search(QUESTIONS, allow=[{"tenant": "b"}, None])


def test_more_questions_than_a_request_takes(source):
    searcher = Searcher(source)
    questions = [QUESTIONS[at % 3] for at in range(300)]
    filters = [{"tenant": "ab"[at % 2]} for at in range(300)]
    expected = told(searcher.search(questions[:6], k=2, allow=filters[:6])) * 50
    assert told(searcher.search(questions, k=2, allow=filters)) == expected
    assert told(asyncio.run(searcher.asearch(questions, k=2, allow=filters))) == expected
    assert told(searcher.search(questions, k=1, allow={"tenant": "a"}))[299] == expected[2][:1]


def test_asynchronous_searches_in_two_event_loops(source):
    searcher = Searcher(source)
    expected = [told(searcher.search([one], k=2))[0] for one in QUESTIONS]

    async def ask():
        rows = await asyncio.gather(*(searcher.asearch([one], k=2) for one in QUESTIONS))
        return [told(row)[0] for row in rows]

    for _ in range(2):  # the connections of the first are closed with its loop
        assert asyncio.run(ask()) == expected
    assert asyncio.run(searcher.asearch([])) == searcher.search([]) == []


def test_connections_are_forgotten_when_their_event_loop_ends():
    searcher = Searcher("http://127.0.0.1:9")
    ended = weakref.WeakSet()

    async def ask():
        ended.add(asyncio.get_running_loop())
        with refused(EndpointError, "connection"):
            await searcher.asearch(["one"])

    for _ in range(3):
        asyncio.run(ask())
    loop = asyncio.new_event_loop()
    loop.run_until_complete(ask())
    loop.close()  # without a shutdown of its generators
    del loop
    asyncio.run(ask())
    gc.collect()
    assert not ended


def test_a_recipe_is_chosen_by_name_with_its_options(source):
    found = Searcher(source, recipe="hybrid-rrf", options={"graph_k": 1}).search(QUESTIONS, k=8)
    assert told(found) != told(Searcher(source).search(QUESTIONS, k=8))


def test_integers_are_ids_and_not_rows():
    index = hf.Index.build(passages=[{"id": 10 + at, "text": text} for at, text in enumerate(["a road", "a river"])])
    searcher = Searcher(index)
    assert [hit.id for hit in searcher.search(["road river"], allow=[11])[0]] == [11]
    with refused(InputError, "unknown", "allow", given=0):
        searcher.search(["road"], allow=[0])


def test_results_scope_and_a_where(folder):
    searcher = Searcher(folder, allow_scope="results")
    allow = hf.where(tenant="a") | hf.where(number=7)
    recipe_ids = {hit.id for row in searcher.search(QUESTIONS, k=8, allow=allow) for hit in row}
    assert recipe_ids
    assert recipe_ids <= {"p0", "p2", "p4", "p6", "p7"}


def test_masks_and_filters_of_each_question(folder):
    searcher = Searcher(folder)
    where, ids = hf.where(tenant="b"), ["p5"]
    each = [None, where, ids]
    alone = [searcher.search([q], k=8, allow=one)[0] for q, one in zip(QUESTIONS, each, strict=True)]
    masks = np.ones((3, 8), np.bool_)
    masks[1:] = [hf.Index.open(folder).mask(one) for one in each[1:]]
    for allow in (each, masks, list(masks)):
        assert told(searcher.search(QUESTIONS, k=8, allow=allow)) == told(alone)
    assert told(searcher.search(QUESTIONS, k=8, allow=masks[1])) == told(searcher.search(QUESTIONS, k=8, allow=where))
    assert told(searcher.search(QUESTIONS, k=8, allow=[None] * 3)) == told(searcher.search(QUESTIONS, k=8))


def test_later_changes_are_read(tmp_path):
    small_index().save(tmp_path)
    searcher = Searcher(tmp_path)
    asked = {"questions": ["Which road leads to Oslo?"], "k": 1, "allow": {"tenant": "new"}}
    with refused(InputError, "unknown", "allow", given="new"):
        searcher.search(["road"], allow=["new"])
    with hf.Index.open(tmp_path, writable=True) as live, live.change() as change:
        about = {"tenant": "new", "number": 9}
        change.add_passages([{"id": "new", "text": "A road leads to Oslo.", "metadata": about}])
    assert [hit.id for hit in searcher.search(**asked)[0]] == ["new"]  # it is this process's
    for at in range(3):
        id, question = add_elsewhere(tmp_path, at)
        assert id not in [hit.id for hit in searcher.search([question])[0]]
        if at == 0:
            searcher.refresh()
        elif at == 1:
            assert asyncio.run(searcher.asearch([question], at_least="latest"))[0][0].id == id
        else:
            assert searcher.search([question], at_least=4)[0][0].id == id
        assert searcher.search([question])[0][0].id == id
    with refused(InputError, "unsupported", "at_least", given="latest"):
        Searcher(hf.Index.open(tmp_path)).search(["road"], at_least="latest")


def test_notes_stand_beside_the_hits(source, caplog):
    caplog.set_level("WARNING")  # a server in this process, of another test, sets another
    searcher = Searcher(source)
    for found in (searcher.search([QUESTIONS[0], "Xyzzy?"]), asyncio.run(searcher.asearch([QUESTIONS[0], "Xyzzy?"]))):
        assert found[0].notes == []
        assert [(note.code, note.field) for note in found[1].notes] == [("unknown", "text")]
    for hits in found + found:
        searcher.log_notes(hits)
    assert [(record.name, record.levelname) for record in caplog.records] == [("hopfuse.adapters", "WARNING")]
    assert caplog.messages[0].startswith(str(found[1].notes[0]))
    strict = Searcher(source, strict=True)
    assert len(strict.search(QUESTIONS[:1])[0]) > 0
    with refused(InputError, "unknown", "queries[0].text" if source.startswith("http") else "questions[0]"):
        strict.search(["Xyzzy?"])


def test_options_are_fields_of_the_config_alone(folder):
    for name in ("words", "recipe", "strict", "source"):
        with refused(InputError, "unknown", name):
            Searcher(folder, options={name: "none"})
    made = Searcher(folder, config={"graph_k": 5}, options={"graph_k": 1})
    assert told(made.search(QUESTIONS)) == told(Searcher(folder, options={"graph_k": 1}).search(QUESTIONS))


def test_at_most_so_many_hits_of_a_document(tmp_path):
    rows = [{"id": f"p{at}", "text": f"A road {at}.", "document": "ab"[at % 2]} for at in range(6)]
    index = hf.Index.build(passages=rows)
    found = Searcher(index, per_document=1).search(["a road"], k=6)[0]
    assert sorted(index.documents[hit.row] for hit in found) == ["a", "b"]
    assert len(Searcher(index).search(["a road"], k=6)[0]) == 6


def test_a_given_encoder_reads_the_questions():
    vectors = np.eye(2, dtype=np.float32)
    encoder = ArrayEncoder(2, queries={"north?": vectors[0], "south?": vectors[1]}, name="mine")
    index = hf.Index.build(passages=[{"text": "north"}, {"text": "south"}], vectors=vectors, encoder=encoder)
    with refused(InputError, "missing", "encoder"):
        Searcher(index)
    found = Searcher(index, encoder=encoder).search(["south?", "north?"], k=1)
    assert [row[0].text for row in found] == ["south", "north"]


def test_the_title_goes_with_the_metadata_unless_a_column_is_called_so():
    assert passage_metadata(Hit("a", 0, 1.0, "T", "text", {"year": 1})) == {"title": "T", "year": 1}
    assert passage_metadata(Hit("a", 0, 1.0, "T", "text", {"title": "own"})) == {"title": "own"}
    assert passage_metadata(Hit("a", 0, 1.0, "", "text")) == {}


def test_invalid_input_is_refused(folder):
    local, remote = Searcher(folder), Searcher("http://127.0.0.1:9")
    assert as_searcher(local) is local
    words = hf.lexical.FTS5.build(["a road"] * 8)
    for given, error in (
        ({"source": 3}, ("type", "source", {"given": "int"})),
        ({"source": folder / "none"}, ("missing", "directory")),
        ({"source": "localhost:8080"}, ("missing", "source", {"given": "localhost:8080"})),
        ({"source": folder, "key": "k"}, ("conflict", "key")),
        ({"source": folder, "recipe": "nope"}, ("choice", "recipe", {"given": "nope"})),
        ({"source": folder, "recipe": "guided-walk"}, ("missing", "index")),
        ({"source": folder, "options": {"nope": 1}}, ("unknown", "nope")),
        ({"source": folder, "nope": 1}, ("unknown", "nope")),
        ({"source": hf.recipes.HybridRRF(small_index(), lexical=words)}, ("type", "source", {"given": "HybridRRF"})),
        ({"source": "http://h", "encoder": "e"}, ("conflict", "encoder")),
        ({"source": "http://h", "allow_scope": "results"}, ("conflict", "allow_scope")),
        ({"source": "http://h", "timeout": 0}, ("range", "timeout", {"given": 0})),
        ({"source": hf.Retriever(small_index()), "options": {}}, ("conflict", "options")),
        ({"source": hf.Retriever(small_index()), "words": "none"}, ("conflict", "words")),
        ({"source": hf.Retriever(small_index()), "strict": True}, ("conflict", "strict")),
    ):
        with refused(hf.errors.HopfuseError, *error):
            Searcher(**given)
    with refused(InputError, "unsupported", "allow"):
        remote.search(["one"], allow=~hf.where(tenant="a"))
    for one in (local, remote):
        with refused(InputError, "type", "questions", given="str"):
            one.search("who?")
        with refused(InputError, "type", "questions", given="str"):
            asyncio.run(one.asearch("who?"))
    assert len(local.search(one for one in QUESTIONS)) == len(QUESTIONS)
    with refused(InputError, "type", "allow", given="str"):
        local.search(["one"], allow="p1")
    with refused(EndpointError, "connection"):
        remote.search(["one"])
