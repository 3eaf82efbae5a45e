"""Lists the public question-answering sets: where each lies on the hub, and how its rows become a `Dataset`.

A converter takes the rows of its tables by the tables' names, and what it makes of them goes into a `Collected`.
`SOURCES`, at the end, is the table of them all.
"""

import json
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

Tables = Mapping[str, Iterable[RawRow]]


class Collected:
    """Documents and questions, the first of each id."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self.examples: dict[str, Example] = {}

    def document(self, id: str, title: str | None, text: str, **metadata: str) -> str:
        """Keep the document, and return its id."""
        self.documents.setdefault(id, Document(id, title or "", text, metadata=metadata))
        return id

    def question(
        self, id: str, question: str, answers: Iterable[str], supporting: Iterable[str] = (), type: str = "",
        *, context: Iterable[str] = (), items: tuple[tuple[str, ...], ...] = (),
    ) -> None:  # fmt: skip
        """Equal answers and ids count once."""
        gold, evidence, shown = (tuple(dict.fromkeys(each)) for each in (answers, supporting, context))
        self.examples.setdefault(id, Example(id, question, gold, evidence, type, items, shown))


def hotpot_qa(tables: Tables, into: Collected) -> None:
    """HotPotQA in the distractor setting: two gold passages among ten (Yang et al., 2018).

    A document is the opening paragraph of a Wikipedia page, and its id the page's title.
    """
    for row in tables["questions"]:
        shown = [
            into.document(passage["title"], passage["title"], "".join(passage["sentences"]).strip())
            for passage in as_rows(row["context"])
        ]
        facts = [fact["title"] for fact in as_rows(row["supporting_facts"])]
        into.question(row["id"], row["question"], (row["answer"],), facts, row["type"], context=shown)


def trivia_qa(tables: Tables, into: Collected) -> None:
    """TriviaQA, the reading comprehension part with Wikipedia pages (Joshi et al., 2017).

    Documents are whole pages. Evidence in TriviaQA is found, not marked: `supporting_ids` are the pages in which an
    alias of the answer occurs, `context_ids` all pages of the question.
    """
    words: dict[str, str] = {}
    for row in tables["questions"]:
        pages = [
            *(("wikipedia", page, page.get("wiki_context")) for page in as_rows(row.get("entity_pages"))),
            *(("web", page, page.get("search_context")) for page in as_rows(row.get("search_results"))),
        ]
        shown = []
        for kind, page, text in pages:
            if text and text.strip():
                shown.append(into.document(f"{kind}/{page['filename']}", page.get("title"), text))
                words.setdefault(shown[-1], f" {normalise_answer(text)} ")

        answers = (row["answer"]["value"], *row["answer"]["aliases"])
        sought = [f" {normalise_answer(alias)} " for alias in answers if alias.strip()]
        holding = [page for page in shown if any(alias in words[page] for alias in sought)]
        into.question(row["question_id"], row["question"], answers, holding, "trivia", context=shown)


PUB_HEALTH_LABELS = ("false", "mixture", "true", "unproven")
"""In the order of the numbers that stand for them on the hub; -1 is a missing label."""


def pub_health(tables: Tables, into: Collected) -> None:
    """PubHealth: claims about public health, to be verified from an article (Kotonya and Toni, 2020).

    A question is a claim, its answer "true", "false" or "mixture", its evidence the article's text. Those of the test
    split come first; the thesis asks 2,400, more than it has. As in the KRAQ paper, "unproven" claims are left out, and
    with them those without label, claim or text.
    """
    for row in (*tables["claims"], *tables["train"]):
        label = row["label"] if isinstance(row["label"], str) else (*PUB_HEALTH_LABELS, "")[row["label"]]
        claim, text = (row["claim"] or "").strip(), (row["main_text"] or "").strip()
        if label in ("true", "false", "mixture") and claim and text:
            claim_id = into.document(f"pubhealth-{row['claim_id']}", "", text)
            into.question(claim_id, claim, (label,), (claim_id,), "veracity")


def musique(tables: Tables, into: Collected) -> None:
    """MuSiQue: questions of two to four hops, twenty passages each (Trivedi et al., 2022).

    Answerable questions; `type` is the number of hops ("2hop", "3hop1", ...).
    """
    for row in tables["questions"]:
        if not row.get("answerable", True):
            continue
        shown, supporting = [], []
        for passage in as_rows(row["paragraphs"]):
            title, text = passage["title"], passage["paragraph_text"]
            shown.append(into.document(f"mq-{content_id(title, text)[:12]}", title, text))
            if passage["is_supporting"]:
                supporting.append(shown[-1])
        answers = (row["answer"], *(row.get("answer_aliases") or ()))
        hops = row["id"].partition("__")[0]
        into.question(row["id"], row["question"], answers, supporting, hops, context=shown)


def multihop_rag(tables: Tables, into: Collected) -> None:
    """MultiHop-RAG: questions over several news articles (Tang and Yang, 2024).

    A document is an article, its id the article's address. Null queries have no evidence and the answer
    "Insufficient information.".
    """
    for row in tables["corpus"]:
        metadata = {key: str(row[key]) for key in ("source", "category", "published_at") if row.get(key)}
        into.document(row["url"], row["title"], row["body"], **metadata)
    for number, row in enumerate(tables["questions"]):
        evidence = [fact["url"] for fact in as_rows(row["evidence_list"])]
        into.question(f"mhrq-{number}", row["query"], (row["answer"],), evidence, row["question_type"])


def narrative_qa(tables: Tables, into: Collected) -> None:
    """NarrativeQA: questions about whole books and film scripts, two answers each (Kočiský et al., 2018).

    A document is a whole story; question ids number the questions of a story from 0.
    """
    counts: Counter[str] = Counter()
    for row in tables["questions"]:
        story = row["document"]
        title = (story.get("summary") or {}).get("title")
        into.document(story["id"], title, story["text"], kind=story.get("kind") or "")
        answers = [answer["text"] for answer in as_rows(row["answers"])]
        question_id = f"{story['id']}-{counts[story['id']]}"
        counts[story["id"]] += 1
        into.question(question_id, row["question"]["text"], answers, (story["id"],), "narrative")


def qasper(tables: Tables, into: Collected) -> None:
    """QASPER: questions about NLP papers, with the paragraphs that answer them (Dasigi et al., 2021).

    A document is a paragraph (or the abstract), titled with its paper and section. `answers` are the annotators', none
    if all of them found the question unanswerable. Evidence in tables and figures has no paragraph and is left out
    of `supporting_ids`.
    """
    for paper in tables["papers"]:
        id_of_text = _paragraphs(paper, into)
        for entry in as_rows(paper["qas"]):
            replies = [reply["answer"] for reply in as_rows(entry["answers"])]
            evidence = [text.strip() for reply in replies for text in reply["evidence"]]
            kinds_and_texts = [_qasper_answer(reply) for reply in replies]
            kinds = [kind for kind, _ in kinds_and_texts if kind != "unanswerable"]
            into.question(
                entry["question_id"],
                entry["question"],
                [answer for _, answer in kinds_and_texts if answer],
                [id_of_text[text] for text in evidence if text in id_of_text],
                kinds[0] if kinds else "unanswerable",
            )


def _paragraphs(paper: RawRow, into: Collected) -> dict[str, str]:
    """Keep the abstract and the paragraphs of a paper as documents, and return their ids by text."""
    parts = [("-abstract", paper["title"], paper["abstract"] or "")]
    for number, section in enumerate(as_rows(paper["full_text"])):
        title = paper["title"]
        if section["section_name"]:
            title = f"{title}: {section['section_name']}"
        for place, text in enumerate(section["paragraphs"]):
            parts.append((f"-{number}.{place}", title, text))

    id_of_text: dict[str, str] = {}
    for end, title, text in parts:
        if text.strip():
            id = into.document(f"{paper['id']}{end}", title, text.strip())
            id_of_text.setdefault(text.strip(), id)
    return id_of_text


def _qasper_answer(reply: Mapping[str, Any]) -> tuple[str, str]:
    """Read the answer's kind and its text, as QASPER's own scorer reads them."""
    if reply["unanswerable"]:
        return "unanswerable", ""
    if reply["extractive_spans"]:
        return "extractive", ", ".join(reply["extractive_spans"])
    if reply["free_form_answer"]:
        return "abstractive", reply["free_form_answer"]
    return "boolean", "yes" if reply["yes_no"] else "no"


def openbook_qa(tables: Tables, into: Collected) -> None:
    """OpenBookQA: multiple choice from facts of elementary science (Mihaylov et al., 2018).

    A document is a fact of the book. The answer is the text of the right choice.
    """
    for row in tables["questions"]:
        fact = row["fact1"].strip()
        fact_id = into.document(f"obqa-{content_id(fact)[:12]}", "", fact)
        choices = {choice["label"]: choice["text"] for choice in as_rows(row["choices"])}
        answer = choices[row["answerKey"].strip()]
        into.question(row["id"], row["question_stem"], (answer,), (fact_id,), "multiple_choice")


def dolly(tables: Tables, into: Collected) -> None:
    """Dolly 15k: instructions written by people, some with a passage to answer from (Conover et al., 2023).

    The instructions that have a passage; `type` is Dolly's category. Repeated rows count once.
    """
    for row in tables["instructions"]:
        question, passage, answer = ((row[name] or "").strip() for name in ("instruction", "context", "response"))
        if question and passage and answer:
            passage_id = into.document(f"dolly-{content_id(passage)[:12]}", "", passage)
            row_id = f"dollyq-{content_id(question, passage, answer)[:12]}"
            into.question(row_id, question, (answer,), (passage_id,), row["category"])


def cmmlu(tables: Tables, into: Collected) -> None:
    """CMMLU: Chinese multiple choice in 67 subjects, without passages (Li et al., 2023).

    Questions without a corpus; ids number them from 0.
    """
    for number, row in enumerate(tables["questions"]):
        answer = str(row[row["Answer"].strip()])
        into.question(f"cmmlu-{number}", row["Question"], (answer,), type="multiple_choice")


def cmu_wiki_qa(tables: Tables, into: Collected) -> None:
    """CMU-Wiki-QA: questions about Wikipedia articles with short answers, without passages (Smith et al., 2008).

    Questions without a corpus; a question that is there more than once has all its answers.
    """
    answers: dict[str, list[str]] = {}
    for row in tables["questions"]:
        question, answer = row["INSTRUCTION"].strip(), row["RESPONSE"].strip()
        if question and answer:
            answers.setdefault(question, []).append(answer)
    for question, each in answers.items():
        into.question(f"cmu-{content_id(question)[:12]}", question, each)


def lhm(tables: Tables, into: Collected) -> None:
    """LHM-Dienstleistungen-QA: German questions about services of the city of Munich (Schröder et al., 2022).

    A document is the text of a service that a question was asked about.
    """
    for row in (*tables["test"], *tables["train"]):
        title, text, question = (str(row[name] or "").strip() for name in ("title", "context", "question"))
        answers = [answer.strip() for answer in row["answers"]["text"] if answer.strip()]
        if text and question and answers:
            service = into.document(f"lhm-{content_id(title, text)[:12]}", title, text)
            into.question(f"lhm-q-{content_id(question, service)[:12]}", question, answers, (service,))


BIOASQ = "bioasq"
ABSTRACTS = "abstracts.jsonl"
"""Beside the golden files: a line with pmid, title and text for each abstract. Without it snippets are the corpus."""
HOW_TO_GET = (
    "Register with BioASQ (participants area), download the golden files of task B, and run: "
    "kraq bench fetch bioasq --file 12B1_golden.json --out DIR"
)


def golden_questions(path: Path) -> list[RawRow]:
    """Read the questions of one of BioASQ's files. Raises EvaluationError for another file."""
    try:
        return list(json.loads(path.read_text("utf-8"))["questions"])
    except FileNotFoundError:
        raise EvaluationError(f"There is no file {str(path)!r}. {HOW_TO_GET}") from None
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise EvaluationError(f"{path.name} is no BioASQ golden file: it has no list 'questions'.") from error


def bioasq(tables: Tables, into: Collected) -> None:
    """BioASQ, task B: biomedical questions with snippets of abstracts (Tsatsaronis et al., 2015).

    A document is a snippet, or an abstract if there are some, as in the KRAQ papers; a question none of whose
    abstracts is there keeps its snippets. `answer_items` are the items of a list question with their synonyms;
    `answers` the synonyms of all items, "yes" or "no", or for summary questions the ideal answers.
    """
    for row in tables.get("abstracts", ()):
        into.document(f"pmid-{row['pmid']}", row.get("title"), row["text"])

    for row in tables["questions"]:
        named = [f"pmid-{_article(url)}" for url in row.get("documents") or ()]
        abstracts = [id for id in named if id in into.documents]
        evidence = abstracts or _snippets(row, into)

        exact = _synonym_lists(row.get("exact_answer"), row["type"])
        names = [name for item in exact for name in item]
        answers = names or _texts(row.get("ideal_answer"))
        items = exact if row["type"] == "list" else ()
        into.question(row["id"], row["body"], answers, evidence, row["type"], items=items)


def _snippets(row: RawRow, into: Collected) -> list[str]:
    """Keep the snippets of a question as documents, and return their ids."""
    ids = []
    for snippet in row.get("snippets") or ():
        text = snippet.get("text") or ""
        if not text.strip():
            continue
        id = f"pmid-{_article(snippet.get('document') or '')}-{content_id(text)[:8]}"
        section = snippet.get("beginSection") or ""
        ids.append(into.document(id, "", text, section=section))
    return ids


def _article(url: str) -> str:
    return url.rstrip("/").rpartition("/")[2]


def _synonym_lists(exact_answer: Any, kind: str) -> tuple[tuple[str, ...], ...]:
    """One entry for each item. In the files a yes/no answer is a string, a factoid a list of synonyms or of such lists,
    a list question's answer a list of synonym lists, or of strings where no item has synonyms."""
    parts = _texts(exact_answer)
    if parts and kind != "list" and all(isinstance(part, str) for part in parts):
        return (parts,)
    return tuple(_texts(part) for part in parts)


def _texts(value: Any) -> tuple[Any, ...]:
    return (value,) if value and isinstance(value, str) else tuple(value or ())


@dataclass(frozen=True, slots=True)
class Source:
    """Where a data set's tables are on the hub, and how their rows become a Dataset."""

    convert: Callable[[Tables, Collected], None]
    tables: tuple[HubTable, ...] = ()

    def dataset(self, name: str, tables: Tables) -> Dataset:
        into = Collected()
        self.convert(tables, into)
        return Dataset(name, tuple(into.documents.values()), tuple(into.examples.values()))


def _source(
    convert: Callable[[Tables, Collected], None], repository: str, *tables: str, script: bool = False
) -> Source:
    """Each table as "NAME CONFIG SPLIT"."""
    return Source(convert, tuple(HubTable(n, repository, c, s, script=script) for n, c, s in map(str.split, tables)))


SOURCES: Mapping[str, Source] = {
    "bioasq": Source(bioasq),
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
NAMES = tuple(sorted(SOURCES))


def load_dataset(name: str, folder: Path) -> Dataset:
    """Load a data set from a folder, without using the network.

    Args:
        name: the name of the data set in `kraq bench data`.
        folder: the folder of data sets. `folder / name` has the data set, in the uniform schema or as `fetch_dataset`
            wrote it.

    Returns:
        The corpus and its questions.

    Raises:
        EvaluationError: if the folder is absent. The message has the command that fetches the data set.

    >>> len(load_dataset("hotpot_qa", Path("data")).examples)  # doctest: +SKIP
    7405
    """
    place = folder / name
    if is_dataset(place):
        return load_local(place)

    source = _known(name, folder)
    if name != BIOASQ:
        return source.dataset(name, read_tables(name, source.tables, folder))

    files, abstracts = sorted(place.glob("*.json")), place / ABSTRACTS
    if not files:
        raise EvaluationError(f"{str(place)!r} holds no golden files. {HOW_TO_GET}")

    tables = {"questions": [row for file in files for row in golden_questions(file)]}
    if abstracts.is_file():
        tables["abstracts"] = [row for _, row in json_objects(abstracts, EvaluationError, BIOASQ)]
    return source.dataset(name, tables)


def fetch_dataset(name: str, folder: Path, *, files: Sequence[Path] = ()) -> None:
    """Download a data set from the hub.

    Args:
        name: the name of the data set in `kraq bench data`.
        folder: the folder of data sets. The data set goes to `folder / name`.
        files: BioASQ's files, which are not on the hub, to copy.

    Returns:
        None.

    Raises:
        EvaluationError: if the data set cannot be had.

    >>> fetch_dataset("hotpot_qa", Path("data"))  # doctest: +SKIP
    """
    if name != BIOASQ:
        if files:
            raise EvaluationError(f"{name!r} comes from the hub; files are for {BIOASQ!r} alone.")
        fetch_tables(name, _known(name, folder).tables, folder)
        return
    if not files:
        raise EvaluationError(f"BioASQ is not on the hub. {HOW_TO_GET}")

    for file in files:
        golden_questions(file)  # refuses what is no golden file
    (folder / name).mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copyfile(file, folder / name / file.name)


def _known(name: str, folder: Path) -> Source:
    if name not in SOURCES:
        raise EvaluationError(
            f"There is no data set {name!r} in {str(folder)!r}, nor one that can be fetched under that name. Known: "
            f"{', '.join(NAMES)}; a folder with questions.jsonl.gz in the uniform schema works under any name."
        )
    return SOURCES[name]
