"""A tiny real CrossEncoder with random weights, saved by transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "who", "founded", "rome", "romulus", "a", "river", "the", "sea"]


def save(folder: Path, outputs: int, torch: Any, tokenizers: Any) -> None:
    """Save one with so many outputs; the modules come from the test, which skips without them."""
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(WORDS)}, "[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", WORDS.index("[CLS]")), ("[SEP]", WORDS.index("[SEP]"))],
    )
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=16, **names).save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(vocab_size=len(WORDS), num_labels=outputs, initializer_range=2.0, **shape)
    BertForSequenceClassification(config).save_pretrained(folder)
