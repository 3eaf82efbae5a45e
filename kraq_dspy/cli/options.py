"""Options that several commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kraq_dspy.config import RoleSettings, Settings

if TYPE_CHECKING:
    from kraq_dspy.lms.meter import Limits

IndexDir = Annotated[Path, typer.Argument(metavar="DIR", help="The index folder, as made by `kraq index`.")]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The index folder to write, e.g. docs.kraq.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on standard output.")]
SettingsFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Settings; kraq.toml of this folder if it is there."),
]
Model = Annotated[
    str | None,
    typer.Option("--lm", metavar="MODEL", help="Model of every role: embedded, hosted_vllm/NAME, openai/NAME, ..."),
]
ApiBase = Annotated[
    str | None,
    typer.Option("--api-base", metavar="URL", help="Where the model is served, e.g. http://localhost:8000/v1"),
]
Encoder = Annotated[
    str | None, typer.Option("--encoder", metavar="NAME", help="Sentence encoder: minilm, or a model's name or path.")
]
EncoderBase = Annotated[
    str | None, typer.Option("--encoder-api-base", metavar="URL", help="Where an OpenAI-compatible encoder is served.")
]
Concurrency = Annotated[
    int | None, typer.Option("--concurrency", min=1, metavar="N", help="Model calls in flight at once.")
]

ProgramState = Annotated[
    Path | None,
    typer.Option("--program-state", metavar="FILE", help="What `kraq optimize` made of the program or of a step."),
]
ProgramStates = Annotated[
    list[Path] | None,
    typer.Option("--program-state", metavar="FILE", help="What `kraq optimize` made of a step; may be repeated."),
]
Runner = Annotated[
    str | None,
    typer.Option("--runner", metavar="NAME", help="Where models are asked: local, or ray (a cluster; see [run])."),
]

Redact = Annotated[
    bool,
    typer.Option("--redact", help="Strike e-mail addresses, phone and card numbers out of documents ([redact])."),
]

MaxCalls = Annotated[
    int | None, typer.Option("--max-calls", min=0, metavar="N", help="Stop before this run asks models more often.")
]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", min=0, metavar="N", help="Stop before this run exceeds so many tokens.")
]
MaxCost = Annotated[
    float | None,
    typer.Option("--max-cost", min=0, metavar="MONEY", help="The same for money; prices stand in kraq.toml, by role."),
]


def limits_from(max_calls: int | None, max_tokens: int | None, max_cost: float | None) -> "Limits | None":
    """None where nothing is limited."""
    from kraq_dspy.lms.meter import Limits

    if max_calls is None and max_tokens is None and max_cost is None:
        return None
    return Limits(max_calls=max_calls, max_tokens=max_tokens, max_cost=max_cost)


def settings_from(
    file: Path | None,
    *,
    base: Settings | None = None,
    lm: str | None = None,
    api_base: str | None = None,
    encoder: str | None = None,
    encoder_api_base: str | None = None,
    concurrency: int | None = None,
    runner: str | None = None,
    redact: bool = False,
) -> Settings:
    """The settings file with the command line's words over it. `base` is used where there is no file."""
    import dataclasses

    from kraq_dspy.config import RedactSettings, read_settings
    from kraq_dspy.errors import ConfigError

    here = Path("kraq.toml")
    if file is None and base is None and here.is_file():
        file = here
    settings = read_settings(file) if file is not None or base is None else base
    if api_base is not None and lm is None:
        raise ConfigError("--api-base says where a model is served; name the model too, with --lm.")
    if lm is not None:
        role = dataclasses.replace(settings.role("default"), model=lm, api_base=api_base)
        settings = dataclasses.replace(settings, roles={"default": role if lm != "embedded" else RoleSettings()})
    if encoder is not None or encoder_api_base is not None:
        chosen = dataclasses.replace(
            settings.encoder,
            name=encoder or settings.encoder.name,
            api_base=encoder_api_base or (None if encoder else settings.encoder.api_base),
        )
        settings = dataclasses.replace(settings, encoder=chosen)
    if concurrency is not None:
        settings = dataclasses.replace(settings, run=dataclasses.replace(settings.run, concurrency=concurrency))
    if runner is not None:
        settings = dataclasses.replace(settings, run=dataclasses.replace(settings.run, runner=runner))
    if redact:
        settings = dataclasses.replace(settings, redact=RedactSettings(emails=True, phones=True, cards=True))
    return settings
