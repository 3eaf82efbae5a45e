"""Frozen settings, read once from `kraq.toml` and overridden from the command line.

Every section of the file is one dataclass here; unknown sections and keys are refused by name. Example:

    [chunks]
    tokens = 300

    [encoder]
    name = "nomic-ai/nomic-embed-text-v1.5"
    query_prefix = "search_query: "
    passage_prefix = "search_document: "

    [roles.default]
    model = "hosted_vllm/meta-llama/Llama-3.1-8B-Instruct"
    api_base = "http://localhost:8000/v1"
"""

import dataclasses
import difflib
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from kraq_dspy.errors import ConfigError

ROLES = (
    "default", "extractor", "summarizer", "generator", "rewriter", "answerer", "drafter", "verifier", "judge", "teacher"
)  # fmt: skip


def _positive(section: Any, *names: str) -> None:
    for name in names:
        if getattr(section, name) < 1:
            raise ConfigError(f"{type(section).__name__}.{name} is {getattr(section, name)}; it must be 1 or more.")


def _share(section: Any, *names: str) -> None:
    for name in names:
        if not 0 <= getattr(section, name) <= 1:
            raise ConfigError(f"{type(section).__name__}.{name} is {getattr(section, name)}; it must be from 0 to 1.")


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """Tokens are cl100k_base tokens. Source of the defaults: KRAQ paper, section 2."""

    tokens: int = 300
    overlap: int = 50

    def __post_init__(self) -> None:
        _positive(self, "tokens")
        if not 0 <= self.overlap < self.tokens:
            raise ConfigError(f"chunks.overlap is {self.overlap}; it must be from 0 to chunks.tokens - 1.")


@dataclass(frozen=True, slots=True)
class RedactSettings:
    """What is struck out of documents before anything else sees them: an index made so does not hold it."""

    emails: bool = False
    phones: bool = False
    cards: bool = False


@dataclass(frozen=True, slots=True)
class ExtractSettings:
    """`gleanings` is the number of self-reflection rounds after the first extraction; 0 switches them off."""

    gleanings: int = 1

    def __post_init__(self) -> None:
        if self.gleanings < 0:
            raise ConfigError(f"extract.gleanings is {self.gleanings}; it must be 0 or more.")


@dataclass(frozen=True, slots=True)
class ResolveSettings:
    """Entity resolution: `similarity` is the least name similarity in [0, 1] of a merge; `confirm` asks the model too.

    Descriptions of one entity are merged by the model once they exceed `description_tokens` together; shorter ones are
    joined as they are.
    """

    similarity: float = 0.92
    semantic: bool = True
    confirm: bool = False
    description_tokens: int = 300

    def __post_init__(self) -> None:
        _share(self, "similarity")
        _positive(self, "description_tokens")


@dataclass(frozen=True, slots=True)
class CommunitySettings:
    """Hierarchical Leiden: a community larger than `max_size` entities is split until `max_depth` levels exist.

    `max_size` is a wish: a community that Leiden cannot split stays whole.
    """

    max_size: int = 10
    max_depth: int = 6
    resolution: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        _positive(self, "max_size", "max_depth")
        if self.resolution <= 0:
            raise ConfigError(f"communities.resolution is {self.resolution}; it must be above 0.")


@dataclass(frozen=True, slots=True)
class SummarySettings:
    """`input_tokens` limits what the model sees of one community. Communities with fewer than `min_entities` entities
    get neither summary nor question; they stay in the partition."""

    input_tokens: int = 600
    min_entities: int = 2

    def __post_init__(self) -> None:
        _positive(self, "input_tokens", "min_entities")


@dataclass(frozen=True, slots=True)
class QuestionSettings:
    """Questions whose embeddings have at least the cosine `duplicate_similarity` are marked as duplicates."""

    duplicate_similarity: float = 0.95

    def __post_init__(self) -> None:
        _share(self, "duplicate_similarity")


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """`name` is "minilm" (packaged, offline), a sentence-transformers name or path, or, with `api_base`, a model
    that an OpenAI-compatible endpoint serves. The key is read from the environment variable `api_key_env`.

    `precision` is "fp32", "bf16" (about three times faster on processors that have it), or "auto": bf16 on those, fp32
    on others.
    """

    name: str = "minilm"
    api_base: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    query_prefix: str = ""
    passage_prefix: str = ""
    batch_size: int = 64
    threads: int | None = None
    precision: str = "auto"

    def __post_init__(self) -> None:
        _positive(self, "batch_size")
        if self.threads is not None:
            _positive(self, "threads")
        if self.precision not in ("auto", "fp32", "bf16"):
            raise ConfigError(f'encoder.precision is {self.precision!r}; it must be "auto", "fp32" or "bf16".')


@dataclass(frozen=True, slots=True)
class InstructedSettings:
    """The encoder of passages as seen from a question (Speculative RAG). `kind` is "pair", "inbedder", "qwen3",
    "e5-mistral", "nomic" or "instructor"; `name` is "minilm" (packaged, for "pair" only), a folder or a hub name.

    `max_tokens` counts question and passage; None is the kind's own. `dtype` is "float32" or "bfloat16".
    """

    kind: str = "pair"
    name: str = "minilm"
    max_tokens: int | None = None
    batch_size: int = 32
    threads: int | None = None
    dtype: str = "float32"

    def __post_init__(self) -> None:
        _positive(self, "batch_size")
        if self.max_tokens is not None:
            _positive(self, "max_tokens")
        if self.kind != "pair" and self.name == "minilm":
            raise ConfigError(f"instructed.kind is {self.kind!r}: give instructed.name, the folder of its weights.")
        if self.dtype not in ("float32", "bfloat16"):
            raise ConfigError(f'instructed.dtype is {self.dtype!r}; it must be "float32" or "bfloat16".')


@dataclass(frozen=True, slots=True)
class K2RAGSettings:
    """How K2RAG shortens documents before it indexes them. `summariser` is a sequence-to-sequence model for
    transformers (a folder or a hub name; the paper's is "pszemraj/led-base-book-summary"); "" leaves it to the language
    model of the role "summarizer". A summary has about `share` of the document's tokens, at least `least_tokens`.
    """

    summariser: str = ""
    share: float = 0.11
    least_tokens: int = 60

    def __post_init__(self) -> None:
        _share(self, "share")
        _positive(self, "least_tokens")


@dataclass(frozen=True, slots=True)
class RoleSettings:
    """A language model. `model` is "embedded" or a DSPy model string such as "hosted_vllm/NAME" or "openai/NAME".

    Unset fields are left to the server. The key is read from the environment variable `api_key_env`. Prices are money
    for a million tokens, in a currency of your own: `kraq estimate` and `--max-cost` use them. `adapter` is the folder
    of a LoRA adapter for a "transformers/..." or "hosted_vllm/..." model.
    """

    model: str = "embedded"
    api_base: str | None = None
    api_key_env: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    timeout_s: float = 120.0
    retries: int = 3
    prompt_price: float | None = None
    completion_price: float | None = None
    adapter: str | None = None

    def __post_init__(self) -> None:
        for name in ("prompt_price", "completion_price"):
            if (price := getattr(self, name)) is not None and price < 0:
                raise ConfigError(f"roles: {name} is {price}; it must be 0 or more.")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """`concurrency` bounds the model calls in flight. `runner` is "local" (this process) or "ray" (a cluster).

    `ray_address` is "auto" (the cluster that this machine belongs to), HOST:PORT, or "local" (one of its own); None is
    the address in RAY_ADDRESS if that is set, else "local". Ray Data does not work through Ray Client (ray://): run on
    a machine of the cluster.
    """

    concurrency: int = 32
    runner: str = "local"
    ray_address: str | None = None

    def __post_init__(self) -> None:
        _positive(self, "concurrency")
        if self.runner not in ("local", "ray"):
            raise ConfigError(f'run.runner is {self.runner!r}; it must be "local" or "ray".')
        address = self.ray_address
        if address not in (None, "auto", "local") and not re.fullmatch(r"[^\s/]+:\d+", str(address)):
            raise ConfigError(f'run.ray_address is {address!r}; it must be "auto", "local" or HOST:PORT (no ray://).')


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """`url` of a Qdrant server; None keeps the vectors in the index folder (Qdrant Edge)."""

    url: str | None = None
    api_key_env: str = "QDRANT_API_KEY"


@dataclass(frozen=True, slots=True)
class Settings:
    """All of the above; what `kraq.toml` may say."""

    chunks: ChunkSettings = field(default_factory=ChunkSettings)
    redact: RedactSettings = field(default_factory=RedactSettings)
    extract: ExtractSettings = field(default_factory=ExtractSettings)
    resolve: ResolveSettings = field(default_factory=ResolveSettings)
    communities: CommunitySettings = field(default_factory=CommunitySettings)
    summaries: SummarySettings = field(default_factory=SummarySettings)
    questions: QuestionSettings = field(default_factory=QuestionSettings)
    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    instructed: InstructedSettings = field(default_factory=InstructedSettings)
    k2rag: K2RAGSettings = field(default_factory=K2RAGSettings)
    run: RunSettings = field(default_factory=RunSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    roles: dict[str, RoleSettings] = field(default_factory=lambda: {"default": RoleSettings()})

    def role(self, name: str) -> RoleSettings:
        """The settings of a role; an unset role falls back to "default"."""
        return self.roles.get(name) or self.roles["default"]

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def read_settings(path: Path | None = None) -> Settings:
    """Settings from a TOML file; the defaults without one.

    Raises ConfigError for a file that is absent or not TOML, an unknown key, or a value of the wrong type or range.
    """
    if path is None:
        return Settings()
    try:
        tables = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"There is no settings file {str(path)!r}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} is not valid TOML: {error}") from error
    return settings_from_dict(tables, where=str(path))


def settings_from_dict(tables: dict[str, Any], where: str = "settings") -> Settings:
    """The inverse of `Settings.to_dict`; keys that are left out keep their defaults. Raises ConfigError."""
    sections: dict[str, Any] = {}
    kinds = get_type_hints(Settings)
    for name, table in tables.items():
        if name not in kinds:
            raise ConfigError(f"{where}: unknown section [{name}]{_suggestion(name, kinds)}.")
        if not isinstance(table, dict):
            raise ConfigError(f"{where}: {name} is {table!r}; expected a section [{name}].")
        if name != "roles":
            sections[name] = _section(kinds[name], table, f"{where}: [{name}]")
            continue
        for role in table:
            if role not in ROLES:
                raise ConfigError(f"{where}: unknown role [roles.{role}]{_suggestion(role, ROLES)}.")
        roles = {role: _section(RoleSettings, entry, f"{where}: [roles.{role}]") for role, entry in table.items()}
        sections["roles"] = {"default": RoleSettings(), **roles}
    return Settings(**sections)


def _section(kind: Any, table: Any, where: str) -> Any:
    if not isinstance(table, dict):
        raise ConfigError(f"{where} is {table!r}; expected a section.")
    hints = get_type_hints(kind)
    values = {}
    for key, value in table.items():
        if key not in hints:
            raise ConfigError(f"{where}: unknown key {key!r}{_suggestion(key, hints)}.")
        values[key] = _checked(hints[key], value, f"{where} {key}")
    return kind(**values)


def _checked(hint: Any, value: Any, where: str) -> Any:
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) not in kinds:
        expected = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
        raise ConfigError(f"{where} is {value!r}; expected {expected}.")
    return value


def _suggestion(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"
