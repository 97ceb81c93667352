"""``hopfuse build chunks.jsonl --reader words``, and a search of its index, as a newcomer types them."""

from __future__ import annotations

import json

import pytest
from cli.cli_files import about, hopfuse, write_jsonl
from hopfuse import Index
from index.live_model import differences

for package in ("Stemmer", "bm25s"):
    pytest.importorskip(package, reason=f"words need {package} (extra text)")

CHUNKS = [
    {"id": "c1", "document": "report", "position": 1, "text": "The turbine failed in winter."},
    {"id": "c2", "document": "report", "position": 2, "text": "An inspector found a cracked bearing."},
    {"id": "c3", "document": "report", "position": 3, "text": "Bearings were ordered from Lyon."},
    {"id": "d1", "title": "Canteen", "text": "Soup is served at noon."},
    {"id": "d2", "text": ""},
]


@pytest.fixture
def chunks(tmp_path):
    return write_jsonl(tmp_path / "chunks.jsonl", CHUNKS)


def found(*args):
    return [hit["id"] for hit in json.loads(hopfuse("search", *args, "--json").stdout)["hits"]]


def test_chunks_alone_become_an_index_that_is_searched(chunks, tmp_path):
    out = tmp_path / "index"
    done = hopfuse("build", chunks, "--reader", "words", "--out", out)
    assert "5/5" in done.stderr
    assert "13 words" in done.stderr
    assert "2 pairs of passages that follow each other" in done.stderr
    assert "facts" not in done.stderr
    assert "words: stemmer" in done.stdout
    index = Index.open(out, verify="full")
    assert index.info()["graph"]["edge_types"] == {"word": 14, "sequence": 2}
    assert found(out, "What did the bearing cost?", "--words", "none") == ["c2", "c3", "c1"]
    assert found(out, "SERVING soups", "--words", "none") == ["d1"]
    assert found(out, "???", "--words", "none") == []
    assert found(out, "anything", "--entity", "Noon", "--words", "none") == ["d1"]


def test_with_an_encoder_the_default_recipe_walks_over_words(tmp_path):
    pytest.importorskip("wordllama")
    out = tmp_path / "index"
    some = write_jsonl(tmp_path / "some.jsonl", [row for row in CHUNKS if row["text"]])
    hopfuse("build", some, "--reader", "words", "--encoder", "wordllama:64", "--out", out)
    index = Index.open(out)
    assert index.entity_vectors is None
    assert found(out, "Which inspector found bearings?", "-k", "1") == ["c2"]
    traced = hopfuse("trace", out, "Which inspector found bearings?").stdout
    assert "bearing: in" in traced


def test_words_combined_with_a_file_of_facts(tmp_path):
    facts = tmp_path / "facts.tsv"
    facts.write_text("Ada\twrote\tNotes\nNotes\tabout\tEngine\n", encoding="utf-8")
    out = tmp_path / "index"
    hopfuse("build", "--from", facts, "--reader", "words", "--out", out)
    index = Index.open(out, verify="full")
    assert list(index.entity_names[: index.words.first]) == ["Ada", "Notes", "Engine"]
    assert set(index.info()["graph"]["edge_types"]) == {"context", "creation", "other", "word"}
    assert sorted(found(out, "Who wrote of engines?", "--words", "none")) == ["Ada", "Notes"]
    named = json.loads(hopfuse("trace", out, "Who wrote with Ada?", "--words", "none", "--json").stdout)
    assert [seed["name"] for seed in named["seeds"]] == ["Ada"]


def test_other_languages_and_none(chunks, tmp_path):
    hopfuse("build", chunks, "--reader", "words", "--language", "german", "--out", tmp_path / "german")
    assert Index.open(tmp_path / "german").words.stemmer == "german"
    hopfuse("build", chunks, "--reader", "words", "--language", "none", "--out", tmp_path / "none")
    index = Index.open(tmp_path / "none")
    assert (index.words.stemmer, index.words.stopwords) == (None, ())
    assert "bearings" in list(index.entity_names)


@pytest.mark.parametrize(
    ("texts", "question"),
    [
        (["艾瑞克能打开哪里的门", "港口比城市更古老"], "艾瑞克"),
        (["東京タワーは港区にある", "サーバーは部屋にある"], "東京タワーはどこですか"),
        (["서울의 강은 길다", "부산의 항구"], "서울"),
        (["ประเทศไทยมีเมืองหลวง", "ท่าเรือเก่า"], "เมืองหลวง"),
        (["दिल्ली भारत की राजधानी है", "बंदरगाह पुराना है"], "भारत की राजधानी"),
        (["كِتَابُ المدينة القديم", "الميناء"], "كتاب"),
        (["Die Daten\u00adbank der Stadt", "Der Hafen"], "DATENBANK"),
        (["Zu\u0308rich am See", "rich and famous"], "zürich"),
    ],
)
def test_words_of_every_script_are_found(texts, question, tmp_path):
    chunks = write_jsonl(tmp_path / "chunks.jsonl", [{"id": str(at), "text": text} for at, text in enumerate(texts)])
    hopfuse("build", chunks, "--reader", "words", "--out", tmp_path / "index")
    for legs in ((), ("--words", "none"), ("--words", "fts5")):
        assert found(tmp_path / "index", question, *legs, "-k", "1") == ["0"], legs


def test_the_language_is_that_of_the_passages_or_the_one_that_is_named(tmp_path):
    texts = [f"Le port de {town} est plus vieux que la ville, et il est sur la mer." for town in ("Brest", "Sète")]
    chunks = write_jsonl(tmp_path / "french.jsonl", [{"id": at, "text": text} for at, text in enumerate(texts)])
    done = hopfuse("build", chunks, "--reader", "words", "--out", tmp_path / "told")
    assert "Languages: french 100 %; words are read as french (--language)" in done.stderr
    assert "No reader is for" not in done.stderr
    index = Index.open(tmp_path / "told")
    assert index.words.stemmer == index.lexical.stemmer == "french"
    named = hopfuse("build", chunks, "--reader", "words", "--language", "EN", "--out", tmp_path / "named")
    assert "words are read as english" in named.stderr
    assert "No reader is for 100 % of the text: its words are found, read as english" in named.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--spacy-model", "model"), about("unused", "spacy_model", other="reader spacy")),
        (("--reader", "spacy", "--reader", "endpoint"), about("conflict", "reader")),
        (("--language", "german"), about("unused", "language", other="reader words")),
        (("--tagger", "model"), about("unused", "tagger", other="reader words")),
        (("--reader", "words", "--language", "klingon"), about("choice", "language", given="klingon")),
        (("--reader", "words", "--model", "m"), about("unused", "model", other="reader endpoint")),
        (("--reader", "words", "--synonyms", "0.8"), about("unused", "synonyms")),
        (("--reader", "words", "--conflicts", "c.jsonl"), about("unused", "conflicts")),
        (("--reader", "words", "--facts", "f.tsv"), about("conflict", "facts", other="reader")),
    ],
)
def test_options_that_do_not_belong_together(refused_here, chunks, tmp_path, args, message):
    assert refused_here("build", chunks, *args, "--out", tmp_path / "index") == message
    assert not (tmp_path / "index").exists()


def test_a_broken_sequence_is_named_before_anything_is_read(refused_here, tmp_path):
    rows = [{"id": "a", "text": "one", "document": "d", "position": 1}, {"id": "b", "text": "two", "document": "d"}]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    line = refused_here("build", path, "--reader", "words", "--out", tmp_path / "index")
    assert line == about("missing", "position")
    assert not (tmp_path / "index").exists()


def test_a_memory_begins_without_passages(tmp_path):
    """An empty file gives an index that turns are added to, which equals one built from the turns."""
    (tmp_path / "none.jsonl").touch()
    turns = write_jsonl(tmp_path / "turns.jsonl", [{"id": "a", "text": "A parrot sings.", "metadata": {"user": "x"}}])
    made = {}
    for name, file in (("memory", tmp_path / "none.jsonl"), ("whole", turns)):
        out = tmp_path / name
        done = hopfuse("build", file, "--reader", "words", "--metadata-type", "user=string", "--out", out)
        assert ("has no passages" in done.stderr) == (name == "memory")
        made[name] = out
    hopfuse("add", made["memory"], turns)
    hopfuse("compact", made["memory"])
    memory, whole = (Index.open(out) for out in made.values())
    assert differences(memory, whole) == []
