"""Function words of English: articles, pronouns, auxiliaries, prepositions, conjunctions."""

from __future__ import annotations

_DETERMINERS = """
a an the this these those my our your his her its their what whose
every each all any some no such same other another own most much many few less least more several enough
"""
_AUXILIARIES = """
am is are was were be been being do does did doing done have has had having
can could may might must shall should will would ought
"""
_PREPOSITIONS = """
aboard about above across after against along alongside amid among amongst around as at before behind below beneath
beside besides between beyond by despite down during except for from in inside into like near of off on onto opposite
out outside over past per since than through throughout till to toward towards under underneath until up upon versus via
with within without
"""
_OTHERS = """
that i me mine myself we us ours ourselves you yours yourself yourselves he him himself she hers herself
it itself they them theirs themselves one ones oneself
who whom which when where why how whoever whatever whichever whenever wherever however
and but or nor so yet if unless although though because whereas while whether
not neither either both only just also too very
here there then now ever never again once still already always often
anybody anyone anything everybody everyone everything nobody nothing none somebody someone something
isn't aren't wasn't weren't don't doesn't didn't haven't hasn't hadn't can't couldn't won't wouldn't shouldn't
please tell give show list name else
"""

#: Words that precede a noun and show that it is not a name: articles, possessives, quantifiers. "That" and "which" are
#: not among them, because they are relative pronouns too.
DETERMINERS = frozenset(_DETERMINERS.split())
AUXILIARIES = frozenset(_AUXILIARIES.split())
PREPOSITIONS = frozenset(_PREPOSITIONS.split())
#: English function words, lower case: articles, pronouns, question words, auxiliary verbs, prepositions, conjunctions,
#: quantifiers and the most frequent adverbs; and the verbs that a question begins with where it is a request.
ENGLISH = DETERMINERS | AUXILIARIES | PREPOSITIONS | frozenset(_OTHERS.split())
