"""Train a cross-encoder for the reranking experiment, where no trained one is at hand.

python -m bench.experiments.train_cross_encoder --base FOLDER --out FOLDER [--data FOLDER]

The base is a saved BERT, for instance all-MiniLM-L6-v2's folder. It sees the questions of the tune halves alone,
without those that share a gold passage with a question of a test half: each with its gold passages (1) and the first
others among its candidates (0), by binary cross-entropy.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hopfuse.encoders import WordLlamaEncoder

from .files import TRAINING, add_data, folders_of
from .legs import Legs, open_legs
from .reranking import candidates

NEGATIVES = 8  # of each question
BATCH, EPOCHS, RATE, WARM = 16, 2, 5e-5, 0.1
LENGTH = 160  # tokens of a pair
SEED = 1

Pair = tuple[str, str, float]


def pairs_of(tune: Legs) -> list[Pair]:
    """Question, passage and label: every gold passage, and the first NEGATIVES candidates that are not."""
    made: list[Pair] = []
    found = candidates(tune)
    for at, (question, gold) in enumerate(zip(tune.questions, tune.qrels.gold, strict=True)):
        others = [passage for passage, _ in found.row(at) if passage not in set(gold)][:NEGATIVES]
        made += [(question, tune.passages[passage], 1.0) for passage in gold]
        made += [(question, tune.passages[passage], 0.0) for passage in others]
    return made


def unseen(tune: Legs, test: Legs) -> Legs:
    """The questions of the tune half none of whose gold passages is gold in the test half."""
    tested = {passage for gold in test.qrels.gold for passage in gold}
    return tune.take(np.flatnonzero([not tested & set(gold) for gold in tune.qrels.gold]))


def train(base: Path, out: Path, pairs: Sequence[Pair], epochs: int = EPOCHS) -> list[float]:
    """Save a cross-encoder of one output in ``out``; the mean loss of each epoch."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    torch.manual_seed(SEED)
    tokenizer = AutoTokenizer.from_pretrained(base, local_files_only=True)
    model: Any = AutoModelForSequenceClassification.from_pretrained(base, num_labels=1, local_files_only=True)
    steps = epochs * -(-len(pairs) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    rise = max(1, round(WARM * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / rise, (steps - step) / max(1, steps - rise))
    )
    loss_of = torch.nn.BCEWithLogitsLoss()
    draw = np.random.default_rng(SEED)
    means = []
    model.train()
    for epoch in range(epochs):
        order, total = draw.permutation(len(pairs)), 0.0
        for begin in range(0, len(pairs), BATCH):
            batch = [pairs[i] for i in order[begin : begin + BATCH]]
            questions, passages, labels = zip(*batch, strict=True)
            texts = (list(questions), list(passages))
            read = tokenizer(*texts, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt")
            loss = loss_of(model(**read).logits[:, 0], torch.tensor(labels))
            loss.backward()
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            total += float(loss.detach()) * len(batch)
        means.append(total / len(pairs))
        print(f"epoch {epoch + 1} of {epochs}: loss {means[-1]:.4f}", file=sys.stderr)
    model.save_pretrained(out)
    tokenizer.model_max_length = LENGTH
    tokenizer.save_pretrained(out)
    return means


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.experiments.train_cross_encoder", description=__doc__)
    add_data(parser)
    parser.add_argument("--base", type=Path, required=True, help="a saved BERT and its tokenizer")
    parser.add_argument("--out", type=Path, required=True, help="where the cross-encoder goes")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    args = parser.parse_args(argv)
    if args.epochs < 1:
        parser.error(f"--epochs is {args.epochs}; it must be at least 1")
    encoder = WordLlamaEncoder()
    tunes = [unseen(*open_legs(folder, encoder).halves()) for folder in folders_of(args.data, parser)]
    pairs = [pair for tune in tunes for pair in pairs_of(tune)]
    losses = train(args.base, args.out, pairs, args.epochs)
    about = {
        "base": args.base.absolute().name,
        "questions": sum(len(tune.qrels) for tune in tunes),
        "pairs": len(pairs),
        "gold": sum(label == 1.0 for *_, label in pairs),
        "epochs": args.epochs,
        "losses": losses,
    }
    (args.out / TRAINING).write_text(json.dumps(about) + "\n", encoding="utf-8")
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
