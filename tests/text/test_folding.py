"""Folding: spellings that are the same word are equal, others are not, and offsets lead back to the original."""

from __future__ import annotations

import unicodedata

import pytest
from hopfuse.errors import InputError
from hopfuse.text import RULE, RULES, check_rule, fold, fold_with_offsets, unaccented
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

#: Characters that folding treats in a special way, beside any others.
SPECIAL = (
    "\u00ad\u200b\u200c\u200d\u200e\u2060\ufeff\u034f\u0640\u064b\u0653\u0654\u05b8\u0307\u0301\u0345"
    "İıßςﬁ٢५ৎൻไกकिيی가각"
)
TEXTS = (
    st.text() | st.text(alphabet=st.sampled_from(SPECIAL + "aeioβαן ل")) | st.text(st.characters(max_codepoint=0x9FF))
)


@given(TEXTS, st.booleans(), st.sampled_from(sorted(RULES)))
def test_offsets_are_those_of_the_folded_text(text: str, case_sensitive: bool, rule: int) -> None:
    whole = fold(text, rule=rule, case_sensitive=case_sensitive)
    folded = fold_with_offsets(text, rule=rule, case_sensitive=case_sensitive)
    assert folded.text == whole
    assert len(folded.start_at) == len(folded.end_at) == len(whole)
    starts = [at for at, start in enumerate(folded.start_at) if start >= 0]
    for first, following in zip(starts, [*starts[1:], len(whole)][: len(starts)], strict=True):
        start, end = folded.start_at[first], folded.end_at[following - 1]
        assert 0 <= start < end <= len(text)
        if "\u200c" not in text:  # which separates parts of a word or not, by what is around it
            assert fold(text[start:end], rule=rule, case_sensitive=case_sensitive) == whole[first:following]


@given(TEXTS, st.booleans())
def test_folding_twice_changes_nothing_more(text: str, case_sensitive: bool) -> None:
    once = fold(text, case_sensitive=case_sensitive)
    assert fold(once, case_sensitive=case_sensitive) == once
    assert unaccented(unaccented(once)) == unaccented(once)


def test_folding_every_character_twice_changes_nothing_more() -> None:
    for character in map(chr, (*range(0xD800), *range(0xE000, 0x10000), *range(0x1D000, 0x1F000))):
        folded = fold(character)
        plain = unaccented(folded)
        assert fold(folded) == folded, hex(ord(character))
        assert fold(plain) == unaccented(plain) == plain, hex(ord(character))


@given(TEXTS)
def test_composed_and_decomposed_texts_are_equal(text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert fold(composed) == fold(decomposed) == fold(text)


@given(st.text(st.characters(max_codepoint=0x7F)))
def test_ascii_is_lower_case_alone(text: str) -> None:
    for rule in RULES:
        assert fold(text, rule=rule) == text.lower()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("café", "cafe\u0301"),
        ("한국어", unicodedata.normalize("NFD", "한국어")),
        ("ガラス", "ｶﾞﾗｽ"),
        ("ﬁle", "FILE"),
        ("Ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
        ("Straße", "STRASSE"),
        ("İstanbul", "istanbul"),
        ("Daten\u00adbank", "Datenbank"),
        ("Daten\u200bbank", "Datenbank"),
        ("word\u2060joiner", "wordjoiner"),
        ("\u200ealef\u200f\u202a", "alef"),
        ("e\u00ad\u0301", "é"),
        ("مُحَمَّد", "محمد"),
        ("العـــربية", "العربية"),
        ("שָׁלוֹם", "שלום"),
        ("می\u200cخواهم", "می خواهم"),
        ("क्\u200dष", "क्ष"),
        ("अ\u200cन", "अन"),
        ("അവന്\u200d", "അവൻ"),
        ("২০২৪ ٢٠٢٤ २०२४", "2024 2024 2024"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
    ],
)
def test_the_same_in_another_spelling(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(
    ("one", "other"), [("दिल्ली", "दल्ल"), ("ที่", "ท"), ("か", "が"), ("й", "и"), ("schön", "schon"), ("a b", "ab")]
)
def test_marks_that_carry_the_word_remain(one: str, other: str) -> None:
    assert fold(one) != fold(other)


@pytest.mark.parametrize(
    ("accented", "plain"),
    [
        ("São Paulo", "sao paulo"),
        ("Beyoncé", "beyonce"),
        ("Пётр", "петр"),
        ("Йошкар", "йошкар"),
        ("Łódź", "lodz"),
        ("Tromsø", "tromso"),
        ("Đà Nẵng", "da nang"),
        ("Άργος", "αργοσ"),
        ("ISPARTA ısparta", "isparta isparta"),
        ("Ísland Æsir Þór ǣ ǿ", "island aesir thor ae o"),
        ("أحمد", "احمد"),
        ("کی", "كي"),
        ("दिल्ली", "दिल्ली"),
        ("ガラス", "ガラス"),
        ("서울", "서울"),
    ],
)
def test_words_as_they_are_typed_without_accents(accented: str, plain: str) -> None:
    assert unaccented(fold(accented)) == plain


def test_rule_1_goes_on() -> None:
    assert fold("Daten\u00adbank İ", rule=1) == "daten\u00adbank i\u0307"
    assert fold("٢", rule=1) == "٢"


@pytest.mark.parametrize("rule", [0, max(RULES) + 1, True, 1.0, "1", None])
def test_an_unknown_rule_is_refused(rule: object) -> None:
    assert check_rule(RULE, "words") == RULE
    with refused(InputError, "version", "rule"):
        check_rule(rule, "words")


def test_a_long_run_of_invisible_characters_is_read_once():
    """Each character is looked at a few times, not once for each before it."""
    run = "\u200c" * 300_000
    assert fold(f"ا{run}") == "ا"
    assert fold(f"ا{run}ب").split() == ["ا", "ب"]
