"""Downloads models that run in this process, and serves others with vLLM: `kraq lm`."""

import os
import shutil
from pathlib import Path
from typing import Annotated

from rich.text import Text
from typer import Argument, Option

from kraq_dspy.apps.cli.options import Flag, Json, Repeated, command_class
from kraq_dspy.apps.cli.terminal import command, errors, note, output, print_json, say
from kraq_dspy.models.lms.local_models import GGUF, QUESTIONS, get_model, known_model, models_folder
from kraq_dspy.models.lms.vllm_server import VLLMServer
from kraq_dspy.settings import QUESTIONS_BASE


@command_class
class GetModel:
    """Download a small language model that runs in this process.

    The same command resumes an interrupted run.
    """

    name: Annotated[str, Argument(metavar="NAME", help="smollm2-135m, qwen2.5-coder-0.5b or qwen2.5-coder-1.5b.")]
    out: Annotated[
        Path | None,
        Option("--out", "-o", metavar="DIR", help="Folder to keep it in. Default: the user's cache."),
    ] = None
    json: Json = False

    def run(self) -> None:
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


@command_class
class ServeModel:
    """Print vLLM's command to serve MODEL and its adapters, and start it.

    kraq starts it if vLLM is installed. Ctrl-C stops the server. vLLM's own options go after --.
    """

    model: Annotated[str, Argument(metavar="MODEL", help="A hub name or a folder.")]
    more: Annotated[
        list[str] | None, Argument(metavar="-- OPTIONS", help="Options of vLLM's own.", show_default=False)
    ] = None
    adapter: Annotated[
        Repeated,
        Option("--adapter", metavar="DIR", help="A LoRA adapter that `kraq finetune` wrote; may be repeated."),
    ] = None
    host: Annotated[str, Option(help="The address to listen at.")] = VLLMServer.host
    port: Annotated[int, Option(min=1, max=65535, help="The port to listen at.")] = VLLMServer.port
    print_only: Annotated[bool, Flag("--print", help="Only print the command.")] = False
    vllm: Annotated[str, Option(metavar="PATH", help="Path of vLLM's program, such as in its own environment.")] = (
        "vllm"
    )
    json: Json = False

    def run(self) -> None:
        server = VLLMServer(self.model, tuple(self.adapter or ()), self.host, self.port)
        more = self.more or []
        program = shutil.which(self.vllm)
        if self.json:
            print_json(
                {"command": server.command(self.vllm, more), "api_base": server.api_base, "role": server.role(),
                 "installed": program is not None}
            )  # fmt: skip
            return

        output.print(Text(server.shown(self.vllm, more)), soft_wrap=True)
        errors.print(Text(f"In kraq.toml, for whoever asks it:\n{server.role()}"), soft_wrap=True)
        if self.print_only:
            return
        if program is None:
            note(
                f"there is no program {self.vllm!r}, so nothing was started. vLLM wants an environment of its own: "
                "python -m venv vllm-env && vllm-env/bin/pip install vllm, then --vllm vllm-env/bin/vllm."
            )
            return
        output.file.flush()
        command_line = server.command(program, more)
        os.execv(program, command_line)  # in our place: what stops us, stops the server
