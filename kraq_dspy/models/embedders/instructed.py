"""Encodes passages as seen from a question, E(d|q): three ways, from weighted sentences to the papers' InBedder.

`load_instructed_embedder` makes the one that the settings name. Weights, torch and transformers are loaded when one is
made.
"""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.one_blas_thread import product
from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.errors import ModelError, import_extra
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.embedders.model_folder import quiet_transformers, read_model_folder
from kraq_dspy.models.embedders.packaged_embedder import MAX_TOKENS, MINILM
from kraq_dspy.models.embedders.packaged_pair import PackagedPairEmbedder
from kraq_dspy.models.machine import device_named
from kraq_dspy.ports import Embedder, InstructedEmbedder, Vectors
from kraq_dspy.settings import EncoderSettings, InstructedSettings

SHARPNESS = 10.0
INBEDDER_PROMPT = "### Input:\n{passage}\n\n### Instruction:\n{question}\n\n### Response:"
N_MASKS = 3

_NEEDED = "transformers", "Embedding passages as seen from a question"  # the extra, and what for


def name_of(name: str, dtype: str) -> str:
    """Tells weights and precision apart; of a folder it has the last part and a fingerprint, wherever it lies."""
    path = Path(name)
    known = f"{path.resolve().name}#{read_model_folder(path).fingerprint()}" if path.is_dir() else name
    return known if dtype == "float32" else f"{known}[{dtype}]"


def load_instructed_embedder(settings: InstructedSettings) -> InstructedEmbedder:
    """The encoder that `[instructed]` of kraq.toml names."""
    if settings.kind == "sentences":
        sentences = EncoderSettings(
            name=settings.name,
            batch_size=settings.batch_size,
            threads=settings.threads,
            precision=_precision_of_sentences(settings),
            device=settings.device,
        )
        return WeightedSentences(load_embedder(sentences), sharpness=settings.sharpness)

    if settings.kind == "pair":
        return PackagedPairEmbedder(max_tokens=settings.max_tokens or MAX_TOKENS, threads=settings.threads)
    options: dict[str, Any] = {name: getattr(settings, name) for name in ("batch_size", "threads", "dtype", "device")}
    if settings.max_tokens is not None:
        options["max_tokens"] = settings.max_tokens
    return InBedder(settings.name, **options)


def _precision_of_sentences(settings: InstructedSettings) -> str:
    if settings.dtype == "bfloat16":
        return "bf16"
    return "int8" if settings.name == MINILM and settings.device in ("auto", "cpu") else "fp32"


class WeightedSentences(SharedByCopies):
    """softmax(`sharpness` x cosine of sentence and question) of a passage's sentence vectors, summed and normalised.

    A sentence is read without the question: seen from another question, sentences that were read once
    (`sentences`, which `kraq precompute` stores) cost a product of small matrices (`weighed`). What it can: another
    question shows other sentences. What it cannot: see anything in a sentence that the encoder did not put there for
    all questions. Sharpness 0 is the mean of all sentences, a large one the nearest sentence alone. Safe for threads.
    """

    def __init__(self, embedder: Embedder, *, sharpness: float = SHARPNESS) -> None:
        self.embedder = embedder
        self.sharpness = sharpness
        self.sentences_name = f"sentences:{embedder.name}"  # what the stored sentences were made by
        self.name = f"{self.sentences_name}@{sharpness:g}"
        self.dimension = embedder.dimension

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        """float32 `[n_passages, dimension]`, rows L2-normalised."""
        return self.weighed(question, self.sentences(passages))

    def sentences(self, passages: Sequence[str]) -> list[Vectors]:
        """Encode each passage's sentences, `[n_sentences, dimension]`, rows L2-normalised; a
        passage without one is a sentence itself."""
        if not passages:
            return []
        parts = [[passage[start:end] for start, end in sentence_spans(passage)] or [passage] for passage in passages]
        rows = self.embedder.encode_passages([sentence for sentences in parts for sentence in sentences])
        return np.split(rows, np.cumsum([len(sentences) for sentences in parts])[:-1])

    def weighed(self, question: str, sentences: Sequence[Vectors]) -> Vectors:
        """E(d|q) of passages from the vectors of their sentences."""
        vectors = np.zeros((len(sentences), self.dimension), dtype=np.float32)
        if not sentences:
            return vectors
        [query] = self.embedder.encode_queries([question])
        for row, own in zip(vectors, sentences, strict=True):
            weights = np.exp(self.sharpness * (product(own, query) - 1))  # cosines: the largest exponent is 0
            total = product(weights, own)
            row[:] = total / max(float(np.linalg.norm(total)), 1e-12)
        return vectors


class InBedder(SharedByCopies):
    """The mean of the last hidden layer over three masks that follow the prompt (InBedder-RoBERTa).

    `name` is a local folder or a hub name. Texts that are too long lose the beginning of the passage, never the
    question or the masks, unless the question alone fills `max_tokens`: that raises ModelError. Safe for threads: one
    batch runs at a time. Raises MissingExtraError without torch and transformers, ModelError when the model cannot be
    loaded.
    """

    def __init__(
        self,
        name: str,
        *,
        max_tokens: int = 512,
        batch_size: int = InstructedSettings.batch_size,
        threads: int | None = None,
        dtype: str = "float32",
        device: str = "auto",
    ) -> None:
        self._torch, transformers = import_extra("torch", *_NEEDED), import_extra("transformers", *_NEEDED)
        if threads is not None:
            self._torch.set_num_threads(threads)
        try:
            with quiet_transformers():  # its report lists heads that an encoder does without
                self._tokenizer = transformers.AutoTokenizer.from_pretrained(name, truncation_side="left")
                model, report = transformers.AutoModel.from_pretrained(
                    name, dtype=getattr(self._torch, dtype), output_loading_info=True
                )
        except (OSError, ValueError) as error:
            raise ModelError(
                f"The instructed encoder {name!r} cannot be loaded: {error} Give a folder with its files."
            ) from error

        lacking = sorted(key for key in report["missing_keys"] if not key.startswith("pooler."))
        if lacking:
            raise ModelError(f"{name!r} is missing weights: {', '.join(lacking[:3])}. Is it an encoder?")
        if self._tokenizer.mask_token is None:
            raise ModelError(f"{name!r} has no mask token; InBedder needs a masked language model such as RoBERTa.")
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token

        self._model = model.to(device_named(device, self._torch)).eval()
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self.max_tokens = max_tokens
        self.name = f"inbedder:{name_of(name, dtype)}@{max_tokens}"
        self.dimension: int = model.config.hidden_size

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        """float32 `[n_passages, dimension]`, rows L2-normalised."""
        tokenizer, mask = self._tokenizer, self._tokenizer.mask_token
        prompts = [  # a mask in the text itself would be averaged too
            INBEDDER_PROMPT.format(passage=passage, question=question).replace(mask, " ") for passage in ("", *passages)
        ]
        fixed = len(tokenizer(prompts[0])["input_ids"]) + N_MASKS
        if fixed > self.max_tokens:
            raise ModelError(
                f"The question has {fixed} tokens with its prompt; {self.name} takes {self.max_tokens}. Shorten it."
            )

        cut = {"truncation": True, "max_length": self.max_tokens}
        rows = [dict(tokenizer(prompt + mask * N_MASKS, **cut)) for prompt in prompts[1:]]
        for row in rows:
            if row["input_ids"].count(tokenizer.mask_token_id) != N_MASKS:
                raise ModelError(f"{self.name}: a prompt does not end in {N_MASKS} masks; its tokeniser does not fit.")

        vectors = np.zeros((len(rows), self.dimension), dtype=np.float32)
        from_short_to_long = sorted(range(len(rows)), key=lambda i: (len(rows[i]["input_ids"]), i))
        for start in range(0, len(rows), self._batch_size):
            batch = from_short_to_long[start : start + self._batch_size]
            vectors[batch] = self._encode_batch([rows[i] for i in batch])
        return vectors

    def _encode_batch(self, rows: Sequence[dict[str, list[int]]]) -> Vectors:
        torch = self._torch
        with self._lock, torch.inference_mode():
            inputs = self._tokenizer.pad(rows, return_tensors="pt").to(self._model.device)
            hidden = self._model(**inputs).last_hidden_state.float()

            is_mask = (inputs["input_ids"] == self._tokenizer.mask_token_id).unsqueeze(-1)
            vectors: Vectors = torch.nn.functional.normalize((hidden * is_mask).sum(1), dim=-1).cpu().numpy()
        return vectors
