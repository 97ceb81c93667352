import json
import sys
import unicodedata
from itertools import pairwise

import pytest
from hopfuse.errors import InputError, MissingExtraError
from hopfuse.extract import Gazetteer, Match
from hypothesis import example, given, settings
from hypothesis import strategies as st
from refusals import refused

from bench.data_sets import data_root

pytest.importorskip("ahocorasick")


def found(gazetteer, text):
    return [(m.entity, m.surface, m.start) for m in gazetteer.match([text])[0]]


def test_by_hand():
    text = "Paris Hilton flew from Paris to Hilton Head."
    g = Gazetteer(["Paris", "Paris Hilton", "Hilton Head"])
    assert g.match([text]) == [
        [
            Match(1, "Paris Hilton", 0, 12, "exact"),
            Match(0, "Paris", 23, 28, "exact"),
            Match(2, "Hilton Head", 32, 43, "exact"),
        ]
    ]


def test_word_boundaries():
    g = Gazetteer(["art", "C++", "3M"])
    assert found(g, "party Art. art's start art_2 (art)") == [(0, "Art", 6), (0, "art", 11), (0, "art", 30)]
    assert found(g, "C++ C++11 xC++") == [(1, "C++", 0), (1, "C++", 4)]
    assert found(g, "3M 13M 3Ms") == [(2, "3M", 0)]


def test_a_combining_mark_belongs_to_its_letter():
    g = Gazetteer(["cafe", "sa", "na"])
    assert found(g, "cafe\u0301 cafe") == [(0, "cafe", 6)]
    assert found(g, "sa\u0338") == []
    assert found(g, "x\u0338na") == []
    assert found(g, "\u2665\ufe0fna") == [(2, "na", 2)]


def test_the_longest_wins_then_the_leftmost():
    g = Gazetteer(["a b", "b c d", "c d", "d e f", "e"])
    assert found(g, "a b c d") == [(1, "b c d", 2)]
    assert found(g, "a b c d e f") == [(1, "b c d", 2)]
    assert found(g, "b c d e f") == [(1, "b c d", 0)]


@pytest.mark.parametrize(
    ("name", "text", "surface", "start"),
    [
        ("STRASSE", "die Straße.", "Straße", 4),
        ("Straße", "ß die STRASSE.", "STRASSE", 6),
        ("café", "ß un cafe\u0301!", "cafe\u0301", 5),
        ("cafe\u0301", "un CAFÉ!", "CAFÉ", 3),
        ("find", "ﬃ ﬁnd it", "ﬁnd", 2),
        ("ABC 12", "ß \uff21\uff22\uff23\u300012", "\uff21\uff22\uff23\u300012", 2),
        ("İstanbul", "i̇ in İSTANBUL", "İSTANBUL", 6),
        ("한국", "ß \u1112\u1161\u11ab\u1100\u116e\u11a8 x", "\u1112\u1161\u11ab\u1100\u116e\u11a8", 2),
        ("Ångström", "K \u212bngstro\u0308m", "\u212bngstro\u0308m", 2),
        ("ὀδυσσεύς", "ὁ ὈΔΥΣΣΕΎΣ", "ὈΔΥΣΣΕΎΣ", 2),
        ("\u0390", "\u00df \u03aa\u0301", "\u03aa\u0301", 2),  # its case folding is not in NFKC
        ("가", "ﾊﾞ 가", "가", 3),
        ("バ", "一 ﾊﾞ", "ﾊﾞ", 2),
        ("🎉 party", "ß 🎉 PARTY", "🎉 PARTY", 2),
    ],
)
def test_folding_keeps_original_offsets(name, text, surface, start):
    g = Gazetteer([name], min_length=1)
    assert g.match([text]) == [[Match(0, surface, start, start + len(surface), "exact")]]
    assert text[start : start + len(surface)] == surface


def test_no_match_inside_a_character():
    g = Gazetteer(["s", "fi", "1"], min_length=1)
    assert found(g, "ß ﬃ ½") == []


def test_case_sensitive():
    g = Gazetteer(["US", "us"], case_sensitive=True)
    assert found(g, "us and US and Us and \uff35\uff33") == [(1, "us", 0), (0, "US", 7), (0, "\uff35\uff33", 21)]


def test_entities_that_share_a_surface_are_all_returned():
    g = Gazetteer(["Mercury", "Hermes", "mercury", "Hg"], {3: ["MERCURY", "quicksilver"], 1: ["Mercury"]})
    assert g.match(["Mercury"]) == [
        [
            Match(0, "Mercury", 0, 7, "exact"),
            Match(1, "Mercury", 0, 7, "alias"),
            Match(2, "Mercury", 0, 7, "exact"),
            Match(3, "Mercury", 0, 7, "alias"),
        ]
    ]
    assert len(g) == 4


def test_a_name_that_is_also_an_alias_is_exact_and_listed_once():
    g = Gazetteer(["Rome"], {0: ["rome", "Roma"]})
    assert g.match(["ROME, Roma"]) == [[Match(0, "ROME", 0, 4, "exact"), Match(0, "Roma", 6, 10, "alias")]]


def test_the_order_of_aliases_does_not_matter():
    one = Gazetteer(["a1", "b1"], {0: ["xx", "yy"], 1: ["yy", "xx"]})
    two = Gazetteer(["a1", "b1"], {1: ["xx", "yy"], 0: ["yy", "xx"]})
    assert one.match(["yy xx b1"]) == two.match(["yy xx b1"])


def test_short_surfaces_are_left_out_and_listed():
    g = Gazetteer(["X", "Li", " Q ", "ﬁ"], {1: ["L", "Lith"]}, min_length=2)
    assert g.skipped == ((0, "X"), (2, " Q "), (1, "L"))
    assert found(g, "X Li Q L lith fi") == [(1, "Li", 2), (1, "lith", 9), (3, "fi", 14)]
    assert Gazetteer(["abc"], min_length=4).skipped == ((0, "abc"),)


def test_white_space_around_names_is_dropped():
    assert found(Gazetteer([" \u00a0Rome\n"]), "in Rome") == [(0, "Rome", 3)]


def test_nothing_to_find_and_nothing_to_search():
    assert Gazetteer([]).match(["a text", ""]) == [[], []]
    assert Gazetteer(["abc"]).match([]) == []
    assert Gazetteer(["abc"]).match(["", "abc"]) == [[], [Match(0, "abc", 0, 3, "exact")]]


def test_odd_characters_pass():
    assert found(Gazetteer(["ab", "\ud800x"]), "\0 ab\0 \ud800x") == [(0, "ab", 2), (1, "\ud800x", 6)]


def test_repr():
    assert repr(Gazetteer(["a", "bc"])) == "Gazetteer(surfaces=1, skipped=1, case_sensitive=False)"


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        (("Rome",), {}, ("type", "names", {"given": "str"})),
        ((["Rome", 3],), {}, ("type", "names[1]", {"given": "int"})),
        ((["Rome", " \n"],), {}, ("empty", "names[1]")),
        ((["Rome"], {1: ["x"]}), {}, ("unknown", "aliases", {"given": 1})),
        ((["Rome"], {"Rome": ["x"]}), {}, ("unknown", "aliases", {"given": "Rome"})),
        ((["Rome"], {0: "Roma"}), {}, ("type", "aliases[0]", {"given": "str"})),
        ((["Rome"], {0: [None]}), {}, ("type", "aliases[0][0]", {"given": "NoneType"})),
        ((["Rome"], {0: [""]}), {}, ("empty", "aliases[0]", {"given": ""})),
        ((["Rome"],), {"min_length": 0}, ("range", "min_length", {"given": 0})),
        ((["Rome"],), {"min_length": 1.5}, ("range", "min_length", {"given": 1.5})),
    ],
)
def test_bad_names_are_refused(arguments, options, error):
    with refused(InputError, *error):
        Gazetteer(*arguments, **options)


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        ("Rome", ("type", "texts", {"given": "str"})),
        (None, ("type", "texts", {"given": "NoneType"})),
        (["a", 1], ("type", "texts[1]", {"given": "int"})),
    ],
)
def test_bad_texts_are_refused(texts, error):
    with refused(InputError, *error):
        Gazetteer(["Rome"]).match(texts)


def test_the_extra_is_named_where_the_package_is_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "ahocorasick", None)
    with refused(MissingExtraError, "missing_extra", extra="text"):
        Gazetteer(["Rome"])


# The naive matcher: every substring, compared as a whole.

COMBINING = "\u0301\u0307\u0338\u0345\u1161\u11a8"
ALPHABET = "abcsfiSK ß-_'ﬁﬃİéE가½ǆǅŉ\u1100\uff21\uff22\u017f\u00b4" + COMBINING


def whole_fold(text, case_sensitive):
    text = unicodedata.normalize("NFKC", text)
    return text if case_sensitive else unicodedata.normalize("NFKC", text.casefold())


def ends_in_word(folded):
    while folded and unicodedata.category(folded[-1]).startswith("M"):
        folded = folded[:-1]
    return bool(folded) and (folded[-1].isalnum() or folded[-1] == "_")


def may_cut(text, at, case_sensitive):
    if at in (0, len(text)):
        return True
    after = whole_fold(text[at:], case_sensitive)[0]
    joined = ends_in_word(whole_fold(text[:at], case_sensitive)) and (after.isalnum() or after == "_")
    return not (unicodedata.category(text[at]).startswith("M") or text[at] in COMBINING or joined)


def naive(names, aliases, text, min_length, case_sensitive):
    surfaces = {}
    pairs = [*enumerate(names), *((e, a) for e, others in aliases.items() for a in others)]
    for at, (entity, surface) in enumerate(pairs):
        folded = whole_fold(surface.strip(), case_sensitive)
        if len(folded) >= min_length:
            surfaces.setdefault(folded, {}).setdefault(entity, "exact" if at < len(names) else "alias")
    cuts = [at for at in range(len(text) + 1) if may_cut(text, at, case_sensitive)]
    spans = [(i, j) for i in cuts for j in cuts if i < j and whole_fold(text[i:j], case_sensitive) in surfaces]
    kept = []
    while spans:
        i, j = min(spans, key=lambda span: (span[0] - span[1], span[0]))
        kept.append((i, j))
        spans = [(a, b) for a, b in spans if b <= i or a >= j]
    return [
        Match(entity, text[i:j], i, j, kind)
        for i, j in sorted(kept)
        for entity, kind in sorted(surfaces[whole_fold(text[i:j], case_sensitive)].items())
    ]


words = st.text(ALPHABET, min_size=1, max_size=4).filter(lambda word: word.strip())


@st.composite
def cases(draw):
    names = draw(st.lists(words, max_size=6))
    entity = st.integers(0, max(0, len(names) - 1))
    aliases = draw(st.dictionaries(entity, st.lists(words, max_size=3), max_size=3)) if names else {}
    known = [*names, *(a for others in aliases.values() for a in others)]
    pieces = st.one_of(st.sampled_from([*known, " "]), st.text(ALPHABET, max_size=3), st.sampled_from([" ", "-", " "]))
    recased = st.builds(lambda piece, change: change(piece), pieces, st.sampled_from([str, str.upper, str.lower]))
    text = "".join(draw(st.lists(recased, max_size=12)))
    return names, aliases, text, draw(st.integers(1, 3)), draw(st.booleans())


@settings(max_examples=4 * settings().max_examples)
@given(cases())
@example((["ab", "b c s"], {}, "ab b c s", 1, False))
@example((["a b", "b c"], {}, "a b c", 1, False))
def test_against_the_naive_matcher(case):
    names, aliases, text, min_length, case_sensitive = case
    g = Gazetteer(names, aliases, min_length=min_length, case_sensitive=case_sensitive)
    assert g.match([text]) == [naive(*case)]


@given(st.lists(st.text(max_size=20), max_size=3), st.lists(st.text(min_size=1, max_size=3), max_size=8))
def test_mentions_of_any_text_are_in_order_and_in_place(texts, names):
    names = [name for name in names if name.strip()]
    for text, mentions in zip(texts, Gazetteer(names, min_length=1).match(texts), strict=True):
        for m in mentions:
            assert text[m.start : m.end] == m.surface
            assert whole_fold(m.surface, False) == whole_fold(names[m.entity].strip(), False)
        for a, b in pairwise(mentions):
            assert a.end <= b.start or ((a.start, a.end) == (b.start, b.end) and a.entity < b.entity)


@given(st.text(max_size=30), st.booleans())
def test_a_name_is_found_in_itself(text, case_sensitive):
    """A name is folded as a whole, and a text by segments, which have offsets."""
    text = text.strip()
    if text:
        (found,) = Gazetteer([text], min_length=1, case_sensitive=case_sensitive).match([text])
        assert [(m.start, m.end) for m in found] == [(0, len(text))]


def test_segments_hold_for_every_composition_of_unicode():
    parts = (unicodedata.decomposition(chr(code)).split() for code in range(sys.maxunicode + 1))
    pairs = ["".join(chr(int(part, 16)) for part in two) for two in parts if len(two) == 2 and two[0][0] != "<"]
    assert len(pairs) > 900
    for case_sensitive in (False, True):
        gazetteer = Gazetteer(pairs, min_length=1, case_sensitive=case_sensitive)
        for at, (pair, found) in enumerate(zip(pairs, gazetteer.match(pairs), strict=True)):
            assert (0, len(pair), at) in {(m.start, m.end, m.entity) for m in found}, ascii(pair)


def test_real_passages():
    root = data_root()
    if not root.is_dir():
        pytest.skip(f"the real data is not at {root}; set HOPFUSE_DATA")
    with open(root / "hotpotqa" / "passages.jsonl", encoding="utf-8") as lines:
        passages = [json.loads(line) for line, _ in zip(lines, range(1500), strict=False)]
    titles = [p["title"] for p in passages]
    g = Gazetteer(titles)
    bodies = [p["text"] for p in passages]
    mentions = g.match(bodies)
    assert g.match(bodies) == mentions
    assert sum(len(m) for m in mentions) > len(passages)
    for body, row in zip(bodies, mentions, strict=True):
        for m in row:
            assert body[m.start : m.end] == m.surface
            assert m.surface.casefold() == m.surface.lower() == titles[m.entity].lower() or not m.surface.isascii()
