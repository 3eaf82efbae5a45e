"""Loads a base model and gives it a LoRA adapter, where that fits into memory: in four bits on a GPU, else in full."""

import importlib
import importlib.util
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kraq_dspy.errors import MissingExtraError, ModelError, TrainingError, needs
from kraq_dspy.finetune.settings import TrainSettings
from kraq_dspy.models.embedders.model_folder import quiet_transformers, unpacked
from kraq_dspy.models.lms.engines.generation import checked_weights

GB = 1e9


class TrainPackages:
    """What the extra "train" brings, imported once and quietly."""

    def __init__(self) -> None:
        self.torch, self.transformers = self._import("torch"), self._import("transformers")
        self.peft = self._import("peft")
        self._import("accelerate")

    @staticmethod
    def _import(package: str) -> Any:
        with needs(package, "train", "Fine-tuning"):
            return importlib.import_module(package)

    def has(self, package: str) -> bool:
        return importlib.util.find_spec(package) is not None

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keeps transformers' own bars and warnings away: this library's progress tells how it goes."""
        with quiet_transformers(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # between these packages, not for who trains
            yield


def in_four_bits(packages: TrainPackages, settings: TrainSettings) -> bool:
    """Whether the settings mean 4-bit weights on this machine. Raises MissingExtraError where bitsandbytes is
    missing."""
    if settings.quantize == "nf4" and not packages.has("bitsandbytes"):
        raise MissingExtraError("bitsandbytes", "train", "Training on 4-bit weights (--quantize nf4)")
    if settings.quantize == "auto":
        return bool(packages.torch.cuda.is_available()) and packages.has("bitsandbytes")
    return settings.quantize == "nf4"


def read_base(packages: TrainPackages, name: str) -> tuple[Any, Any]:
    """The tokenizer and the configuration of a base model, without its weights."""
    place, options = checked_weights(name)
    try:
        tokenizer = packages.transformers.AutoTokenizer.from_pretrained(place, **options)
        return tokenizer, packages.transformers.AutoConfig.from_pretrained(place, **options)
    except (OSError, ValueError) as error:
        raise ModelError(f"The base model {name!r} cannot be loaded: {error} Give the folder of its files.") from error


def count_parameters(packages: TrainPackages, config: Any, settings: TrainSettings) -> tuple[int, int]:
    """The model's parameters, and those of the adapter: without memory for either."""
    with packages.torch.device("meta"):
        model = packages.transformers.AutoModelForCausalLM.from_config(config)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        model = packages.peft.get_peft_model(model, _lora_config(packages, settings))
    return parameters, sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def _lora_config(packages: TrainPackages, settings: TrainSettings) -> Any:
    named: Any = settings.target_modules or None
    if named is not None and named != "all-linear":
        named = [word.strip() for word in named.split(",") if word.strip()]
    return packages.peft.LoraConfig(
        r=settings.r,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        bias="none",
        target_modules=named,
        task_type="CAUSAL_LM",
    )


def make_lora_model(packages: TrainPackages, name: str, start: str, settings: TrainSettings, *, four_bits: bool) -> Any:
    """The base model with a new adapter, or with the one in the folder `start`, to be trained on."""
    torch, peft = packages.torch, packages.peft
    cuda = torch.cuda.is_available()
    place, options = checked_weights(name)
    options = unpacked(options)
    options["dtype"] = torch.bfloat16 if four_bits and cuda else torch.float32
    if four_bits:
        options["quantization_config"] = packages.transformers.BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.float16 if cuda else torch.float32,
        )
        options["device_map"] = {"": 0 if cuda else "cpu"}
    try:
        model = packages.transformers.AutoModelForCausalLM.from_pretrained(place, **options)
        model.config.use_cache = False
        if "gguf_file" in options:  # torch's weights were made of it, and transformers takes them for the file's
            model.is_quantized = False
        if four_bits:
            model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=cuda)
        if start:
            return peft.PeftModel.from_pretrained(model, start, is_trainable=True)
        return peft.get_peft_model(model, _lora_config(packages, settings))
    except (OSError, ValueError) as error:
        raise ModelError(f"The model {name!r} cannot be trained: {error}") from error


def check_memory(
    settings: TrainSettings, *, config: Any, parameters: int, trained: int, longest: int, four_bits: bool, free: int
) -> float:
    """The bytes that training takes, about. Raises TrainingError when that is more than `free`, saying what helps.

    `config` is transformers' of the model; `longest` are the tokens of the longest row. Counted: weights, the
    adapter with gradients and the optimizer's moments, logits with their gradients, and activations (34 bytes for each
    hidden value of each layer at 16 bits, Korthikanti et al., 2022; 2 with checkpoints of them, which nf4 uses).
    """
    text = config.get_text_config()
    embedded = text.vocab_size * text.hidden_size * (1 if text.tie_word_embeddings else 2)
    weights = (parameters - embedded) * 0.55 + embedded * 2 if four_bits else parameters * 4
    adapter = trained * (4 + 4 + (2 if four_bits else 8))
    tokens = settings.batch_size * longest
    logits = tokens * text.vocab_size * 4 * 3
    hidden = tokens * text.hidden_size * text.num_hidden_layers * (4 if four_bits else 68)
    needed = weights + adapter + logits + hidden
    if needed > free:
        ways = ["--batch-size 1 (and --accumulate 8, for the same steps)"] if settings.batch_size > 1 else []
        ways += [] if four_bits else ["--quantize nf4"]
        raise TrainingError(
            f"Training takes about {needed / GB:.1f} GB ({weights / GB:.1f} of them weights), and {free / GB:.1f} GB "
            f"are free. What helps: {', '.join([*ways, 'shorter rows', 'a smaller base model'])}."
        )
    return float(needed)


def free_memory(torch: Any) -> int:
    """Bytes: of the GPU where there is one, else of the machine."""
    if torch.cuda.is_available():
        return int(torch.cuda.mem_get_info()[0])
    psutil = importlib.import_module("psutil")  # comes with accelerate
    return int(psutil.virtual_memory().available)
