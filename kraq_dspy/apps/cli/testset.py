"""Makes test sets from an index: `kraq testset make`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kraq_dspy.apps.cli.options import Calls, Flag, IndexDir, Json, Limits, Seed, require_writable_file
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.terminal import command, note, output, print_json, say, show_counts, two_columns
from kraq_dspy.errors import ConfigError

if TYPE_CHECKING:
    from kraq_dspy.eval.testset import Testset


@dataclass(frozen=True, kw_only=True)
class MakeTestset(Calls, Limits):
    """Write questions that the index answers, with answers and evidence, for `kraq eval DIR FILE`.

    Gold passages are found in the text by unlike retrievers; questions that tell no system from another are thinned.
    Without a language model (--lm) the embedded reader asks. Interrupted? The same command goes on.
    """

    index_dir: IndexDir
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="JSON lines. What it took is kept in FILE.draft.")
    ] = Path("test.jsonl")
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="Questions.")] = 200
    kinds: Annotated[
        str | None,
        typer.Option(
            metavar="KINDS",
            help="Kinds, with shares where they differ: fact=3,bridge=2,unanswerable. Others: list, comparison, broad, "
            "false_premise.",
            show_default="all",
        ),
    ] = None
    seed: Seed = 0
    estimate: Annotated[bool, Flag("--estimate", help="Say what it would take, and make nothing.")] = False
    json: Json = False

    def run(self) -> None:
        from kraq_dspy.eval.testset_making import TestsetPlan, estimate_testset, make_testset
        from kraq_dspy.programs.testset.kinds import read_shares

        shares = None if self.kinds is None else shares_in(self.kinds)
        read_shares(shares)  # before anything is opened
        require_writable_file(self.out)
        plan = TestsetPlan(self.n, shares, self.seed)
        with self.opened(self.index_dir) as space:
            if self.estimate:
                self._show_estimate(estimate_testset(space, plan))
                return
            draft = self.out.with_name(f"{self.out.name}.draft")
            with Bars(space.models.settings, quiet=self.json) as bars:
                made = make_testset(space, plan=plan, draft=draft, progress=bars)
        made.save(self.out)
        if self.json:
            print_json({**made.about(), "file": str(self.out)})
        else:
            show_testset(made, self.out)
            say(f"Try: {command('eval', self.index_dir, self.out, '--retrieval-only')}")

    def _show_estimate(self, estimate: object) -> None:
        if self.json:
            print_json(estimate)
        else:
            show_counts("Estimate; the embedded reader costs nothing", estimate)


def shares_in(words: str) -> Mapping[str, float]:
    """ "fact=3,bridge" as {"fact": 3, "bridge": 1}. Raises ConfigError for what is no list of kinds."""
    shares = {}
    for word in filter(None, (part.strip() for part in words.split(","))):
        name, separator, share = word.partition("=")
        try:
            shares[name.strip().replace("-", "_")] = float(share) if separator else 1.0
        except ValueError:
            raise ConfigError(f"--kinds has {word!r}; expected KIND or KIND=SHARE, such as fact=3.") from None
    return shares


def show_testset(made: "Testset", file: Path) -> None:
    """What the set is like, what was dropped and why, and which kinds it does without."""
    about = made.about()
    rows = {
        "questions": ", ".join(f"{count} {kind}" for kind, count in made.counts().items()) or "none",
        "about": f"{about['documents']:,} documents, {about['communities']:,} communities",
        "words shared": f"{about['median_overlap']:.2f} of a question's, median; people's: about .8",
        "found by all retrievers": f"{about['solved_by_all']:.0%}; by none: {about['solved_by_none']:.0%}",
    }
    dropped = {reason: count for reason, count in made.rejected.items() if count}
    if dropped:
        rows["dropped"] = ", ".join(f"{count:,} {reason}" for reason, count in sorted(dropped.items()))
    output.print(two_columns(str(file), rows))
    for kind, reason in made.left_out.items():
        note(f" {reason}.", label=f"No questions of the kind {kind}:")
    if about["solved_by_all"] > 0.8:
        note(" most questions are answered by every retriever here, so they tell little: a larger corpus tells more.")
