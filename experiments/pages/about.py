"""Describe the sets of questions, and name the graphs and rankings as a reader does."""

from __future__ import annotations

from dataclasses import dataclass

SEVERAL, ONE, CONVERSATION, ENTITIES = "several hops", "one passage", "conversation", "entities"
GRAPHS = {"folder": "own graph", "spacy": "spaCy's graph", "words": "graph of words"}
#: Rankings that do not read the graph, and those that do.
WITHOUT_GRAPH = {"dense": "dense: vectors alone", "words": "words: BM25 alone", "plain-hybrid": "plain hybrid"}
WITH_GRAPH = {
    "graph-else-dense": "the walk alone",
    "guided-walk+words": "GuidedWalk, the default",
    "guided-walk": "GuidedWalk without BM25",
    "phase-graph+words": "PhaseGraph",
    "hybrid-rrf": "HybridRRF",
    "policy-rag": "PolicyRAG",
}
DEFAULT, PLAIN = "guided-walk+words", "plain-hybrid"


@dataclass(frozen=True)
class Set:
    """A set of questions, or several cuts of one: its page, what it asks, and the licence of shared data."""

    page: str
    title: str
    kind: str
    folders: tuple[str, ...]
    about: str
    licence: str = ""


SETS = (
    Set(
        "hotpotqa",
        "HotpotQA",
        SEVERAL,
        ("hotpotqa",),
        """Questions that need two paragraphs of Wikipedia, from the development set of HotpotQA (Yang et al., EMNLP
        2018). The order of the hops is known for some questions, by a rule; figures of the last hop leave out the
        others.""",
        "CC BY-SA 4.0",
    ),
    Set(
        "musique-train",
        "MuSiQue",
        SEVERAL,
        ("musique-train",),
        """Questions of two to four hops over paragraphs of Wikipedia, from the training set of MuSiQue (Trivedi et al.,
        TACL 2022). The order of the hops is known for all of them.""",
        "CC BY 4.0",
    ),
    Set(
        "2wiki-dev300",
        "2WikiMultihopQA",
        SEVERAL,
        ("2wiki-dev300",),
        """Questions over paragraphs of Wikipedia, from the development set of 2WikiMultihopQA (Ho et al., COLING 2020):
        compositions, comparisons, both together, and inferences. The order of the hops is known where there is one.""",
        "Apache 2.0",
    ),
    Set(
        "metaqa",
        "MetaQA",
        ENTITIES,
        ("metaqa",),
        """Questions of one to three hops over a graph of films (Zhang et al., AAAI 2018): 129,235 facts, 43,235
        entities, 9 relations. Answers are entities.""",
        "CC BY 3.0",
    ),
    Set(
        "office",
        "The Office",
        CONVERSATION,
        ("office-whole",),
        """Questions about what was said in a season of a series. A passage is a turn ("Ann: …"), a document an episode.
        A language model wrote the questions from fourteen episodes, with the turns that answer them. None was looked up
        by retrieval, and each was read against its turns. In some episodes, the package mixes the turns of different
        scenes.""",
    ),
    Set(
        "propellor",
        "Propellor's forum",
        CONVERSATION,
        ("propellor-whole",),
        """What a program's users asked in its forum and tracker. A passage is a reply, a document a page. The question
        is the title with the longest question of the post, or a later question after the title; the asking post is left
        out. The maintainer's first answer counts as right, or the first reply if he gave none. Other replies may answer
        too, so the figures are lower bounds.""",
    ),
    Set("perl", "Perl's FAQ", ONE, ("perl-whole", "perl-equal"), "Headings of Perl's FAQ, over its manual pages."),
    Set(
        "anarchism",
        "An Anarchist FAQ",
        ONE,
        ("anarchism-whole",),
        """Headings that are questions, over a long text about politics and history. Its passages are by far the longest
        of all sets.""",
    ),
    Set(
        "debian",
        "Debian's documentation",
        ONE,
        ("debian-whole", "debian-equal"),
        "Headings of Debian's FAQs, handbooks and policies.",
    ),
    Set(
        "manuals",
        "Manuals of programs",
        ONE,
        ("manuals-whole", "manuals-equal"),
        "Headings of the manuals of SQLite, the Apache HTTP server and Git.",
    ),
    Set(
        "words",
        "A dictionary",
        ONE,
        ("words-whole",),
        """Definitions of WordNet. The passage to find is the entry of the defined word in Webster's dictionary of
        1913.""",
    ),
)
