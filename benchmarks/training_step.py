"""Times a step of fine-tuning as `kraq finetune` takes it, beside full precision and the logits of every token.

    python benchmarks/training_step.py --model ~/.cache/kraq-dspy/models/smollm2-135m.gguf [--rows 8 --tokens 300]

Rows of random tokens, LoRA r 8 on all linear layers, forward and backward, in turn; the median of `--rounds`.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from stand_in import machine

from kraq_dspy.embedders.device import multiplies_in_bf16
from kraq_dspy.finetune.lora_model import TrainPackages, make_lora_model
from kraq_dspy.finetune.settings import TrainSettings
from kraq_dspy.finetune.token_rows import IGNORED

WAYS = {
    "full precision, every logit": (False, False),
    "bf16, every logit": (True, False),
    "bf16, the reply's logits": (True, True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=300, help="of a row")
    parser.add_argument("--reply", type=int, default=24, help="of these, at the end of the row")
    parser.add_argument("--dropout", type=float, default=0.05)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not multiplies_in_bf16():
        raise SystemExit("This processor does not multiply in bf16, so the command trains in full precision here.")
    packages = TrainPackages()
    settings = TrainSettings(r=8, dropout=options.dropout, target_modules="all-linear")
    with packages.quiet():
        model = make_lora_model(packages, str(options.model), "", settings, four_bits=False)
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(1 + options.rounds):  # the first is not counted
        for way, (is_bf16, cut) in WAYS.items():
            taken = step(packages.torch, model, options, is_bf16=is_bf16, cut=cut)
            if number:
                seconds[way].append(taken)
    table = Table(title=machine())
    for column in ("", "seconds a step", "of the first"):
        table.add_column(column)
    first = statistics.median(next(iter(seconds.values())))
    for way, taken_each in seconds.items():
        median = statistics.median(taken_each)
        table.add_row(way, f"{median:.1f}", f"{median / first:.2f}")
    Console(width=100).print(table)


def step(torch: Any, model: Any, options: Any, *, is_bf16: bool, cut: bool) -> float:
    ids = torch.randint(0, model.config.vocab_size, (options.rows, options.tokens))
    labels = ids.clone()
    labels[:, : -options.reply] = IGNORED
    inputs: dict[str, Any] = {"input_ids": ids, "labels": labels}
    if cut:
        needed = options.reply + 1
        inputs |= {"labels": labels[:, -needed:], "logits_to_keep": needed}
    began = time.monotonic()
    with torch.autocast("cpu", torch.bfloat16, enabled=is_bf16):
        loss = model(**inputs).loss
    loss.backward()
    model.zero_grad()
    return time.monotonic() - began


if __name__ == "__main__":
    main()
