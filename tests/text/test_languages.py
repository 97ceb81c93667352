"""Languages: their names, which one a text is in, and which words of a question only ask."""

from __future__ import annotations

import hopfuse as hf
import pytest
from hopfuse.errors import InputError
from hopfuse.text import LANGUAGES, fold, function_words, language_named, language_of, question_words, unaccented
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused


@pytest.mark.parametrize(
    ("given", "name"),
    [("french", "french"), ("French", "french"), (" FR ", "french"), ("pt-BR", "portuguese"), ("zh_Hant", "chinese")],
)
def test_a_language_has_a_name_a_code_and_tags(given: str, name: str) -> None:
    assert language_named(given) == name


def test_every_language_is_named_by_its_name_and_code() -> None:
    assert all(language_named(name) == language_named(code.upper()) == name for name, code in LANGUAGES.items())


@pytest.mark.parametrize("given", ["klingon", "", "english_plus", 3, None])
def test_another_language_is_refused_with_those_that_there_are(given: object) -> None:
    with refused(InputError, "choice", "reader_language", given=given) as caught:
        language_named(given, "reader_language")  # type: ignore[arg-type]
    assert all(f"{name} ({code})" in caught.value.values["allowed"] for name, code in LANGUAGES.items())


TEXTS = {
    "arabic": "هذا هو النص الذي نريد أن نقرأه في المدينة، وهو من الكتب التي كانت على الطريق",
    "chinese": "艾瑞克能打开哪里",
    "danish": "Havnen i byen er ældre end byen selv, og den blev bygget ved havet af de første, som kom hertil.",
    "dutch": "De haven van de stad is ouder dan de stad zelf, en zij werd gebouwd aan het water.",
    "english": "The harbour of the town is older than the town itself, and it was built by the sea.",
    "french": "Le port de la ville est plus vieux que la ville, et il a été construit sur la mer.",
    "german": "Der Hafen der Stadt ist älter als die Stadt selbst, und er wurde am Meer gebaut.",
    "hindi": "यह दिल्ली भारत की राजधानी है और इसमें बहुत लोग रहते हैं",
    "italian": "Il porto della città è più vecchio della città stessa, ed è stato costruito sul mare.",
    "japanese": "サーバーは部屋にあります",
    "korean": "서울은 대한민국의 수도이다",
    "portuguese": "O porto da cidade é mais velho do que a própria cidade, e foi construído junto ao mar.",
    "russian": "Порт города старше, чем сам город, и он был построен у моря.",
    "spanish": "El puerto de la ciudad es más antiguo que la ciudad, y fue construido junto al mar.",
    "thai": "ประเทศไทยมีเมืองหลวงคือกรุงเทพ",
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_text_is_told_by_its_function_words_or_its_script(language: str) -> None:
    assert language_of(TEXTS[language]) == language


@pytest.mark.parametrize("text", ["", "x", "Le port de la ville", "1 2 3 4 5 6 7 8 9 10", "lorem ipsum " * 9])
def test_too_few_words_tell_nothing(text: str) -> None:
    assert language_of(text) is None


@given(st.text())
def test_any_text_has_a_language_or_none(text: str) -> None:
    assert language_of(text) in {None, *LANGUAGES}
    assert all(word == unaccented(fold(word)) for word in question_words(text))


def test_function_words_are_words() -> None:
    for language in LANGUAGES:
        assert len(set(function_words(language))) == len(function_words(language))


@pytest.mark.parametrize(
    ("question", "language", "asking"),
    [
        ("Comment configurer un serveur DNS ?", "french", "comment"),
        ("Comment configurer un serveur DNS ?", "english", "comment"),
        ("Où est la mer", "french", "ou"),
        ("wer wartet heute", "german", "wer"),
        ("Warum ist das so?", None, "warum"),
        ("¿Dónde está el servidor?", "spanish", "donde"),
        ("donde esta el servidor", "spanish", "donde"),
        ("quando arriva il treno", "italian", "quando"),
        ("onde fica a cidade", "portuguese", "onde"),
        ("waarom is dat zo", "dutch", "waarom"),
        ("почему сервер не работает", "russian", "почему"),
        ("Who wrote it?", "english", "who"),
        ("How many rivers are there?", "english", "many"),
        ("how MUCH does it cost", None, "much"),
        ("Wie viele Flüsse gibt es?", "english", "viele"),
        ("Hur många floder finns det?", "swedish", "manga"),
        ("hvor mange elver er det", "norwegian", "mange"),
        ("hoe veel rivieren zijn er", "dutch", "veel"),
        ("Kuinka monta jokea on?", "finnish", "monta"),
    ],
)
def test_words_that_ask_are_those_of_the_questions_language(question: str, language: str | None, asking: str) -> None:
    assert asking in question_words(question, language)


@pytest.mark.parametrize(
    ("question", "language", "word"),
    [
        ("comment syntax in Python", "english", "comment"),
        ("comment syntax", "english", "comment"),
        ("What was said", "english", "was"),
        ("das wo bist du", "german", "who"),
        ("Who has many rivers, and how?", "english", "many"),
        ("Wer hat viele Flüsse?", "german", "viele"),
    ],
)
def test_a_word_asks_in_no_other_language(question: str, language: str, word: str) -> None:
    assert word not in question_words(question, language)


pytest.importorskip("bm25s", reason="lists of stop words")
pytest.importorskip("Stemmer", reason="stems")

PASSAGES = [
    "Comment on écrit un commentaire, comment et quand.",
    "Configurer le serveur DNS du réseau.",
    "Le serveur est dans la salle.",
]


def test_question_words_are_no_seeds_and_no_terms_of_questions() -> None:
    index = hf.Index.build([{"text": text} for text in PASSAGES], reader="words", language="fr", lexical=True)
    assert index.words is not None
    assert index.words.stemmer == "french"
    question = "Comment configurer un serveur DNS ?"
    (found,) = hf.extract.WordMatcher(index).match([question])
    assert [match.surface for match in found] == ["configurer", "serveur", "DNS"]
    words = hf.lexical.BM25(index.lexical)  # type: ignore[arg-type]
    assert words.search([question], 9).ids[0].tolist() == [1, 2, -1]
    assert words.search(["comment", "commentaire"], 9).counts.tolist() == [1, 1]  # a question of no other words
    names = list(index.entity_names)
    assert "comment" in names  # a word of passages like any other


def test_without_stop_words_every_word_of_a_question_counts() -> None:
    words = hf.lexical.BM25.build(PASSAGES, stopwords=None, stemmer="fr")
    assert words.matrix.stemmer == "french"
    assert words.search(["Comment configurer ?"], 9).counts.tolist() == [2]


@pytest.mark.parametrize("language", ["arabic", "FR", "Japanese", "ko", "pl"])
def test_every_language_is_one_of_words_and_of_bm25(language: str) -> None:
    name = language_named(language)
    index = hf.Index.build([{"text": TEXTS.get(name, "mot")}], reader="words", language=language)
    assert index.words is not None
    assert index.lexical is not None
    assert index.words.stemmer in (name, None)
    assert index.lexical.stemmer == index.words.stemmer


def test_an_unknown_language_names_the_argument() -> None:
    for arguments in ({"reader": "words", "language": "klingon"}, {"lexical": "klingon"}):
        with refused(InputError, "choice", next(reversed(arguments)), given="klingon"):
            hf.Index.build([{"text": "a word"}], **arguments)
