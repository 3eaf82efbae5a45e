"""The papers' training of the question generator, on a GPU: pairs from Dolly and MuSiQue, QLoRA, before and after.

    kraq data fetch musique --out data
    kraq data fetch dolly --out data
    python benchmarks/finetune_generator.py --data data --base meta-llama/Llama-3.1-8B-Instruct --out runs/generator \\
        --teacher hosted_vllm/NAME --api-base http://localhost:8000/v1

Each part is kept and gone on with: pairs, checkpoints, then the questions. Settings are `TrainSettings()`, the papers'.
`--pairs FILE` takes pairs that are there already, and needs no teacher. `--limit` tries the path on few rows.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import dspy
from dspy.utils.exceptions import AdapterParseError

from kraq_dspy.config import RoleSettings, Settings
from kraq_dspy.eval.datasets import load_dataset
from kraq_dspy.eval.metrics.bertscore import BertScorer
from kraq_dspy.eval.statistics import compare
from kraq_dspy.finetune import Pair, TrainSettings, chats_of, pairs_from_dataset, read_pairs, train_adapter
from kraq_dspy.finetune.card import write_card
from kraq_dspy.lms.roles import LanguageModels, make_lm
from kraq_dspy.lms.structured.adapter import KraqAdapter
from kraq_dspy.signatures import GenerateQuestion
from kraq_dspy.steps.bounded import bounded_map

SOURCES = ("dolly", "musique")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--teacher", default="embedded")
    parser.add_argument("--api-base")
    parser.add_argument("--base", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="questions of each data set")
    parser.add_argument("--test", type=int, default=300, help="pairs that are not trained on, to ask about")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--bertscore", default="minilm", help="minilm, or a model such as roberta-large")
    options = parser.parse_args()
    file = options.pairs or _make_pairs(options)
    pairs = sorted(read_pairs(file), key=lambda pair: pair.id)  # by hash: in no order of the data
    n_test = min(options.test, len(pairs) // 5)
    test, tuning = pairs[:n_test], pairs[n_test:]
    print(f"{len(tuning)} pairs to train on (a tenth of them to evaluate), {len(test)} to ask about")
    settings = TrainSettings(epochs=options.epochs)
    trained = train_adapter(
        chats_of(tuning, "generator"), options.base, options.out / "generator", settings, drop_long=True
    )
    write_card(trained, "generator", file)
    for point in trained.curve:
        print(f"step {point.step}: trained on {point.train:.3f}, held out {point.held_out:.3f}, {point.values:.3f}")
    generated = {name: _questions(model, test) for name, model in
             (("base", f"transformers/{options.base}"), ("fine-tuned", trained.model))}  # fmt: skip
    (options.out / "questions.json").write_text(json.dumps(generated, indent=1, ensure_ascii=False), "utf-8")
    scorer = BertScorer.packaged() if options.bertscore == "minilm" else BertScorer(options.bertscore)
    references = [pair.outputs["question"] for pair in test]
    scores = {
        name: scorer.score(references, [text or "-" for text in texts]).f1.tolist() for name, texts in generated.items()
    }
    shown = compare(scores["fine-tuned"], scores["base"])
    gain = shown.difference
    print(
        f"BERTScore F1 against the pairs' questions ({options.bertscore}): base {shown.baseline.estimate:.3f}, "
        f"fine-tuned {shown.system.estimate:.3f}, {gain.estimate:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"
    )


def _make_pairs(options: argparse.Namespace) -> Path:
    file: Path = options.out / "pairs.jsonl"
    role = RoleSettings(model=options.teacher, api_base=options.api_base)
    for name in SOURCES:
        models = LanguageModels(Settings(roles={"default": role}))
        report = pairs_from_dataset(load_dataset(name, options.data), file, models, limit=options.limit)
        print(f"{name}: {report.pairs} pairs, {sum(report.rejected.values())} left out, {report.known} known")
    return file


def _questions(model: str, pairs: Sequence[Pair]) -> list[str]:
    """Greedy, sixteen at a time in one batch; "" for a reply that cannot be read."""
    predict, texts = dspy.Predict(GenerateQuestion), [""] * len(pairs)

    async def work(place: int) -> None:
        try:
            texts[place] = (await predict.acall(**pairs[place].inputs)).question
        except AdapterParseError as error:
            print(f"unreadable: {str(error.lm_response)[:80]!r}")

    async def run() -> None:
        lm = make_lm(RoleSettings(model=model, max_tokens=96))
        with dspy.context(lm=lm, adapter=KraqAdapter(second_try=False)):
            async for _ in bounded_map(work, range(len(pairs)), 16):
                pass

    asyncio.run(run())
    return texts


if __name__ == "__main__":
    main()
