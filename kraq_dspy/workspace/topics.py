"""Names what a broad community is about where no model wrote its question.

A template asks after one heading or one sentence. For a community of many passages, that is a
detail and not its topic. The title of the document that most of it comes from, and its central
names, say more.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import permutations

from kraq_dspy.asset.store.index import Index
from kraq_dspy.language.text import stands_in_menus
from kraq_dspy.programs.kraq.question_text import asks_of_headline
from kraq_dspy.records import Chunk, Community, Entity, Question
from kraq_dspy.settings import EMBEDDED
from kraq_dspy.workspace.spellings import Spellings

BROAD = 8  # passages from which on a community without narrower ones inside is broad, too
CENTRAL = 3  # names that make a topic
LONGEST_NAME = 4  # words; what has more is a headline or a row of a table
SHORTEST = 4  # letters; "Sta" is cut off
WORDS_READ = 2_000  # passages of an index, evenly drawn, in which words are told from names
GROUP = 5  # passages from which on a question may be an example of what a group tells
LEAST_SHARE = 0.2  # of a group's passages that answer a question which stands for it
OF_MANY = 1 / 3  # share of a community's passages, from which on a short acronym tells what it is about
OF_ONE_DOCUMENT = 0.5  # share of a community's passages that gives it the title of a document

REST = "other passages"  # of a document that another group is of, too

_FILE_OR_NUMBER = re.compile(r"\S*[._/\\]\S*|[\W\d_]*|(?:PMID|ISBN|ID)?\s*\d+.*", re.IGNORECASE)

_SHORT_ACRONYM = re.compile(r"[A-Z]{2,3}[a-z]?")
_NO_NAME = re.compile(r"\S+-[a-z]+|.*\w{2}\.\w{2}.*")
"""What is said of a thing with a hyphen, "RET-selective", and where a sentence ran into the next."""


def is_broad(community: Community) -> bool:
    """Whether narrower communities are inside, or many passages.

    >>> is_broad(Community("m1", 0, None, (), ("e1",), (), ("c1",)))
    False
    >>> is_broad(Community("m1", 0, None, ("m2",), ("e1",), (), ("c1",)))
    True
    """
    return bool(community.child_ids) or len(community.chunk_ids) >= BROAD


def is_example(question: Question) -> bool:
    """Whether so few of its group's passages answer the question that it is an example of what they tell.

    >>> is_example(Question("q1", "Who met Ada?", "kraq", "m1", 0, tuple("abcdefg"), ("ada",), evidence=("c",)))
    True
    """
    return len(question.chunk_ids) >= GROUP and len(question.evidence) > 0 and question.share < LEAST_SHARE


def topic_of(
    members: Iterable[Entity],
    title: str = "",
    spellings: Spellings | None = None,
    chunk_ids: Collection[str] = (),
) -> str:
    """The title of the document that a community is of, if there is one, and the best connected of its names.

    If there are others, it omits names with digits or many words, and those that the texts write as
    words or measures (`spellings`). If two others are left, it also omits a short acronym, unless
    many of the community's passages (`chunk_ids`) have it. No name is part of another or of the
    title. With a title, each name occurs in several passages.

    >>> ada = Entity("e1", "Ada Lovelace", "person", "", ("Ada",), ("c1",), degree=1)
    >>> byron = Entity("e2", "Byron", "person", "", ("Byron",), ("c1",), degree=2)
    >>> topic_of([byron, ada])
    'Byron, Ada Lovelace'
    >>> topic_of([byron, ada], title="Poets")  # beside a title, names of several passages alone
    'Poets'
    """

    ranked = sorted(members, key=lambda each: (-each.degree, -len(each.chunk_ids), each.name))
    if title:
        ranked = [each for each in ranked if len(each.chunk_ids) > 1]

    names = [each.name for each in ranked]
    spellings = spellings or Spellings()
    telling = _apart([name for name in names if _tells(name, spellings)], title)
    passages = frozenset(chunk_ids)
    unusual = {each.name for each in ranked if _is_unusual(each, spellings, passages)}
    usual = [name for name in telling if name not in unusual]
    chosen = usual if len(usual) > 1 else telling
    if not chosen and not title:
        chosen = _apart(names)
    listed = ", ".join(_put_together(chosen, spellings)[:CENTRAL])
    return f"{title}: {listed}" if title and listed else title or listed


def broad_by_template(index: Index, questions: Iterable[Question]) -> dict[str, Community]:
    """The communities that have a topic instead of a question, and the broad ones that a template asked about, by the
    id of the question."""
    questions = list(questions)
    by_template = {
        each.id: each.community_id
        for each in questions
        if (each.model == EMBEDDED or each.is_topic) and each.community_id
    }
    if not by_template:
        return {}
    unasked = {each.community_id for each in questions if each.is_topic}
    broad = {each.id: each for each in index.all(Community) if is_broad(each) or each.id in unasked}
    return {id: broad[community_id] for id, community_id in by_template.items() if community_id in broad}


def asking_first(questions: Iterable[Question], topic_by_id: Mapping[str, str]) -> list[Question]:
    """The questions as they are listed: those that ask something, then what a headline is about, then topics; of each,
    the broadest level first, and on a level those of the largest groups."""

    def place(question: Question) -> tuple[int, int, int]:
        is_headline = question.model == EMBEDDED and asks_of_headline(question.text)
        is_topic = question.is_topic or (question.id in topic_by_id and not is_example(question))
        kind = 2 if is_topic else int(is_headline)
        return kind, question.level, -len(question.chunk_ids)

    return sorted(questions, key=place)


def topics(index: Index, questions: Iterable[Question]) -> dict[str, str]:
    """Return what the groups are about that their question does not stand for, by the question's id.

    These are broad groups that a template asked about, and those of which few passages answer the question: it is an
    example there.
    """
    questions = list(questions)
    broad = broad_by_template(index, questions)
    examples = [each for each in questions if is_example(each) and each.community_id and each.id not in broad]
    of_examples = index.get(Community, [each.community_id for each in examples if each.community_id])
    broad |= {each.id: community for each, community in zip(examples, of_examples, strict=True)}
    if not broad:
        return {}
    member_ids = {entity_id for community in broad.values() for entity_id in community.entity_ids}
    entities = {entity.id: entity for entity in index.all(Entity) if entity.id in member_ids}
    titles = _titles(index, broad.values())
    spellings = _spellings(index)

    named: dict[str, str] = {}
    for question_id, community in broad.items():
        members = [entities[each] for each in community.entity_ids if each in entities]
        topic = topic_of(members, titles.get(community.id, ""), spellings, community.chunk_ids)
        if topic:
            named[question_id] = topic

    several = {title for title, count in Counter(titles.values()).items() if count > 1}
    return {id: f"{topic}: {REST}" if topic in several else topic for id, topic in named.items()}


def _titles(index: Index, communities: Iterable[Community]) -> dict[str, str]:
    """The title of the document that at least half of a community's passages are of, by the community's id."""
    chunk_by_community: dict[str, str] = {}
    for community in communities:
        document_by_chunk = index.documents_of(community.chunk_ids)
        chunk_id = _chunk_of_main_document(document_by_chunk)
        if chunk_id is not None:
            chunk_by_community[community.id] = chunk_id

    chunk_ids = sorted(set(chunk_by_community.values()))
    title_by_chunk = {chunk.id: chunk.title for chunk in index.chunks_by_id(chunk_ids)}

    titles: dict[str, str] = {}
    for community_id, chunk_id in chunk_by_community.items():
        title = title_by_chunk[chunk_id]
        if not _FILE_OR_NUMBER.fullmatch(title):
            titles[community_id] = title
    return titles


def _chunk_of_main_document(document_by_chunk: Mapping[str, str]) -> str | None:
    """Return a chunk of the document that at least half of the chunks are of; None if no document has as many."""
    if not document_by_chunk:
        return None

    [(main_document, count)] = Counter(document_by_chunk.values()).most_common(1)
    if count < 2 or count < OF_ONE_DOCUMENT * len(document_by_chunk):
        return None
    return next(id for id, document in document_by_chunk.items() if document == main_document)


def _spellings(index: Index) -> Spellings:
    """How the passages write words, or as many of them as tell."""
    ids = index.ids(Chunk)
    drawn = ids[:: max(1, len(ids) // WORDS_READ)]
    return Spellings(chunk.text for chunk in index.chunks_by_id(drawn))


def _apart(names: Iterable[str], title: str = "") -> list[str]:
    """Those of which none stands in an earlier one or in the title, nor the other way round."""
    apart: list[str] = []
    for name in names:
        if not any(_within(name, other) for other in [title, *apart]):
            apart.append(name)
    return apart


def _put_together(names: Sequence[str], spellings: Spellings) -> list[str]:
    """The first names, with those in one that the texts join by "and": "US Food" and "Drug Administration"."""
    first, rest = list(names[: CENTRAL + 1]), list(names[CENTRAL + 1 :])
    for beginning, end in permutations(first, 2):
        whole = spellings.joined(beginning, end)
        if whole:
            place = min(first.index(beginning), first.index(end))
            left = [name for name in first if name not in (beginning, end)]
            return [*left[:place], whole, *left[place:], *rest]
    return [*first, *rest]


def _tells(name: str, spellings: Spellings) -> bool:
    parts = name.split()
    if len(parts) > LONGEST_NAME or any(map(str.isdigit, name)) or _NO_NAME.fullmatch(name):
        return False
    if stands_in_menus(name) or spellings.is_owned(name):
        return False
    if len(parts) == 1 and spellings.is_word(name):
        return False
    return len(name) >= SHORTEST or not name.isascii() or name.isupper() or "." in name


def _is_unusual(entity: Entity, spellings: Spellings, chunk_ids: frozenset[str]) -> bool:
    """Whether a name is a measure, or an acronym that may stand for much and that few of the passages have."""
    if spellings.is_measure(entity.name):
        return True
    if not _is_short_acronym(entity.name):
        return False
    passages_with_it = len(chunk_ids.intersection(entity.chunk_ids))
    return passages_with_it < OF_MANY * max(1, len(chunk_ids))


def _is_short_acronym(name: str) -> bool:
    """Whether all words are of two or three capitals, which may stand for much; "U.S." is known to everybody.

    >>> _is_short_acronym("UTC"), _is_short_acronym("JAKs"), _is_short_acronym("NATO"), _is_short_acronym("RSMC Tokyo")
    (True, True, False, False)
    """
    return all(_SHORT_ACRONYM.fullmatch(part) for part in name.split() if part not in ("of", "for"))


def _within(name: str, other: str) -> bool:
    """Whether one of the two is the other, a part of it, or its plural."""
    first, second = name.casefold(), other.casefold()
    return (
        f" {first} " in f" {second} " or f" {second} " in f" {first} " or f"{first}s" == second or f"{second}s" == first
    )
