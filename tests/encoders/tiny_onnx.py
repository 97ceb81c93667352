"""A model of FastEmbed as small as one can be, made here: words by a table, vectors by another, in ONNX."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "river", "sea", "road", "stone", "green"]
DIM = 6


def table() -> np.ndarray:
    """The vector of each word."""
    return np.random.default_rng(7).normal(size=(len(WORDS), DIM)).astype(np.float32)


def save(folder: Path) -> Path:
    """Write the files that FastEmbed reads."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    folder.mkdir(parents=True)
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    marks = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 16, **marks}))
    (folder / "special_tokens_map.json").write_text(json.dumps(marks))
    shape = ["batch", "length"]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in ("input_ids", "attention_mask")]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*shape, DIM])
    gather = helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])
    graph = helper.make_graph([gather], "tiny", inputs, [output], [numpy_helper.from_array(table(), "table")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, folder / "model.onnx")
    return folder


def mean(text: str) -> np.ndarray:
    """What the model makes of a text: the mean of its words, with those of its ends."""
    at = [WORDS.index(word) if word in WORDS else 1 for word in ["[CLS]", *text.split(), "[SEP]"]]
    return table()[at].astype(np.float64).mean(axis=0)
