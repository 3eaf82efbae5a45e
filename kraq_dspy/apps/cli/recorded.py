"""Scores answers that were given already, without a system: `kraq eval FILE`."""

from pathlib import Path
from typing import Annotated

from typer import Argument

from kraq_dspy.apps.cli.options import command_class
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.scoring import ScoresQuestions
from kraq_dspy.records import content_id


@command_class
class EvalRecorded(ScoresQuestions):
    """Score the answers of a file, which were given already, by its right answers and passages.

    Columns are those of RAGAS (response, retrieved_contexts), DeepEval (actual_output, retrieval_context)
    or TruLens (output, contexts). kraq asks no system; only metrics such as groundedness ask a model.
    """

    file: Annotated[
        Path, Argument(metavar="FILE", help="csv, jsonl or parquet: questions with the answers that were given.")
    ]

    def run(self) -> None:
        from kraq_dspy.eval.datasets.dataset import checksum_of
        from kraq_dspy.eval.evaluation import default_metrics, evaluate
        from kraq_dspy.eval.judges import JUDGED
        from kraq_dspy.eval.system import system_of
        from kraq_dspy.models.lms.meter import Meter
        from kraq_dspy.models.lms.roles import LanguageModels

        thresholds = self.thresholds()
        settings = self.settings()
        examples = self.examples(self.file)
        recorded = system_of(None, examples=examples)
        metrics = self.with_judged(self.metric or default_metrics([recorded], examples, 0), thresholds)
        title = self.file.name.partition(".")[0]
        parts = content_id("place", *metrics, checksum_of(examples))[:8]
        folder = self.out or Path("runs") / f"{title}-{parts}"
        self.prepare_place(folder)

        models = LanguageModels(settings, meter=Meter(self.limits(settings)))
        judge = models["judge"] if any(name in JUDGED for name in metrics) else None
        with Bars(settings, quiet=self.json) as bars:
            result = evaluate(
                None, examples, metrics, judge=judge, title=title, out=folder,
                concurrency=settings.run.concurrency, seed=self.seed, progress=bars,
            )  # fmt: skip
        self.show_and_judge(result, folder, thresholds)
