"""What kind of thing an entity is: from the recogniser to the memory, and to bounds of similarity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hopfuse.errors import InputError
from hopfuse.extract import Extraction, Memory, build_memory, similar_pairs
from refusals import refused


def labelled(id: str, **labels: str) -> Extraction:
    return Extraction(id, "", "", tuple(labels), (), labels=tuple(labels.values()))


def test_an_entity_has_the_label_that_is_given_most_often() -> None:
    read = [
        labelled("a", Ada="ORG", Bob="PERSON", ada="PERSON"),
        labelled("b", ADA="PERSON", bob="", Carl=" "),
        labelled("c", bob="ORG", Dora=""),
        Extraction("d", "", "", ("Ada", "Dora"), (("Ada", "wrote", "Notes"),)),
        Extraction("e", "", "", (" ", "Ed"), (), labels=("ORG", "PERSON")),
    ]
    memory = build_memory(read)
    assert memory.entities == ("Ada", "bob", "Carl", "Dora", "Notes", "Ed")
    assert memory.labels == ("PERSON", "PERSON", "", "", "", "PERSON")  # of equally many the first


def test_no_labels_are_blank_ones_and_older_calls_stand() -> None:
    memory = build_memory([Extraction("a", "", "", ("Ada",), (), 0)])
    assert memory.labels == ("",)
    assert build_memory([]).labels == ()
    given: dict[str, Any] = {name: getattr(memory, name) for name in list(Memory.__dataclass_fields__)[:9]}
    assert Memory(*given.values()).labels == ()
    assert memory.index().info() == replace(memory, labels=("ORG",)).index().info()


def test_labels_are_texts_one_for_each_entity() -> None:
    wrong: list[tuple[Any, str]] = [
        (("ORG", "ORG"), ("length", "labels", {"given": 2})),
        ((3,), ("type", "labels[0]", {"given": "int"})),
        ("O", ("type", "labels", {"given": "str"})),
    ]
    for labels, error in wrong:
        with refused(InputError, *error):
            Extraction("a", "", "", ("Ada",), (), labels=labels)
    listed: Any = ["ORG"]
    assert Extraction("a", "", "", ("Ada",), labels=listed).labels == ("ORG",)


def test_types_without_a_bound_have_that_of_the_star() -> None:
    angles = np.array([0.0, 0.1, 0.3, 0.7])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    types = ["ORG", "", "ORG", "DATE"]
    # cosines: 0-1 .995, 0-2 .955, 0-3 .765, 1-2 .980, 1-3 .825, 2-3 .921
    assert similar_pairs(vectors, {"ORG": 0.95, "*": 0.8}, types=types)[0].tolist() == [[0, 1], [0, 2], [1, 2], [1, 3]]
    assert similar_pairs(vectors, {"ORG": 0.9, "*": 0.99}, types=types)[0].tolist() == [[0, 1], [0, 2]]
    with refused(InputError, "range", "min_similarity['*']"):
        similar_pairs(vectors, {"*": 2.0}, types=types)
    with refused(InputError, "missing", "min_similarity['']"):
        similar_pairs(vectors, {"ORG": 0.9, "DATE": 0.9}, types=types)
    rows = [0, 2]
    assert similar_pairs(vectors[rows], {"ORG": 0.9}, types=[types[row] for row in rows])[0].tolist() == [[0, 1]]
    with refused(InputError, "missing", "min_similarity['']"):
        similar_pairs(vectors, {}, types=types)
