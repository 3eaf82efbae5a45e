"""Runs a Hugging Face model in this process, as an engine under `dspy.LM`.

    engine = TransformersEngine("path/to/model", adapters={"generator": "path/to/lora"})
    lm = dspy.LM("generator", engine=engine, async_engine=AsyncTransformersEngine(engine))

The weights are loaded once; requests that arrive together, from threads or tasks, are one call of `generate`, whatever
adapter each of them wants. Log-probabilities are the model's own (before temperature and top-p), as vLLM's raw ones.
"""

import asyncio
import functools
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dspy.lm15 import (
    ContextLengthError,
    InvalidRequestError,
    Message,
    Request,
    Response,
    TextPart,
    TokenLogprob,
    UnsupportedModelError,
    Usage,
)

from kraq_dspy._internal.concurrency import SharedByCopies, called_once
from kraq_dspy.errors import ModelError, counted, import_extra
from kraq_dspy.models.embedders.model_folder import quiet_transformers, unpacked
from kraq_dspy.models.lms.engines import generation
from kraq_dspy.models.lms.engines.generation import Batches, GenerationJob, LogprobRecorder
from kraq_dspy.models.lms.local_models import TRANSFORMERS, WEIGHTS, adapter_folder, require_whole, weights_hash
from kraq_dspy.models.machine import precision_of
from kraq_dspy.settings import RoleSettings

_NEEDED = "transformers", "A model in this process"  # the extra, and what for
_BASE = "__base__"  # peft's name for a row without an adapter
ROWS_ON_CPU, ROWS_ON_GPU = 16, 64
"""Requests of one batch at most. A GPU writes a token for 64 rows in about the time that it takes for one."""


class TransformersEngine(SharedByCopies):
    """`name` is a folder, a hub name or a GGUF file; `adapters` are LoRA folders by the model name that asks for them.

    A request for `name` or "transformers/NAME" gets the base model, one for an adapter's name gets the adapter,
    "transformers/NAME#FOLDER" loads the adapter of a folder when it is first asked for, "transformers/NAME#FOLDER@HASH"
    only if its weights have that hash. `load` adds an adapter while it runs. Without a temperature the decoding is
    greedy. Of requests that wait, up to `max_batch` are answered together. Safe for threads.

    Raises MissingExtraError without torch, transformers or, for adapters, peft; ModelError when weights do not load.
    """

    supports_function_calling = False
    supports_reasoning = False
    supports_response_schema = find_spec("llguidance") is not None
    supported_params = frozenset({"temperature", "max_tokens", "top_p", "stop", "seed", "logprobs", "response_format"})

    def __init__(
        self,
        name: str,
        *,
        adapters: Mapping[str, str] | None = None,
        max_batch: int | None = None,
        gather_ms: float = 5.0,
        max_tokens: int = 512,
        dtype: str = "float32",
        device: str = "cpu",
    ) -> None:
        self.torch, self.transformers = import_extra("torch", *_NEEDED), import_extra("transformers", *_NEEDED)
        self.name = name
        self.max_tokens = max_tokens
        try:
            with quiet_transformers(reports=True):
                where, options = generation.checked_weights(name)
                self.tokenizer = self.transformers.AutoTokenizer.from_pretrained(
                    where, padding_side="left", trust_remote_code=False, **options
                )
                model = self.transformers.AutoModelForCausalLM.from_pretrained(
                    where, dtype=getattr(self.torch, dtype), trust_remote_code=False, **unpacked(options)
                )
        except (OSError, ValueError) as error:
            raise ModelError(f"The model {name!r} cannot be loaded: {error} Give the folder of its files.") from error

        self.model = model.to(device).eval()
        self.context: int = model.config.get_text_config().max_position_embeddings
        self._peft_names: dict[str, str] = {}
        self._numbers = itertools.count()
        self._weights = threading.RLock()
        for adapter, folder in (adapters or {}).items():
            self.load(adapter, folder)
        self._pad = generation.pad_token(self.tokenizer)
        self._ends = generation.end_tokens(self.tokenizer, model)
        size = max_batch or (ROWS_ON_CPU if device == "cpu" else ROWS_ON_GPU)
        self._batches: Batches[GenerationJob, Response] = Batches(self._work, size=size, gather_s=gather_ms / 1000)

    def complete(self, request: Request) -> Response:
        return self.submit(request).result()

    def submit(self, request: Request) -> "Future[Response]":
        """Cancel the future, and the model stops writing that answer. Raises lm15 errors for what cannot be done."""
        return self._batches.submit(self._job(request))

    def logprobs_of(self, tokens: Sequence[int], model: str) -> list[float]:
        """Tell how likely each token but the first is behind those before it; nothing is generated.
        `model` may name an adapter. Raises ModelError for more tokens than the model takes."""
        if len(tokens) > self.context:
            raise ModelError(f"The text has {counted(len(tokens), 'token')}; {self.name!r} takes {self.context}.")
        adapter = self._adapter(model)
        options = {"adapter_names": [adapter]} if self._peft_names else {}

        torch = self.torch
        ids = torch.tensor([list(tokens)], device=self.model.device)
        with self._weights, torch.inference_mode():
            logits = self.model(input_ids=ids, **options).logits[0, :-1].float()
        likelihoods = torch.log_softmax(logits, dim=-1)
        of_tokens = likelihoods.gather(1, ids[0, 1:, None])[:, 0]
        return [float(logprob) for logprob in of_tokens]

    # From a request to a job

    def _job(self, request: Request) -> GenerationJob:
        config = request.config
        adapter = self._adapter(request.model)
        ids = self._prompt(request)
        left = self.context - len(ids)
        if left < 1:
            raise ContextLengthError(
                f"The prompt has {counted(len(ids), 'token')}; {self.name!r} takes {self.context}."
            )
        if request.tools:
            raise InvalidRequestError(f"{self.name!r} runs in this process, without tools.")

        return GenerationJob(
            ids=ids,
            adapter=adapter,
            model=request.model,
            max_tokens=min(config.max_tokens or self.max_tokens, left),
            temperature=config.temperature or 0.0,
            top_p=1.0 if config.top_p is None else config.top_p,
            seed=config.seed,
            stop=tuple(config.stop),
            is_scored=config.logprobs is not None,
            matcher=None if config.response_format is None else self._grammars.matcher(config.response_format),
        )

    @functools.cached_property
    def _grammars(self) -> generation.SchemaGrammars:
        return generation.SchemaGrammars(self.tokenizer, self._ends)

    def _prompt(self, request: Request) -> list[int]:
        messages = [{"role": message.role, "content": message.text or ""} for message in request.messages]
        if request.system is not None:
            parts = request.system
            text = parts if isinstance(parts, str) else "".join(getattr(part, "text", "") for part in parts)
            messages.insert(0, {"role": "system", "content": text})
        return generation.prompt_ids(self.tokenizer, messages)

    def _adapter(self, model: str) -> str:
        """peft's name of the adapter that a model name asks for. Raises UnsupportedModelError."""
        name = model.removeprefix(TRANSFORMERS)
        if name in self._peft_names:
            return self._peft_names[name]
        if name == self.name:
            return _BASE

        base, mark, named = name.partition("#")
        if mark and base == self.name and named:
            if named not in self._peft_names:
                self._load_named(named)
            return self._peft_names[named]
        known = ", ".join(repr(name) for name in (self.name, *self._peft_names))
        raise UnsupportedModelError(f"There is no model {model!r} here; known: {known}.")

    def _load_named(self, named: str) -> None:
        folder, hash_begins = adapter_folder(named)
        if not (Path(folder) / "adapter_config.json").is_file():
            raise UnsupportedModelError(f"{folder!r} is neither an adapter by name nor the folder of one.")
        if hash_begins and not weights_hash(folder).startswith(hash_begins):
            raise UnsupportedModelError(
                f"The adapter {folder!r} holds other weights than you asked for ({hash_begins}): it was trained again. "
                f"Ask for {weights_hash(folder)[:8]}, or give the folder of the former one."
            )
        self.load(named, folder)

    def load(self, name: str, folder: str) -> None:
        """Answer requests for `name` with the adapter of a folder. Raises ModelError."""
        peft = import_extra("peft", "train", "A LoRA adapter")
        with self._weights:
            if name in self._peft_names:
                return

            peft_name = f"adapter{next(self._numbers)}"
            if (Path(folder) / WEIGHTS).is_file():
                require_whole(Path(folder) / WEIGHTS)
            try:
                if isinstance(self.model, peft.PeftModel):
                    self.model.load_adapter(folder, adapter_name=peft_name)
                else:
                    self.model = peft.PeftModel.from_pretrained(self.model, folder, adapter_name=peft_name)
            except (OSError, ValueError, RuntimeError) as error:
                raise ModelError(f"The adapter {folder!r} cannot be loaded into {self.name!r}: {error}") from error

            self.model.eval()
            self._peft_names[name] = peft_name

    # From jobs to answers, in the one thread that generates

    def _work(
        self, jobs: Sequence[GenerationJob], cancelled: Sequence[Callable[[], bool]]
    ) -> list[Response | Exception]:
        """Jobs that are sampled alike, and are of like length, are generated together."""
        answers: dict[int, Response | Exception] = {}
        groups: dict[Any, list[int]] = {}
        for i, job in enumerate(jobs):
            groups.setdefault((job.temperature, job.top_p, job.seed, job.stop), []).append(i)

        of_like_length: list[list[int]] = []
        for group in groups.values():
            of_like_length += generation.of_like_length(group, [len(jobs[i].ids) for i in group])

        for group in of_like_length:
            try:
                outcomes: Sequence[Response | Exception] = self._generate(
                    [jobs[i] for i in group], [cancelled[i] for i in group]
                )
            except (RuntimeError, ValueError) as error:  # out of memory, a probability that is no number
                outcomes = [error] * len(group)
            answers.update(zip(group, outcomes, strict=True))
        return [answers[i] for i in range(len(jobs))]

    def _generate(self, jobs: Sequence[GenerationJob], cancelled: Sequence[Callable[[], bool]]) -> list[Response]:
        torch, first = self.torch, jobs[0]
        longest = max(len(job.ids) for job in jobs)
        ids, mask = self._padded_left(jobs, longest)

        recorder = LogprobRecorder(torch)
        processors: list[Any] = [recorder] if any(job.is_scored for job in jobs) else []
        matchers = [job.matcher for job in jobs]
        if any(matchers):
            processors.append(generation.SchemaMask(torch, matchers, self._ends, longest))

        options: dict[str, Any] = {}
        if first.stop:
            options = {"stop_strings": list(first.stop), "tokenizer": self.tokenizer}
        if self._peft_names:
            options["adapter_names"] = [job.adapter for job in jobs]

        with self._weights, torch.inference_mode():
            if first.seed is not None:
                torch.manual_seed(first.seed)
            output = self.model.generate(
                input_ids=ids.to(self.model.device),
                attention_mask=mask.to(self.model.device),
                generation_config=self._generation_config(jobs),
                logits_processor=processors,
                stopping_criteria=[generation.RowLimits(torch, jobs, cancelled, longest)],
                **options,
            )
            recorder.finish(output)
        written = [output[row, longest:].tolist() for row in range(len(jobs))]
        return [self._response(job, written[row], row, recorder) for row, job in enumerate(jobs)]

    def _padded_left(self, jobs: Sequence[GenerationJob], width: int) -> tuple[Any, Any]:
        """The ids of the prompts, filled up before their beginning, and the mask of that."""
        ids = self.torch.full((len(jobs), width), self._pad)
        mask = self.torch.zeros_like(ids)
        for row, job in enumerate(jobs):
            begin = width - len(job.ids)
            ids[row, begin:], mask[row, begin:] = self.torch.tensor(job.ids), 1
        return ids, mask

    def _generation_config(self, jobs: Sequence[GenerationJob]) -> Any:
        first = jobs[0]
        sampling: dict[str, Any] = {"do_sample": False}
        if first.temperature > 0:
            sampling = {
                "do_sample": True,
                "temperature": first.temperature,
                "top_p": first.top_p,
                "top_k": 0,
            }

        return self.transformers.GenerationConfig(
            max_new_tokens=max(job.max_tokens for job in jobs),
            pad_token_id=self._pad,
            eos_token_id=self._ends or None,
            **sampling,
        )

    def _response(self, job: GenerationJob, written: list[int], row: int, recorder: LogprobRecorder) -> Response:
        end = next((i for i, token in enumerate(written) if token in self._ends), len(written))
        reply_tokens = written[: min(end, job.max_tokens)]
        pieces = generation.pieces_of(self.tokenizer, reply_tokens)
        text = "".join(pieces)
        cut = min((at for stop in job.stop if (at := text.find(stop)) >= 0), default=len(text))
        stopped = cut < len(text) or (end < len(written) and end < job.max_tokens)
        pieces = generation.pieces_until(pieces, cut)
        scores = None
        if job.is_scored:
            scores = tuple(
                TokenLogprob(
                    token=piece,
                    logprob=recorder.chosen[step][row],
                    bytes=tuple(piece.encode()),
                    token_id=reply_tokens[step],
                )
                for step, piece in enumerate(pieces)
            )

        return Response(
            id=None,
            model=job.model,
            message=Message.assistant([TextPart(text[:cut])]),
            finish_reason="stop" if stopped else "length",
            usage=Usage(input_tokens=len(job.ids), output_tokens=len(reply_tokens)),
            logprobs=scores,
        )


class AsyncTransformersEngine(SharedByCopies):
    """The same model for `acall`. A cancelled task ends its answer, also in the middle of a batch."""

    def __init__(self, engine: TransformersEngine) -> None:
        self.engine = engine

    async def complete(self, request: Request) -> Response:
        return await asyncio.wrap_future(self.engine.submit(request))


def engine_of(role: RoleSettings) -> TransformersEngine:
    """The engine of a role whose model is "transformers/NAME", with or without the "#FOLDER" of an adapter.

    One for all roles that name the same base model, so that its weights are in memory once. On the GPU if there is
    one, in bfloat16 there and on processors that multiply in it, unless the role's `precision` says otherwise.
    """
    name = role.model.removeprefix(TRANSFORMERS).partition("#")[0]
    on_gpu = import_extra("torch", *_NEEDED).cuda.is_available()
    precision = "bf16" if on_gpu and role.precision == "auto" else precision_of(role.precision)
    return shared_engine(name, "cuda" if on_gpu else "cpu", "bfloat16" if precision == "bf16" else "float32")


@called_once
def shared_engine(name: str, device: str, dtype: str) -> TransformersEngine:
    return TransformersEngine(name, device=device, dtype=dtype)
