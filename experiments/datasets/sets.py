"""The data sets: where each comes from, its licence, and what its folder is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..corpora.__main__ import SETS as CORPORA

#: The commit of https://github.com/tsafavi/codex whose files have the recorded checksums.
CODEX = "3132e426c2a6b643b70bad679905a3a6270be440"
HIPPORAG = "https://github.com/OSU-NLP-Group/HippoRAG"


@dataclass(frozen=True)
class DataSet:
    """A public data set and the folder that is made from it.

    Attributes
    ----------
    name, about, licence, home : str
        The folder's name, what it has, the licence of the data, and the address of its authors' page.
    layout : str
        Which transformation makes the folder: a key of ``build.QUESTIONS`` or ``build.GRAPHS``.
    raw : dict of file name to what it is
        The files to download; the last parts of paths where they are in folders.
    downloads : dict of file name to address
        Those that ``--fetch`` downloads. The other homes need a browser, a client of their own or an archive.
    by_hand : str
        What to do instead.
    used_for : str
        Programs that read the folder.
    not_made : dict of file name to the reason
        Files of the recorded folder that cannot be made from the public files.
    """

    name: str
    about: str
    licence: str
    home: str
    layout: str
    raw: Mapping[str, str]
    used_for: str
    by_hand: str
    downloads: Mapping[str, str] = field(default_factory=dict)
    not_made: Mapping[str, str] = field(default_factory=dict)


_EXTRACTED = (
    "read by spaCy with a program that is not kept; --graph makes another graph in the same form, with which figures "
    "differ"
)
_GRAPH = dict.fromkeys(("graph/nodes.tsv", "graph/edges.tsv", "graph/facts.tsv", "query_entities.jsonl"), _EXTRACTED)
_COUNTED = {**_GRAPH, "graph/stats.json": _EXTRACTED}
_ASKED = "experiments.side_by_side, tuned, guided, fusion, quality, readers, similarity, seeds, ablations"


def _musique(name: str, about: str, used_for: str, not_made: Mapping[str, str]) -> DataSet:
    return DataSet(
        name,
        about,
        "CC BY 4.0",
        "https://github.com/StonyBrookNLP/musique",
        "musique",
        {"musique_ans_v1.0_train.jsonl": "the training questions, with 20 paragraphs each"},
        used_for,
        "download_data.sh of that repository downloads musique_v1.0.zip from Google Drive and unpacks it; "
        "data/musique_ans_v1.0_train.jsonl is the file",
        not_made=not_made,
    )


SETS = {
    one.name: one
    for one in (
        DataSet(
            "hotpotqa",
            "6,694 passages of Wikipedia and 334 dev questions of two hops",
            "CC BY-SA 4.0",
            "https://hotpotqa.github.io",
            "hotpot",
            {"hotpot_dev_distractor_v1.json": "7,405 dev questions, with ten paragraphs each"},
            f"the graph and the vectors of bench, the service's load test; {_ASKED}",
            "https://github.com/hotpotqa/hotpot links the file; download it with a browser if the address is refused",
            {
                "hotpot_dev_distractor_v1.json": (
                    "http://curtis.ml.cmu.edu/datasets/hotpot/hotpot_dev_distractor_v1.json"
                )
            },
            _COUNTED,
        ),
        DataSet(
            "2wiki-dev300",
            "6,119 passages of Wikipedia and 300 dev questions of two and four hops",
            "Apache 2.0",
            "https://github.com/Alab-NII/2wikimultihop",
            "2wiki",
            {
                "2wikimultihopqa.json": "1,000 dev questions, with ten paragraphs each, as HippoRAG chose them",
            },
            _ASKED,
            (
                f"reproduce/dataset/2wikimultihopqa.json of {HIPPORAG}, or dev.json of the archive that the authors' "
                "page links, under this name. The passages are 2wikimultihopqa_corpus.json beside it, in its order"
            ),
            {},
            _GRAPH,
        ),
        _musique(
            "musique-train",
            "7,890 passages of Wikipedia and 299 training questions of two to four hops",
            _ASKED,
            {**_COUNTED, "graph/entity_emb.f16.npy": "vectors of the names of the recorded graph"},
        ),
        _musique(
            "musique-openie",
            "1,890 passages and 100 questions of MuSiQue, with names and facts that a language model read",
            "experiments.side_by_side; tests of the reader of OpenIE files",
            {"openie.jsonl": "read by a language model whose name is not recorded; `hopfuse build` reads other files"},
        ),
        DataSet(
            "metaqa",
            "129,235 facts about films, and 39,138 dev questions of one to three steps",
            "CC BY 3.0",
            "https://github.com/yuyuz/MetaQA",
            "metaqa",
            {
                "kb.txt": "facts, head|relation|tail",
                "entity/kb_entity_dict.txt": "number and name of each entity",
                **{f"{hops}-hop/vanilla/qa_dev.txt": f"dev questions of {hops} steps" for hops in (1, 2, 3)},
                **{f"{hops}-hop/qa_dev_qtype.txt": f"their types of {hops} steps" for hops in (1, 2, 3)},
            },
            "experiments.metaqa, side_by_side, quality, tuned",
            "download the folder of Google Drive that that page links, and unpack it",
            {},
            {"LICENSE.MetaQA.txt": "LICENSE.txt of the authors' page, whose checksum it has"},
        ),
        DataSet(
            "codex-s",
            "36,543 facts of Wikidata, with types of entities",
            "MIT",
            "https://github.com/tsafavi/codex",
            "codex",
            {
                **{f"triples/codex-s/{part}.txt": f"{part} facts" for part in ("train", "valid", "test")},
                "types/entity2types.json": "types of each entity",
                "types/en/types.json": "labels of types",
                "relations/en/relations.json": "labels of relations",
            },
            "nothing yet",
            f"git clone https://github.com/tsafavi/codex && git -C codex checkout {CODEX}; the files are in codex/data",
            {
                path: f"https://raw.githubusercontent.com/tsafavi/codex/{CODEX}/data/{path}"
                for path in (
                    *(f"triples/codex-s/{part}.txt" for part in ("train", "valid", "test")),
                    "types/entity2types.json",
                    "types/en/types.json",
                    "relations/en/relations.json",
                )
            },
        ),
    )
}

#: Sets that ``python -m experiments.corpora`` makes from packages, by name of the folder.
PACKAGED = {
    f"{name}-{cut}": name
    for name in CORPORA
    for cut in (("whole",) if name in ("words", "office", "propellor") else ("equal", "whole"))
}
