"""Names are found however a question spells them, at the places where the question has them."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import hopfuse as hf
import pytest
from hopfuse.extract import EntityLinker

pytest.importorskip("ahocorasick", reason="names are found by pyahocorasick (extra text)")


def built(*names: str, texts: tuple[str, ...] = ()) -> hf.Index:
    """Return an index with a passage about each name, and others."""
    passages = [*(f"{name} ..." for name in names), *texts]
    return hf.Index.build(
        passages=[{"text": text} for text in passages],
        entities=list(names),
        graph=[{"src": at, "dst": len(passages) + at} for at in range(len(names))],
    )


def found(index: hf.Index, question: str, **options: object) -> list[tuple[str, str]]:
    """Return the names that a question mentions, each with its spelling there."""
    linker = EntityLinker(index)
    matches = linker.match([question], **options)[0]  # type: ignore[arg-type]
    assert all(question[match.start : match.end] == match.surface for match in matches)
    return [(index.entity_names[match.entity], match.surface) for match in matches]


@pytest.mark.parametrize(
    ("name", "question", "surface"),
    [
        ("O'Hara", "Who is O’Hara?", "O’Hara"),
        ("O’Hara", "Who is O'Hara?", "O'Hara"),
        ("O'Hara", "Who is Oʼhara or Ohara?", "Oʼhara"),
        ("OHara", "who is o'hara", "o'hara"),
        ("O'Hara", "who is o hara", "o hara"),
        ("El‘ad", "Where is El ad?", "El ad"),
        ("McDonald's", "Who owns McDonald’s now?", "McDonald’s"),
        ("McDonald's", "Who owns McDonalds now?", "McDonalds"),
        ("Jean-Luc", "Where was Jean\u2011Luc born?", "Jean\u2011Luc"),
        ("Jean-Luc", "Where was Jean–Luc born?", "Jean–Luc"),
        ("Jean-Luc", "Where was Jean  Luc born?", "Jean  Luc"),
        ("Jean Luc", "Where was Jean-Luc born?", "Jean-Luc"),
        ("Jean-Luc", "Where was Jean – Luc born?", "Jean – Luc"),
        ("Jean-Luc", "where was jean- luc born", "jean- luc"),
        ("Jean–François", "Where was Jean - Francois born?", "Jean - Francois"),
        ("Jean – Luc", "Where was Jean-Luc born?", "Jean-Luc"),
        ("AT&T", "Who owns AT & T now?", "AT & T"),
        ("AT & T", "Who owns AT&T now?", "AT&T"),
        ("COVID-19", "what is covid - 19", "covid - 19"),
        ("New York", "is it in new\u00a0\n york", "new\u00a0\n york"),
        ("Sao Paulo", "How big is São Paulo?", "São Paulo"),
        ("São Paulo", "How big is Sa\u0303o Paulo?", "Sa\u0303o Paulo"),
        ("Beyonce", "Who is Beyoncé?", "Beyoncé"),
        ("Beyoncé", "who is beyonce", "beyonce"),
        ("Петр", "Где жил Пётр?", "Пётр"),
        ("Пётр", "Где жил Петр?", "Петр"),
        ("Łódź", "Is Lodz a town?", "Lodz"),
        ("Lodz", "Is Łódź a town?", "Łódź"),
        ("Tromsø", "is tromso cold", "tromso"),
        ("Tromso", "is TROMSØ cold", "TROMSØ"),
        ("Đà Nẵng", "Where is Da Nang?", "Da Nang"),
        ("Da Nang", "Where is Đà Nẵng?", "Đà Nẵng"),
        ("Æthelred", "Who was Aethelred?", "Aethelred"),
        ("USA", "Is the U.S.A. big?", "U.S.A."),
        ("U.S.A.", "Is the USA big?", "USA"),
        ("U.S.A.", "Is the U. S. A. big?", "U. S. A."),
        ("J. R. R. Tolkien", "Who was J.R.R. Tolkien?", "J.R.R. Tolkien"),
        ("JRR Tolkien", "Who was J. R. R. Tolkien?", "J. R. R. Tolkien"),
        ("J R R Tolkien", "Who was JRR Tolkien?", "JRR Tolkien"),
        ("J. T. Petty", "who was j t petty", "j t petty"),
        ("Самуи\u0301лович", "Кто такой Самуилович?", "Самуилович"),
        ("Самуилович", "Кто такой Самуи\u0301лович?", "Самуи\u0301лович"),
        ("Wikimedia.org", "what is wikimediaorg or wikimedia org", "wikimediaorg"),
        ("St. John's", "Is St Johns a town?", "St Johns"),
        ("St Johns", "Is St. John’s a town?", "St. John’s"),
        ("St John's", "Is St. Johns a town?", "St. Johns"),
        ("Datenbank", "Was ist eine Daten\u00adbank?", "Daten\u00adbank"),
        ("Daten\u200bbank", "Was ist eine Datenbank?", "Datenbank"),
        ("L'Aquila", "Wo liegt L’\u2060Aquila?", "L’\u2060Aquila"),
        ("Hawaiʻi", "Where is Hawai'i or Hawaii?", "Hawai'i"),
        ("St. Louis", "is it in st.louis", "st.louis"),
        ("PhD", "has he a ph.d. or not", "ph.d."),
        ("Van Gogh", "who painted van_gogh.jpg", "van_gogh"),
        ("İstanbul", "where is istanbul", "istanbul"),
    ],
)
def test_a_keystroke_does_not_lose_a_name(name: str, question: str, surface: str) -> None:
    assert found(built(name), question)[0] == (name, surface)


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("Williams", "Who is William's brother?"),
        ("Bobs", "Who is Bob’s brother?"),
        ("Shell", "she'll come"),
        ("Dada", "le livre d'Ada"),
        ("Jean Luc", "Who came, Jean, Luc or Ann?"),
        ("Paris Texas", "He left for Paris. Texas is far."),
        ("Version 15", "What is new in version 1.5?"),
        ("Rome Milan", "From Rome — Milan"),
        ("US", "Who told us?"),
        ("Vane", "Who is Vanessa?"),
        ("Turku", "Is turussa a word?"),
        ("USA", "Is the U.S. a big country?"),
        ("ラン", "フランスの首都は"),
        ("นา", "ประเทศนาน"),
        ("서울", "서울특별시는"),
        ("ريم", "كريم"),
        ("علي", "الكتاب وعلى الطاولة"),
        ("Jean Luc", "Who came – Jean – Luc or Ann?"),
        ("Jean-Luc", "Who came, Jean — Luc or Ann?"),
        ("沪", "沪在哪里"),
        ("津", "津はどこ"),
        ("คำ", "คำอธิบายสั้นๆ"),
    ],
)
def test_other_words_are_not_joined_into_a_name(name: str, question: str) -> None:
    assert found(built(name), question) == []


def test_a_possessive_is_not_the_end_of_a_name() -> None:
    index = built("John William", "John Williams", "St John", "St Johns", "Mr Smiths", "Lloyds Bank")
    assert found(index, "Who is Mr. Smith’s brother?") == []
    assert found(index, "Where is Lloyd’s Bank in St. John’s?") == [
        ("Lloyds Bank", "Lloyd’s Bank"),
        ("St Johns", "St. John’s"),
    ]
    assert found(index, "Who is John William's brother?") == [("John William", "John William")]
    assert found(index, "Who are John Williams and Ann?") == [("John Williams", "John Williams")]


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Where is São Paulo?", "São Paulo"),
        ("where is são  paulo", "São Paulo"),
        ("Where is Sao Paulo?", "Sao Paulo"),
        ("WHERE IS SAO PAULO", "Sao Paulo"),
        ("Where is Sao-Paulo?", "Sao Paulo"),
        ("Who is O’Hara?", "O'Hara"),
        ("Who is OHara?", "OHara"),
        ("Как живёт Пётр?", "Пётр"),
        ("Как живёт Петр?", "Петр"),
        ("О ком думает Александр?", "Александр"),
        ("О ком думает Александра?", "Александра"),
    ],
)
def test_an_exact_spelling_outranks_a_folded_one(question: str, name: str) -> None:
    index = built("São Paulo", "Sao Paulo", "O'Hara", "OHara", "Петр", "Пётр", "Александра", "Александр")
    assert [entity for entity, _ in found(index, question)] == [name]


def test_of_two_spellings_the_nearest_that_a_question_may_see_is_meant() -> None:
    index = built("São Paulo", "Sao Paulo")
    assert found(index, "Where is São Paulo?", allow=[1]) == [("Sao Paulo", "São Paulo")]
    both = built("Sao-Paulo", "Sao Paulo!", "Sao/Paulo")
    assert {name for name, _ in found(both, "Where is São Paulo?")} == set(both.entity_names)


@pytest.mark.parametrize(
    ("names", "question", "expected"),
    [
        (["艾瑞克"], "艾瑞克能打开哪里？", ["艾瑞克"]),
        (["艾瑞克"], "请问艾瑞克能打开哪里", ["艾瑞克"]),
        (["北京", "北京大学"], "我在北京大学和北京", ["北京大学", "北京"]),
        (["東京", "京都"], "東京都の京都", ["東京", "京都"]),
        (["トム"], "トムはどこ", ["トム"]),
        (["Python"], "Pythonを学ぶ", ["Python"]),
        (["さくら"], "これはさくらの木", ["さくら"]),
        (["เชียงใหม่"], "ฉันไปเชียงใหม่เมื่อวาน", ["เชียงใหม่"]),
        (["ວຽງຈັນ"], "ຂ້ອຍຢູ່ວຽງຈັນແລ້ວ", ["ວຽງຈັນ"]),
        (["ភ្នំពេញ"], "ខ្ញុំរស់នៅភ្នំពេញ", ["ភ្នំពេញ"]),
        (["ရန်ကုန်"], "သူရန်ကုန်မှာနေတယ်", ["ရန်ကုန်"]),
        (["नई दिल्ली", "भारत"], "भारत की राजधानी नई दिल्ली?", ["भारत", "नई दिल्ली"]),
        (["서울"], "서울의 강은?", ["서울"]),
        (["서울", "부산"], "서울에서는 부산까지 멀다", ["서울", "부산"]),
        (["NASA"], "NASA는 어디에 있나", ["NASA"]),
        (["القاهرة"], "ما والقاهرة؟", ["القاهرة"]),
        (["القاهرة"], "الطريق للقاهرة", ["لقاهرة"]),
        (["القاهرة"], "الطريق إلى بِالقَاهِرَة", ["القَاهِرَة"]),
        (["مصر العليا"], "وبمصر العليا", ["مصر العليا"]),
        (["مصر", "علي"], "من هو وعلي ومصر؟", ["علي", "مصر"]),
        (["عبد الله"], "من هو عبدالله؟", ["عبدالله"]),
        (["عبدالله"], "من هو وعبد الله؟", ["عبد الله"]),
        (["أبو ظبي"], "أين تقع ابوظبي؟", ["ابوظبي"]),
        (["نورالدين", "أحمد"], "نور الدين ابو احمد", ["نور الدين", "احمد"]),
        (["沪", "京"], "「沪」和 京 有多远", ["沪", "京"]),
        (["ירושלים"], "מה קרה בירושלים ושבירושלים", ["ירושלים", "ירושלים"]),
        (["תל אביב"], "איך מגיעים לתל-אביב", ["תל-אביב"]),
        (["Москва"], "Что построили в Москве и под Москвой?", ["Москве", "Москвой"]),
        (["Нижний Новгород"], "Кто жил в Нижнем Новгороде?", ["Нижнем Новгороде"]),
        (["Пётр"], "Кто был отцом Петра?", ["Петра"]),
        (["Андрей", "Мария"], "письмо Андрея Марии", ["Андрея", "Марии"]),
        (["Фёдор Достоевский"], "романы Фёдора Достоевского", ["Фёдора Достоевского"]),
        (["Евгений"], "о Евгении", ["Евгении"]),
        (["Соединённые Штаты"], "президент Соединённых Штатов", ["Соединённых Штатов"]),
        (["Helsinki"], "Kuka asui Helsingissä?", ["Helsingissä"]),
        (["Helsinki"], "Mikä tie vie Helsinkiin?", ["Helsinkiin"]),
        (["Lahti", "Turku"], "Kuinka kaukana Lahdesta on Turkuun?", ["Lahdesta", "Turkuun"]),
        (["Sibelius", "Virtanen"], "Missä on Sibeliuksen ja Virtasen koti?", ["Sibeliuksen", "Virtasen"]),
        (["Tampere", "Espoo"], "Missä on Tampereella tai Espoossa satama?", ["Tampereella", "Espoossa"]),
        (["New York"], "Kuka asuu New Yorkissa?", ["New Yorkissa"]),
        (["Иванов", "Иван"], "книги Иванова и Ивана", ["Иванова", "Ивана"]),
    ],
)
def test_names_of_other_scripts_and_in_cases_are_found(names: list[str], question: str, expected: list[str]) -> None:
    index = built(*names)
    assert [surface for _, surface in found(index, question)] == expected
    if len(names) > 1:
        assert sorted(name for name, _ in found(index, question)) == sorted(names)


TITANIC = [
    "Titanic",
    "Titanic (1953 film)",
    "Titanic (1997 film)",
    "Jordan (country)",
    "Jordan (river)",
    "Alien (film)",
]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who was on the Titanic?", ["Titanic"]),
        ("Who played in the 1997 film Titanic?", ["Titanic (1997 film)"]),
        ("Who played in the 1953 film Titanic?", ["Titanic (1953 film)"]),
        ("Who played in the film Titanic?", ["Titanic", "Titanic (1953 film)", "Titanic (1997 film)"]),
        ("Who played in Titanic (1997 film)?", ["Titanic (1997 film)"]),
        ("Which country borders Jordan?", ["Jordan (country)"]),
        ("How long is the river Jordan?", ["Jordan (river)"]),
        ("Where is Jordan?", ["Jordan (country)", "Jordan (river)"]),
        ("Who made Alien?", ["Alien (film)"]),
        ("who made alien", ["Alien (film)"]),
    ],
)
def test_a_text_in_parentheses_tells_entities_of_one_name_apart(question: str, expected: list[str]) -> None:
    assert [name for name, _ in found(built(*TITANIC), question)] == expected


def test_hints_of_entities_that_a_question_may_not_see_tell_nothing() -> None:
    index = built(*TITANIC)
    question = "Who played in the 1997 film Titanic?"
    assert found(index, question, allow=[0, 3]) == [("Titanic", "Titanic")]
    assert found(index, question, allow=[1]) == [("Titanic (1953 film)", "Titanic")]


FIRST = Path(__file__).parents[1] / "golden" / "rules" / "rule-1-names.hopfuse"


def test_an_index_of_the_first_rule_links_as_before(tmp_path: Path) -> None:
    (tmp_path / "generation-000000000001.hopfuse").write_bytes(FIRST.read_bytes())
    (tmp_path / "CURRENT").write_bytes(b"generation-000000000001.hopfuse\n")
    index = hf.Index.open(tmp_path, verify="full")
    assert index.name_rule == 1
    assert found(index, "Who is O'Hara in Sao Paulo?") == [("O'Hara", "O'Hara"), ("São Paulo", "Sao Paulo")]
    assert found(index, "Who is O’Hara in U.S.A and 艾瑞克能?") == []


@pytest.mark.parametrize(
    ("name", "word", "question"),
    [
        ("Правда", "правда", "почему правда важна"),
        ("Мир", "мира", "сколько стран мира подписали договор"),
        ("Über", "über", "wer redet über das wetter"),
        ("Über", "über", "wer redet uber das wetter"),
        ("Élève", "élève", "que fait un élève"),
        ("Self-made", "self-made", "who is a self-made man"),
        ("Won't", "won't", "who won't go"),
        ("علي", "على", "ماذا على الطاولة"),
        ("ليد", "وليد", "من هو وليد"),
        ("بنان", "لبنان", "أين لبنان"),
        ("עמית", "העמית", "איפה העמית"),
    ],
)
def test_a_common_word_is_no_name_however_it_is_spelled(name, word, question):
    """As many passages contain the word; the question has another word that is a name, and is found."""
    passages = [{"text": f"Something {word} something {at}."} for at in range(60)]
    index = hf.Index.build(
        passages=[*passages, {"text": f"{name} met Zed."}],
        entities=[name, "Zed"],
        graph=[{"src": 60, "dst": 61}, {"src": 60, "dst": 62}],
    )
    linker = EntityLinker(index)
    assert [match.surface for match in linker.match([f"{question} zed"])[0]] == ["zed"]


def test_a_name_after_a_prefix_is_found_beside_fewer_passages_with_the_whole_word():
    index = built("مصر", "Zed", texts=("القاهرة ومصر",))
    assert found(index, "ما ومصر؟") == [("مصر", "مصر")]


def test_a_single_character_is_a_name_by_itself_unless_names_are_longer():
    index = built("沪", "X")
    assert [match.surface for match in EntityLinker(index).match(["沪 X"])[0]] == ["沪"]
    assert EntityLinker(index, min_length=3).match(["沪 X"]) == [[]]


def calls_of(names: set[str], run: Callable[[], object]) -> int:
    """Return how often functions of these names are called."""
    count = 0

    def see(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_name in names

    sys.setprofile(see)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def test_a_mention_whose_confidence_is_known_is_not_folded_again():
    linker = EntityLinker(built("Nice", "São Paulo", texts=("a nice day", "sao paulo")))
    questions = ["nice", "são paulo", "sao paulo"]
    first = linker.match(questions)
    assert calls_of({"fold", "count"}, lambda: linker.match(questions)) == 0
    assert linker.match(questions) == first
    assert calls_of({"fold"}, lambda: linker.match(["sÃo paulo"])) > 0


def test_known_confidences_are_bounded():
    """A mention may be spelled in many ways, and be long: with more spaces than a name has."""
    linker = EntityLinker(built("new york", texts=("a new york minute",)))
    questions = [f"in new{' ' * at}york" for at in range(1, 4_000)]
    linker.match(questions[:10])
    tracemalloc.start()
    try:
        for question in questions:
            assert len(linker.match([question])[0]) == 1
        assert tracemalloc.get_traced_memory()[0] < 1 << 21  # the questions are 8 MB
    finally:
        tracemalloc.stop()
