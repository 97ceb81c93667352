"""Search an index from a Haystack pipeline that is saved and loaded as YAML.

Run ``python examples/frameworks/haystack_retriever.py`` with hopfuse's extra ``haystack`` installed.
"""

import tempfile

import hopfuse as hf
from haystack import Pipeline
from haystack.components.builders import PromptBuilder
from hopfuse.adapters.haystack import HopfuseRetriever

passages = [
    {"id": "ada", "text": "Ada Lovelace wrote notes on the Analytical Engine.", "metadata": {"year": 1843}},
    {"id": "babbage", "text": "Charles Babbage designed the Analytical Engine.", "metadata": {"year": 1837}},
    {"id": "hopper", "text": "Grace Hopper wrote one of the first compilers.", "metadata": {"year": 1952}},
]
with tempfile.TemporaryDirectory() as folder:
    hf.Index.build(passages=passages).save(folder)

    pipeline = Pipeline()
    # The folder can also be the URL of hopfuse serve, "http://localhost:8080".
    pipeline.add_component("retriever", HopfuseRetriever(folder, top_k=1))
    pipeline.add_component("prompt", PromptBuilder("{{ documents[0].content }}\nQuestion: {{ question }}"))
    pipeline.connect("retriever.documents", "prompt.documents")

    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["hopfuse.adapters.haystack"])
    question = "Who designed the engine?"
    print(loaded.run({"retriever": {"query": question}, "prompt": {"question": question}})["prompt"]["prompt"])

    late = {"field": "meta.year", "operator": ">=", "value": 1840}
    for document in loaded.get_component("retriever").run("Who wrote notes?", filters=late)["documents"]:
        print(f"{document.score:.3f}  {document.content}")
