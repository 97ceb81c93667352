"""Reworded questions: paraphrases, aliases, and valid rewritings."""

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.diagnose import Rewriting, paraphrase, substitute_aliases
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

RULES = ("polite", "what_which", "contraction", "no_question_mark", "first_letter")

# ---- Paraphrases ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "question", "expected"),
    [
        ("what_which", "Which city is it?", "What city is it?"),
        ("what_which", "What film stars Ada?", "Which film stars Ada?"),
        ("what_which", "in which year?", "in what year?"),
        ("what_which", "In What Year", "In What Year"),  # a title
        ("what_which", "What is it?", "What is it?"),
        ("what_which", "Which of both?", "Which of both?"),
        ("what_which", "What links them?", "What links them?"),
        ("what_which", "The band which city fans like?", "The band which city fans like?"),
        ("what_which", "What cityscape?", "What cityscape?"),
        ("contraction", "Who is it?", "Who's it?"),
        ("contraction", "What is not it, and is not that?", "What isn't it, and is not that?"),
        ("contraction", "Ada did not write what?", "Ada didn't write what?"),
        ("contraction", "Ada knows who is it?", "Ada knows who is it?"),
        ("contraction", "What is", "What is"),
        ("contraction", "What Is Life", "What Is Life"),
        ("no_question_mark", "Who? ", "Who"),
        ("no_question_mark", "Who ?", "Who"),
        ("no_question_mark", "Who", "Who"),
        ("first_letter", "Who?", "who?"),
        ("first_letter", "who?", "Who?"),
        ("first_letter", "NASA sent what?", "NASA sent what?"),
        ("first_letter", "A man sent what?", "a man sent what?"),
        ("first_letter", "5 men", "5 men"),
        ("first_letter", "I was where?", "I was where?"),
        ("first_letter", "I'm where?", "I'm where?"),
        ("first_letter", "ßa", "ßa"),
        ("first_letter", "\ud800?", "\ud800?"),
        ("no_question_mark", "?", "?"),
        ("polite", " ", " "),
    ],
)
def test_rules(rule, question, expected):
    made = paraphrase([question], rules=[rule])
    assert made.rewritten == (expected,)
    assert made.rules == ("" if question == expected else rule,)


def test_a_prefix_comes_before_the_question():
    questions = [f"Who is number {at}?" for at in range(40)]
    made = paraphrase(questions, rules=["polite"])
    prefixes = {text.removesuffix(question) for question, text in zip(questions, made.rewritten, strict=True)}
    assert prefixes == {"Please tell me: ", "Could you tell me: ", "I would like to know: "}


def test_every_rule_is_drawn_and_the_mentions_stay():
    questions = [f"Which city is not number {at}?" for at in range(100)]
    made = paraphrase(questions, [["number"]] * 100)
    assert set(made.rules) == set(RULES)
    assert made.changed.all()
    assert made.rewritten_entities is made.entities


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=20), max_size=5), st.permutations(RULES))
def test_a_paraphrase_depends_on_its_question_alone(questions, rules):
    whole = paraphrase(questions, rules=rules)
    alone = [paraphrase([question], rules=rules) for question in questions]
    assert whole.rewritten == tuple(one.rewritten[0] for one in alone)
    assert [bool(rule) for rule in whole.rules] == whole.changed.tolist()


@pytest.mark.parametrize("rules", [[], ["shorter"], "polite"])
def test_unknown_rules_are_refused(rules):
    with refused(InputError, "choice", "rules"):
        paraphrase(["Who?"], rules=rules)


# ---- Aliases --------------------------------------------------------------------------------------------------------

NAMES = ["New York City", "Ada Lovelace", "Ford", "Ford", "Paris", "", "Lutetia"]
ALIASES = {0: ["NYC", "new york city", "Big Apple"], 1: ["The Countess"], 2: ["Gerald Ford"], 4: ["Lutetia", " "]}


def index(aliases=ALIASES):
    given = {entity: [name for name in names if name.strip()] for entity, names in aliases.items()}
    return hf.Index.build(passages=[{"text": "-"}], entities=NAMES, aliases=given)


def test_an_alias_for_a_name_and_a_name_for_an_alias():
    made = substitute_aliases(["Is Ada Lovelace here?", "is the COUNTESS here?", "Is Ada here?"], index())
    assert made.rewritten == ("Is The Countess here?", "is Ada Lovelace here?", "Is Ada here?")
    assert made.rules == ("alias", "alias", "")
    assert made.entities is made.rewritten_entities is None


def test_the_longest_mention_is_replaced_everywhere_by_one_name():
    questions = [f"{at}: is New York City, the big apple, as big as new york city?" for at in range(20)]
    made = substitute_aliases(questions, index())
    assert set(made.rewritten) == {f"{at}: is NYC, the NYC, as big as NYC?" for at in range(20)}


def test_another_spelling_is_the_same_name():
    made = substitute_aliases([f"{at} NYC?" for at in range(40)], index())
    names = {text.removesuffix("?").split(" ", 1)[1] for text in made.rewritten}
    assert names == {"New York City", "new york city", "Big Apple"}
    only = {0: ["The New York City", "new york city"]}
    assert substitute_aliases(["New York City?"], index(only)).rules == ("",)


def test_what_several_entities_are_called_is_left_alone():
    made = substitute_aliases(["Ford?", "Lutetia?", "Paris?", "Gerald Ford?"], index())
    assert made.rewritten == ("Ford?", "Lutetia?", "Paris?", "Gerald Ford?")


def test_one_of_several_entities_is_renamed():
    questions = [f"{at}: Ada Lovelace in NYC?" for at in range(40)]
    made = substitute_aliases(questions, index())
    kinds = {(" Ada" in text, " NYC" in text) for text in made.rewritten}
    assert kinds == {(False, True), (True, False)}
    again = substitute_aliases(questions[::-1], index())
    assert again.rewritten == made.rewritten[::-1]


def test_mentions_follow_the_question():
    mentions = ["the Ada Lovelace Prize", "Ada", "Lovelace", "Babbage", "Ada Lovelace", "Adage"]
    made = substitute_aliases(["Did Babbage or Ada Lovelace win it?", "Who is Ford?"], index(), [mentions, ["Ford"]])
    assert made.rewritten[0] == "Did Babbage or The Countess win it?"
    assert list(made.rewritten_entities) == [["the The Countess Prize", "The Countess", "Babbage", "Adage"], ["Ford"]]


def test_a_name_is_put_in_letter_by_letter():
    made = substitute_aliases(["Who is C++ (1)?"], hf.Index.build(
        passages=[{"text": "-"}], entities=["C++ (1)"], aliases={0: [r"C\1 \g<0>"]}
    ), [["C++ (1)"]])  # fmt: skip
    assert made.rewritten == (r"Who is C\1 \g<0>?",)
    assert made.rewritten_entities == [[r"C\1 \g<0>"]]


# ---- Abbreviations and synonyms -------------------------------------------------------------------------------------

PLACES = ["Keizer", "Keizer area", "Bubye River", "Bubi River", "1973", "1937", "IMF", "Germany", "Federal Republic"]
JOINED = [(0, 1, 1.0), (2, 3, 0.96), (4, 5, 1.0), (7, 8, 0.9)]
TEXTS = [
    "The International Monetary Fund (IMF) met.",
    "A Central Institute of India (India).",
    "Pens (INK), inks (INK).",
]


def memory(*, names=PLACES, texts=TEXTS, joined=JOINED):
    """Return entities with synonym edges, and a passage that mentions them all, by edges of another type."""
    first = len(texts)
    edges = [{"src": first + a, "dst": first + b, "type": "synonym", "weight": w} for a, b, w in joined]
    edges += [{"src": 0, "dst": first + e, "type": "context", "weight": 1.0} for e in range(len(names))]
    edges += [{"src": first, "dst": first + len(names) - 1, "type": "relation", "weight": 5.0}]
    return hf.Index.build(passages=[{"text": text} for text in texts], entities=list(names), graph=edges)


@pytest.mark.parametrize(
    ("question", "expected", "rule"),
    [
        ("Is Bubye River long?", "Is Bubi River long?", "synonym"),
        ("Is the bubi river long?", "Is the Bubye River long?", "synonym"),
        ("Where is Keizer?", "Where is Keizer?", ""),  # the other says more
        ("Who won in 1973?", "Who won in 1973?", ""),  # another number
        ("Where is Germany?", "Where is Germany?", ""),  # an edge of 0.9
        ("What is IMF?", "What is International Monetary Fund?", "abbreviation"),
        ("What is the imf?", "What is the imf?", ""),  # other letters
        ("Does Bubye River join Bubi River?", "Does Bubye River join Bubi River?", ""),
    ],
)
def test_the_replacements_of_an_entity(question, expected, rule):
    made = substitute_aliases([question], memory())
    assert (made.rewritten, made.rules) == ((expected,), (rule,))


def test_a_lower_weight_takes_more_and_none_takes_aliases_alone():
    questions = ["Where is Germany?", "What is IMF?"]
    assert substitute_aliases(questions, memory(), synonyms=0.9).rules == ("synonym", "abbreviation")
    assert substitute_aliases(questions, memory(), synonyms=None).rules == ("", "")


def test_synonyms_keep_aliases_and_mentions_follow():
    asked = [f"{at}: is Bubye River long?" for at in range(40)]
    aliased = hf.Index.build(
        passages=[{"text": "-"}],
        entities=["Bubye River", "Bubi River"],
        aliases={0: ["Bubiana"]},
        graph=[{"src": 1, "dst": 2, "type": "synonym"}],
    )
    made = substitute_aliases(asked, aliased, [["Bubye River"]] * 40)
    assert set(made.rules) == {"alias", "synonym"}
    assert {mentions[0] for mentions in made.rewritten_entities} == {"Bubiana", "Bubi River"}


def test_an_abbreviation_back_and_those_left_out():
    names = ["International Monetary Fund", "India", "Pens", "inks"]
    made = substitute_aliases(["International Monetary Fund?", "India?", "Pens?"], memory(names=names, joined=[]))
    assert made.rewritten == ("IMF?", "India?", "Pens?")
    twice = [*TEXTS, "The Indian Mutual Fund (IMF) met."]
    assert substitute_aliases(["IMF?"], memory(texts=twice)).rules == ("",)
    assert substitute_aliases(["IMF?"], memory(names=[*PLACES, "International Monetary Fund"])).rules == (
        "abbreviation",
    )
    several = [*PLACES, "International Monetary Fund", "International Monetary Fund"]
    assert substitute_aliases(["IMF?"], memory(names=several)).rules == ("",)


def test_edges_of_one_type_or_without_weights():
    for joined in ([(2, 3, 1.0)], [(3, 2, 1.0), (2, 2, 1.0)]):
        edges = [{"src": 1 + a, "dst": 1 + b, "type": "synonym", "weight": w} for a, b, w in joined]
        alone = hf.Index.build(passages=[{"text": "-"}], entities=PLACES, graph=edges)
        assert substitute_aliases(["Bubye River?"], alone).rewritten == ("Bubi River?",)


@pytest.mark.parametrize("synonyms", [-0.1, float("nan"), float("inf"), True, "0.9", 10**400])
def test_a_weight_is_a_number(synonyms):
    with refused(InputError, "range", "synonyms"):
        substitute_aliases(["?"], memory(), synonyms=synonyms)


@pytest.mark.parametrize("synonyms", [np.float32(0.9), np.int64(1), 0])
def test_a_weight_may_be_numpys(synonyms):
    assert substitute_aliases(["?"], memory(), synonyms=synonyms).rewritten == ("?",)


# ---- Rewritings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rewrite", [paraphrase, lambda questions, *more: substitute_aliases(questions, index(), *more)]
)
def test_questions_are_strings_with_a_row_of_mentions_each(rewrite):
    with refused(InputError, "type", "questions"):
        rewrite("Who?")
    with refused(InputError, "type", "questions[1]", given="int"):
        rewrite(["Who?", 4])
    with refused(InputError, "length", "entities", given=1, allowed="2 questions"):
        rewrite(["Who?", "When?"], [["x"]])
    assert len(rewrite([])) == 0


def test_a_rewriting_that_is_given():
    made = Rewriting(["a", "b"], ["a", "c"])
    assert (made.questions, made.rules, repr(made)) == (
        ("a", "b"),
        ("", "rewritten"),
        "Rewriting(questions=2, changed=1)",
    )
    assert Rewriting(["a"], ["a"], entities=[["x"]], rewritten_entities=[["y"]]).changed.tolist() == [True]
    with refused(InputError, "length", "rewritten"):
        Rewriting(["a", "b"], ["c"])
    with refused(InputError, "length", "rules", given=1, allowed="2 questions"):
        Rewriting(["a", "b"], ["c", "d"], ["x"])
    with refused(InputError, "unused", "rewritten_entities", other="entities"):
        Rewriting(["a"], ["b"], rewritten_entities=[["x"]])
