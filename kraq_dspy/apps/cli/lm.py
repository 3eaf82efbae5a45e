"""Brings models that run in this process: `kraq lm`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.apps.cli.options import Json
from kraq_dspy.apps.cli.terminal import command, errors, print_json, say


@dataclass(frozen=True, kw_only=True)
class GetModel:
    """Bring a small language model that runs in this process. Interrupted? The same command goes on."""

    name: Annotated[str, typer.Argument(metavar="NAME", help="smollm2-135m, qwen2.5-coder-0.5b or qwen2.5-coder-1.5b.")]
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Its folder. Default: in the user's cache, where it is found."),
    ] = None
    json: Json = False

    def run(self) -> None:
        from kraq_dspy.models.lms.local_models import GGUF, QUESTIONS, get_model, known_model, models_folder
        from kraq_dspy.settings import QUESTIONS_BASE

        model = known_model(self.name)
        errors.print(f"{model.title}; licence {model.license}; {model.size / 1e6:,.0f} MB", markup=False)
        path = get_model(model, self.out)
        model_string = (
            f"gguf/{self.name}"
            if self.out is None or self.out.resolve() == models_folder().resolve()
            else f"gguf/{path}"
        )
        if self.json:
            print_json({"model": model_string, "file": str(path), "license": model.license, "sha256": model.sha256})
            return
        say(f"{path} is the published file (SHA-256 {model.sha256[:16]}...).")
        say("Try: ", command("index", "DOCS", "--lm", model_string))
        if GGUF + self.name == QUESTIONS_BASE:
            say(f'As generator of questions, in kraq.toml:\n[roles.generator]\nmodel = "{model_string}"')
            say(f'adapter = "{QUESTIONS}"')
