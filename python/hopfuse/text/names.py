"""Spellings of names: the key that equal ones share, and the readings of a text in which names are found."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from itertools import product

from .folding import FoldedText, characters, fold, fold_with_offsets, splits_word, unaccented
from .languages import question_words
from .rules import NAME_RULE

# ---- The key of a name ----

_INITIAL = r"[^\W\d_](?:[\s,]|\.(?!\w)|$)"  # not the "U" of "U.S.", nor the "T" of "T-shirt"
# "A" is an article only before a space; in "A. Lovelace" and "A A Milne" it is an initial.
_ARTICLE = re.compile(rf"^\s*(?:the|an|a(?!\s+{_INITIAL}))\s+(?=\S)")
_BETWEEN_LETTERS = re.compile(r"(?<=(?<!\S)[^\W\d_])\s+(?=[^\W\d_](?!\S))")  # in "u s a ", of "U.S.A."
# Dots and spaces between single letters, but not after the "s" of "Bob's" or before the "O" of "O'Hara".
_JOINT = re.compile(r"(?<![\w.]['’][sdmt])(?:\s*\.[-‐]?\s*|\s+)(?=\w)(?!\w['’](?!s\b)\w)")
#: Most names: words in ASCII without signs, single letters or an article.
_WORDS = r"[a-z0-9]{2,}(?: [a-z0-9]{2,})*"
_SIMPLE, _PLAIN_WORDS = re.compile(rf"(?!(?:the|an) ){_WORDS}"), re.compile(_WORDS, re.IGNORECASE | re.ASCII)
_MEANINGFUL = frozenset("#%&@*+$")  # C, C++ and C#; AT&T; 5%
_WITHIN_NUMBERS = frozenset(".,:/")
_MINUS = frozenset("-−")

#: Signs that are typed for one another, each one character long. An em dash separates parts of a sentence.
_TYPED = str.maketrans(
    dict.fromkeys("’‘‛ʼʻʽʹ′`´＇", "'") | dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\u2043\u05be\ufe63\uff0d", "-")
)


def canonical_key(name: str, *, rule: int = NAME_RULE) -> str:
    """Return the key that spellings of a name share; it ignores case, punctuation and a leading article.

    Parameters
    ----------
    name : str
    rule : {1, 2}
        The reading rule of names (:attr:`hopfuse.Index.name_rule`).

    Returns
    -------
    str
        The folded name without a leading "the", "a" or "an". Punctuation and spaces become single spaces, except ``# %
        & @ * + $``, ``. , : /`` between digits, and a minus before a number. Single letters that are separated by a
        dot, a space or both are joined: "U.S.", "U. S." and "U S" become "us", but "I/O" becomes "i o". An "a" before
        another initial is an initial: "A A Milne" becomes "aa milne", "A Milne" becomes "milne". A name of punctuation
        alone is only folded. Accents remain: they distinguish names.

    Examples
    --------
    >>> from hopfuse.text import canonical_key
    >>> [canonical_key(name) for name in ("The  Analytical-Engine", "C++", "A. Lovelace", "U.S.", "-1.5")]
    ['analytical engine', 'c++', 'a lovelace', 'us', '-1.5']
    """
    if rule != 1 and not name.isascii():
        name = name.translate(_TYPED)
    folded = fold(name, rule=rule)
    if _SIMPLE.fullmatch(folded):
        return folded
    begin = next((i for i, character in enumerate(folded) if not _separates(character) or character in _MINUS), 0)
    bare = _ARTICLE.sub("", folded[begin:])
    joined = _BETWEEN_LETTERS.sub(lambda gap: "" if _JOINT.match(bare, gap.start()) else " ", _spaced(bare))
    return " ".join(joined.split()) or " ".join(folded.split())


def _spaced(folded: str) -> str:
    """Replace characters that separate words by spaces."""
    return "".join(" " if _is_separator(folded, at) else character for at, character in enumerate(folded))


def _is_separator(text: str, at: int) -> bool:
    character = text[at]
    if not _separates(character):
        return False
    after = at + 1 < len(text) and text[at + 1].isdigit()
    if character in _WITHIN_NUMBERS:
        return not (after and at > 0 and text[at - 1].isdigit())
    if character in _MINUS:
        return not (after and (at == 0 or text[at - 1].isspace()))
    return True


@lru_cache(maxsize=1 << 12)
def _separates(character: str) -> bool:
    """Return whether a character is punctuation, a space, or a similar symbol."""
    if character in _MEANINGFUL:
        return False
    return unicodedata.category(character)[0] in "PZ" or character.isspace() or character in "|~`´<>=^−"


# ---- Readings of a text ----

_LETTER = r"[^\W\d_]"
_SPACES = re.compile(r"\s+")
_NOT_PLAIN = re.compile(r"\s\s|[^\S ]")
#: Abbreviations of titles, in names of persons, places and companies.
_ABBREVIATIONS = (
    *("st", "ste", "mt", "ft", "pt", "dr", "mr", "mrs", "ms", "mme", "mlle", "jr", "sr", "hl", "rev", "hon", "prof"),
    *("gen", "col", "capt", "cpt", "lt", "maj", "sgt", "gov", "sen", "rep", "co", "inc", "ltd", "corp", "bros", "univ"),
)
#: After the dot of an initial or an abbreviation.
_SHORT = "|".join(rf"(?<=(?<!\w){one}\.)" for one in (_LETTER, *_ABBREVIATIONS))
#: What people leave out, or write as a space. Dots of sentences, of numbers and of longer words are kept.
_LEFT_OUT = re.compile(
    rf"(?P<last>\.(?:(?<=\.{_LETTER}\.)|(?<=\.[ ]{_LETTER}\.))(?![ ]?{_LETTER}\.)(?!\w))"
    rf"|(?P<none>'|\.(?:(?<=(?<!\w){_LETTER}\.)(?:[ ](?={_LETTER}\.)|(?={_LETTER}))|(?<={_LETTER}\.)(?={_LETTER}(?!\w))"
    rf"|(?:{_SHORT})(?!\w)))"
    rf"|\.(?:{_SHORT})(?={_LETTER})|-+(?<=\w-)(?=\w)|_+"
)
_INITIALS = re.compile(rf"(?<=(?<!\w){_LETTER}) (?={_LETTER}(?!\w))")
#: An apostrophe that people write as a space: "O Hara".
_ELISION = re.compile(r"(?<=\w)'(?=\w\w)")
#: Dots that are not in numbers.
_DOTS = re.compile(r"(?<!\d)\.|\.(?!\d)")
_OTHER_SIGNS = re.compile(r"[^\w\s]|_")
#: Signs that belong to a name that they begin: ".it", "+39", "#metoo".
SIGNS = frozenset(".+#@$")
_CYRILLIC = re.compile(f"[{characters(['Cyrillic'])}]")
_CYRILLIC_WORD = re.compile(f"[{characters(['Cyrillic'])}]{{4,}}")
_MANY_SPELLINGS = 16
#: Endings of the cases of Russian nouns and adjectives. Those of surnames ("Иванов") and genitives in -ов are none.
_ENDINGS = re.compile(
    "(?<=...)(?:ого|его|ому|ему|ами|ями|ыми|ими|[оеы]й|[оеыиая]м|[ыиая]х|[оеь]ю|[ая]я|[ую]ю|[оеыи]е|ий|[аяоеуюыиіїєьй])$"
)
_IN_SHORT_I, _IN_PLURAL = re.compile("...[аеио]й$"), re.compile("...ы$")
#: Endings of Finnish cases, without umlauts.
_FINNISH_CASE = re.compile(r"(?<=[a-z]{3}[aeiouy])(?:ssa|sta|lla|lta|lle|ksi|seen|n|(?<=[iuoey])a)(?!\w)")
_LATIN_WORD = re.compile(r"(?<!\w)[a-z]{4,}(?!\w)")
#: Forms of stems: -nen and -se, -us and -ukse; a long vowel, a consonant, -e.
_FINNISH_FORMS = [
    (re.compile(pattern), new)
    for pattern, new in (
        ("nen$|(?<=[aeiouy])se$", "ne"),
        ("(?<=[uy])kse$", "s"),
        ("([aeiouy])\\1$", "\\1"),
        ("(?<=[^aeiouy])$", "i"),
        ("e$", "i"),
    )
]
_WEAK = {"nk": "ng", "nt": "nn", "mp": "mm", "lt": "ll", "rt": "rr", "ht": "hd", "lk": "l", "rk": "r"}
_WEAK |= {"kk": "k", "pp": "p", "tt": "t", "p": "v", "t": "d", "k": ""}
_GRADES = re.compile("(nk|nt|mp|lt|rt|ht|lk|rk|kk|pp|tt|(?<=[aeiouy])[ptk])([aeiouy]+)$")
#: Marks of stress on Russian vowels, which no spelling has.
_STRESS = re.compile("(?<=[аеиоуыэюя])[\u0300\u0301]+")
#: In Arabic, the article after "to" has no alef.
_TO_THE = re.compile("(?<=(?<!\\w)ل)ل(?=\\w\\w)")
#: A hyphen, a dash, "&" or "/" between two words, with a space on one side or both.
_SPACED_SIGN = re.compile(r"(?<=\w)(?: (?P<one>[-&/]) ?|(?P<other>[-&/]) )(?=\w)")
_JOINING_SIGN = re.compile("[-&/]")
#: Arabic names of two words that are also written as one: "servant of", "father of", "of the religion", "of God".
_TWO_OR_ONE = re.compile("(?<!\\w)(?:[وفبكل]?(?:عبد|[اأ](?:بو|بي|با))(?= \\w\\w)|\\w{2,}(?= (?:الدين|الله)(?!\\w))) ")


def as_written(text: str, *, rule: int = NAME_RULE) -> FoldedText:
    """Return a text folded, with one sign for all apostrophes, one for hyphens, and single spaces, with offsets.

    Examples
    --------
    >>> from hopfuse.text import as_written
    >>> as_written("O’Hara’s \\n Jean\u2011Luc").text
    "o'hara's jean-luc"
    """
    folded = fold_with_offsets(text if text.isascii() else text.translate(_TYPED), rule=rule)
    return _replaced(folded, _SPACES, lambda found: " ") if _NOT_PLAIN.search(folded.text) else folded


def without_signs(written: FoldedText) -> FoldedText:
    """Return a text from :func:`as_written` as it is typed by people who leave out accents and signs, with offsets.

    Apostrophes disappear, and the dots of initials and abbreviations; "u. s. a." is "usa". Hyphens and underscores
    within words become spaces. Other signs remain, because they separate parts of a sentence. The result is the
    argument itself if nothing changes.

    Examples
    --------
    >>> from hopfuse.text import as_written, without_signs
    >>> [without_signs(as_written(text)).text for text in ("St. John's", "U.S.A.", "São-Paulo, 3.5", "The end. So")]
    ['st johns', 'usa', 'sao paulo, 3.5', 'the end. so']
    """
    plain = written if written.text.isascii() else _plain(written)
    if not _LEFT_OUT.search(plain.text):
        return plain
    bare = _replaced(plain, _LEFT_OUT, lambda found: "" if found["none"] or found["last"] else " ")
    return _replaced(bare, _SPACES, lambda found: " ") if _NOT_PLAIN.search(bare.text) else bare


def joined(written: FoldedText) -> FoldedText | None:
    """Return a text from :func:`as_written` without accents and without spaces in names; None if it has no such space.

    Spaces disappear around a hyphen, an en dash, "&" or "/" between two words, and within Arabic names that begin with
    "servant of" or "father of", or end in "of the religion" or "of God".

    Examples
    --------
    >>> from hopfuse.text import as_written, joined
    >>> [joined(as_written(text)).text for text in ("Jean – Luc", "AT & T", "عبد الله")], joined(as_written("a b"))
    (['jean-luc', 'at&t', 'عبدالله'], None)
    """
    text = written.text
    if not (_SPACED_SIGN.search(text) or (not text.isascii() and _TWO_OR_ONE.search(text))):
        return None
    plain = written if text.isascii() else _plain(written)
    closed = _replaced(plain, _SPACED_SIGN, lambda found: found["one"] or found["other"])
    return _replaced(closed, _TWO_OR_ONE, lambda found: found[0][:-1])


def name_spellings(name: str) -> list[str]:
    """Return a name as it is found in the readings of :func:`as_written`, :func:`without_signs` and :func:`joined`.

    Beside the name in these readings, it is found without its other signs, except one of :data:`SIGNS` at its start,
    with its initials joined or apart, without dots, and with spaces in place of apostrophes within words.

    Examples
    --------
    >>> from hopfuse.text import name_spellings
    >>> name_spellings("St. Louis"), name_spellings("J R Ewing"), name_spellings("Oslo, D.C.")
    (['st. louis', 'st louis'], ['j r ewing', 'jr ewing'], ['oslo, d.c.', 'oslo, dc', 'oslo dc', 'oslo d c'])
    """
    if _PLAIN_WORDS.fullmatch(name):
        return [name.lower()]
    written = as_written(name)
    bare = without_signs(written).text
    plain = (written if written.text.isascii() else _plain(written)).text
    spaced, apart = plain.replace("'", ""), _ELISION.sub(" ", plain).replace("'", "")
    sign = written.text.lstrip()[:1]
    forms = (bare, _DOTS.sub("", bare), spaced, apart)
    opened = [" ".join(_OTHER_SIGNS.sub(_space_for, one).split()) for one in forms]
    opened = [sign + one if one and sign in SIGNS else one for one in opened]
    found = [written.text, bare, opened[0], _INITIALS.sub("", opened[0]), *opened[1:]]
    whole = joined(written)
    if whole is not None:
        found.append(whole.text)
    elif _JOINING_SIGN.search(plain):
        found.append(plain)
    return list(dict.fromkeys(one.strip() for one in found if one.strip()))


def _space_for(sign: re.Match[str]) -> str:
    """Return a space for a sign; marks, such as Indic vowels, are no signs."""
    return sign[0] if unicodedata.category(sign[0])[0] == "M" else " "


def cyrillic_cases(bare: FoldedText) -> FoldedText | None:
    """Return a text from :func:`without_signs` with its Cyrillic words without the endings of cases; None if none has.

    An ending is removed if three letters remain.

    Examples
    --------
    >>> from hopfuse.text import as_written, cyrillic_cases, without_signs
    >>> cyrillic_cases(without_signs(as_written("в Москве"))).text
    'в москв'
    """
    if bare.text.isascii() or not _CYRILLIC.search(bare.text):
        return None
    return _replaced(bare, _CYRILLIC_WORD, lambda found: _ENDINGS.sub("", found[0]))


def cyrillic_names(name: str) -> list[str]:
    """Return a name as it is found in the reading of :func:`cyrillic_cases`; none without Cyrillic letters.

    Words in -ай, -ей, -ий and -ой may lose one letter or two, and of a plural in -ы, a genitive in -ов is found.

    Examples
    --------
    >>> from hopfuse.text import cyrillic_names
    >>> cyrillic_names("Москва"), cyrillic_names("Евгений"), cyrillic_names("London")
    (['москв'], ['евген', 'евгени'], [])
    """
    bare = "" if name.isascii() else without_signs(as_written(name)).text.strip()
    if not _CYRILLIC.search(bare):
        return []
    words = [_stems(word) if _CYRILLIC_WORD.fullmatch(word) else [word] for word in bare.split()]
    count = 1
    for own in words:
        count *= len(own)
    if count > _MANY_SPELLINGS:
        words = [own[:1] for own in words]
    return [" ".join(chosen) for chosen in product(*words)]


def finnish_cases(bare: FoldedText) -> FoldedText | None:
    """Return a Finnish question from :func:`without_signs` with its words without the endings of cases, else None.

    The language is told by the words that ask and the function words. Stems are in the weak grade, and end in "i" where
    a case has "e" or a consonant has no vowel: Helsinki, Helsingissä; Lahti, Lahdessa; Sibelius, Sibeliuksen.

    Examples
    --------
    >>> from hopfuse.text import as_written, finnish_cases, finnish_name, without_signs
    >>> finnish_cases(without_signs(as_written("Kuka asui Helsingissä?"))).text, finnish_name("Helsinki")
    ('kua asui helsingi?', 'helsingi')
    """
    if not _FINNISH_CASE.search(bare.text) or "kuka" not in question_words(bare.text):
        return None
    return _replaced(bare, _LATIN_WORD, lambda found: _finnish(_FINNISH_CASE.sub("", found[0])))


def finnish_name(name: str) -> str:
    """Return a name as it is found in the reading of :func:`finnish_cases`.

    Examples
    --------
    >>> from hopfuse.text import finnish_name
    >>> finnish_name("Turku"), finnish_name("New York")
    ('turu', 'new yori')
    """
    bare = without_signs(as_written(name)).text.strip()
    return _LATIN_WORD.sub(lambda found: _finnish(found[0]), bare)


def _finnish(word: str) -> str:
    """Return a Finnish word, without the ending of a case, in the form that all its cases share."""
    for ending, new in _FINNISH_FORMS:
        word = ending.sub(new, word)
    return _GRADES.sub(lambda found: _WEAK[found[1]] + found[2], word)


def _stems(word: str) -> list[str]:
    found = [_ENDINGS.sub("", word)]
    if _IN_SHORT_I.search(word):
        found += [word[:-1], word[:-2]]
    if _IN_PLURAL.search(word):
        found.append(word[:-1] + "ов")
    return list(dict.fromkeys(found))


def _plain(written: FoldedText) -> FoldedText:
    """Return a folded text without accents; each segment by itself, so that offsets hold."""
    text, pieces, start_at, end_at = written.text, list[str](), list[int](), list[int]()
    first = 0
    for at in range(len(text)):
        if written.end_at[at] < 0:
            continue
        piece = _STRESS.sub("", unaccented(text[first : at + 1]))
        if piece:
            inside = [-1] * (len(piece) - 1)
            pieces.append(piece)
            start_at += [written.start_at[first], *inside]
            end_at += [*inside, written.end_at[at]]
        first = at + 1
    return _replaced(FoldedText("".join(pieces), start_at, end_at), _TO_THE, lambda found: "ال")


def _replaced(folded: FoldedText, pattern: re.Pattern[str], new: Callable[[re.Match[str]], str]) -> FoldedText:
    """Replace pieces of a folded text; a new piece that keeps the beginning of the old one has its offsets.

    A piece in the group "last" belongs to what is before it, as the last dot of "U.S.A.".
    """
    text, pieces, start_at, end_at, last = folded.text, list[str](), list[int](), list[int](), 0
    for found in pattern.finditer(text):
        start, end = found.span()
        piece = new(found)
        pieces += [text[last:start], piece]
        start_at += folded.start_at[last:start]
        end_at += folded.end_at[last:start]
        if piece:
            kept = 0 if not text.startswith(piece, start, end) else len(piece) - 1
            start_at += folded.start_at[start : start + kept]
            end_at += folded.end_at[start : start + kept]
            more = len(piece) - kept - 1
            start_at += [folded.start_at[start + kept], *[-1] * more]
            end_at += [*[-1] * more, folded.end_at[end - 1]]
        elif found.lastgroup == "last" and end_at:
            end_at[-1] = folded.end_at[end - 1]
        last = end
    pieces.append(text[last:])
    start_at += folded.start_at[last:]
    end_at += folded.end_at[last:]
    return FoldedText("".join(pieces), start_at, end_at)


# ---- Where a name may stand ----

_HAN, _KATAKANA, _HIRAGANA = characters(["Han"]), "ァ-ヺー-ヿㇰ-ㇿ", "ぁ-ゖ\u3099\u309aゝ-ゟ"
#: Letters of scripts without spaces, and how many of them a name inside a run of its own script must have.
_RUNS = [
    (re.compile(f"[{_HAN}]"), 2),
    (re.compile(f"[{_HIRAGANA}]"), 3),
    (re.compile(f"[{_KATAKANA}]"), 0),
    *((re.compile(f"[{characters([script])}]"), 3) for script in ("Thai", "Lao", "Khmer", "Burmese")),
]
_NEVER = 0
#: Vowels that are written before or after the consonant of their syllable, and signs that join consonants.
_OPENS_SYLLABLE, _CLOSES_SYLLABLE = frozenset("เแโใไເແໂໃໄ"), frozenset("ะาำๅຯະາຳๆ")
_JOINS = frozenset("\u17d2\u1039")
#: The vowel "am" of Thai and Lao, one character that folds to two.
_ONE_VOWEL = re.compile("\u0e4d\u0e32|\u0ecd\u0eb2")
_SILENCED = re.compile("[\u1000-\u102a\u103f][\u1037]?[\u103a\u1039]")
_PARTICLE = "|".join(
    (
        *(
            "은",
            "는",
            "이",
            "가",
            "을",
            "를",
            "의",
            "에",
            "에서",
            "에게",
            "에게서",
            "에는",
            "에서는",
            "에서의",
            "께",
            "께서",
        ),
        *(
            "와",
            "과",
            "도",
            "로",
            "으로",
            "로서",
            "으로서",
            "로써",
            "부터",
            "까지",
            "만",
            "보다",
            "처럼",
            "마다",
            "조차",
        ),
        *(
            "이나",
            "나",
            "이란",
            "란",
            "이라는",
            "라는",
            "이랑",
            "랑",
            "하고",
            "이며",
            "며",
            "이고",
            "이다",
            "입니다",
            "이에요",
        ),
    )
)
_PARTICLES = re.compile(rf"(?:{_PARTICLE})(?:은|는|도|만|의)?(?!\w)")
_ARABIC, _HEBREW = re.compile(f"[{characters(['Arabic'])}]"), re.compile(f"[{characters(['Hebrew'])}]")
_PREFIX = re.compile(f"(?<!\\w)(?:[{characters(['Arabic'])}]+|[{characters(['Hebrew'])}]+)$")
#: And, so; in, as, to; the. Names of three letters follow "and", "in" and "to": more often than other words do.
_ARABIC_PREFIX = re.compile("(?<!\\w)(?:[وف]?[بكل]?ال|[وف][بكل]?|[بكل])$")
_ARABIC_SHORT_PREFIX = re.compile("(?<!\\w)(?:و?[بل]|و)$")
_HEBREW_PREFIX = re.compile("(?<!\\w)(?:[וש]{0,2}[הבכלמ]|[וש]{1,2})$")
_LONGEST_PREFIX = 4
_LEAST_AFTER_PREFIX, _LEAST_AFTER_SHORT_PREFIX = 4, 3
_LEAST_BEFORE_PARTICLE = 2


def may_stand(folded: str, start: int, end: int) -> bool:
    """Return whether a name may stand at a place of a folded text.

    It begins and ends at a word boundary, or:

    - beside a character of another script if one of the two is of a script without spaces: トムは, Pythonを;
    - inside a run of Han with at least two characters, of Hiragana, Thai, Lao, Khmer or Burmese with at least three,
      but not within a syllable, and never inside a run of Katakana, which is one word;
    - before a Korean particle, which a second one may follow, if it has at least two characters: 서울의, 서울에서는;
    - after the Arabic prefixes و ف ب ك ل ال or the Hebrew ו ש ה ב כ ל מ, from the head of the word, if the name has at
      least four letters: والقاهرة, בירושלים. After the Arabic و ب ل also if it has three: ومصر.

    A single Han character needs a word boundary on both sides, such as a space, a quote or a comma: 「沪」.

    Examples
    --------
    >>> from hopfuse.text import may_stand
    >>> may_stand("艾瑞克能", 0, 3), may_stand("フランス", 1, 3), may_stand("서울의", 0, 2), may_stand("artist", 0, 3)
    (True, False, True, False)
    """
    opens, ends = not splits_word(folded, start), not splits_word(folded, end)
    if opens and ends:
        return True
    size = end - start - len(_ONE_VOWEL.findall(folded, start, end))
    if size == 1 and _is_of(_RUNS[0][0], folded, start):
        return False
    if not (opens or _may_cut(folded, start, size) or _after_prefix(folded, start, end)):
        return False
    before_particle = size >= _LEAST_BEFORE_PARTICLE and _PARTICLES.match(folded, end) is not None
    return ends or before_particle or _may_cut(folded, end, size)


def _may_cut(folded: str, cut: int, size: int) -> bool:
    """Return whether a name of a size may begin or end at a cut inside a run of letters."""
    before, after = folded[cut - 1], folded[cut]
    if _joined(before, after) or _SILENCED.match(folded, cut):
        return False
    for run, least in _RUNS:
        one, two = _is_of(run, folded, cut - 1), _is_of(run, folded, cut)
        if one and two:
            return least != _NEVER and size >= least
        if one or two:
            return True
    return False


def _joined(before: str, after: str) -> bool:
    """Return whether two characters are of one syllable."""
    if unicodedata.category(after)[0] == "M" or after in _CLOSES_SYLLABLE or after in "々ー":
        return True
    return before in _OPENS_SYLLABLE or before in _JOINS


def _is_of(run: re.Pattern[str], folded: str, at: int) -> bool:
    while at > 0 and unicodedata.category(folded[at])[0] == "M" and not run.match(folded[at]):
        at -= 1
    return run.match(folded[at]) is not None


def prefix_before(text: str, start: int) -> str:
    """Return the letters before a place in a word of Arabic or Hebrew, in which prefixes follow one another.

    Examples
    --------
    >>> from hopfuse.text import prefix_before
    >>> prefix_before("مصر ومصر", 5), prefix_before("مصر ومصر", 4)
    ('و', '')
    """
    found = _PREFIX.search(text[max(0, start - _LONGEST_PREFIX - 1) : start])
    return "" if found is None else found[0]


def _after_prefix(folded: str, start: int, end: int) -> bool:
    letters = sum(map(str.isalpha, folded[start:end]))
    if letters < _LEAST_AFTER_SHORT_PREFIX:
        return False
    before, is_long = folded[max(0, start - _LONGEST_PREFIX - 1) : start], letters >= _LEAST_AFTER_PREFIX
    if _ARABIC.match(folded, start):
        return (_ARABIC_PREFIX if is_long else _ARABIC_SHORT_PREFIX).search(before) is not None
    return is_long and _HEBREW.match(folded, start) is not None and _HEBREW_PREFIX.search(before) is not None
