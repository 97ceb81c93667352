"""Predicates of N-Triples in camelCase and snake_case: words, so that families and majorities know them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hopfuse.extract import build_memory, described, read_triples


def statements(folder: Path, *rows: tuple[str, str, str]) -> Path:
    """A file of statements of IRIs."""
    file = folder / "facts.nt"
    file.write_text("".join(f"<x:/{a}> <http://a.org/ns#{p}> <x:/{b}> .\n" for a, p, b in rows), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("directedBy", "directed by"),
        ("directed_by", "directed by"),
        ("placeOfBirth", "place of birth"),
        ("place_ofBirth", "place of birth"),
        ("hasISBN", "has ISBN"),
        ("hasISBNs", "has ISBNs"),
        ("hasISBNsOf", "has ISBNs of"),
        ("officialURLs", "official URLs"),
        ("bornInUSA", "born in USA"),
        ("inHTMLFormat", "in HTML format"),
        ("HTMLFormat", "HTML format"),
        ("isA", "is a"),
        ("hasAName", "has a name"),
        ("isAPartOf", "is a part of"),
        ("isA_partOf", "is a part of"),
        ("isA4Sheet", "is A4 sheet"),
        ("isABC", "is ABC"),
        ("hasXCoordinate", "has X coordinate"),
        ("whatIDo", "what I do"),
        ("AName", "A name"),
        ("BirthPlace", "Birth place"),
        ("top10Songs", "top10 songs"),
        ("ISO3166", "ISO3166"),
        ("has3D", "has3D"),
        ("P31", "P31"),
        ("wrote", "wrote"),
        ("WROTE", "WROTE"),
        ("_wrote_", "wrote"),
        ("estN%C3%A9%C3%80", "est né À"),
        ("film.film.directed_by", "film.film.directed by"),
    ],
)
def test_a_predicate_is_its_words(tmp_path: Path, name: str, words: str) -> None:
    assert read_triples(statements(tmp_path, ("A", name, "B"))) == [("A", words, "B")]


def test_names_of_entities_stay(tmp_path: Path) -> None:
    file = statements(tmp_path, ("iPhone_SE", "madeBy", "McDonald"))
    assert read_triples(file) == [("iPhone SE", "made by", "McDonald")]


def test_families_and_majorities_are_those_of_the_words(tmp_path: Path) -> None:
    rows = (
        ("Alien", "directedBy", "Ridley_Scott"),
        ("Paris", "capitalOf", "France"),
        ("Ada", "placeOfBirth", "London"),
    )
    memory = build_memory(described(read_triples(statements(tmp_path, *rows))))
    assert [(fact.relation, fact.family) for fact in memory.facts] == [
        ("directed by", "creation"),
        ("capital of", "location"),
        ("place of birth", "birth"),
    ]
    tsv = tmp_path / "facts.tsv"
    tsv.write_text("Alien\tdirected by\tRidley Scott\nAda\tplaceOfBirth\tLondon\n", encoding="utf-8")
    assert read_triples(tsv)[0] == ("Alien", memory.facts[0].relation, "Ridley Scott")
    assert read_triples(tsv)[1][1] == "placeOfBirth"  # what is no IRI is read as it is written
