"""Search an index from LangChain: by one question, by a batch, and among some passages only.

Run ``python examples/frameworks/langchain_retriever.py`` with hopfuse's extra ``langchain`` installed.
"""

import hopfuse as hf
from hopfuse.adapters.langchain import HopfuseRetriever
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

index = hf.Index.build(
    passages=[
        {"id": "ada", "text": "Ada Lovelace wrote notes on the Analytical Engine.", "metadata": {"year": 1843}},
        {"id": "babbage", "text": "Charles Babbage designed the Analytical Engine.", "metadata": {"year": 1837}},
        {"id": "hopper", "text": "Grace Hopper wrote one of the first compilers.", "metadata": {"year": 1952}},
    ]
)
retriever = HopfuseRetriever(source=index, k=1)  # or the URL of hopfuse serve, "http://localhost:8080"

for document in retriever.invoke("Who designed the engine?"):
    print(f"{document.id}: {document.page_content}")

for documents in retriever.batch(["Who wrote notes?", "Who wrote compilers?"], allow={"year__ge": 1840}):
    print(f"{documents[0].id}, score {documents[0].metadata['score']:.3f}")

prompt = ChatPromptTemplate.from_template("Answer from this alone: {context}\n{question}")
texts = RunnableLambda(lambda documents: "\n".join(one.page_content for one in documents))
chain = {"context": retriever | texts, "question": RunnablePassthrough()} | prompt  # | your chat model
print(chain.invoke("Who designed the engine?").messages[0].content)
