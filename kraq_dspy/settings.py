"""Declares the settings: frozen, read once from `kraq.toml` and overridden from the command line.

Every section of the file is one class here; kraq rejects unknown sections and keys by name. The
text under a field describes it in docs/reference/settings.md. Example:

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from kraq_dspy._internal.checks import suggestion
from kraq_dspy._internal.options import Checked, Count, NotNegative, OneOf, Positive, Share, options_of
from kraq_dspy._internal.toml_file import read_toml
from kraq_dspy.errors import ConfigError

__all__ = [
    "PRESETS", "AskSettings", "ChunkSettings", "ColumnSettings", "CommunitySettings", "CorpusSettings",
    "EncoderSettings", "ExtractSettings", "InstructedSettings", "K2RAGSettings", "QuestionSettings",
    "RedactSettings", "RefusalSettings", "ResolveSettings", "RoleSettings", "RunSettings", "Settings",
    "StoreSettings", "SummarySettings", "read_settings", "settings_from_dict",
]  # fmt: skip

ROLES = (
    "default", "extractor", "summarizer", "generator", "asker", "rewriter", "answerer", "drafter", "verifier", "judge",
    "teacher",
)  # fmt: skip
DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISIONS = ("auto", "fp32", "bf16")
ENCODER_PRECISIONS = ("auto", "int8", "int4", "fp32", "bf16")


@dataclass(frozen=True)
class CorpusSettings(Checked):
    """Names of the columns of a table (csv, tsv, json, jsonl, parquet). Every other column is
    metadata."""

    section = "corpus"

    text_column: str = "text"
    """Column with the text of a document."""
    title_column: str = "title"
    """Column with its title."""
    id_column: str = "id"
    """Column with its id."""
    acl_column: str = ""
    """Column with the labels of who may read it: separated by commas, or a list. In Markdown, a
    name in the front matter. Unset, "acl" if there is one. Once one document has labels, the
    index answers only questions with a scope."""
    labels: Annotated[str, OneOf(("optional", "required"))] = "optional"
    """"required" rejects each document without labels, by name. Set it if you have secrets."""
    labels_file: str = ""
    """A csv with the columns path (or id) and labels, which say who may read the file, the folder or
    the document."""
    encoding: str = ""
    """Encoding of files that are not UTF-8 and have no byte-order mark, such as "cp1252" or
    "cp932". If it is unset, kraq rejects such files, except web pages that name their encoding."""
    max_bytes: Positive = 50_000_000
    """Maximum bytes of a file that is one document, of a line of jsonl, and of a text."""
    max_unpacked: Positive = 200
    """Maximum ratio of a compressed file's content to its size."""
    boilerplate: Annotated[str, OneOf(("drop", "keep"))] = "drop"
    """"drop" leaves menus, lists of links, notices and link targets out of web pages (HTML or
    Markdown). `kraq status` counts the lines, and `left_out` of a document has them."""

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
class ColumnSettings(Checked):
    """Names of the columns of your files of questions, for every command that reads one. Unset, kraq finds the usual
    names. Rows that kraq wrote have kraq's own names whatever is set here."""

    section = "columns"

    question: str = ""
    """Column with the question. Unset: question, query, user_input, ..."""
    answers: str = ""
    """Column with the right answers. Unset: answers, answer, reference, ..."""
    documents: str = ""
    """Column with the ids of the documents that answer. Unset: supporting_ids, documents, ..."""


@dataclass(frozen=True)
class ChunkSettings(Checked):
    """How kraq cuts documents into passages. The defaults are from the KRAQ paper, section 2."""

    section = "chunks"

    tokens: Positive = 300
    """Maximum tokens of a passage (cl100k_base)."""
    overlap: int = 50
    """Tokens that a passage repeats from the previous one; fewer than `tokens`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.overlap < self.tokens:
            raise ConfigError(f"chunks.overlap is {self.overlap}; it must be from 0 to chunks.tokens - 1.")


@dataclass(frozen=True)
class RedactSettings(Checked):
    """What kraq strikes out of documents before it indexes them, so that the index does not hold
    it."""

    section = "redact"

    emails: bool = False
    """Strike out e-mail addresses."""
    phones: bool = False
    """Strike out telephone numbers."""
    cards: bool = False
    """Strike out numbers of payment cards."""


@dataclass(frozen=True)
class ExtractSettings(Checked):
    """How kraq extracts entities and relationships from passages."""

    section = "extract"

    preset: Annotated[str, OneOf(("auto", "full", "small"))] = "auto"
    """What kraq asks a model for. "full": names, links, claims and their descriptions. "small":
    names and links alone, described by the passage's own sentences. "auto": "full", unless the
    extractor's name says that it has less than two billion parameters: then the parser reads what is
    in English and no model is asked, and the rest is read as by "small"."""
    gleanings: Count = 1
    """Self-reflection rounds after the first extraction; 0 switches them off."""
    grounded_names: bool = True
    """Drop names that the passage does not contain, and what is said about them: small models
    invent some."""
    types: str = ""
    """The types of entities to extract, such as "person, protein"; empty means any."""
    persona: str = ""
    """Who reads the passages, such as "A geneticist who works with yeast."; `kraq index --domain`
    proposes both."""


@dataclass(frozen=True)
class ResolveSettings(Checked):
    """Which names kraq takes for one entity."""

    section = "resolve"

    alike: Annotated[str, OneOf(("none", "spelling", "meaning"))] = "none"
    """Which similar names may be one entity: "none", those alike in "spelling", or also those
    alike in "meaning", by the sentence encoder. kraq always merges names that differ only in
    accents, hyphens, spaces or word order."""
    similarity: Share = 0.92
    """Minimum similarity of such names, in [0, 1]: of their spellings, or the cosine of their
    embeddings."""
    confirm: bool = True
    """Ask the model about each such pair (the embedded model merges none). If false, kraq merges
    all of them except single words and names of people, for which one wrong merge is worse than
    ten missed."""
    acronyms: bool = True
    """Ask the model whether an acronym and a name that it fits are one entity ("UBA",
    "Universidad de Buenos Aires"), and whether "Mr. Holmes" is the only person of the corpus
    with that last name (the embedded model merges none). If a text introduces the acronym,
    "Universidad de Buenos Aires (UBA)", kraq merges the two without asking."""
    description_tokens: Positive = 300
    """The model merges the descriptions of an entity once they exceed this many tokens together;
    kraq joins shorter ones as they are."""
    relationships: bool = False
    """Merge the descriptions of a relationship in the same way, as GraphRAG does. If false, kraq
    joins them whatever their length."""


OF_CDLIB = ("greedy_modularity", "walktrap")


@dataclass(frozen=True)
class CommunitySettings(Checked):
    """How kraq finds communities, level by level."""

    section = "communities"

    algorithm: Annotated[str, OneOf(("leiden", "louvain", "infomap", "label_propagation", *OF_CDLIB))] = "leiden"
    """"leiden" (the papers'), or another one, which needs the extra "communities": "louvain",
    "infomap" and "label_propagation" of igraph, "greedy_modularity" and "walktrap" of cdlib. That
    extra brings packages under the GPL: igraph, and Levenshtein, which cdlib needs."""
    max_size: Positive = 10
    """kraq splits communities with more entities than this, unless the algorithm finds no parts
    in one."""
    max_depth: Positive = 6
    """Maximum number of levels; level 0 is the broadest."""
    by_document: bool = True
    """Join the communities of level 0 whose entities are all in one passage into one community for
    each document (the papers do not)."""
    resolution: NotNegative = 1.0
    """Resolution of "leiden": higher values make more and smaller communities."""
    seed: int = 0
    """Random seed: the same graph gives the same communities."""


THRIFTY_TOKENS, DEFAULT_CONTEXT = 600, 8192


@dataclass(frozen=True)
class SummarySettings(Checked):
    """Summaries of communities."""

    section = "summaries"

    context: Annotated[str, OneOf(("thrifty", "model"))] = "thrifty"
    """How much of a community the model sees. "thrifty": 600 tokens. "model": three quarters of
    the `context` of the role summarizer, which is 8192 if unset (thesis, 3.1.4)."""
    input_tokens: Positive | None = None
    """Maximum tokens that the model sees of one community. Unset, `context` decides."""
    min_entities: Positive = 2
    """Minimum entities of a community with a summary and a question. Several entities that
    nothing links get neither. Such communities stay in the partition."""


@dataclass(frozen=True)
class QuestionSettings(Checked):
    """Representative questions."""

    section = "questions"

    asked_by: Annotated[str, OneOf(("auto", "model", "templates", "mixed"))] = "auto"
    """Who writes the questions. "model": the generator, for every summary; a template replaces
    it if its second reply is not usable. "templates": no model. "mixed": a template if it knows
    what to ask, otherwise the generator. "auto": "model" if you name a generator, otherwise
    "mixed"."""
    broadest: Positive | None = None
    """Number of communities, broadest first, for which the generator writes questions; a
    template does it for the others. Unset, all."""
    candidates: Positive | None = None
    """Maximum questions that the generator writes for a summary. kraq keeps the one that a
    single sentence answers most plainly. Unset, 1; with `asked_by = "mixed"`, 3 if the generator
    has an adapter and its name says that it has less than two billion parameters."""
    duplicate_similarity: Share = 0.95
    """Minimum cosine of two questions' embeddings at which kraq marks one as a duplicate."""
    fallback: bool = True
    """Use a template's question if the model's does not stand alone. False keeps what the model
    wrote, as the Random baseline and comparisons of question sources do."""
    names: Count = 8
    """Number of central entities of a community to keep with its question, for `combined` with
    the option `names`."""
    random_least: Positive = 2
    """Minimum passages for a question of the Random baseline (the thesis draws 3 to 7)."""
    random_most: Positive = 7
    """Maximum passages for such a question."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.random_least > self.random_most:
            raise ConfigError(
                f"questions.random_least is {self.random_least}, above random_most, {self.random_most}: give a range."
            )


@dataclass(frozen=True)
class RefusalSettings(Checked):
    """What `kraq ask`, `serve` and `mcp` do with questions that the documents do not answer.
    Programs in Python, `kraq eval` and the papers' tables answer every question."""

    section = "refusals"

    refuse: bool = True
    """Refuse such questions. An index that an earlier version made has no threshold and refuses
    nothing until `kraq update` has measured one."""
    threshold: Share | None = None
    """The score below which kraq refuses a question, in [0, 1]. Unset, the one that kraq
    measured for this index."""
    offers: Count = 3
    """Number of questions to offer in place of an answer: the nearest ones that the documents do
    answer."""


@dataclass(frozen=True)
class EncoderSettings(Checked):
    """The sentence encoder."""

    section = "encoder"

    name: str = "minilm"
    """The packaged "minilm" (English) or "multilingual-e5-small" (a hundred languages; extra `multilingual`), a short
    name ("bge-small", "bge-base", "e5-small", "arctic-s", "arctic-m", "gte-small"), a sentence-transformers name or
    path, or, with `api_base`, a model that an OpenAI-compatible endpoint serves."""
    api_base: str | None = None
    """Where the encoder is served, such as http://localhost:8000/v1; unset, it runs in this
    process."""
    api_key_env: str | None = None
    """The environment variable that holds the key. Unset, the usual one of the provider at
    `api_base`, if kraq knows it."""
    query_prefix: str = ""
    """Text before each question, for encoders that were trained with it."""
    passage_prefix: str = ""
    """Text before each passage."""
    batch_size: Positive = 64
    """Number of texts to encode at once."""
    reply_mb: Positive = 256
    """Maximum megabytes of an endpoint's reply, unpacked."""
    threads: Positive | None = None
    """Processor threads; unset, as many as there are."""
    precision: Annotated[str, OneOf(ENCODER_PRECISIONS)] = "auto"
    """The number format. "int8" of minilm and "int4" of multilingual-e5-small are packaged
    weights, which need no torch. "fp32" and "bf16" run in torch (extra `transformers`); "bf16"
    is the fastest if the processor has it. "auto" takes the packaged weights for those two
    encoders. For other encoders, "auto" is "bf16" if the processor has it, otherwise "fp32". An
    index keeps the precision that made it."""
    device: Annotated[str, OneOf(DEVICES)] = "auto"
    """The device: "cpu", "cuda", "mps", or "auto", the best one present. Packaged weights run on
    the processor; "cuda" and "mps" need torch. An endpoint ignores it."""


@dataclass(frozen=True)
class InstructedSettings(Checked):
    """The encoder of passages as seen from a question (Speculative RAG)."""

    section = "instructed"

    kind: Annotated[str, OneOf(("pair", "inbedder", "sentences"))] = "pair"
    """"pair" (question and passage as one text), "inbedder" (the papers'), or the variant
    "sentences" (the vectors of a passage's sentences, weighted by the question; `efficient` then
    needs no stored question)."""
    name: str = "minilm"
    """The packaged "minilm", which "pair" reads by; for the other kinds also a folder or a hub name."""
    sharpness: NotNegative = 10.0
    """Weighting of "sentences": 0 weighs all alike; a large number takes only the sentence
    nearest to the question."""
    max_tokens: Positive | None = None
    """Maximum tokens of question and passage together, except for "sentences"; unset, the kind's
    own limit."""
    batch_size: Positive = 32
    """Number of passages to encode at once."""
    threads: Positive | None = None
    """Processor threads; unset, as many as there are."""
    dtype: Annotated[str, OneOf(("float32", "bfloat16"))] = "float32"
    """The number format of the weights, except for "pair", whose are packaged."""
    device: Annotated[str, OneOf(DEVICES)] = "auto"
    """The device: "cpu", "cuda", "mps", or "auto", the best one present."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind == "inbedder" and self.name == "minilm":
            raise ConfigError(f"instructed.kind is {self.kind!r}: give instructed.name, the folder of its weights.")
        if self.kind == "pair" and self.name != "minilm":
            raise ConfigError(f'instructed.kind is "pair", which reads by "minilm"; instructed.name is {self.name!r}.')


@dataclass(frozen=True)
class AskSettings(Checked):
    """What answers if a command names nothing else. `kraq select` measures it and writes this
    section."""

    section = "ask"

    retriever: str = ""
    """The name of an index's retriever. Empty means `adaptive`, or `dense` for an index without
    a graph."""

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
    "pszemraj/led-base-book-summary"). If it is empty, the language model of the role
    "summarizer" writes the summaries."""
    share: Share = 0.11
    """Length of a summary, as a share of its document's tokens."""
    least_tokens: Positive = 60
    """Minimum tokens of a summary."""


EMBEDDED = "embedded"
"""The packaged model, which is not a language model: it makes its log-probabilities up
(`embedded`)."""
BROUGHT_MODELS = ("smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")
"""The models that `kraq lm get` downloads and checks against their makers' checksums, used as
"gguf/smollm2-135m" and so on."""

KNOWN_ENCODERS = (
    "minilm", "bge-small", "bge-base", "e5-small", "multilingual-e5-small", "arctic-s", "arctic-m", "gte-small",
)  # fmt: skip
"""Encoders with a short name: the packaged one, and those with weights on the hub."""

QUESTION_TOKENS = 60
"""Most tokens of a tuned generator's reply: a question in its field markers. An adapter that does not end its reply
would otherwise write until its context is full."""
QUESTIONS_BASE = "gguf/smollm2-135m"
"""The model that writes questions with the packaged adapter, even if you name none."""


@dataclass(frozen=True)
class RoleSettings(Checked):
    """A language model. For unset fields, the server decides."""

    model: str = EMBEDDED
    """The packaged "embedded", "gguf/FILE" (llama.cpp in this process), or a DSPy model string such as
    "hosted_vllm/NAME" or "openai/NAME"."""
    api_base: str | None = None
    """Where the model is served, such as http://localhost:8000/v1. You can name several servers
    of the same model, separated by commas: kraq calls the least busy one, and pauses one that
    does not answer."""
    api_key_env: str | None = None
    """The environment variable that holds the key."""
    temperature: float | None = None
    """Sampling temperature. Unset, a model in this process writes its likeliest words, and a
    server decides for itself."""
    max_tokens: int | None = None
    """Maximum tokens of a reply. If you raise it, the next run repeats the calls whose replies
    were cut off."""
    timeout_s: float = 120.0
    """Seconds after which kraq abandons a call to a server. It waits for a model in this process
    without limit."""
    reply_mb: Positive = 16
    """Maximum megabytes of a server's reply, unpacked."""
    retries: int = 3
    """Number of retries of a call."""
    prompt_price: NotNegative | None = None
    """Price of a million prompt tokens, in any currency: `kraq index --dry-run` and `--max-cost` use
    it."""
    completion_price: NotNegative | None = None
    """Price of a million reply tokens."""
    adapter: str | None = None
    """A LoRA adapter's folder for a "transformers/...", "gguf/..." or "hosted_vllm/..." model, its GGUF file, or the
    packaged "kraq-questions" for "gguf/smollm2-135m" as generator."""
    structured: Annotated[str, OneOf(("auto", "json_schema", "none"))] = "auto"
    """Whether the server holds typed replies to a JSON schema: "json_schema", "none", or "auto", which finds out."""
    threads: Positive | None = None
    """Threads of a "gguf/..." model. Unset, the number of free cores when kraq loads it."""
    context: Positive | None = None
    """Maximum tokens that a "gguf/..." model reads and writes for one request; unset, 8192 or
    what it was trained on. For a server's model, the size that `[summaries] context = "model"`
    assumes."""
    slots: Positive | None = None
    """Number of requests that a "gguf/..." model works on together. Unset, 4. Each takes memory
    for its own context."""
    precision: Annotated[str, OneOf(PRECISIONS)] = "auto"
    """The number format of a "transformers/..." model: "bf16" takes half the memory and reads prompts about three times
    as fast on processors that have it; "auto" chooses it on those, and on a GPU."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Each address of `api_base`."""
        return tuple(address.strip() for address in (self.api_base or "").split(",") if address.strip())


@dataclass(frozen=True)
class RunSettings(Checked):
    """Where model calls run, and how many at a time."""

    section = "run"

    concurrency: Positive = 32
    """Model calls in flight at once."""
    runner: Annotated[str, OneOf(("local", "ray"))] = "local"
    """Where the work runs: in this process ("local") or on a cluster ("ray")."""
    ray_address: str | None = None
    """The cluster: "auto" (the one that this machine belongs to), HOST:PORT, or "local" (kraq
    starts one). Unset, the address in RAY_ADDRESS, otherwise "local". Ray Data does not work
    through Ray Client (ray://): run on a machine of the cluster."""

    def __post_init__(self) -> None:
        super().__post_init__()
        address = self.ray_address
        if address not in (None, "auto", "local") and not re.fullmatch(r"[^\s/]+:\d+", str(address)):
            raise ConfigError(f'run.ray_address is {address!r}; it must be "auto", "local" or HOST:PORT (no ray://).')


@dataclass(frozen=True)
class StoreSettings(Checked):
    """Where kraq keeps vectors."""

    section = "store"

    url: str | None = None
    """The address of a Qdrant server; unset, kraq keeps vectors in the index folder."""
    api_key_env: str | None = None
    """The environment variable that holds the server's key. Unset, QDRANT_API_KEY."""


@dataclass(frozen=True)
class Settings(Checked):
    """The content of `kraq.toml`. Each attribute is a section; docs/reference/settings.md lists the keys.

    Attributes:
        corpus: columns, encoding and limits of files.
        columns: columns of files of questions.
        chunks: the size of passages.
        redact: what kraq strikes out of documents.
        extract: how kraq reads entities and relationships.
        resolve: which names kraq merges.
        communities: the algorithm and the sizes.
        summaries: which communities get a summary, and from what.
        questions: who writes the questions, and how many.
        refusals: which questions kraq refuses.
        encoder: the sentence encoder.
        instructed: the encoder of Efficient Speculative RAG.
        ask: the defaults of `kraq ask`.
        k2rag: the summarized corpus of K2RAG.
        run: concurrency, limits and the place of model calls.
        store: where the vectors are.
        roles: the models by role; a missing role falls back to "default".

    >>> Settings(chunks=ChunkSettings(tokens=200)).chunks.overlap
    50
    """

    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    columns: ColumnSettings = field(default_factory=ColumnSettings)
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
        """Maximum tokens of a community that the summarizer sees."""
        if self.summaries.input_tokens is not None:
            return self.summaries.input_tokens
        whole = self.role("summarizer").context or DEFAULT_CONTEXT
        return THRIFTY_TOKENS if self.summaries.context == "thrifty" else 3 * whole // 4

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def to_toml(self) -> str:
        """The kraq.toml that gives these settings: whatever differs from the defaults.

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
    """Write a value as TOML does; its basic strings are JSON's except for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "thrifty": {"extract": {"gleanings": 0}, "summaries": {"input_tokens": 400, "min_entities": 4}}
}
"""The values that `preset = "..."`, before the first section of a file, puts in the place of the
defaults. "thrifty": an index for six times the corpus's tokens in prompts instead of nine and a
half (benchmarks/results/indexing.md)."""


def read_settings(path: Path | None = None) -> Settings:
    """Read settings from a TOML file.

        settings = read_settings(Path("kraq.toml"))

    Args:
        path: the file. Values in the file have priority over a preset in the file.

    Returns:
        The settings; without a file, the defaults.

    Raises:
        ConfigError: if the file is missing or not TOML, or has an unknown key or a value of the wrong type or range.
    """
    if path is None:
        return Settings()
    tables = read_toml(path, "settings file")
    preset = tables.pop("preset", None)
    if preset is None:
        return settings_from_dict(tables, where=str(path))
    if preset not in PRESETS:
        raise ConfigError(f"{path}: preset is {preset!r}; {suggestion(str(preset), PRESETS)}")
    under = {name: {**PRESETS[preset].get(name, {}), **_table(name, table)} for name, table in tables.items()}
    return settings_from_dict({**PRESETS[preset], **under}, where=str(path))


def settings_from_dict(tables: dict[str, Any], where: str = "settings") -> Settings:
    """Invert `Settings.to_dict`; missing keys keep their defaults. Raises ConfigError."""
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
