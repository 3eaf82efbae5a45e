"""Measures how near a stored question must be to stand in for the user's: `kraq calibrate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kraq_dspy.apps.cli.shared.bars import Bars
from kraq_dspy.apps.cli.shared.opened import opened
from kraq_dspy.apps.cli.shared.options import Config, IndexDir, Json
from kraq_dspy.apps.cli.shared.terminal import note, output, print_json, two_columns
from kraq_dspy.errors import ConfigError

if TYPE_CHECKING:
    from kraq_dspy.build.prepare.calibrate import Calibration

FAR = 0.5
"""A cosine below which two questions of the packaged encoder ask about different things."""


def calibrate(
    index_dir: IndexDir,
    config: Config,
    agreement: Annotated[
        float, typer.Option("--agreement", min=0.0, max=1.0, help="Adjusted Rand index that the clusters must reach.")
    ] = 0.5,
    passages: Annotated[int, typer.Option("--passages", min=2, help="Passages to cluster (the papers' N).")] = 10,
    clusters: Annotated[int, typer.Option("--clusters", min=2, help="Clusters (the papers' k).")] = 2,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Questions to try.")] = 50,
    questions: Annotated[
        Path | None, typer.Option("--questions", metavar="FILE", help="Real questions, one a line; else stored ones.")
    ] = None,
    json: Json = False,
) -> None:
    """Find how near a stored question must be to stand in for the user's, and keep that in the index's manifest."""
    from kraq_dspy.build.prepare.calibrate import CalibrationPlan
    from kraq_dspy.build.prepare.speculative import calibrate_index

    if clusters > passages:
        raise ConfigError(f"{passages} passages cannot be put into {clusters} clusters: lower --clusters.")
    real = None if questions is None else _lines(questions)
    with opened(index_dir, config, write=True) as space, Bars(quiet=json) as bars:
        result = calibrate_index(
            space.index,
            space.retriever("dense"),
            space.questions(),
            space.models.settings,
            CalibrationPlan(n=passages, k=clusters, wanted=agreement, n_questions=sample),
            user_questions=real,
            progress=bars,
        )
    if json:
        print_json(result.to_dict())
        return
    output.print(two_columns(f"{index_dir}: proxy questions", rows_of(result)))
    if text := advice(result):
        note(text)


def rows_of(result: "Calibration") -> dict[str, str]:
    """What the table shows; agreements are shown only for cosines that were tried."""
    nearest = max(cosine for cosine, _ in result.points)
    shown = [x for x in (0.5, 0.6, 0.7, 0.8, 0.9) if x < nearest] + [nearest]
    return {
        "threshold": f"cosine {result.threshold:.3f}, for an agreement of {result.wanted:.2f}",
        "noise floor": f"{result.noise_floor:.2f} (two seeds of KMeans on the same vectors)",
        "expected agreement": ", ".join(f"{result.agreement_at(x):.2f} at {x:.2g}" for x in shown),
        "pairs tried": f"{len(result.points)}, of cosines up to {nearest:.2f}",
        "encoder": result.encoder_name,
    }


def advice(result: "Calibration") -> str:
    """What to do about a threshold that lets everything or nothing pass; "" for one between."""
    if result.threshold >= 1:
        return (
            f"of the pairs tried none agrees by {result.wanted:.2f}, so only the same question would be looked up. "
            "A larger corpus has nearer questions; or ask for a lower --agreement."
        )
    if result.threshold < FAR:
        return (
            f"a question with a cosine of {result.threshold:.2f} has little to do with yours, and would stand in for "
            "it. Here the clusters are alike whatever question the passages are seen from. Guard with "
            f"-P min_similarity={FAR:g} (kraq ask), or ask for a higher --agreement."
        )
    return ""


def _lines(file: Path) -> list[str]:
    try:
        lines = [line.strip() for line in file.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read questions from {str(file)!r}: {error}") from error
    if not lines:
        raise ConfigError(f"{str(file)!r} has no questions; write one a line.")
    return lines
