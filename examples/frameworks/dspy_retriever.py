"""Search an index from DSPy: by one question, by several at once, and as the retrieval model of ``dspy.Retrieve``.

Run ``python examples/frameworks/dspy_retriever.py`` with hopfuse's extra ``dspy`` installed.
"""

import dspy
import hopfuse as hf
from hopfuse.adapters.dspy import HopfuseRetriever

index = hf.Index.build(
    passages=[
        {"id": "ada", "text": "Ada Lovelace wrote notes on the Analytical Engine.", "metadata": {"year": 1843}},
        {"id": "babbage", "text": "Charles Babbage designed the Analytical Engine.", "metadata": {"year": 1837}},
        {"id": "hopper", "text": "Grace Hopper wrote one of the first compilers.", "metadata": {"year": 1952}},
    ]
)
retriever = HopfuseRetriever(index, k=1)  # or the URL of hopfuse serve, "http://localhost:8080"

print(retriever("Who designed the engine?").passages[0])
for prediction in retriever(["Who wrote notes?", "Who wrote compilers?"], allow={"year__ge": 1840}):
    print(f"{prediction.ids[0]}, score {prediction.scores[0]:.3f}")

dspy.configure(rm=retriever.rm)
print(dspy.Retrieve(k=1)("Who wrote compilers?").passages[0])
