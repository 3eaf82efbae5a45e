"""Lists the public question-answering sets: where each lies on the hub, and how its rows become a `Dataset`.

A converter takes the rows of its tables by the tables' names. `SOURCES`, at the end, is the table of them all.
"""

import json
import logging
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy._internal.files import json_objects
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.datasets.dataset import Dataset, Example, is_dataset, load_local
from kraq_dspy.eval.datasets.hub import HubTable, RawRow, as_rows, fetch_tables, read_tables
from kraq_dspy.eval.metrics.answers import normalise_answer
from kraq_dspy.records import Document, content_id

_log = logging.getLogger(__name__)

Tables = Mapping[str, Iterable[RawRow]]


def hotpot_qa(tables: Tables) -> Dataset:
    """HotPotQA in the distractor setting: two gold passages among ten (Yang et al., 2018).

    A document is the opening paragraph of a Wikipedia page, and its id the page's title.
    """
    documents: dict[str, Document] = {}
    examples = []
    for row in tables["questions"]:
        shown = [passage["title"] for passage in as_rows(row["context"])]
        for passage in as_rows(row["context"]):
            # Sentences carry the space that parts them.
            text = "".join(passage["sentences"]).strip()
            documents.setdefault(passage["title"], Document(passage["title"], passage["title"], text))
        examples.append(
            Example(
                id=row["id"],
                question=row["question"],
                answers=(row["answer"],),
                supporting_ids=_distinct(fact["title"] for fact in as_rows(row["supporting_facts"])),
                type=row["type"],
                context_ids=_distinct(shown),
                metadata={"level": row["level"]},
            )
        )
    return Dataset("hotpot_qa", tuple(documents.values()), tuple(examples))


def trivia_qa(tables: Tables) -> Dataset:
    """TriviaQA, the reading comprehension part with Wikipedia pages (Joshi et al., 2017).

    Documents are whole pages. Evidence in TriviaQA is found, not marked: `supporting_ids` are the pages in
    which an
    alias of the answer occurs, `context_ids` all pages of the question."""
    documents: dict[str, Document] = {}
    words: dict[str, str] = {}
    examples = []
    for row in tables["questions"]:
        pages = [
            *(("wikipedia", "wiki_context", page) for page in as_rows(row.get("entity_pages"))),
            *(("web", "search_context", page) for page in as_rows(row.get("search_results"))),
        ]
        shown: list[str] = []
        for kind, column, page in pages:
            if not (page.get(column) or "").strip():
                continue
            page_id = f"{kind}/{page['filename']}"
            if page_id not in documents:
                documents[page_id] = Document(page_id, page.get("title") or "", page[column])
                words[page_id] = f" {normalise_answer(page[column])} "
            shown.append(page_id)
        answer = row["answer"]
        answers = _distinct((answer["value"], *answer["aliases"]))
        sought = [f" {normalise_answer(alias)} " for alias in answers if alias.strip()]
        context_ids = _distinct(shown)
        examples.append(
            Example(
                id=row["question_id"],
                question=row["question"],
                answers=answers,
                supporting_ids=tuple(page for page in context_ids if any(alias in words[page] for alias in sought)),
                type="trivia",
                context_ids=context_ids,
            )
        )
    return Dataset("trivia_qa", tuple(documents.values()), tuple(examples))


PUB_HEALTH_LABELS = ("false", "mixture", "true", "unproven")
"""In the order of the numbers that stand for them on the hub; -1 is a missing label."""


def pub_health(tables: Tables) -> Dataset:
    """PubHealth: claims about public health, to be verified from an article (Kotonya and Toni, 2020).

    A question is a claim, its answer "true", "false" or "mixture", its evidence the article's text.

    Those of the test split come first; the thesis asks 2,400, more than it has. As in the KRAQ paper, "unproven" claims
    are left out, and with them those without label, claim or text.
    """
    documents: list[Document] = []
    examples: dict[str, Example] = {}
    dropped = 0
    for row in (*tables["claims"], *tables["train"]):
        label = row["label"] if isinstance(row["label"], str) else (*PUB_HEALTH_LABELS, "")[row["label"]]
        claim, text = (row["claim"] or "").strip(), (row["main_text"] or "").strip()
        claim_id = f"pubhealth-{row['claim_id']}"
        if label not in ("true", "false", "mixture") or not claim or not text or claim_id in examples:
            dropped += 1
            continue
        documents.append(Document(claim_id, "", text))
        examples[claim_id] = Example(claim_id, claim, (label,), (claim_id,), "veracity")
    _log.info("pub_health: %d claims kept, %d dropped", len(examples), dropped)
    return Dataset("pub_health", tuple(documents), tuple(examples.values()))


def musique(tables: Tables) -> Dataset:
    """MuSiQue: questions of two to four hops, twenty passages each (Trivedi et al., 2022).

    Answerable questions; `type` is the number of hops ("2hop", "3hop1", ...).
    """
    documents: dict[str, Document] = {}
    examples = []
    for row in tables["questions"]:
        if not row.get("answerable", True):
            continue
        shown, supporting = [], []
        for passage in as_rows(row["paragraphs"]):
            title, text = passage["title"], passage["paragraph_text"]
            passage_id = f"mq-{content_id(title, text)[:12]}"
            documents.setdefault(passage_id, Document(passage_id, title, text))
            shown.append(passage_id)
            if passage["is_supporting"]:
                supporting.append(passage_id)
        examples.append(
            Example(
                id=row["id"],
                question=row["question"],
                answers=_distinct((row["answer"], *(row.get("answer_aliases") or ()))),
                supporting_ids=_distinct(supporting),
                type=row["id"].partition("__")[0],
                context_ids=_distinct(shown),
                metadata={"decomposition": [dict(step) for step in as_rows(row["question_decomposition"])]},
            )
        )
    return Dataset("musique", tuple(documents.values()), tuple(examples))


def multihop_rag(tables: Tables) -> Dataset:
    """MultiHop-RAG: questions over several news articles (Tang and Yang, 2024).

    A document is an article, its id the article's address. Null queries have no evidence and the answer
    "Insufficient information."."""
    documents = {
        row["url"]: Document(
            row["url"],
            row["title"],
            row["body"],
            metadata={key: str(row[key]) for key in ("source", "category", "published_at") if row.get(key)},
        )
        for row in tables["corpus"]
    }
    examples = [
        Example(
            id=f"mhrq-{position}",
            question=row["query"],
            answers=(row["answer"],),
            supporting_ids=_distinct(fact["url"] for fact in as_rows(row["evidence_list"])),
            type=row["question_type"],
            metadata={"facts": [fact["fact"] for fact in as_rows(row["evidence_list"])]},
        )
        for position, row in enumerate(tables["questions"])
    ]
    return Dataset("multihop_rag", tuple(documents.values()), tuple(examples))


def narrative_qa(tables: Tables) -> Dataset:
    """NarrativeQA: questions about whole books and film scripts, two answers each (Kočiský et al., 2018).

    A document is a whole story; question ids number the questions of a story from 0.
    """
    documents: dict[str, Document] = {}
    examples = []
    counts: Counter[str] = Counter()
    for row in tables["questions"]:
        story = row["document"]
        if story["id"] not in documents:
            title = (story.get("summary") or {}).get("title") or ""
            documents[story["id"]] = Document(
                story["id"], title, story["text"], metadata={"kind": story.get("kind") or ""}
            )
        answers = _distinct(answer["text"] for answer in as_rows(row["answers"]))
        question_id = f"{story['id']}-{counts[story['id']]}"
        counts[story["id"]] += 1
        examples.append(Example(question_id, row["question"]["text"], answers, (story["id"],), "narrative"))
    return Dataset("narrative_qa", tuple(documents.values()), tuple(examples))


def qasper(tables: Tables) -> Dataset:
    """QASPER: questions about NLP papers, with the paragraphs that answer them (Dasigi et al., 2021).

    A document is a paragraph (or the abstract), titled with its paper and section.

    `answers` are the annotators', none where all of them found the question unanswerable. Evidence in tables and
    figures has no paragraph and is left out of `supporting_ids`.
    """
    documents: list[Document] = []
    examples = []
    for paper in tables["papers"]:
        paragraphs = list(_paragraphs(paper))
        documents += paragraphs
        place: dict[str, str] = {}
        for paragraph in paragraphs:
            place.setdefault(paragraph.text, paragraph.id)
        for entry in as_rows(paper["qas"]):
            replies = [reply["answer"] for reply in as_rows(entry["answers"])]
            evidence = [text.strip() for reply in replies for text in reply["evidence"]]
            kinds, answers = zip(*(_answer(reply) for reply in replies), strict=True) if replies else ((), ())
            examples.append(
                Example(
                    id=entry["question_id"],
                    question=entry["question"],
                    answers=_distinct(answer for answer in answers if answer),
                    supporting_ids=_distinct(place[text] for text in evidence if text in place),
                    type=next((kind for kind in kinds if kind != "unanswerable"), "unanswerable"),
                    metadata={"paper": paper["id"]},
                )
            )
    return Dataset("qasper", tuple(documents), tuple(examples))


def _paragraphs(paper: RawRow) -> Iterable[Document]:
    if (paper["abstract"] or "").strip():
        yield Document(f"{paper['id']}-abstract", paper["title"], paper["abstract"].strip())
    for section, part in enumerate(as_rows(paper["full_text"])):
        title = f"{paper['title']}: {part['section_name']}" if part["section_name"] else paper["title"]
        for position, text in enumerate(part["paragraphs"]):
            if text.strip():
                yield Document(f"{paper['id']}-{section}.{position}", title, text.strip())


def _answer(reply: Mapping[str, Any]) -> tuple[str, str]:
    """Its kind and its text, as QASPER's own scorer reads them."""
    if reply["unanswerable"]:
        return "unanswerable", ""
    if reply["extractive_spans"]:
        return "extractive", ", ".join(reply["extractive_spans"])
    if reply["free_form_answer"]:
        return "abstractive", reply["free_form_answer"]
    return "boolean", "yes" if reply["yes_no"] else "no"


def openbook_qa(tables: Tables) -> Dataset:
    """OpenBookQA: multiple choice from facts of elementary science (Mihaylov et al., 2018).

    A document is a fact of the book. The answer is the text of the right choice; `metadata` has all choices.
    """
    documents: dict[str, Document] = {}
    examples = []
    for row in tables["questions"]:
        fact = row["fact1"].strip()
        fact_id = f"obqa-{content_id(fact)[:12]}"
        documents.setdefault(fact_id, Document(fact_id, "", fact))
        choices = {choice["label"]: choice["text"] for choice in as_rows(row["choices"])}
        examples.append(
            Example(
                id=row["id"],
                question=row["question_stem"],
                answers=(choices[row["answerKey"].strip()],),
                supporting_ids=(fact_id,),
                type="multiple_choice",
                metadata={"choices": choices, "answer_key": row["answerKey"].strip()},
            )
        )
    return Dataset("openbook_qa", tuple(documents.values()), tuple(examples))


def dolly(tables: Tables) -> Dataset:
    """Dolly 15k: instructions written by people, some with a passage to answer from (Conover et al., 2023).

    The instructions that have a passage; `type` is Dolly's category. Repeated rows count once.
    """
    documents: dict[str, Document] = {}
    examples: dict[str, Example] = {}
    for row in tables["instructions"]:
        question, passage, answer = row["instruction"].strip(), (row["context"] or "").strip(), row["response"].strip()
        if not (question and passage and answer):
            continue
        passage_id = f"dolly-{content_id(passage)[:12]}"
        documents.setdefault(passage_id, Document(passage_id, "", passage))
        row_id = f"dollyq-{content_id(question, passage, answer)[:12]}"
        examples.setdefault(row_id, Example(row_id, question, (answer,), (passage_id,), row["category"]))
    return Dataset("dolly", tuple(documents.values()), tuple(examples.values()))


def cmmlu(tables: Tables) -> Dataset:
    """CMMLU: Chinese multiple choice in 67 subjects, without passages (Li et al., 2023).

    Questions without a corpus; ids number the questions of a subject from 0.
    """
    examples = []
    counts: Counter[str] = Counter()
    for row in tables["questions"]:
        subject = row["config"]
        choices = {label: str(row[label]) for label in "ABCD"}
        examples.append(
            Example(
                id=f"cmmlu-{subject}-{counts[subject]}",
                question=row["Question"],
                answers=(choices[row["Answer"].strip()],),
                type="multiple_choice",
                metadata={"subject": subject, "choices": choices, "answer_key": row["Answer"].strip()},
            )
        )
        counts[subject] += 1
    return Dataset("cmmlu", (), tuple(examples))


def cmu_wiki_qa(tables: Tables) -> Dataset:
    """CMU-Wiki-QA: questions about Wikipedia articles with short answers, without passages (Smith et al., 2008).

    Questions without a corpus; a question that is there more than once has all its answers.
    """
    answers: dict[str, list[str]] = {}
    for row in tables["questions"]:
        question, answer = row["INSTRUCTION"].strip(), row["RESPONSE"].strip()
        if question and answer:
            answers.setdefault(question, []).append(answer)
    return Dataset(
        "cmu_wiki_qa",
        (),
        tuple(
            Example(f"cmu-{content_id(question)[:12]}", question, _distinct(each)) for question, each in answers.items()
        ),
    )


def lhm(tables: Tables) -> Dataset:
    """LHM-Dienstleistungen-QA: German questions about services of the city of Munich (Schröder et al., 2022).

    A document is the text of a service that a question was asked about.
    """
    documents: dict[str, Document] = {}
    examples: dict[str, Example] = {}
    for split in ("test", "train"):
        for row in tables[split]:
            title, text, question = (str(row[name] or "").strip() for name in ("title", "context", "question"))
            answers = _distinct(answer.strip() for answer in row["answers"]["text"] if answer.strip())
            if not text or not question or not answers:
                continue
            document = Document(f"lhm-{content_id(title, text)[:12]}", title, text)
            documents.setdefault(document.id, document)
            example_id = f"lhm-q-{content_id(question, document.id)[:12]}"
            examples.setdefault(example_id, Example(example_id, question, answers, (document.id,)))
    return Dataset("lhm", tuple(documents.values()), tuple(examples.values()))


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """Each once, in the order of their first."""
    return tuple(dict.fromkeys(texts))


@dataclass(frozen=True, slots=True)
class Source:
    """Where a data set's tables are on the hub, and how their rows become a Dataset."""

    convert: Callable[[Tables], Dataset]
    tables: tuple[HubTable, ...]


def _source(convert: Callable[[Tables], Dataset], repository: str, *tables: str, script: bool = False) -> Source:
    """Each table as "NAME CONFIG SPLIT"."""
    return Source(convert, tuple(HubTable(n, repository, c, s, script=script) for n, c, s in map(str.split, tables)))


BIOASQ = "bioasq"


ABSTRACTS = "abstracts.jsonl"
"""Beside the golden files: a line with pmid, title and text for each abstract. Without it snippets are the corpus."""


HOW_TO_GET = (
    "Register with BioASQ (participants area), download the golden files of task B, and run: "
    "kraq data fetch bioasq --file 12B1_golden.json --out DIR"
)


def load_bioasq(files: Iterable[Path], abstracts: Path | None = None) -> Dataset:
    """The questions of golden files, each once; with `abstracts`, these are the corpus, as in the KRAQ papers.

    Raises EvaluationError for other files.
    """
    rows: list[RawRow] = []
    for path in files:
        try:
            rows += json.loads(path.read_text("utf-8"))["questions"]
        except FileNotFoundError:
            raise EvaluationError(f"There is no file {str(path)!r}. {HOW_TO_GET}") from None
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise EvaluationError(f"{path.name} is no BioASQ golden file: it has no list 'questions'.") from error
    if abstracts is None:
        return bioasq({"questions": rows})
    return bioasq(
        {"questions": rows, "abstracts": [row for _, row in json_objects(abstracts, EvaluationError, BIOASQ)]}
    )


def bioasq(tables: Mapping[str, Iterable[RawRow]]) -> Dataset:
    """A document is a snippet, or an abstract where there are some; a question none of whose abstracts is there keeps
    its snippets. `answer_items` are the items of a list question with their synonyms; `answers` the
    synonyms of all items, "yes" or "no", or for summary questions the ideal answers."""
    abstracts = {
        f"pmid-{row['pmid']}": Document(f"pmid-{row['pmid']}", row.get("title") or "", row["text"])
        for row in tables.get("abstracts", ())
    }
    documents: dict[str, Document] = dict(abstracts)
    examples: dict[str, Example] = {}
    for row in tables["questions"]:
        if row["id"] in examples:
            continue
        named = [f"pmid-{_article(url)}" for url in row.get("documents") or ()] if abstracts else []
        evidence = [abstracts[name] for name in named if name in abstracts] or [
            _snippet(snippet) for snippet in row.get("snippets") or () if (snippet.get("text") or "").strip()
        ]
        for snippet in evidence:
            documents.setdefault(snippet.id, snippet)
        exact = _synonym_lists(row.get("exact_answer"), row["type"])
        ideal = _texts(row.get("ideal_answer"))
        examples[row["id"]] = Example(
            id=row["id"],
            question=row["body"],
            answers=tuple(dict.fromkeys(name for item in exact for name in item)) or ideal,
            supporting_ids=tuple(dict.fromkeys(snippet.id for snippet in evidence)),
            type=row["type"],
            answer_items=exact if row["type"] == "list" else (),
            metadata={"ideal_answer": list(ideal)},
        )
    return Dataset(BIOASQ, tuple(documents.values()), tuple(examples.values()))


def _snippet(snippet: Mapping[str, Any]) -> Document:
    snippet_id = f"pmid-{_article(str(snippet.get('document') or ''))}-{content_id(snippet['text'])[:8]}"
    return Document(snippet_id, "", snippet["text"], metadata={"section": snippet.get("beginSection") or ""})


def _article(url: str) -> str:
    return url.rstrip("/").rpartition("/")[2]


def _synonym_lists(exact_answer: Any, kind: str) -> tuple[tuple[str, ...], ...]:
    """One entry for each item. In the files a yes/no answer is a string, a factoid a list of synonyms or of such lists,
    a list question's answer a list of synonym lists, or of strings where no item has synonyms."""
    if exact_answer is None or exact_answer == "":
        return ()
    if isinstance(exact_answer, str):
        return ((exact_answer,),)
    if all(isinstance(part, str) for part in exact_answer):
        if kind == "list":
            return tuple((item,) for item in exact_answer)
        return (tuple(exact_answer),) if exact_answer else ()
    return tuple(tuple(_texts(part)) for part in exact_answer)


def _texts(value: Any) -> tuple[str, ...]:
    if not value:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


SOURCES: Mapping[str, Source] = {
    "trivia_qa": _source(trivia_qa, "mandarjoshi/trivia_qa", "questions rc.wikipedia validation"),
    "hotpot_qa": _source(hotpot_qa, "hotpotqa/hotpot_qa", "questions distractor validation"),
    "pub_health": _source(
        pub_health, "ImperialCollegeLondon/health_fact", "claims default test", "train default train", script=True
    ),
    "musique": _source(musique, "dgslibisey/MuSiQue", "questions default validation"),
    "dolly": _source(dolly, "databricks/databricks-dolly-15k", "instructions default train"),
    "multihop_rag": _source(multihop_rag, "yixuantt/MultiHopRAG", "questions MultiHopRAG train", "corpus corpus train"),
    "narrative_qa": _source(narrative_qa, "deepmind/narrativeqa", "questions default validation"),
    "qasper": _source(qasper, "allenai/qasper", "papers qasper validation", script=True),
    "openbook_qa": _source(openbook_qa, "allenai/openbookqa", "questions additional test"),
    "cmmlu": _source(cmmlu, "haonan-li/cmmlu", "questions * test", script=True),
    "cmu_wiki_qa": _source(cmu_wiki_qa, "sedthh/cmu_wiki_qa", "questions default train"),
    "lhm": _source(lhm, "it-at-m/LHM-Dienstleistungen-QA", "test default test", "train default train"),
}
NAMES = tuple(sorted((*SOURCES, BIOASQ)))


def load_dataset(name: str, folder: Path) -> Dataset:
    """The data set `name` from `folder / name`: files in the uniform schema, or what `fetch_dataset` left there.

    No network is used. Raises EvaluationError, with the command that gets it, when it is absent.
    """
    place = folder / name
    if is_dataset(place):
        return load_local(place)
    if name == BIOASQ:
        files = sorted(place.glob("*.json"))
        abstracts = place / ABSTRACTS
        if not files:
            raise EvaluationError(f"{str(place)!r} holds no golden files. {HOW_TO_GET}")
        return load_bioasq(files, abstracts if abstracts.is_file() else None)
    source = _known(name, folder)
    return source.convert(read_tables(name, source.tables, folder))


def fetch_dataset(name: str, folder: Path, *, files: Sequence[Path] = ()) -> None:
    """Downloads a data set from the hub into `folder / name`. BioASQ is not on the hub: its `files` are copied.

    Raises EvaluationError when it cannot be had.
    """
    if name == BIOASQ:
        if not files:
            raise EvaluationError(f"BioASQ is not on the hub. {HOW_TO_GET}")
        load_bioasq(files)  # refuses what is no golden file
        (folder / name).mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copyfile(file, folder / name / file.name)
        return
    if files:
        raise EvaluationError(f"{name!r} comes from the hub; files are for {BIOASQ!r} alone.")
    fetch_tables(name, _known(name, folder).tables, folder)


def _known(name: str, folder: Path) -> Source:
    if name not in SOURCES:
        raise EvaluationError(
            f"There is no data set {name!r} in {str(folder)!r}, nor one that can be fetched under that name. Known: "
            f"{', '.join(NAMES)}; a folder with questions.jsonl.gz in the uniform schema works under any name."
        )
    return SOURCES[name]
