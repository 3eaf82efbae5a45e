"""Runs a selection: reads corpus and questions, races the candidates, and compares those that were asked everything."""

import dataclasses
import random
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from kraq_dspy.errors import ConfigError, EvaluationError, counted
from kraq_dspy.eval.about import about_retriever
from kraq_dspy.eval.columns import FOUND, QuestionColumns
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.datasets.dataset import checksum_of
from kraq_dspy.eval.evidence import with_known_documents
from kraq_dspy.eval.halves import about_made, as_human, decide, has_halves, require_halves
from kraq_dspy.eval.labeling import PERSON
from kraq_dspy.eval.questions import QuestionSource, read_questions
from kraq_dspy.eval.reports.summary import summarise_run
from kraq_dspy.eval.rows import RowWriter, RunHeader
from kraq_dspy.eval.scoring import OF_RETRIEVAL
from kraq_dspy.eval.selection.candidates import BY_WORDS_ALONE, TRIED, Candidate, SelectionPlan
from kraq_dspy.eval.selection.outcome import Selection, Tried
from kraq_dspy.eval.selection.race import Deadline, Indexes, Race, RememberedQuestions
from kraq_dspy.eval.statistics import bootstrap_mean, paired_difference
from kraq_dspy.indexing.index import opening
from kraq_dspy.indexing.index.estimate import estimate_corpus
from kraq_dspy.models.embedders import load_embedder, resolve_encoder
from kraq_dspy.models.embedders.text_encoder import EmbedderLike, as_embedder
from kraq_dspy.models.lms.meter import Limits, Meter, prices_of
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.records import Document
from kraq_dspy.settings import EMBEDDED, Settings
from kraq_dspy.state import StepStates
from kraq_dspy.testset.difficulty import overlap

COPIED = 0.95
"""The median share of a question's words in its documents from which the questions were copied from these: those of
people in eight data sets have medians from .39 to .88, questions by template 1.00."""
MADE = frozenset(("checks", "solved_by"))
"""Columns that `kraq testset make` alone writes."""
RECALL, ANSWER_FOUND = "recall", "answer_found"
MOST_LOST = 0.01
"""How much lower than the best the mean of a cheaper candidate may be that is chosen in its place."""
_BUILDERS = ("extractor", "summarizer", "generator")
"""Roles whose models a graph asks."""

Corpus = str | Path | Sequence[Document | str]


def select(
    corpus: Corpus,
    questions: QuestionSource,
    *,
    human: QuestionSource | None = None,
    plan: SelectionPlan | None = None,
    metric: str | None = None,
    settings: Settings | None = None,
    embedder: EmbedderLike | None = None,
    limits: Limits | None = None,
    optimized: Sequence[str | Path] = (),
    columns: QuestionColumns = FOUND,
    encoding: str = "",
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Selection:
    """Find the retriever, chunk size and k that find most evidence in a corpus, as far as the questions can tell.

    Args:
        corpus: a file or folder, documents or texts, as in `build_index`.
        questions: as in `read_questions`, with gold documents or answers.
        human: three human questions or more, with evidence or answers, if `questions` is a test set of two halves.
        plan: the candidates to try, and the limit of minutes.
        metric: "recall", "all_supporting", "ndcg", "mrr", "success", "precision", "map" or "answer_found". By default
            recall, or answer_found if the questions name no documents.
        settings: the settings that all candidates share.
        embedder: an encoder in place of the encoder of the settings.
        limits: most calls, tokens and cost. Without limits, no language model makes a graph.
        optimized: files of `kraq optimize` for steps of the candidates.
        columns: names of columns that kraq does not find by itself.
        encoding: the encoding of a file of questions that is not UTF-8.
        out: the folder of indexes, rows and report; the same call resumes there. Without it, nothing is kept.
        progress: is called as the trial advances.

    Returns:
        The chosen candidate and the others, with their scores.

    Raises:
        EvaluationError: for questions without gold documents and answers.
        ConfigError: for a corpus that is an index.
        CorpusError: for a corpus without text.

    All candidates get a few questions. The better half of the candidates gets more questions, and the best candidates
    get all questions. Candidates with a graph come last, and only if such a candidate could still win. kraq takes the
    cheapest candidate that is not significantly worse than the best and loses 0.01 at most. With a test set, human
    questions and both halves decide what is worse (`halves`).

    >>> chosen = select("docs/", "test.jsonl", out="runs/select").chosen  # doctest: +SKIP
    >>> chosen.candidate.name, chosen.score.estimate  # doctest: +SKIP
    ('hybrid, 300 tokens, k 10', 0.914)
    """
    plan, settings = plan or SelectionPlan(), settings or Settings()
    if isinstance(corpus, str | Path) and (Path(corpus) / "manifest.json").is_file():
        raise ConfigError(
            f"{str(corpus)!r} is an index, whose chunks are cut already. Give the documents that it was made from."
        )
    title = f"{_title(corpus, 'corpus')}-{_title(questions, 'questions')}"
    examples = read_questions(questions, columns, encoding=encoding)
    items = list(opening.documents_of(corpus, settings))
    documents = [item for item in items if isinstance(item, Document)]
    notes: list[str] = []
    chosen_metric, examples = _with_gold(examples, documents, metric, notes)
    made_half = about_made(examples).get("made_half", {})
    if human is not None:
        require_halves(examples)
        remarks: list[str] = []
        _, with_gold = _with_gold(read_questions(human, columns, encoding=encoding), documents, chosen_metric, remarks)
        notes += [f"Of human questions: {each}" for each in remarks]
        examples += as_human(with_gold)
    plan = _fair_plan(plan, examples, documents, notes)
    random.Random(plan.seed).shuffle(examples)

    resolved = dataclasses.replace(settings, encoder=resolve_encoder(settings.encoder))
    encoder = RememberedQuestions(load_embedder(resolved.encoder) if embedder is None else as_embedder(embedder))
    states = StepStates(optimized) if optimized else None
    models = LanguageModels(resolved, embedder=encoder, meter=Meter(limits), states=states)
    deadline = Deadline(progress or SilentProgress(), plan.minutes)
    with ExitStack() as stack:
        folder = Path(out if out is not None else stack.enter_context(tempfile.TemporaryDirectory()))
        asked_about = {"asked": len(examples), "in_flight": 1, "data": checksum_of(examples, documents)}
        table = {"title": f"Selection for {title}", "kind": "retrievers", "metrics": [chosen_metric]}
        header = RunHeader(
            name="selection",
            dataset=title,
            settings={},
            seeds={"seed": plan.seed},
            models={"encoder": encoder.name},
            extra={"table": table, **asked_about},
        )
        writer = RowWriter(folder, header)
        indexes = Indexes(
            corpus if isinstance(corpus, str | Path) else documents,
            folder,
            resolved,
            encoder,
            models,
            deadline,
            stack,
        )
        race = Race(plan, examples, chosen_metric, indexes, writer, deadline, prices_of(settings))
        finalists = race.run(plan.candidates(needs_graph=False))
        finalists += _with_graph(race, finalists, settings, limits)
        tried = _tried(race, finalists, plan)
        if not tried:
            reasons = "; ".join(why.rstrip(".") for why in dict.fromkeys(race.dropped.values()))
            raise EvaluationError(
                f"kraq could not ask any candidate: {reasons}. It keeps what is done; the same command resumes."
            )
        summary = summarise_run(_described(header, tried, encoder.name), writer.rows(), seed=plan.seed)

    for each in tried:
        race.dropped.pop(each.candidate.name, None)
    return Selection(
        tried=tried,
        dropped=race.dropped,
        metric=chosen_metric,
        settings=settings,
        n_questions=len(examples),
        notes=tuple(notes),
        corpus=_shown(corpus, "docs/"),
        questions=_shown(questions, "test.jsonl"),
        folder=None if out is None else Path(out),
        summary=summary,
        are_made=all(
            example.metadata.keys() >= MADE and example.metadata.get("model") != PERSON for example in examples
        ),
        columns=columns,
        made_half=made_half,
    )


def _with_gold(
    examples: Sequence[Example], documents: Sequence[Document], metric: str | None, notes: list[str]
) -> tuple[str, list[Example]]:
    """The metric, and the questions that it is defined for, with documents as the corpus calls them.

    Raises EvaluationError if there is none of them, ConfigError for a metric that retrievers cannot be scored by.
    """
    kind = metric or (RECALL if any(example.supporting_ids for example in examples) else ANSWER_FOUND)
    if kind not in OF_RETRIEVAL:
        known = ", ".join(sorted(OF_RETRIEVAL))
        raise ConfigError(f"metric is {kind!r}; retrievers are scored by one of {known}, each over its own k.")

    if kind == ANSWER_FOUND:
        usable = [example for example in examples if example.answers]
        lacking = "no answer"
    else:
        known_ids = {document.id for document in documents}
        examples, unknown = with_known_documents(examples, known_ids.intersection, required=True)
        notes += [unknown] if unknown else []
        usable = [example for example in examples if example.supporting_ids]
        lacking = "no document that answers"

    if not usable:
        raise EvaluationError(
            f"The questions name {lacking}, so nothing tells one retriever from another. Add a column supporting_ids "
            "with ids of documents, or answers, or let kraq make questions: kraq testset make INDEX"
        )

    if left_out := len(examples) - len(usable):
        says, are = ("names", "is") if left_out == 1 else ("name", "are")
        notes.append(f"{counted(left_out, 'question')} {says} {lacking}, and {are} left out.")
    return kind, usable


def _fair_plan(
    plan: SelectionPlan, examples: Sequence[Example], documents: Sequence[Document], notes: list[str]
) -> SelectionPlan:
    """The plan without searches by words alone where the questions copy the words of what answers them.

    Retrievers that were named, and not just tried because nothing was said, stay.
    """
    if plan.retrievers != TRIED:
        return plan

    texts = {document.id: f"{document.title} {document.text}" for document in documents}
    shares = [
        overlap(example.question, [texts[id] for id in example.supporting_ids if id in texts])
        for example in examples
        if example.supporting_ids
    ]
    if not shares or median(shares) < COPIED:
        return plan

    left_out = [name for name in plan.retrievers if name in BY_WORDS_ALONE]
    notes.append(
        f"The questions share {median(shares):.2f} of their words with the documents that answer (the median; human "
        f"questions share 0.4 to 0.9), which flatters a search by words: {', '.join(left_out)} is not tried. To try "
        "it, name it: -r."
    )
    return dataclasses.replace(plan, retrievers=tuple(name for name in plan.retrievers if name not in left_out))


def _with_graph(
    race: Race, finalists: Sequence[Candidate], settings: Settings, limits: Limits | None
) -> list[Candidate]:
    """Candidates over a graph of the best chunks, raced too; none if a graph cannot earn its price."""
    candidates = race.plan.candidates(needs_graph=True)
    if not candidates:
        return []

    best = finalists[0] if finalists else None
    if best is not None:
        if reason := _no_room_above(race, best) or _unaffordable(race, settings, limits):
            race.dropped["candidates with a graph"] = reason
            return []
        others = [candidate for candidate in candidates if candidate.tokens != best.tokens]
        race.dropped |= {
            candidate.name: f"a graph is made of chunks of {best.tokens} tokens alone" for candidate in others
        }
        candidates = [candidate for candidate in candidates if candidate.tokens == best.tokens]
    return race.run(candidates)


def _no_room_above(race: Race, best: Candidate) -> str:
    """Why no candidate could be told to be better than `best`, even one that found everything; "" if one could."""
    scores = list(race.scores(best).values())
    if paired_difference([1.0] * len(scores), scores).is_decided:
        return ""
    return f"{best.name} misses so little that nothing could be told to be better"


def _unaffordable(race: Race, settings: Settings, limits: Limits | None) -> str:
    """Why a graph is not made: it would ask language models, and nobody said how much that may take."""
    named = sorted({settings.role(role).model for role in _BUILDERS} - {EMBEDDED})
    if not named or limits is not None:
        return ""
    expected = estimate_corpus(race.indexes.corpus, settings)
    price = "" if expected.cost is None else f", {expected.cost:,.2f}"
    return (
        f"a graph would ask {', '.join(named)} about {expected.expected.calls:,} times{price}; say how much it may "
        "take (--max-calls, --max-tokens or --max-cost)"
    )


def _tried(race: Race, finalists: Sequence[Candidate], plan: SelectionPlan) -> tuple[Tried, ...]:
    """The candidates that were asked most questions, with the difference of each to the best, the chosen one first; the
    others are dropped."""
    counts = {candidate: len(race.scores(candidate)) for candidate in finalists}
    n_questions = max(counts.values(), default=0)
    complete = [candidate for candidate, n_asked in counts.items() if 0 < n_asked == n_questions]
    for candidate in finalists:
        if candidate not in complete:
            race.dropped.setdefault(candidate.name, "the time was over")
    if not complete:
        return ()
    order = race.ranked(complete)
    best = order[0]
    of_best, halves_of_best = race.scores(best), race.by_half(best)

    tried = []
    for candidate in order:
        scores, halves = race.scores(candidate), race.by_half(candidate)
        own = [scores[id] for id in of_best]
        decision = None
        if candidate != best and has_halves(halves):
            decision = decide(best.name, candidate.name, halves_of_best, halves, seed=plan.seed)
        tried.append(
            Tried(
                candidate,
                bootstrap_mean(list(scores.values()), seed=plan.seed),
                paired_difference(own, list(of_best.values()), seed=plan.seed).interval,
                race.cost(candidate),
                race.mean(candidate),
                decision,
            )
        )

    as_good = [each for each in tried if each.is_undecided and each.mean >= tried[0].mean - MOST_LOST]
    chosen = min(as_good, key=lambda each: (each.cost.order, each.candidate.name))
    return chosen, *(each for each in tried if each is not chosen)


def _described(header: RunHeader, tried: Sequence[Tried], encoder: str) -> RunHeader:
    """The header with the systems that were asked everything, compared with the chosen one."""
    table = {
        **header.extra["table"],
        "baseline": tried[0].candidate.name,
        "systems": {
            each.candidate.name: {"about": about_retriever(each.candidate.retriever, encoder, [each.candidate.k])}
            for each in tried
        },
    }
    return dataclasses.replace(header, extra={**header.extra, "table": table})


def _title(source: object, otherwise: str) -> str:
    return Path(source).resolve().name.partition(".")[0] if isinstance(source, str | Path) else otherwise


def _shown(source: object, otherwise: str) -> str:
    return str(source) if isinstance(source, str | Path) else otherwise
