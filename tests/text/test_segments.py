"""Segmentation: words of scripts with spaces, pairs of characters of the others, and the rule before."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hopfuse.text import Style, fold, segment, words_in
from hypothesis import given
from hypothesis import strategies as st

STYLES: tuple[Style, ...] = ("words", "terms")
LATIN = st.text(st.characters(max_codepoint=0x24F) | st.sampled_from("0123456789.,_'- \u0301"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ada's 2nd engine: 1,234.5 parts, U.S.", "ada 2nd engine 1,234.5 parts"),
        ("1,000th 3.14.", "1 000th 3.14"),
        ("well-known_thing", "well known thing"),
        ("दिल्ली भारत की राजधानी है", "दिल्ली भारत की राजधानी है"),
        ("艾瑞克能打开哪里？", "艾瑞 瑞克 克能 能打 打开 开哪 哪里"),
        ("水、火", "水 火"),
        ("日本のガラス", "日本 本の のガ ガラ ラス"),
        ("ｶﾞﾗｽ", "ガラ ラス"),
        ("サーバー・コード", "サー ーバ バー コー ード"),
        ("C言語 2024年", "言語 2024 年"),
        ("서울의 강", "서울의 서울 울의 강"),
        ("iPhone을 샀다", "iphone 을 샀다"),
        ("ที่นี่", "ที่นี่"),
        ("ไปไหน", "ไป ปไ ไห หน"),
        ("ລາວ", "ລາ າວ"),
        ("ខ្មែរ", "ខ្មែរ"),
        ("မြန်မာ", "မြန် န်မာ"),
        ("한국 中国 ไทย latin", "한국 中国 ไท ทย latin"),
        ("๏ ฿ ៛ ။ 。 ・", ""),
        ("می\u200cخواهم", "می خواهم"),
        ("a . ' — ...", ""),
    ],
)
def test_words(text: str, words: str) -> None:
    assert words_in(fold(text)) == words.split()


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("1,234.5 parts of 7", "234 parts of"),
        ("snake_case don't", "snake_case don"),
        ("दिल्ली भारत की राजधानी है", "दिल्ली भारत की राजधानी है"),
        ("société", "société"),
        ("艾瑞克x1", "艾瑞 瑞克 x1"),
    ],
)
def test_terms(text: str, terms: str) -> None:
    assert words_in(fold(unicodedata.normalize("NFD", text)), "terms") == terms.split()


@given(st.text())
def test_places_ascend_and_cover_no_more_than_words(text: str) -> None:
    folded = fold(text)
    for style in STYLES:
        for rule in (1, 2):
            places = segment(folded, style, rule=rule)
            assert [folded[start:end] for start, end in places] == words_in(folded, style, rule=rule)
            assert all(0 <= start < end <= len(folded) for start, end in places)
            assert [start for start, _ in places] == sorted(start for start, _ in places)


@given(st.text(st.characters(categories=["Lu", "Ll", "Lt", "Lo", "Mn", "Mc", "Nd", "Zs", "Po", "Lm"])))
def test_every_letter_with_a_neighbour_is_in_a_word(text: str) -> None:
    folded = fold(text)
    covered = {at for start, end in segment(folded) for at in range(start, end)}
    lone = {at for at, one in enumerate(folded) if one.isalpha()} - covered
    for at in lone:
        beside = folded[max(at - 1, 0) : at] + folded[at + 1 : at + 2]
        latin = re.compile(r"[^\W\d_]")
        same = [one for one in beside if latin.match(one) and not segment(one)]
        assert not segment(folded[at]), folded[at]
        assert not same, (folded, at)


@given(LATIN)
def test_scripts_with_spaces_are_cut_as_before(text: str) -> None:
    folded = fold(text)
    assert words_in(folded) == words_in(folded, rule=1)
    bare = unicodedata.normalize("NFKC", "".join(c for c in folded if not unicodedata.combining(c)))
    assert words_in(bare, "terms") == re.findall(r"\b\w\w+\b", bare) == words_in(bare, "terms", rule=1)


@given(st.lists(st.sampled_from("日本語東京水の"), min_size=1, max_size=6), st.integers(0, 5), st.integers(0, 5))
def test_a_phrase_within_a_text_has_words_of_the_text(characters: list[str], before: int, after: int) -> None:
    phrase = "".join(characters)
    text = "火" * before + phrase + "火" * after
    if len(phrase) > 1:
        assert set(words_in(phrase)) <= set(words_in(text))


def test_rule_1_takes_a_run_of_any_script_as_a_word() -> None:
    assert words_in("艾瑞克能打开", rule=1) == ["艾瑞克能打开"]
    assert words_in("दिल्ली भारत की राजधानी है", "terms", rule=1) == ["रत", "जध"]
    assert words_in("की", rule=1) == ["की"]
