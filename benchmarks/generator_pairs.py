"""Makes the pairs that the shipped question generator learns from. No question of an evaluated set is among them.

    python benchmarks/generator_pairs.py corpus --sources SOURCES --data ../shared/data --out runs/generator
    kraq index runs/generator/wiki.jsonl --out runs/generator/wiki.kraq
    python benchmarks/generator_pairs.py teach --sources SOURCES --out runs/generator --teacher gguf/qwen2.5-coder-1.5b
    python benchmarks/generator_pairs.py pairs --sources SOURCES --data ../shared/data --out runs/generator

SOURCES holds, as their repositories have them: `new_wiki_v1.0.json` (modestyachts/squadshifts-website, CC BY 4.0),
`question_train_answerable.tsv` (primeqa/clapnq, its training half, Apache-2.0; Wikipedia's text), `medquad/`
(abachaa/MedQuAD, CC BY 4.0), `gnome-help/` and `system-admin-guide/` (GNOME/gnome-user-docs, CC BY-SA 3.0).

Every row is a question and the short text that answers it, under a title or a heading, as a build shows it:

people      new_wiki and clapnq: one to four sentences of the passage, with the answer or the question's words
medicine    MedQuAD: what the question's disease is called, and the beginning of the answer
handbook    GNOME's help: a heading and its text; the question is its heading turned into one, or a teacher's
turned      summaries of communities of Wikipedia passages (`wiki_distractors`), a sentence asked about by the templates

Left out: what an evaluated set asks (by `fingerprint_of`), documents of the demo, questions that do not stand alone,
that name what their text does not, or that do not find their text among the three or five nearest.
"""

import argparse
import csv
import gzip
import html
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.asset.store.index import Index
from kraq_dspy.embedded.asking.headings import Heading, announced_question
from kraq_dspy.embedded.asking.templates import question_about
from kraq_dspy.embedded.summarize import community_summary
from kraq_dspy.eval.questions import fingerprint_of
from kraq_dspy.finetune.pairs import Pair
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.ports import Embedder
from kraq_dspy.programs.kraq.describe import shown_summary
from kraq_dspy.programs.kraq.question_text import PLAIN, plainness, shares_a_word, stands_alone as is_of_its_text
from kraq_dspy.records import Summary
from kraq_dspy.settings import EncoderSettings, RoleSettings

MOST = {"new_wiki": 350, "clapnq": 350, "medquad": 220, "headings": 180, "teacher": 400, "turned": 600}
MOST_WORDS = 16
SUMMARY_WORDS = 80
MOST_DEFINED = {"turned": 180, "medquad": 40}
"""Questions of what or who something is: most sentences give one."""
MOST_OF_TEXT = {"turned": 2, "teacher": 3}
TEST_SHARE = 0.1  # of the documents
ALONE = re.compile(r"\b(he|she|it|they|his|her|its|their|this|these|that)\b", re.IGNORECASE)
NAME = re.compile(r"(?<![.?!] )(?<!^)\b[A-Z][\w'-]+|\b\d{3,}\b")
WORD = re.compile(r"\w{4,}")
ASKING = re.compile(r"\b(who|whom|whose|what|which|where|when|why|how)\b", re.IGNORECASE)
BEGINS = re.compile(r"(?:who|whose|what|which|where|when|why|how|can|does|do|is|are|did|was|were)\b", re.IGNORECASE)
ASKS_FOR_NAME = re.compile(r"(?:What|Which) (?:is|was|are|were) the (?:names?|purpose|status)\b", re.IGNORECASE)
DEFINES = re.compile(r"(?:What|Who) (?:is|was|are|were) (?!the [a-z])")
SLIPS = re.compile(r"\. [A-Za-z]|--|\b(\w+) \1\b| \?|undertaken|``|''")
PLACES = {"computer": "on the computer", "GNOME": "in GNOME"}
MACHINES = ("computer", "laptop", "tablet", "device", "phone", "camera", "player")
MALLARD = "{http://projectmallard.org/1.0/}"
TEACHER = (
    "You write the questions that people type into a help search. They know nothing of the text, and they write "
    "short, plain, everyday questions of 5 to 11 words that name the thing they ask about."
)
THREE = "Three questions that this text answers, one each with How, Can or Does, What or Why:"
SHOWN_TEACHER = """Playing music from a phone
You can play songs from your phone through the speaker. Turn on Bluetooth on the phone, hold the pairing button for \
three seconds, and pick the speaker in the phone's list. Up to two phones can be paired. Range is about 10 meters."""
SHOWN_REPLY = """How do I play music from my phone on the speaker?
Can I pair two phones with the speaker?
What is the Bluetooth range of the speaker?"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["corpus", "teach", "pairs"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--passages", type=int, default=3000, help="of Wikipedia, whose sentences are turned round")
    parser.add_argument("--teacher", default="gguf/qwen2.5-coder-1.5b")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    {"corpus": write_corpus, "teach": teach, "pairs": make_pairs}[options.step](options)


def write_corpus(options: Any) -> None:
    shown = titles_of_example()
    rows = [row for row in rows_of(options.data / "wiki_distractors" / "corpus.jsonl.gz") if row["title"] not in shown]
    random.Random(0).shuffle(rows)
    write(options.out / "wiki.jsonl", rows[: options.passages])


def teach(options: Any) -> None:
    """Three questions of the teacher about each passage of the handbook, a line each; the same command goes on."""
    file = options.out / "taught.jsonl"
    done = {row["id"] for row in rows_of(file)} if file.exists() else set()
    lm = make_lm(RoleSettings(model=options.teacher, max_tokens=70, temperature=0.0, threads=1))
    pages = handbook(options.sources)
    random.Random(0).shuffle(pages)
    with file.open("a", encoding="utf-8") as lines:
        for page in pages:
            if page["id"] in done:
                continue
            heading = f"{page['page']}: {page['title']}" if page["page"] else page["title"]
            text = f"{heading}\n{' '.join(page['text'].split()[:110])}"
            messages = [
                {"role": "system", "content": TEACHER},
                {"role": "user", "content": f"{SHOWN_TEACHER}\n\n{THREE}"},
                {"role": "assistant", "content": SHOWN_REPLY},
                {"role": "user", "content": f"{text}\n\n{THREE}"},
            ]
            lines.write(json.dumps({**page, "reply": lm(messages=messages)[0]}, ensure_ascii=False) + "\n")
            lines.flush()


def make_pairs(options: Any) -> None:
    draw, embedder = random.Random(0), load_embedder(EncoderSettings())
    evaluated = questions_evaluated(options.data)
    with Index.open(options.out / "wiki.kraq") as index:
        turned = turned_round(list(index.all(Summary)))
    pairs_by_source = {
        "new_wiki": list(of_new_wiki(options.sources)),
        "clapnq": list(of_clapnq(options.sources)),
        "medquad": list(of_medquad(options.sources)),
        "headings": list(of_headings(options.sources)),
        "teacher": list(of_teacher(options.out / "taught.jsonl")),
        "turned": turned,
    }
    parts: dict[str, list[Pair]] = {"train": [], "test": []}
    for name, pairs in pairs_by_source.items():
        own = [pair for pair in pairs if fingerprint_of(pair.outputs["question"]) not in evaluated]
        usable = findable(own, embedder, within=3 if name in ("turned", "teacher") else 5, least=0.4)
        draw.shuffle(usable)
        documents = sorted({pair.document_ids[0] for pair in usable})
        held_out = set(draw.sample(documents, round(len(documents) * TEST_SHARE)))
        learned = different([pair for pair in usable if pair.document_ids[0] not in held_out], name)
        learned = draw.sample(learned, min(MOST[name], len(learned)))
        parts["train"] += learned
        parts["test"] += different([pair for pair in usable if pair.document_ids[0] in held_out], name)[:30]
        print(
            f"{name}: {len(pairs)} found, {len(pairs) - len(own)} evaluated, {len(usable)} usable, {len(learned)} taken"
        )
    for part, pairs in parts.items():
        draw.shuffle(pairs)
        write(options.out / f"{part}.jsonl", [pair.row() for pair in pairs])


def different(pairs: Sequence[Pair], name: str) -> list[Pair]:
    """No question twice; of one text few, and few that only define."""
    chosen: dict[str, Pair] = {}
    of_text: Counter[str] = Counter()
    defining, most_defining = 0, MOST_DEFINED.get(name, len(pairs))
    for pair in sorted(pairs, key=lambda pair: DEFINES.match(pair.outputs["question"]) is not None):
        question, text = pair.outputs["question"], pair.inputs["summary"]
        defines = DEFINES.match(question) is not None
        if question.casefold() in chosen or of_text[text] == MOST_OF_TEXT.get(name, 1):
            continue
        if not (defines and defining == most_defining):
            chosen[question.casefold()] = pair
            of_text[text] += 1
            defining += defines
    return list(chosen.values())


def questions_evaluated(data: Path) -> set[str]:
    """Fingerprints of every question in every set of the folder, banking's and the shop's among them."""
    files = [
        file for pattern in ("questions", "asked", "utterances", "groups") for file in data.glob(f"*/{pattern}*.gz")
    ]
    questions = [row.get(key) for file in files for row in rows_of(file) for key in ("question", "paraphrase", "same")]
    questions += [other for row in questions if isinstance(row, list) for other in row]
    return {fingerprint_of(question) for question in questions if isinstance(question, str)}


def of_new_wiki(sources: Path) -> Iterator[Pair]:
    for article in json.loads((sources / "new_wiki_v1.0.json").read_text("utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for exchange in paragraph["qas"]:
                question = " ".join(exchange["question"].split())
                text = said_about(question, paragraph["context"], exchange["answers"][0]["text"])
                if (
                    stands_alone(question, named=True)
                    and supported(question, text)
                    and plainness(question, text) >= 0.5
                ):
                    yield pair_of(text, question, "squadshifts-new_wiki", exchange["id"], paragraph["context"][:60])


def of_clapnq(sources: Path) -> Iterator[Pair]:
    with (sources / "question_train_answerable.tsv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            text = beginning(re.sub(r"\s+([,.;:%)])", r"\1", re.sub(r"``\s*|\s*''", '"', row["answers"])))
            question = cased(row["question"], text) + "?"
            if (
                len(text.split()) >= 20
                and stands_alone(question, named=False)
                and supported(question, text)
                and plainness(question, text) >= 0.3
            ):
                yield pair_of(text, question, "clapnq-train", row["id"], row["doc-id-list"])


def of_medquad(sources: Path) -> Iterator[Pair]:
    for file in sorted((sources / "medquad").rglob("*.xml")):
        raw = file.read_text("utf-8", errors="replace")
        focus = html.unescape("".join(re.findall(r"<Focus>(.*?)</Focus>", raw)))
        for number, (heading, answer) in enumerate(
            re.findall(r"<Question[^>]*>(.*?)</Question>\s*<Answer>(.*?)</Answer>", raw, re.DOTALL)
        ):
            plain = " ".join(html.unescape(heading).split())
            question = re.sub(r"^(\w+) is \(are\)", r"\1 is", plain).rstrip(" ?") + "?"
            question, text = question[:1].upper() + question[1:], beginning(html.unescape(answer))
            is_asked = BEGINS.match(question) and 4 <= len(question.split()) <= 14 and "clinical trials" not in question
            if is_asked and len(text.split()) >= 25 and not question.startswith("Do you have information"):
                yield pair_of(text, question, "medquad", f"{file.stem}-{number}", file.stem, heading=focus)


def of_headings(sources: Path) -> Iterator[Pair]:
    """Headings of the handbook that announce a question; of every second procedure whether one can."""
    for number, page in enumerate(handbook(sources)):
        text = beginning(page["text"])
        place = next((place for word, place in PLACES.items() if word in text), "")
        question = announced_question(Heading(page["title"]), [page["text"]], place)
        if number % 2:
            question = re.sub(r"^How do I ", "Can I ", question)
        if question and len(question.split()) <= MOST_WORDS:
            yield of_handbook(page, text, question, page["id"])


def of_handbook(page: dict[str, str], text: str, question: str, example: str, model: str = "") -> Pair:
    """The machine is another by turns, the same in question and text, so that its name is learned to be copied."""
    machine = MACHINES[sum(map(ord, page["title"])) % len(MACHINES)]
    heading, text, question = (part.replace("computer", machine) for part in (page["title"], text, question))
    return pair_of(text, question, "gnome-help", example, page_of(page["id"]), heading=heading, model=model)


def of_teacher(file: Path) -> Iterator[Pair]:
    for row in rows_of(file):
        text = beginning(row["text"])
        shown = f"{row['page']}\n{row['title']}\n{text}"
        for line in row["reply"].splitlines():
            question = " ".join(line.strip(" -*0123456789.").split())
            if (
                question.endswith("?")
                and 4 <= len(question.split()) <= MOST_WORDS
                and BEGINS.match(question)
                and not ASKS_FOR_NAME.match(question)
                and is_of_its_text(question, TEACHER)
                and shares_a_word(question, shown)
                and plainness(question, shown) >= 0.6
            ):
                yield of_handbook(row, text, question, f"{row['id']} {question}", "teacher")


def turned_round(summaries: Sequence[Summary]) -> list[Pair]:
    """Sentences of the summaries as questions of the templates, where these name something and are plain."""
    pairs = []
    for summary in summaries:
        shown = shown_summary(summary.title, summary.text)
        texts = [summary.text, *(summary.text[start:end] for start, end in sentence_spans(summary.text))]
        for question in dict.fromkeys(question_about(shown_summary(summary.title, text)) for text in texts):
            words = question.rstrip("?").split()
            is_plain = 4 <= len(words) <= MOST_WORDS and plainness(question, shown) >= PLAIN
            asks = "is said about" not in question and "about?" not in question and not SLIPS.search(question)
            if asks and is_plain and supported(question, shown) and len(summary.text.split()) <= 130:
                pairs.append(
                    Pair.generator(
                        shown, question, source="wiki_distractors", example_id=f"{summary.community_id} {question}",
                        model="templates", document_ids=(summary.community_id,),
                    )
                )  # fmt: skip
    return pairs


def pair_of(
    text: str, question: str, source: str, example: str, document: str, heading: str = "", model: str = ""
) -> Pair:
    """The text under its heading, or under the names that the embedded model would put over it."""
    title = heading or str(community_summary([text])["title"])
    shown = shown_summary(title, text)
    return Pair.generator(shown, question, source=source, example_id=example, document_ids=(document,), model=model)


def findable(pairs: Sequence[Pair], embedder: Embedder, *, within: int, least: float) -> list[Pair]:
    """Those whose summary is among the `within` nearest to the question, of the summaries of all."""
    texts = list(dict.fromkeys(pair.inputs["summary"] for pair in pairs))
    place = {text: number for number, text in enumerate(texts)}
    summaries = embedder.encode_passages(texts)
    findable_pairs = []
    for pair, vector in zip(pairs, embedder.encode_queries([pair.outputs["question"] for pair in pairs]), strict=True):
        likeness = summaries @ vector
        own = likeness[place[pair.inputs["summary"]]]
        if own >= least and np.count_nonzero(likeness > own + 1e-6) < within:
            findable_pairs.append(pair)
    return findable_pairs


def handbook(sources: Path) -> list[dict[str, str]]:
    """The sections of GNOME's help: `page` is the title of the page, "" for the page's own beginning."""
    sections: dict[str, dict[str, str]] = {}
    for file in sorted([*sources.glob("gnome-help/C/*.page"), *sources.glob("system-admin-guide/C/*.page")]):
        root = ElementTree.parse(file).getroot()
        title, described = root.find(f"{MALLARD}title"), root.find(f"{MALLARD}info/{MALLARD}desc")
        if title is None:
            continue
        page, opening = said(title), [said(described)] if described is not None else []
        for part in [root, *root.iter(f"{MALLARD}section")]:
            heading = part.find(f"{MALLARD}title")
            noted = {p for note in part.iter(f"{MALLARD}comment") for p in note.iter()}  # between authors
            inner = (
                child for child in part if child.tag not in {f"{MALLARD}{tag}" for tag in ("section", "info", "title")}
            )
            text = " ".join(
                [*opening, *(said(p) for child in inner for p in child.iter(f"{MALLARD}p") if p not in noted)]
            )
            if heading is not None and len(text.split()) >= 25 and text not in sections:
                id = f"{file.parts[-3]}/{file.stem}/{said(heading)}"
                sections[text] = {"id": id, "page": "" if part is root else page, "title": said(heading), "text": text}
            opening = []
    return list(sections.values())


def page_of(section: str) -> str:
    """ "gnome-help/PAGE/HEADING" as PAGE."""
    return re.split("[/#]", section)[1]


def said(element: ElementTree.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def beginning(text: str) -> str:
    """Whole sentences from the first on, as many as `SUMMARY_WORDS` allow."""
    text, fitting = " ".join(text.split()), ""
    for _, end in sentence_spans(text):
        if fitting and len(text[:end].split()) > SUMMARY_WORDS:
            break
        fitting = text[:end].strip()
    return " ".join(fitting.split()[: SUMMARY_WORDS + 20])


def said_about(question: str, text: str, answer: str) -> str:
    """The sentence that shares most words with the question, before all one with the answer, and its neighbours."""
    sought = set(WORD.findall(question.casefold()))
    sentences = [text[start:end].strip() for start, end in sentence_spans(text)]

    def weight(at: int) -> tuple[bool, int]:
        return answer in sentences[at], len(sought & set(WORD.findall(sentences[at].casefold())))

    place = max(range(len(sentences)), key=weight)
    chosen = {place}
    for near in (place - 1, place + 1, place - 2):
        together = {at for at in {*chosen, near} if 0 <= at < len(sentences)}
        if sum(len(sentences[at].split()) for at in together) <= SUMMARY_WORDS:
            chosen = together
    return " ".join(sentences[at] for at in sorted(chosen))


def cased(query: str, text: str) -> str:
    """A query in small letters with the capitals that its text has inside sentences, and one at its beginning."""
    inside = set(re.findall(r"(?<![.?!\"] )(?<!^)\b[A-Z][\w'-]*", text)) - {
        word for word in text.split() if word.islower()
    }
    capital = {
        word.casefold(): word for word in inside if word.casefold() not in set(re.findall(r"\b[a-z][\w'-]*", text))
    }
    words = [capital.get(word, word) for word in query.split()]
    return " ".join([words[0][:1].upper() + words[0][1:], *words[1:]])


def stands_alone(question: str, *, named: bool) -> bool:
    words = question.split()
    return (
        question.endswith("?")
        and 4 <= len(words) <= MOST_WORDS
        and (bool(BEGINS.match(question)) or bool(ASKING.search(question) and named))
        and not ASKS_FOR_NAME.match(question)
        and not ALONE.search(question)
        and (bool(NAME.search(question)) or not named)
        and question[0].isupper()
    )


def supported(question: str, summary: str) -> bool:
    """Every name and number of the question stands in the summary."""
    return all(part.casefold() in summary.casefold() for part in NAME.findall(question))


def titles_of_example() -> set[str]:
    return {row["title"] for row in rows_of(Path("examples/hotpotqa-mini/corpus.jsonl"))}


def rows_of(file: Path) -> list[dict[str, Any]]:
    raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return [json.loads(line) for line in raw.decode("utf-8").split("\n") if line]


def write(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


if __name__ == "__main__":
    main()
