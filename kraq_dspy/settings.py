"""Declares the settings: frozen, read once from `kraq.toml` and overridden from the command line.

Every section of the file is one class here; unknown sections and keys are refused by name. The text under a field
describes it in docs/reference/settings.md. Example:

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

import codecs
import dataclasses
import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from kraq_dspy._internal.checks import suggestion
from kraq_dspy._internal.options import Checked, Count, NotNegative, OneOf, Positive, Share, options_of
from kraq_dspy.errors import ConfigError

ROLES = (
    "default", "extractor", "summarizer", "generator", "rewriter", "answerer", "drafter", "verifier", "judge", "teacher"
)  # fmt: skip
DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISIONS = ("auto", "fp32", "bf16")
ENCODER_PRECISIONS = ("auto", "int8", "int4", "fp32", "bf16")


@dataclass(frozen=True)
class CorpusSettings(Checked):
    """Which columns of a table (csv, tsv, json, jsonl, parquet) hold what; every other column is metadata."""

    section = "corpus"

    text_column: str = "text"
    """The text of a document."""
    title_column: str = "title"
    """Its title."""
    id_column: str = "id"
    """What it is called."""
    acl_column: str = ""
    """Who may read it: labels with commas between, or a list. In Markdown, a name in the front matter. Unset, "acl"
    where there is one. Once one document has labels, the index answers nobody without a scope."""
    encoding: str = ""
    """That of files which are not UTF-8 and have no byte-order mark, as "cp1252" or "cp932". Without it such files are
    refused, but for web pages, which say it themselves."""
    max_bytes: Positive = 50_000_000
    """Most bytes of a file that is one document, of a line of jsonl, and of a text."""
    max_unpacked: Positive = 200
    """Most times its size that a compressed file may hold."""
    boilerplate: Annotated[str, OneOf(("drop", "keep"))] = "drop"
    """Whether menus, lists of links, notices and where links lead are left out of web pages, in HTML or Markdown; `kraq
    status` counts the lines, and `left_out` of a document has them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            codecs.lookup(self.encoding or "utf-8")
        except LookupError:
            raise ConfigError(
                f"corpus.encoding is {self.encoding!r}; Python knows no such encoding. Names are cp1252, latin-1, "
                "cp932, gb18030, big5, ..."
            ) from None


@dataclass(frozen=True)
class ChunkSettings(Checked):
    """How documents are cut. Source of the defaults: KRAQ paper, section 2."""

    section = "chunks"

    tokens: Positive = 300
    """Most tokens of a chunk (cl100k_base)."""
    overlap: int = 50
    """Tokens that a chunk repeats from the one before; fewer than `tokens`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.overlap < self.tokens:
            raise ConfigError(f"chunks.overlap is {self.overlap}; it must be from 0 to chunks.tokens - 1.")


@dataclass(frozen=True)
class RedactSettings(Checked):
    """What is struck out of documents before anything else sees them: an index made so does not hold it."""

    section = "redact"

    emails: bool = False
    """Strike out e-mail addresses."""
    phones: bool = False
    """Strike out telephone numbers."""
    cards: bool = False
    """Strike out numbers of payment cards."""


@dataclass(frozen=True)
class ExtractSettings(Checked):
    """How entities and relationships are read from chunks."""

    section = "extract"

    preset: Annotated[str, OneOf(("auto", "full", "small"))] = "auto"
    """What a model is asked for: names, links, claims and their descriptions ("full"), or names and links alone, which
    the passage's own sentences then describe ("small"). "auto" takes "small" where the extractor's name says that it
    has less than two billion parameters."""
    gleanings: Count = 1
    """Self-reflection rounds after the first extraction; 0 switches them off."""
    grounded_names: bool = True
    """Drop what is about names that the passage does not have: small models invent some."""
    types: str = ""
    """The types of entities that are extracted, as "person, protein"; any where it is empty."""
    persona: str = ""
    """Who reads the passages, as "A geneticist who works with yeast."; `kraq domain` proposes both."""


@dataclass(frozen=True)
class ResolveSettings(Checked):
    """Which names are one entity."""

    section = "resolve"

    alike: Annotated[str, OneOf(("none", "spelling", "meaning"))] = "none"
    """Which similar names may be one: none, those alike by "spelling", or by "meaning" too, with the sentence encoder.
    What differs in accents, hyphens, spaces or word order alone is merged anyway."""
    similarity: Share = 0.92
    """Least similarity of such names, in [0, 1]: of their spellings, or the cosine of their embeddings."""
    confirm: bool = True
    """Ask the model about each such pair; the embedded one is not asked, and merges none. Without it, all are merged
    but single words and names of people, where one wrong merge is worse than ten missed."""
    acronyms: bool = True
    """Ask the model whether an acronym and a name that it fits are one ("UBA", "Universidad de Buenos Aires"), and
    whether "Mr. Holmes" is the only person of the corpus with that last name. The embedded one is not asked. What a
    text itself introduces, "Universidad de Buenos Aires (UBA)", is merged unasked."""
    description_tokens: Positive = 300
    """Descriptions of one entity are merged by the model once they exceed so many tokens together; shorter ones are
    joined as they are."""
    relationships: bool = False
    """Merge those of one relationship so too, as GraphRAG does; without it, they are joined whatever their length."""


OF_CDLIB = ("greedy_modularity", "walktrap")


@dataclass(frozen=True)
class CommunitySettings(Checked):
    """How communities are found, level by level."""

    section = "communities"

    algorithm: Annotated[str, OneOf(("leiden", "louvain", "infomap", "label_propagation", *OF_CDLIB))] = "leiden"
    """"leiden" (the papers'), another one of igraph, or one of cdlib (extra "communities"):
    "greedy_modularity", "walktrap"."""
    max_size: Positive = 10
    """A community of more entities is split. A wish: one in which no parts are found stays whole."""
    max_depth: Positive = 6
    """Most levels; level 0 is the broadest."""
    by_document: bool = True
    """Whether communities of level 0 whose entities all stand in one chunk are put together, one for each document; the
    papers' are not."""
    resolution: NotNegative = 1.0
    """Of "leiden": higher values make more and smaller communities."""
    seed: int = 0
    """Fixes chance: the same graph gives the same communities."""


THRIFTY_TOKENS, DEFAULT_CONTEXT = 600, 8192


@dataclass(frozen=True)
class SummarySettings(Checked):
    """Summaries of communities."""

    section = "summaries"

    context: Annotated[str, OneOf(("thrifty", "model"))] = "thrifty"
    """How much of a community the model sees: 600 tokens ("thrifty"), or three quarters of what the role summarizer's
    `context` says, 8192 where it is unset ("model": as in the thesis, 3.1.4)."""
    input_tokens: Positive | None = None
    """Most tokens that the model sees of one community. Unset, as `context` says."""
    min_entities: Positive = 2
    """A community with fewer entities, or of several that nothing links, gets neither summary nor question; it stays in
    the partition."""


@dataclass(frozen=True)
class QuestionSettings(Checked):
    """Representative questions."""

    section = "questions"

    asked_by: Annotated[str, OneOf(("auto", "model", "templates", "mixed"))] = "auto"
    """Who asks. "model": the generator about every summary, a template only where its second call gave nothing usable.
    "templates": no model. "mixed": a template where it knows what to ask, the generator elsewhere. "auto": "model"
    where a generator is named, otherwise "mixed"."""
    broadest: Positive | None = None
    """So many communities the generator is asked about, the broadest; of the others a template asks. Unset, all."""
    candidates: Positive | None = None
    """Most questions that the generator is asked for about a summary, of which the one is kept that a single sentence
    tells most plainly. Unset, 1; with `asked_by = "mixed"`, 3 where it has an adapter and its name says that it has
    less than two billion parameters."""
    duplicate_similarity: Share = 0.95
    """Questions whose embeddings have at least this cosine are marked as duplicates."""
    fallback: bool = True
    """Whether a template asks where the model's question does not stand alone. False keeps what the model wrote, as the
    Random baseline does; comparisons of sources of questions are made so."""
    names: Count = 8
    """Central entities of a community that are kept with its question, for `combined` with the option `names`."""
    random_least: Positive = 2
    """Fewest chunks that a question of the Random baseline is asked about (the thesis draws 3 to 7)."""
    random_most: Positive = 7
    """Most of them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.random_least > self.random_most:
            raise ConfigError(
                f"questions.random_least is {self.random_least}, above random_most, {self.random_most}: give a range."
            )


@dataclass(frozen=True)
class RefusalSettings(Checked):
    """What is said to a question that the documents do not answer, by `kraq ask`, `chat`, `serve`, `explore` and `mcp`;
    a program in Python answers whatever is asked, and so do `kraq eval` and the papers' tables."""

    section = "refusals"

    refuse: bool = True
    """Whether such a question is refused. An index that an earlier version made has no floor and refuses nothing until
    `kraq update` or `kraq upgrade` measured one."""
    floor: Share | None = None
    """The score below which a question is not answered, in [0, 1]. Unset, the one that was measured for this index."""
    offers: Count = 3
    """Questions that are offered in place of an answer, the nearest ones that the documents do answer."""


@dataclass(frozen=True)
class EncoderSettings(Checked):
    """The sentence encoder."""

    section = "encoder"

    name: str = "minilm"
    """The packaged "minilm" (English) or "multilingual-e5-small" (a hundred languages; extra `multilingual`), a short
    name ("bge-small", "bge-base", "e5-small", "arctic-s", "arctic-m", "gte-small"), a sentence-transformers name or
    path, or, with `api_base`, a model that an OpenAI-compatible endpoint serves."""
    api_base: str | None = None
    """Where the encoder is served, as http://localhost:8000/v1; unset, it runs in this process."""
    api_key_env: str | None = None
    """The environment variable that holds the key. Unset, that of the provider at `api_base`, if it is a known one."""
    query_prefix: str = ""
    """Put before a question, for encoders that were trained so."""
    passage_prefix: str = ""
    """Put before a passage."""
    batch_size: Positive = 64
    """Texts that are encoded at once."""
    reply_s: NotNegative = 300.0
    """Seconds before a reply of an endpoint is given up as a whole, however it comes."""
    reply_mb: Positive = 256
    """Most megabytes of an endpoint's reply, unpacked."""
    threads: Positive | None = None
    """Processor threads; unset, as many as there are."""
    precision: Annotated[str, OneOf(ENCODER_PRECISIONS)] = "auto"
    """The number format. "int8" of minilm and "int4" of multilingual-e5-small are packaged weights, which need no
    torch. "fp32" and "bf16" run in torch (extra `transformers`); on processors that have "bf16" it is the fastest.
    "auto" takes the packaged weights of those two, and embeds 256 passages of minilm or more in "bf16" if torch and the
    processor have it; for other encoders it is "bf16" if the processor has it, else "fp32". An index keeps the one that
    it was made with."""
    device: Annotated[str, OneOf(DEVICES)] = "auto"
    """Where it computes: "cpu", "cuda", "mps", or "auto", the best that is there. Packaged weights run on the
    processor; "cuda" and "mps" take torch. An endpoint's is its own."""


@dataclass(frozen=True)
class InstructedSettings(Checked):
    """The encoder of passages as seen from a question (Speculative RAG)."""

    section = "instructed"

    kind: Annotated[str, OneOf(("pair", "inbedder", "sentences"))] = "pair"
    """"pair" (question and passage read as one text), "inbedder" (the papers'), or the variant "sentences" (a passage's
    sentence vectors, weighted by the question: `efficient` then looks no stored question up)."""
    name: str = "minilm"
    """The packaged "minilm" (for "sentences" and "pair"), a folder or a hub name."""
    sharpness: NotNegative = 10.0
    """Of "sentences": 0 weighs all alike, a large number takes the sentence nearest to the question alone."""
    max_tokens: Positive | None = None
    """Most tokens of question and passage together, but for "sentences"; unset, the kind's own limit."""
    batch_size: Positive = 32
    """Passages that are encoded at once."""
    threads: Positive | None = None
    """Processor threads; unset, as many as there are."""
    dtype: Annotated[str, OneOf(("float32", "bfloat16"))] = "float32"
    """The number format of the weights."""
    device: Annotated[str, OneOf(DEVICES)] = "auto"
    """Where it computes: "cpu", "cuda", "mps", or "auto", the best that is there."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in ("sentences", "pair") and self.name == "minilm":
            raise ConfigError(f"instructed.kind is {self.kind!r}: give instructed.name, the folder of its weights.")


@dataclass(frozen=True)
class AskSettings(Checked):
    """What answers where a command names nothing else; `kraq select` measures it and writes this section."""

    section = "ask"

    retriever: str = ""
    """The retriever of an index, by its name. Empty, it is `adaptive`, or `dense` for an index without a graph."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if ":" in self.retriever:
            raise ConfigError(
                f"ask.retriever is {self.retriever!r}; a retriever that names a model is given with --retriever."
            )


@dataclass(frozen=True)
class K2RAGSettings(Checked):
    """How K2RAG shortens documents before it indexes them."""

    section = "k2rag"

    summariser: str = ""
    """A sequence-to-sequence model for transformers: a folder or a hub name (the paper's is
    "pszemraj/led-base-book-summary"). Empty leaves it to the language model of the role "summarizer"."""
    share: Share = 0.11
    """A summary has about this share of its document's tokens."""
    least_tokens: Positive = 60
    """A summary has at least so many tokens."""


EMBEDDED = "embedded"
"""The packaged model, which is no language model: its log-probabilities are invented (`lms.engines.rule_based`)."""
BROUGHT_MODELS = ("smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
"""What `kraq lm get` brings, compared with the sums that its makers published: "gguf/smollm2-135m" and so on."""

KNOWN_ENCODERS = (
    "minilm", "bge-small", "bge-base", "e5-small", "multilingual-e5-small", "arctic-s", "arctic-m", "gte-small",
)  # fmt: skip
"""Encoders with a short name: the packaged one, and those whose makers' weights are taken from the hub."""

QUESTIONS_BASE = "gguf/smollm2-135m"
"""The model that asks questions with the packaged adapter, also where none is named."""


@dataclass(frozen=True)
class RoleSettings(Checked):
    """A language model. Unset fields are left to the server."""

    model: str = EMBEDDED
    """The packaged "embedded", "gguf/FILE" (llama.cpp in this process), or a DSPy model string such as
    "hosted_vllm/NAME" or "openai/NAME"."""
    api_base: str | None = None
    """Where the model is served, as http://localhost:8000/v1. Of several servers of the same model (with commas
    between) the least busy one is asked, and one that does not answer rests."""
    api_key_env: str | None = None
    """The environment variable that holds the key."""
    temperature: float | None = None
    """Sampling temperature. Without one, a model in this process writes its likeliest words, and a server decides."""
    max_tokens: int | None = None
    """Most tokens of a reply. Raise it, and the next run asks again for the replies that were cut off."""
    timeout_s: float = 120.0
    """Seconds before a call of a server is given up; a model in this process is waited for."""
    reply_s: NotNegative = 600.0
    """Seconds before a reply of a server is given up as a whole, however it comes."""
    reply_mb: Positive = 16
    """Most megabytes of a server's reply, unpacked."""
    retries: int = 3
    """Times that a call is tried again."""
    prompt_price: NotNegative | None = None
    """Money for a million tokens of a prompt, in a currency of your own: `kraq estimate` and `--max-cost` use it."""
    completion_price: NotNegative | None = None
    """The same for a million tokens of a reply."""
    adapter: str | None = None
    """A LoRA adapter's folder for a "transformers/...", "gguf/..." or "hosted_vllm/..." model, its GGUF file, or the
    packaged "kraq-questions" for "gguf/smollm2-135m" as generator."""
    structured: Annotated[str, OneOf(("auto", "json_schema", "none"))] = "auto"
    """Whether the server holds typed replies to a JSON schema: "json_schema", "none", or "auto", which finds out."""
    threads: Positive | None = None
    """Threads of a "gguf/..." model. Unset, as many as there are free cores when it is loaded."""
    context: Positive | None = None
    """Most tokens that a "gguf/..." model reads and writes for one request; unset, 8192 or what it was trained on. Of a
    server's model, how much `[summaries] context = "model"` may count on."""
    slots: Positive | None = None
    """Requests that a "gguf/..." model works on together. Unset, 4. Each takes memory for its own context."""
    precision: Annotated[str, OneOf(PRECISIONS)] = "auto"
    """The number format of a "transformers/..." model: "bf16" takes half the memory and reads prompts about three times
    as fast on processors that have it; "auto" chooses it on those, and on a GPU."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Each address of `api_base`."""
        return tuple(address.strip() for address in (self.api_base or "").split(",") if address.strip())


@dataclass(frozen=True)
class RunSettings(Checked):
    """Where and how many at a time models are asked."""

    section = "run"

    concurrency: Positive = 32
    """Model calls in flight at once."""
    runner: Annotated[str, OneOf(("local", "ray"))] = "local"
    """Where the work is done: in this process ("local") or on a cluster ("ray")."""
    ray_address: str | None = None
    """The cluster: "auto" (the one that this machine belongs to), HOST:PORT, or "local" (one of its own). Unset, it is
    the address in RAY_ADDRESS if there is one, else "local". Ray Data does not work through Ray Client (ray://): run on
    a machine of the cluster."""

    def __post_init__(self) -> None:
        super().__post_init__()
        address = self.ray_address
        if address not in (None, "auto", "local") and not re.fullmatch(r"[^\s/]+:\d+", str(address)):
            raise ConfigError(f'run.ray_address is {address!r}; it must be "auto", "local" or HOST:PORT (no ray://).')


@dataclass(frozen=True)
class StoreSettings(Checked):
    """Where vectors lie."""

    section = "store"

    url: str | None = None
    """The address of a Qdrant server; unset, vectors lie in the index folder."""
    api_key_env: str | None = None
    """The environment variable that holds the server's key. Unset, QDRANT_API_KEY."""


@dataclass(frozen=True)
class Settings(Checked):
    """What `kraq.toml` may say. A role that is not there falls back to [roles.default].

    >>> Settings(chunks=ChunkSettings(tokens=200)).chunks.overlap
    50
    """

    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    chunks: ChunkSettings = field(default_factory=ChunkSettings)
    redact: RedactSettings = field(default_factory=RedactSettings)
    extract: ExtractSettings = field(default_factory=ExtractSettings)
    resolve: ResolveSettings = field(default_factory=ResolveSettings)
    communities: CommunitySettings = field(default_factory=CommunitySettings)
    summaries: SummarySettings = field(default_factory=SummarySettings)
    questions: QuestionSettings = field(default_factory=QuestionSettings)
    refusals: RefusalSettings = field(default_factory=RefusalSettings)
    encoder: EncoderSettings = field(default_factory=EncoderSettings)
    instructed: InstructedSettings = field(default_factory=InstructedSettings)
    ask: AskSettings = field(default_factory=AskSettings)
    k2rag: K2RAGSettings = field(default_factory=K2RAGSettings)
    run: RunSettings = field(default_factory=RunSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    roles: dict[str, RoleSettings] = field(default_factory=lambda: {"default": RoleSettings()})

    def role(self, name: str) -> RoleSettings:
        """The settings of a role; an unset role falls back to "default"."""
        return self.roles.get(name) or self.roles["default"]

    @property
    def community_tokens(self) -> int:
        """Most tokens of a community that its summary is written from."""
        if self.summaries.input_tokens is not None:
            return self.summaries.input_tokens
        whole = self.role("summarizer").context or DEFAULT_CONTEXT
        return THRIFTY_TOKENS if self.summaries.context == "thrifty" else 3 * whole // 4

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def to_toml(self) -> str:
        """What a kraq.toml has to say to give these settings: whatever differs from the defaults.

        >>> print(Settings(chunks=ChunkSettings(tokens=200)).to_toml())
        [chunks]
        tokens = 200
        """
        default = Settings().to_dict()
        sections = []
        for name, section in self.to_dict().items():
            tables = {name: (section, default[name])}
            if name == "roles":
                plain = dataclasses.asdict(RoleSettings())
                tables = {f"roles.{role}": (values, plain) for role, values in section.items()}
            for title, (values, usual) in tables.items():
                changed = [f"{key} = {_toml(value)}" for key, value in values.items() if value != usual[key]]
                if changed:
                    sections.append("\n".join([f"[{title}]", *changed]))
        return "\n\n".join(sections)


def _toml(value: str | float | bool) -> str:
    """A value of a setting as TOML has it; its basic strings are JSON's but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "thrifty": {"extract": {"gleanings": 0}, "summaries": {"input_tokens": 400, "min_entities": 4}}
}
"""What `preset = "..."`, before the first section of a file, says in the place of the defaults. "thrifty": an index for
six times the corpus's tokens in prompts instead of nine and a half (docs/results/indexing.md)."""


def read_settings(path: Path | None = None) -> Settings:
    """Settings from a TOML file; the defaults without one. What the file says goes before its preset.

        settings = read_settings(Path("kraq.toml"))

    Raises ConfigError for a file that is absent or not TOML, an unknown key, or a value of the wrong type or range.
    """
    if path is None:
        return Settings()
    try:
        data = path.read_bytes()
        encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
        tables = tomllib.loads(data.decode(encoding))
    except FileNotFoundError:
        raise ConfigError(f"There is no settings file {str(path)!r}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} is not valid TOML: {error}") from error
    preset = tables.pop("preset", None)
    if preset is None:
        return settings_from_dict(tables, where=str(path))
    if preset not in PRESETS:
        raise ConfigError(f"{path}: preset is {preset!r}; {suggestion(str(preset), PRESETS)}")
    under = {name: {**PRESETS[preset].get(name, {}), **_table(name, table)} for name, table in tables.items()}
    return settings_from_dict({**PRESETS[preset], **under}, where=str(path))


def settings_from_dict(tables: dict[str, Any], where: str = "settings") -> Settings:
    """The inverse of `Settings.to_dict`; keys that are left out keep their defaults. Raises ConfigError."""
    sections = options_of(Settings)
    try:
        for name in tables.keys() - sections.keys():
            raise ConfigError(f"[{name}] is no section; {suggestion(name, sections)}")
        return Settings(**{name: _section(name, table) for name, table in tables.items()})
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _section(name: str, table: Any) -> Any:
    if name != "roles":
        [kind] = options_of(Settings)[name].kinds
        return kind(**_known_keys(name, kind, table))

    roles = {"default": RoleSettings()}
    for role, entry in _table(name, table).items():
        if role not in ROLES:
            raise ConfigError(f"[roles.{role}] is no role; {suggestion(role, ROLES)}")
        values = _known_keys(f"roles.{role}", RoleSettings, entry)
        try:
            roles[role] = RoleSettings(**values)
        except ConfigError as error:
            raise ConfigError(f"roles.{role}.{error}") from None
    return roles


def _known_keys(name: str, kind: Any, table: Any) -> dict[str, Any]:
    known = options_of(kind)
    for key in _table(name, table):
        if key not in known:
            raise ConfigError(f"{name}.{key} is not known; {suggestion(key, known)}")
    return dict(table)


def _table(name: str, table: Any) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ConfigError(f"{name} is {table!r}; it must be a section [{name}].")
    return table
