"""Does fine-tuning do what it is for? A tiny model with one habit gets another, before and after on held-out pairs.

    python benchmarks/finetune_small.py

A Llama of two layers is trained from scratch, in minutes on two cores, to ask "Who is NAME, the TRADE from TOWN?" about
made-up summaries: it knows the prompt's format and how to copy. Then `train_adapter` teaches it, by LoRA on the frozen
weights, to ask the pairs' own question. It is a language model by its architecture alone; the path is that of a large
model.
"""

import argparse
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import dspy
import tokenizers
import torch
import transformers
from dspy.utils.exceptions import AdapterParseError

from kraq_dspy.config import RoleSettings
from kraq_dspy.eval.metrics.answers import token_f1
from kraq_dspy.eval.statistics import compare
from kraq_dspy.finetune import Pair, TrainSettings, chats_of, train_adapter
from kraq_dspy.finetune.token_rows import IGNORED, TokenRow, token_row
from kraq_dspy.lms.roles import make_lm
from kraq_dspy.lms.structured.adapter import KraqAdapter
from kraq_dspy.signatures import GenerateQuestion

NAMES = (
    "Ada Ben Cleo Dora Emil Fay Gus Hal Ida Jon Kim Leo Mia Ned Ona Pia Quin Rae Sam Tess Uma Vic Wes Zoe".split()  # noqa: SIM905
)
TRADES = "cook king poet judge smith pilot nurse baker miner actor clerk guard".split()  # noqa: SIM905
TOWNS = "Rome Bath Oslo Lima Cork Bonn Kyiv Quito Turin Delhi Perth Accra".split()  # noqa: SIM905
MARKS = ["<pad>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=600, help="of training from scratch")
    parser.add_argument("--pairs", type=int, default=300, help="to fine-tune on")
    parser.add_argument("--test", type=int, default=100, help="pairs that neither training saw")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    people = [(name, trade, town) for name in NAMES for trade in TRADES for town in TOWNS]
    draw.shuffle(people)
    test, tuning, rest = (
        people[: options.test],
        people[options.test : options.test + options.pairs],
        people[options.test + options.pairs :],
    )
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        known = [pair(who, "Who is {0}, the {1} from {2}?") for who in rest]
        base = from_scratch(Path(folder) / "base", known, options.steps, draw)
        print(f"from scratch: {options.steps} steps, {time.perf_counter() - began:.0f} s", flush=True)
        began = time.perf_counter()
        pairs = [pair(who, "What does the {1} {0} do in {2}?") for who in tuning]
        settings = TrainSettings(
            target_modules="all-linear", learning_rate=5e-3, epochs=options.epochs, evaluations=1, seed=options.seed
        )
        trained = train_adapter(chats_of(pairs, "generator"), base, Path(folder) / "generator", settings)
        print(f"LoRA: {len(pairs)} pairs, {time.perf_counter() - began:.0f} s", flush=True)
        for point in trained.curve:
            print(f"  step {point.step}: held out {point.held_out:.3f}, values alone {point.values:.3f}")
        held_out = [pair(who, "What does the {1} {0} do in {2}?") for who in test]
        before, after = (answers(f"transformers/{base}", held_out), answers(trained.model, held_out))
        for name, score in (("exact match", exact), ("token F1", f1)):
            shown = compare([score(a, p) for a, p in zip(after, held_out, strict=True)],
                            [score(b, p) for b, p in zip(before, held_out, strict=True)])  # fmt: skip
            gain = shown.difference
            print(
                f"{name}: before {shown.baseline.estimate:.3f}, after {shown.system.estimate:.3f}, difference "
                f"{gain.estimate:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}], {len(held_out)} held-out pairs"
            )
        for one, other, example in list(zip(before, after, held_out, strict=True))[:3]:
            print(
                f"  {example.inputs['summary']}  before: {one}  after: {other}  wanted: {example.outputs['question']}"
            )


def pair(who: tuple[str, str, str], question: str) -> Pair:
    name, trade, town = who
    summary = f"{name} is a {trade} from {town}."
    return Pair.generator(summary, question.format(*who), source="made", example_id=summary)


def exact(answer: str, expected: Pair) -> float:
    return float(answer == expected.outputs["question"])


def f1(answer: str, expected: Pair) -> float:
    return token_f1([expected.outputs["question"]], answer)


def answers(model: str, pairs: list[Pair]) -> list[str]:
    """What the model asks about each summary; "" where its reply cannot be read."""
    lm = make_lm(RoleSettings(model=model, max_tokens=40))
    predict, texts = dspy.Predict(GenerateQuestion), []
    with dspy.context(lm=lm, adapter=KraqAdapter(second_try=False)):
        for each in pairs:
            try:
                texts.append(predict(summary=each.inputs["summary"]).question)
            except AdapterParseError:
                texts.append("")
    return texts


def from_scratch(folder: Path, pairs: list[Pair], steps: int, draw: random.Random) -> str:
    chats = chats_of(pairs, "generator")
    words = tokenizers.ByteLevelBPETokenizer()
    texts = [message["content"] for chat in chats[:500] for message in chat]
    texts += [f"{trade} from {town}. What does the {trade} {name} do in {town}?" for name in NAMES
              for trade in TRADES for town in TOWNS]  # fmt: skip
    words.train_from_iterator(texts, vocab_size=900, min_frequency=1, special_tokens=MARKS)
    fast: Any = transformers.PreTrainedTokenizerFast
    tokenizer = fast(tokenizer_object=words._tokenizer, eos_token="<|end|>", pad_token="<pad>")
    tokenizer.add_special_tokens({"additional_special_tokens": MARKS[2:]})
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=256, bos_token_id=1, eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).train()
    rows = [token_row(tokenizer, chat) for chat in chats]
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=steps)
    for step in range(steps):
        ids, labels = batch(draw.sample(rows, 16))
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            print(f"  step {step}: {loss.item():.3f}", flush=True)
    model.save_pretrained(folder)
    return str(folder)


def batch(rows: list[TokenRow]) -> tuple[torch.Tensor, torch.Tensor]:
    """Padded on the right; the loss is on the replies."""
    width = max(len(row.ids) for row in rows)
    ids = torch.zeros((len(rows), width), dtype=torch.long)
    labels = torch.full((len(rows), width), IGNORED)
    for place, row in enumerate(rows):
        ids[place, : len(row.ids)] = torch.tensor(row.ids)
        labels[place, : len(row.ids)] = torch.tensor(row.reply)
    return ids, labels


if __name__ == "__main__":
    main()
