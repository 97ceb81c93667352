"""Function words of English: articles, pronouns, auxiliaries, prepositions, conjunctions."""

from __future__ import annotations

_ENGLISH = """
a an the this that these those
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
it its itself they them their theirs themselves one ones oneself
who whom whose which what when where why how whoever whatever whichever whenever wherever however
am is are was were be been being do does did doing done have has had having
can could may might must shall should will would ought
aboard about above across after against along alongside amid among amongst around as at before behind below beneath
beside besides between beyond by despite down during except for from in inside into like near of off on onto opposite
out outside over past per since than through throughout till to toward towards under underneath until up upon versus via
with within without
and but or nor so yet if unless although though because whereas while whether
no not neither either both each every all any some none such same other another else only just also too very more most
much many few less least several enough own
there here then now ever never again once still already always often
anybody anyone anything everybody everyone everything nobody nothing somebody someone something
isn't aren't wasn't weren't don't doesn't didn't haven't hasn't hadn't can't couldn't won't wouldn't shouldn't
please tell give show list name
"""

#: English function words, lower case: articles, pronouns, question words, auxiliary verbs, prepositions, conjunctions,
#: quantifiers and the most frequent adverbs; and the verbs that a question begins with where it is a request.
ENGLISH = frozenset(_ENGLISH.split())
