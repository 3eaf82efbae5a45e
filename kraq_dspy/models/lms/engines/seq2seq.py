"""Summarises by a sequence-to-sequence model in this process: LED, LongT5, BART, Pegasus, by folder or hub name."""

import threading
from typing import Any

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.errors import ModelError, import_extra

_NEEDED = "transformers", "A summariser in this process"  # the extra, and what for
_TOKENS_PER_WORD = 1.6  # generous: a limit must not cut a sentence that keeps to the words asked for


class Seq2SeqSummariser(SharedByCopies):
    """A `Summariser`. A text longer than the model's context is read in pieces, each told in its share of the words.

    The weights are loaded with the first text, on a GPU if there is one; decoding is a beam search, so the same text
    gets the same summary. Threads take turns. Raises MissingExtraError without transformers or torch, ModelError when
    `name` cannot be loaded.
    """

    def __init__(self, name: str, *, beams: int = 4) -> None:
        self.name = name
        self.beams = beams
        self._turn = threading.Lock()
        self._loaded: tuple[Any, Any, int] | None = None

    def __call__(self, text: str, words: int) -> str:
        if words < 1:
            raise ValueError(f"words is {words}; expected 1 or more.")
        with self._turn:
            tokenizer, model, context = self._model()
            pieces = self._pieces(tokenizer, text, context)
            share = max(1, words // len(pieces))
            return " ".join(filter(None, (self._summary(tokenizer, model, piece, share, context) for piece in pieces)))

    def _pieces(self, tokenizer: Any, text: str, context: int) -> list[str]:
        ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        most = context - tokenizer.num_special_tokens_to_add()
        if len(ids) <= most:
            return [text]
        count = -(-len(ids) // most)
        size = -(-len(ids) // count)  # of equal length, so that the last is no fragment
        return [
            tokenizer.decode(ids[start : start + size], skip_special_tokens=True) for start in range(0, len(ids), size)
        ]

    def _summary(self, tokenizer: Any, model: Any, text: str, words: int, context: int) -> str:
        torch = import_extra("torch", *_NEEDED)
        inputs = tokenizer(text, truncation=True, max_length=context, return_tensors="pt").to(model.device)
        inputs.pop("token_type_ids", None)
        if model.config.model_type == "led":  # its first token has to see the whole text
            inputs["global_attention_mask"] = torch.zeros_like(inputs["attention_mask"])
            inputs["global_attention_mask"][:, 0] = 1

        with torch.inference_mode():
            output = model.generate(
                **inputs,
                num_beams=self.beams,
                do_sample=False,
                max_new_tokens=max(8, round(words * _TOKENS_PER_WORD)),
                min_new_tokens=1,
                no_repeat_ngram_size=3,
                early_stopping=True,
            )
        return " ".join(tokenizer.decode(output[0], skip_special_tokens=True).split())

    def _model(self) -> tuple[Any, Any, int]:
        """Tokenizer, model and the longest input in tokens."""
        if self._loaded is None:
            torch, transformers = import_extra("torch", *_NEEDED), import_extra("transformers", *_NEEDED)
            try:
                tokenizer = transformers.AutoTokenizer.from_pretrained(self.name)
                model = transformers.AutoModelForSeq2SeqLM.from_pretrained(self.name)
            except (OSError, ValueError, RuntimeError) as error:
                raise ModelError(
                    f"The summariser {self.name!r} cannot be loaded: {error}. [k2rag] summariser in kraq.toml takes a "
                    "folder or a hub name of a sequence-to-sequence model; without it kraq calls the role summarizer."
                ) from error
            model = model.eval().to("cuda" if torch.cuda.is_available() else "cpu")
            self._loaded = tokenizer, model, _context(tokenizer, model)
        return self._loaded


def _context(tokenizer: Any, model: Any) -> int:
    config = model.config
    names = ("max_encoder_position_embeddings", "max_position_embeddings")
    limits = [int(limit) for name in names if (limit := getattr(config, name, None))][:1]
    if tokenizer.model_max_length < 1_000_000:  # transformers' "not known" is 1e30
        limits.append(int(tokenizer.model_max_length))
    return min(limits, default=1024)
