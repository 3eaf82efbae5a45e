"""Compares an index with a log of questions that people asked: `kraq eval asked INDEX
QUESTIONS`."""

from pathlib import Path
from typing import Annotated

from typer import Option

from kraq_dspy.apps.cli.options import (
    About,
    IndexDir,
    Json,
    QuestionFile,
    Questions,
    Reads,
    Seed,
    command_class,
    require_writable,
)
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.scoring import RunOut
from kraq_dspy.apps.cli.terminal import output, print_json, say
from kraq_dspy.eval.defaults import ABOUT, NEAR


@command_class
class Asked(Reads, QuestionFile):
    """Compare the index with a log of real questions: which it anticipates, and which the corpus
    cannot answer.

    For comparison, the table also rates titles, titles as "How do I ...?", questions of random
    passages, and other people's. The command calls no model.
    """

    index_dir: IndexDir
    questions: Questions
    near: Annotated[float, Option(min=0, max=1, help="Least cosine of two questions that ask the same.")] = NEAR
    about: About = ABOUT
    seed: Seed = 0
    out: RunOut = None
    json: Json = False

    def run(self) -> None:
        from kraq_dspy.eval.question_log import against_log
        from kraq_dspy.eval.terminal import print_grid

        folder = (
            self.out or Path("runs") / f"asked-{self.index_dir.resolve().stem}-{self.questions.name.partition('.')[0]}"
        )
        require_writable(folder)
        with self.opened(self.index_dir) as space, Bars(space.models.settings, quiet=self.json) as bars:
            log = against_log(
                space,
                self.questions,
                columns=self.columns(),
                near=self.near,
                about=self.about,
                seed=self.seed,
                progress=bars,
            )
        files = log.write(folder)
        if self.json:
            print_json({**log.to_dict(), "files": [str(file) for file in files]})
            return
        for grid in log.grids():
            print_grid(grid, output)
        say(f"Report: {', '.join(map(str, files))}")
