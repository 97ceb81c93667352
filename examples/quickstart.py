"""Index passages and search them.

Run ``python examples/quickstart.py`` with hopfuse's extra ``demo`` installed.
"""

import hopfuse as hf
from hopfuse.encoders import WordLlamaEncoder

passages = [
    "Ada Lovelace wrote the first program, for Babbage's engine.",
    "Charles Babbage designed the Analytical Engine in London.",
    "The Thames flows through London to the North Sea.",
    "Grace Hopper wrote one of the first compilers.",
]

encoder = WordLlamaEncoder()
index = hf.Index.from_texts(passages, encoder=encoder)
retriever = hf.Retriever(index)
found = retriever.search("Which river flows through the city where the Analytical Engine was designed?", k=2)

for hit in found[0]:
    print(f"{hit.score:.3f}  {hit.text}")
