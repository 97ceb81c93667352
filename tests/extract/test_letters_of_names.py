"""Names that are letters with dots, and names that hold their own abbreviation."""

from __future__ import annotations

import pytest
from hopfuse.extract import Extraction, abbreviations, build_memory, canonical_key


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("us", ("U.S.", "US", "u.s.", "U. S.", "the U.S", "U S")),
        ("usa", ("U.S.A.", "USA", "U. S. A.")),
        ("jrr tolkien", ("J.R.R. Tolkien", "J. R. R. Tolkien", "J R R Tolkien", "JRR Tolkien", "J.-R. R. Tolkien")),
        ("washington dc", ("Washington, D.C.", "Washington DC", "Washington (D.C.)")),
        ("ac milan", ("A.C. Milan", "A. C. Milan", "AC Milan")),
        ("us led", ("U.S.-led", "US-led")),
        ("abc", ("a.b. c", "A.B.C.", "ABC")),
        ("éu", ("É.U.", "ÉU")),
        ("aa milne", ("A A Milne", "A. A. Milne", "A.A. Milne", "AA Milne", "the A. A. Milne")),
        ("apj abdul kalam", ("A P J Abdul Kalam", "A. P. J. Abdul Kalam", "A.P.J. Abdul Kalam", "APJ Abdul Kalam")),
        ("abc", ("A B C", "A. B. C.", "the ABC")),
        ("us company", ("A U.S. company", "a US company", "the U. S. company")),
    ],
)
def test_letters_are_one_word_with_or_without_dots(key: str, names: tuple[str, ...]) -> None:
    assert {canonical_key(name) for name in names} == {key}
    assert canonical_key(key) == key


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("St. Louis", "st louis"),
        ("3.5", "3.5"),
        ("No. 3.5 b", "no 3.5 b"),
        ("George W. Bush", "george w bush"),
        ("A. Lovelace", "a lovelace"),
        ("Hard Day's Night", "hard day s night"),
        ("Ph.D.", "ph d"),
        ("www.a.org", "www a org"),
        ("R&B", "r&b"),
        ("C. 1 2", "c 1 2"),
        ("f(x)", "f x"),
        ("I/O", "i o"),
        ("Group A/B", "group a b"),
        ("hepatitis A, B", "hepatitis a b"),
        ("X; Y", "x y"),
        ("B-C", "b c"),
        ("John Paul I, I. Newton", "john paul i i newton"),
        ("the A's", "a s"),
        ("U.S.'s", "us s"),
        ("U.S.’s", "us s"),
        ("the 'U.S.'", "us"),
        ("Bob's A. Team", "bob s a team"),
        ("Don't B", "don t b"),
        ("J. O'Hara", "j o hara"),
        ("R. D’Arcy", "r d arcy"),
        ("l'A.C. Milan", "l ac milan"),
        ("A. Milne", "a milne"),
        ("A Milne", "milne"),
        ("A T-shirt", "t shirt"),
        ("A D'Oyly", "d oyly"),
        ("A C# program", "c# program"),
    ],
)
def test_any_other_character_between_letters_separates_words(name: str, key: str) -> None:
    assert canonical_key(name) == key


def test_a_country_is_one_entity_however_it_is_written() -> None:
    memory = build_memory([Extraction("a", "", "", ("U.S.", "us")), Extraction("b", "", "", ("the U.S.", "U.S."))])
    assert (memory.entities, memory.aliases) == (("U.S.",), (("us", "the U.S."),))


def test_names_that_differ_by_more_than_dots_are_different_entities() -> None:
    names = ("f(x)", "FX", "I/O", "Io", "Group A/B", "Group AB", "the A's", "AS", "U.S.'s", "USS")
    assert build_memory([Extraction("a", "", "", names)]).entities == names


def test_a_name_with_its_abbreviation_is_joined_with_both() -> None:
    names = ("IMF", "International Monetary Fund", "International Monetary Fund (IMF)", "UN (United Nations)", "U.N.")
    memory = build_memory([Extraction("a", "", "", (*names, "Alien (film)", "Alien"))])
    assert memory.abbreviated(abbreviations(memory.entities)).tolist() == [[0, 1], [0, 2], [1, 2], [3, 4]]
    assert memory.abbreviated([]).shape == (0, 2)
