"""Answers a question with its evidence: `kraq ask`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from kraq_dspy.apps.cli.ask.flags import PROGRAM_FLAGS, ChosenProgram
from kraq_dspy.apps.cli.ask.scarce import note_scarce
from kraq_dspy.apps.cli.ask.show import EVIDENCE, answer_fields, show_answer
from kraq_dspy.apps.cli.ask.streamed import asked
from kraq_dspy.apps.cli.shared.logs import tell_what_is_cut_off
from kraq_dspy.apps.cli.shared.opened import opened
from kraq_dspy.apps.cli.shared.options import IndexDir, Json, Models
from kraq_dspy.apps.cli.shared.terminal import note, print_json
from kraq_dspy.errors import ConfigError

State = Annotated[
    Path | None,
    typer.Option("--program-state", metavar="FILE", help="What `kraq optimize` made of the program or of a step."),
]
Evidence = Annotated[int, typer.Option("--evidence", "-e", min=0, help="Passages to show.")]

Stream = Annotated[
    bool, typer.Option("--stream/--no-stream", help="Show the answer in a terminal while the model writes it.")
]


def ask(
    index_dir: IndexDir,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What you want to know.")],
    chosen: ChosenProgram,
    flags: Annotated[Any, PROGRAM_FLAGS],
    models: Models,
    evidence: Evidence = EVIDENCE,
    program_state: State = None,
    stream: Stream = True,
    json: Json = False,
) -> None:
    """Answer QUESTION from the index, and show what the answer rests on."""
    if not question.strip():
        raise ConfigError("The question is empty.")
    choice = chosen.choice(flags)
    tell_what_is_cut_off()
    with opened(index_dir, models) as space:
        note_scarce(space, choice)
        program = space.make_program(choice)
        if program_state is not None:
            space.load_state(program, program_state)
        answer = asked(space, program, question, stream=stream and not json)
        model = space.models[choice.role].model
    if json:
        print_json(answer_fields(question, choice.spec.name, model, answer))
    else:
        show_answer(question, choice, model, answer, evidence)
    if flags.k is not None and choice.budget > len(answer.hits) > 0:
        note(f"--k asks for {choice.budget:,} passages; there were {len(answer.hits):,} to be found.")
