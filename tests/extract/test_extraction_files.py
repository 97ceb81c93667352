"""Files of extracted facts: HippoRAG's format, lines of OpenIE, triples; what is malformed, and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hopfuse.errors import FormatError, InputError
from hopfuse.extract import build_memory, described, read_openie, read_triples
from refusals import refused

from bench.data_sets import data_root

ROOT = Path(__file__).resolve().parents[2]
DATA = data_root()


def lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def hipporag(path: Path, *documents: Any) -> Path:
    path.write_text(json.dumps({"docs": documents, "avg_ent_chars": 4.0}), encoding="utf-8")
    return path


def document(**change: Any) -> dict[str, Any]:
    whole = {"idx": "chunk-1", "passage": "Ada\nAda wrote.", "extracted_entities": ["Ada", " "]}
    return {
        **whole,
        "extracted_triples": [["Ada", "wrote", "notes "], ["Ada", "wrote"], "Ada", ["", "a", "b"]],
        **change,
    }


NO_IDX = {key: value for key, value in document().items() if key != "idx"}


def test_hipporags_format(tmp_path: Path) -> None:
    other = document(idx=7, passage="One line.", extracted_entities=[], extracted_triples=[])
    first, second = read_openie(hipporag(tmp_path / "openie.json", document(), other))
    assert (first.id, first.title, first.text, first.entities) == ("chunk-1", "Ada", "Ada wrote.", ("Ada",))
    assert (first.triples, first.malformed) == ((("Ada", "wrote", "notes"),), 3)
    assert (second.id, second.title, second.text, second.triples) == (7, "", "One line.", ())
    assert build_memory([first, second]).left_out["malformed"] == 3


def test_the_file_that_hipporag_1_published(tmp_path: Path) -> None:
    """Without idx, and with the title and the text beside the passage."""
    other = {**NO_IDX, "passage": "Bob\nBob read.", "extracted_entities": [], "extracted_triples": []}
    first, second = read_openie(
        hipporag(tmp_path / "openie.json", {**NO_IDX, "title": "Ada", "text": "Ada wrote."}, other)
    )
    assert [(one.id, one.title, one.text) for one in (first, second)] == [
        (0, "Ada", "Ada wrote."),
        (1, "Bob", "Bob read."),
    ]
    assert (first.entities, first.triples, first.malformed) == (("Ada",), (("Ada", "wrote", "notes"),), 3)


def test_what_is_no_name_costs_itself_alone_and_is_counted(tmp_path: Path) -> None:
    odd = [
        "Ada",
        None,
        True,
        ["Bob"],
        {"type": "city"},
        1843,
        2.5,
        {"name": "London", "type": "city"},
        "",
        {"entity": "X"},
    ]
    facts = [
        ["Ada", "born in", 1815],
        {"head": "Ada", "relation": "wrote", "tail": "notes"},
        {"subject": "Ada", "predicate": "knew", "object": {"name": "Bob"}},
        ["Ada", "met", None],
        {"Ada": 1, "wrote": 2, "notes": 3},
        None,
    ]
    names, triples = ("Ada", "1843", "2.5", "London", "X"), 3
    (one,) = read_openie(hipporag(tmp_path / "openie.json", document(extracted_entities=odd, extracted_triples=facts)))
    passages = [{"id": "a", "text": "t"}]
    row = {"id": "a", "entities": odd, "triples": facts}
    for found in (one, *read_openie(lines(tmp_path / "openie.jsonl", [row]), passages)):
        assert (found.entities, len(found.triples), found.malformed) == (names, triples, 4 + 3)
        assert found.triples[0] == ("Ada", "born in", "1815")
        assert found.triples[2] == ("Ada", "knew", "Bob")
    assert build_memory([one]).left_out["malformed"] == 7


def test_half_a_character_is_named_by_its_document(tmp_path: Path) -> None:
    other = document(idx="b", passage="\ud83d text")
    with refused(InputError, "syntax", None, given="\\ud83d", place="openie.json, docs[1]"):
        read_openie(hipporag(tmp_path / "openie.json", document(), other))


def test_lines_and_their_passages(tmp_path: Path) -> None:
    passages = lines(tmp_path / "passages.jsonl", [{"id": i, "title": f"T{i}", "text": f"text {i}"} for i in range(3)])
    rows = [{"id": i, "entities": [f"E{i}"], "triples": [[f"E{i}", "likes", "E0"]]} for i in (2, 0)]
    found = read_openie(lines(tmp_path / "openie.jsonl", rows), passages)
    assert [(one.id, one.title, one.entities) for one in found] == [
        (0, "T0", ("E0",)),
        (1, "T1", ()),
        (2, "T2", ("E2",)),
    ]
    (tmp_path / "passages.tsv").write_text("_id\ttext\na\tAda.\n", encoding="utf-8")
    facts = lines(tmp_path / "openie.jsonl", [{"id": "a", "entities": ["Ada"], "triples": []}])
    for given in (tmp_path / "passages.tsv", [{"_id": "a", "text": "Ada."}]):
        (one,) = read_openie(facts, given)
        assert (one.id, one.title, one.text, one.entities) == ("a", "", "Ada.", ("Ada",))


def test_bad_openie_files_are_refused_by_file_and_line(tmp_path: Path) -> None:
    passages = lines(tmp_path / "passages.jsonl", [{"id": 0, "text": "t"}])
    good = {"id": 0, "entities": [], "triples": []}
    twice = lines(tmp_path / "twice.jsonl", [{"id": 0, "text": "t"}, {"id": 0, "text": "u"}])
    mixed = lines(tmp_path / "mixed.jsonl", [{"id": 0, "text": "t"}, {"id": "0", "text": "u"}])
    cases: list[tuple[Path, Path | None, tuple[Any, ...]]] = [
        (tmp_path / "absent.json", None, ("missing", "facts")),
        (hipporag(tmp_path / "a.json", document(passage=None)), None, ("type", "passage")),
        (
            hipporag(tmp_path / "b.json", document(), document()),
            None,
            ("duplicate", "idx", {"given": "chunk-1"}),
        ),
        (hipporag(tmp_path / "c.json", {"idx": 1}), None, ("missing", "passage")),
        (
            hipporag(tmp_path / "d.json", document()),
            passages,
            ("conflict", "passages", {"other": "path"}),
        ),
        (
            hipporag(tmp_path / "f.json", document(extracted_entities="Ada")),
            None,
            ("type", "entities"),
        ),
        (
            hipporag(tmp_path / "i.json", document(extracted_triples="abc")),
            None,
            ("type", "triples", {"given": "str"}),
        ),
        (lines(tmp_path / "e.json", [[1]]), None, ("syntax",)),
        (lines(tmp_path / "a.txt", []), None, ("choice", "path")),
        (lines(tmp_path / "a.jsonl", [good]), None, ("missing", "passages", {"file": "a.jsonl"})),
        (lines(tmp_path / "b.jsonl", [good, good]), passages, ("duplicate", "id", {"given": 0})),
        (
            lines(tmp_path / "c.jsonl", [good, {"id": 9, "entities": [], "triples": []}]),
            passages,
            ("unknown", "id", {"given": "9"}),
        ),
        (lines(tmp_path / "d.jsonl", [{"id": 0}]), passages, ("missing",)),
        (
            hipporag(tmp_path / "j.json", document(), {**document(), "idx": None}),
            None,
            ("type", "id"),
        ),
        (hipporag(tmp_path / "k.json", document(), NO_IDX), None, ("missing", "idx")),
        (
            lines(tmp_path / "f.jsonl", [{**good, "triples": 3}]),
            passages,
            ("type", "triples", {"given": "int"}),
        ),
        (
            lines(tmp_path / "g.jsonl", [good]),
            twice,
            ("duplicate", "id", {"given": 0, "other": f"{twice}, line 1"}),
        ),
        (lines(tmp_path / "g.jsonl", [good]), mixed, ("type", "id", {"given": "0", "other": 0})),
        (
            lines(tmp_path / "g.jsonl", [good]),
            lines(tmp_path / "no.jsonl", [{"id": 0}]),
            ("missing", "text"),
        ),
        (lines(tmp_path / "g.jsonl", [good]), tmp_path / "absent.jsonl", ("missing", "passages")),
    ]
    for file, beside, error in cases:
        with refused(FormatError if file.name == "d.jsonl" else InputError, *error):
            read_openie(file, beside)
    for text in ('{"docs": 3}', "null", '{"docs": {}}', "[" * 100_000, "{"):
        (tmp_path / "g.json").write_text(text, encoding="utf-8")
        with refused(InputError, "syntax"):
            read_openie(tmp_path / "g.json")
    (tmp_path / "latin.json").write_bytes(b'{"docs": ["\xe9"]}')
    with refused(InputError, "syntax"):
        read_openie(tmp_path / "latin.json")
    (tmp_path / "h.jsonl").write_text('{"id": 0,\n', encoding="utf-8")
    with refused(FormatError, "syntax"):
        read_openie(tmp_path / "h.jsonl", passages)
    separated = {"id": 0, "entities": ["a\u2028b\u0085c"], "triples": []}
    text = json.dumps(separated, ensure_ascii=False)
    (tmp_path / "k.JSONL").write_text(f"\ufeff{text}\n", encoding="utf-8")
    assert read_openie(tmp_path / "k.JSONL", passages)[0].entities == ("a\u2028b\u0085c",)


def test_triples_by_tabs(tmp_path: Path) -> None:
    file = tmp_path / "kb.tsv"
    file.write_text('Alien\tdirected by\tRidley "R" Scott\nAlien\tin\tEnglish\n', encoding="utf-8")
    facts = read_triples(file)
    assert facts == [("Alien", "directed by", 'Ridley "R" Scott'), ("Alien", "in", "English")]
    (passage,) = described(facts)
    assert (passage.id, passage.title, passage.triples) == ("Alien", "Alien", tuple(facts))
    assert passage.text == 'Alien directed by Ridley "R" Scott. Alien in English.'
    file.write_text("tail\thead\trelation\nB\tA\tr\n", encoding="utf-8")
    assert read_triples(file) == [("A", "r", "B")]


def test_n_triples(tmp_path: Path) -> None:
    file = tmp_path / "facts.nt"
    file.write_text(
        "# a comment\n\n"
        "<http://a.org/Ada_Lovelace> <http://a.org/ns#wrote> <http://a.org/Caf%C3%A9> . # more\n"
        '_:b0 <http://a.org/name>\t"a \\"b\\" \\u00e9\\n\\\\u"^^<http://www.w3.org/2001/XMLSchema#string>.\n'
        '<http://a.org/> <http://a.org/p> "x"@en-GB .\n'
        '<http://a.org/a\\u0020b> <http://a.org/p> "\\U0001F600" .\n',
        encoding="utf-8",
    )
    assert read_triples(file) == [
        ("Ada Lovelace", "wrote", "Café"),
        ("b0", "name", 'a "b" é\n\\u'),
        ("a.org", "p", "x"),
        ("a b", "p", "\U0001f600"),
    ]
    file.write_bytes(b"# a comment\r<a> <b> <c> .\r\n<d> <e> <f> .")
    assert read_triples(file) == [("a", "b", "c"), ("d", "e", "f")]
    for line in ("<a> <b> <c>", "<a> <b> .", '"a" <b> <c> .', "<a b> <c> <d> .", "<a> _:b <c> .", '<a> <b> "\\q" .'):
        file.write_text(f"<a> <b> <c> .\n{line}\n", encoding="utf-8")
        with refused(InputError, "syntax"):
            read_triples(file)
    for literal, error in (
        ("\\ud800", ("syntax", None, {"escape": "ud800"})),
        ("\\UFFFFFFFF", ("syntax", None, {"escape": "UFFFFFFFF"})),
        ("", ("empty", None, {"given": ("a", "b", "")})),
    ):
        file.write_text(f'<a> <b> "{literal}" .\n', encoding="utf-8")
        with refused(InputError, *error, place=f"{file}, line 1"):
            read_triples(file)
    file.write_bytes(b"<a> <b> <\xe9> .")
    with refused(InputError, "syntax", "triples"):
        read_triples(file)


def test_triples_of_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"head": ["A"], "relation": ["r"], "tail": ["B"]}), tmp_path / "kb.parquet")
    assert read_triples(tmp_path / "kb.parquet") == [("A", "r", "B")]
    with refused(InputError, "missing", "triples"):
        read_triples(tmp_path / "absent.nt")
    for name in ("kb.csv", "kb.jsonl"):
        with refused(InputError, "choice", "triples"):
            read_triples(tmp_path / name)
    parquet.write_table(pa.table({"head": ["A"], "relation": ["r"], "tail": [None]}), tmp_path / "null.parquet")
    with refused(InputError, "missing", "tail"):
        read_triples(tmp_path / "null.parquet")
    (tmp_path / "blank.tsv").write_text("a\tr\tb\na\t\tb\n", encoding="utf-8")
    with refused(InputError, "empty"):
        read_triples(tmp_path / "blank.tsv")


def test_a_real_extraction_becomes_a_memory() -> None:
    folder = DATA / "musique-openie"
    if not folder.is_dir():
        pytest.skip("the data folder musique-openie is absent (set HOPFUSE_DATA)")
    read = read_openie(folder / "openie.jsonl", folder / "passages.jsonl")
    memory = build_memory(read)
    stated = sum(len(one.triples) for one in read)
    made = (
        sum(len(fact.passages) for fact in memory.facts) + sum(memory.left_out.values()) - memory.left_out["malformed"]
    )
    assert len(memory.ids) == 1890
    assert 0 <= stated - made < 0.01 * stated  # said twice within one passage
    assert 14_000 < len(memory.entities) < 22_000
    mentioned = {name.strip() for one in read for name in one.entities}
    known = {*memory.entities, *(alias for row in memory.aliases for alias in row)}
    assert {" ".join(name.split()) for name in mentioned} <= known
    assert memory.graph().num_nodes == 1890 + len(memory.entities)
