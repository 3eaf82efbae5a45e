"""Reads the questions and the corpus of a table, draws those that are asked, and builds the index once."""

import dataclasses
import json
import random
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy._internal.concurrency import as_done, run_coroutine
from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.corpus.chunk import chunks_at
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.datasets import Dataset, Example, load_dataset, load_local, sample_to_tokens
from kraq_dspy.eval.datasets.dataset import is_dataset
from kraq_dspy.eval.questions import without_learned
from kraq_dspy.indexing.index.build import Builder, abuild_index
from kraq_dspy.indexing.index.report import BuildOptions, BuildReport
from kraq_dspy.models.embedders import load_embedder, resolve_encoder
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.meter import working_on
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.papers.catalogue import PaperSetup
from kraq_dspy.papers.tables.table import DATASET_NAMES
from kraq_dspy.ports import Embedder, Progress, SilentProgress
from kraq_dspy.programs.kraq.pipeline import KRAQ
from kraq_dspy.records import ExtractedEntity, ExtractedRelationship, Extraction, content_id
from kraq_dspy.settings import Settings
from kraq_dspy.signatures import AnswerQuestion
from kraq_dspy.state import read_state
from kraq_dspy.steps.journal import JournalFile


@dataclass(frozen=True, slots=True)
class ExampleSet:
    """A data set, the questions of it that are asked, how many are not because of a limit, and how many of the others a
    model in use had learned from."""

    dataset: Dataset
    examples: tuple[Example, ...]
    left_out: int
    learned: int = 0


def dataset_names(folder: Path, chosen: Sequence[str], of_table: Sequence[str]) -> list[str]:
    """Return those that were chosen, else those of the table; a folder that is a data set itself is
    the only one.

    Raises EvaluationError when nothing says which.
    """
    if is_dataset(folder):
        if chosen and list(chosen) != [folder.resolve().name]:
            raise EvaluationError(
                f"{str(folder)!r} is the data set {folder.resolve().name!r} itself; for {', '.join(chosen)} give the "
                "folder that holds them."
            )
        return [folder.resolve().name]

    names = list(dict.fromkeys(chosen or of_table))
    if not names:
        raise EvaluationError("No data set was named: use --dataset NAME, or list `datasets` in the table.")
    return names


def load(
    folder: Path,
    name: str,
    *,
    tokens: int | None = None,
    limit: int | None = None,
    seed: int = 0,
    needs_corpus: bool = True,
    learned: Collection[str] = frozenset(),
) -> ExampleSet:
    """`name` from the folder of data sets, or the folder itself if it is one. No network is used.

    With `tokens`, the papers' sample: questions until their evidence has that many tokens, over that evidence alone.
    With `limit`, that many questions, drawn by the seed alone: a larger limit asks the same and more.
    `learned` are fingerprints of questions that are left out: an adapter learned from them.
    Raises EvaluationError, with the command that gets it, for a set that is absent.
    """
    if is_dataset(folder):
        dataset = load_local(folder.resolve())
    elif not (folder / name).exists() and name in DATASET_NAMES:
        dataset = load_dataset(DATASET_NAMES[name], folder)
    else:
        dataset = load_dataset(name, folder)

    if tokens is not None:
        dataset = sample_to_tokens(dataset, tokens, seed=seed)
    if needs_corpus and not dataset.documents:
        raise EvaluationError(f"{dataset.name} has questions but no corpus, so nothing can be indexed.")

    usable = without_learned(dataset.examples, learned)
    examples = sorted(usable, key=lambda example: example.id)
    random.Random(seed).shuffle(examples)
    drawn = examples if limit is None else examples[:limit]
    return ExampleSet(dataset, tuple(drawn), len(examples) - len(drawn), len(dataset.examples) - len(usable))


STAGE = "references"


def with_model_references(
    questions: ExampleSet, folder: Path, models: LanguageModels, progress: Progress
) -> ExampleSet:
    """The questions that name their evidence, each with the answer that the role "teacher" gives from it.

    Answers are kept in `folder`/references.jsonl: another run of the command asks for none again. Raises
    EvaluationError where no question names evidence.
    """
    named = [example for example in questions.examples if example.supporting_ids]
    if not named:
        raise EvaluationError(f"No question of {questions.dataset.name} names the documents that hold its evidence.")
    texts = {document.id: document.text for document in questions.dataset.documents}
    answer = dspy.Predict(AnswerQuestion)

    def ask(example: Example) -> str:
        passages = [texts[document_id] for document_id in example.supporting_ids]
        return str(answer(passages=passages, question=example.question).answer)

    file, at_once = folder / f"{STAGE}.jsonl", models.settings.run.concurrency
    known = kept_replies(file, STAGE, named, ask, models["teacher"], at_once=at_once, progress=progress)
    examples = tuple(
        dataclasses.replace(example, answers=(known[example.id],), answer_items=(), type="")
        for example in named
        if known[example.id].strip()
    )
    return ExampleSet(questions.dataset, examples, questions.left_out + len(questions.examples) - len(examples))


def kept_replies(
    file: Path,
    stage: str,
    examples: Sequence[Example],
    ask: Callable[[Example], Any],
    lm: dspy.BaseLM,
    *,
    at_once: int,
    progress: Progress,
) -> dict[str, Any]:
    """Return what `ask` makes of the model's reply to each question, JSON values by the question's id.

    A line of `file` keeps each as it comes, so that another run asks for none again. What another model replied is
    asked again.
    """
    model = str(lm.model)
    journal: JournalFile[tuple[str, str], Any] = JournalFile(
        file,
        lambda line: ((line["id"], line.get("model", model)), line["reply"]),  # 1.0.0rc1 wrote no model
        f"the {stage}",
        EvaluationError,
    )
    todo = [example for example in examples if (example.id, model) not in journal]
    progress.start(stage, len(examples))
    progress.advance(stage, len(examples) - len(todo))

    def one(example: Example) -> tuple[str, Any]:
        with working_on(stage, example.id), dspy.context(lm=lm, adapter=KraqAdapter(), disable_history=True):
            return example.id, ask(example)

    for example_id, reply in as_done(one, todo, limit=at_once):
        journal.keep({"id": example_id, "reply": reply, "model": model})
        progress.advance(stage)
    progress.finish(stage)
    return {example.id: journal[example.id, model] for example in examples}


_BUILDERS = ("extractor", "summarizer", "generator")
_NOT_OF_THE_INDEX = ("roles", "run", "store", "instructed", "k2rag")


@dataclass(frozen=True, slots=True)
class PreparedIndex:
    """`fingerprint` depends on the corpus and on every setting and model that the index is made with. `report` is None
    for an index that was found complete."""

    path: Path
    fingerprint: str
    report: BuildReport | None


def prepared(settings: Settings) -> tuple[Settings, Embedder]:
    """The settings with this machine's precision, and the encoder, loaded once for all data sets."""
    settings = dataclasses.replace(settings, encoder=resolve_encoder(settings.encoder))
    return settings, load_embedder(settings.encoder)


def prepare_index(
    dataset: Dataset,
    folder: Path,
    settings: Settings,
    embedder: Embedder,
    *,
    random_questions: bool = False,
    program_states: Sequence[Path] = (),
    setup: PaperSetup | None = None,
    progress: Progress | None = None,
) -> PreparedIndex:
    """The data set's index in `folder`, built if it is not there yet, gone on with if it is unfinished.

    Given triples are taken instead of extracting anew. Where another index differs in the questions' generator alone,
    the work is done on a copy of it, so that nothing but the questions is asked again. `setup` gives the pipeline the
    instructions of a paper.
    """
    mark = fingerprint(dataset, settings, program_states, dict(setup.prompts) if setup else {})
    path = place_of_index(dataset, folder, settings, program_states, setup)
    siblings = path.name.rpartition("-")[0]
    is_complete, has_random = _state_of(path)
    if is_complete and (has_random or not random_questions):
        return PreparedIndex(path, mark, None)

    folder.mkdir(parents=True, exist_ok=True)
    complete = () if path.exists() else filter(lambda each: _state_of(each)[0], folder.glob(f"{siblings}-*.kraq"))
    if sibling := next(iter(complete), None):
        with replaced(path) as draft:
            shutil.copytree(sibling, draft, ignore=shutil.ignore_patterns("lock"))

    options: BuildOptions = {
        "settings": settings,
        "embedder": embedder,
        "random_questions": random_questions or has_random,
        "program_states": program_states,
        "progress": progress or SilentProgress(),
    }
    if setup:
        pipeline = KRAQ(settings, embedder)
        setup.give_prompts(pipeline)
        options["kraq"] = pipeline
    return PreparedIndex(path, mark, run_coroutine(_build(dataset, path, options)))


def place_of_index(
    dataset: Dataset,
    folder: Path,
    settings: Settings,
    program_states: Sequence[Path] = (),
    setup: PaperSetup | None = None,
) -> Path:
    """Where `prepare_index` keeps the index: its name begins as those of indexes with another generator alone."""
    prompts = dict(setup.prompts) if setup else {}
    without_generator = fingerprint(dataset, settings, program_states, prompts, but="generator")
    mark = fingerprint(dataset, settings, program_states, prompts)
    return folder / f"{dataset.name}-{without_generator[:8]}-{mark[:8]}.kraq"


def is_indexed(path: Path) -> bool:
    """Whether the index is there, and whole."""
    return _state_of(path)[0]


async def _build(dataset: Dataset, path: Path, options: BuildOptions) -> BuildReport:
    if not dataset.triples:
        return await abuild_index(dataset.documents, path, **options)

    triples = {each.document_id: each for each in dataset.triples}
    chunks, extractions = [], []
    for document in dataset.documents:
        [chunk] = chunks_at(document, [(0, len(document.text))])
        given = triples.get(document.id)
        names = dict.fromkeys(given.entities if given else ())
        links = dict.fromkeys(given.triples if given else ())
        chunks.append(chunk)
        extractions.append(
            Extraction(
                chunk.id,
                tuple(ExtractedEntity(name, "", "") for name in names),
                tuple(ExtractedRelationship(s, o, p, f"{s} {p} {o}.") for s, p, o in links),
            )
        )

    async with Builder.at(path, options) as builder:
        builder.begin(dataset.documents, dataset.documents, replace=False)
        builder.keep_documents(dataset.documents, chunks)
        builder.index.replace(Extraction, extractions)
        await builder.embed_chunks()
        await builder.finish()
        return builder.report()


def fingerprint(
    dataset: Dataset,
    settings: Settings,
    program_states: Sequence[Path] = (),
    prompts: Mapping[str, str] | None = None,
    but: str = "",
) -> str:
    """32 hexadecimal digits, of all that an index is made with `but` one of the roles."""
    roles = {role: settings.role(role) for role in _BUILDERS if role != but}
    made_with = {name: value for name, value in settings.to_dict().items() if name not in _NOT_OF_THE_INDEX}
    for changes_only_the_speed in ("batch_size", "threads", "api_key_env"):
        del made_with["encoder"][changes_only_the_speed]

    made_with["roles"] = {name: [role.model, role.adapter, role.temperature] for name, role in roles.items()}
    corpus = [(document.id, document.title, document.text) for document in dataset.documents]
    triples = [(each.document_id, each.entities, each.triples) for each in dataset.triples]
    states = [dict(read_state(path).predictors) for path in program_states]
    parts: list[object] = [made_with, corpus, triples]
    parts += [part for part in (states, prompts) if part]
    return content_id("index", *(json.dumps(part, sort_keys=True) for part in parts))


def _state_of(path: Path) -> tuple[bool, bool]:
    """Whether there is a complete index, and whether it has random questions."""
    if not (path / "manifest.json").is_file():
        return False, False
    with Index.open(path) as index:
        return index.manifest.complete, bool(index.questions(source="random", duplicates=True))
