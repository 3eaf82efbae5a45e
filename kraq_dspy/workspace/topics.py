"""Names what a broad community is about where no model wrote its question.

A template asks after one heading or one sentence. For a community of many passages, that is a
detail and not its topic. The title of the document that most of it comes from, and its central
names, say more.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from kraq_dspy.asset.store.index import Index
from kraq_dspy.programs.kraq.question_text import asks_of_headline
from kraq_dspy.records import Chunk, Community, Entity, Question
from kraq_dspy.settings import EMBEDDED

BROAD = 8  # passages from which on a community without narrower ones inside is broad, too
CENTRAL = 3  # names that make a topic
LONGEST_NAME = 4  # words; what has more is a headline or a row of a table
SHORTEST = 4  # letters; "Sta" is cut off
OFTEN_SMALL = 1 / 3  # of a word's places with a capital, from which on it is no name
WORDS_READ = 2_000  # passages of an index, evenly drawn, in which words are told from names
GROUP = 5  # passages from which on a question may be an example of what a group tells
LEAST_SHARE = 0.2  # of a group's passages that answer a question which stands for it
OF_ONE_DOCUMENT = 0.5  # share of a community's passages that gives it the title of a document

REST = "other passages"  # of a document that another group is of, too

_TOKEN = re.compile(r"\w+(?:[’'.\-&]\w+)*")


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


def topic_of(members: Iterable[Entity], title: str = "", written: Mapping[str, int] | None = None) -> str:
    """The title of the document that a community is of, if there is one, and the best connected of its names.

    If there are others, it omits names with digits or many words, and those that the texts often write small
    (`written` counts their words). No name is part of another or of the title. With a title, each name occurs in
    several passages.

    >>> ada = Entity("e1", "Ada Lovelace", "person", "", ("Ada",), ("c1",), degree=1)
    >>> byron = Entity("e2", "Byron", "person", "", ("Byron",), ("c1",), degree=2)
    >>> topic_of([byron, ada])
    'Byron, Ada Lovelace'
    >>> topic_of([byron, ada], title="Poets")  # beside a title, names of several passages alone
    'Poets'
    """
    ranked = sorted(members, key=lambda each: (-each.degree, -len(each.chunk_ids), each.name))
    names = [each.name for each in ranked if not title or len(each.chunk_ids) > 1]
    chosen = _apart([name for name in names if _tells(name, written or {})], title)
    if not chosen and not title:
        chosen = _apart(names)
    listed = ", ".join(chosen[:CENTRAL])
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


def _of_examples(index: Index, questions: Iterable[Question]) -> dict[str, Community]:
    """The communities of which the question is an example, by its id."""
    community_by_question = {each.id: each.community_id for each in questions if is_example(each) and each.community_id}
    communities = index.get(Community, list(community_by_question.values()))
    return dict(zip(community_by_question, communities, strict=True))


def topics(index: Index, questions: Iterable[Question]) -> dict[str, str]:
    """Return what the groups are about that their question does not stand for, by the question's id.

    These are broad groups that a template asked about, and those of which few passages answer the question: it is an
    example there.
    """
    questions = list(questions)
    broad = broad_by_template(index, questions)
    broad |= _of_examples(index, [question for question in questions if question.id not in broad])
    if not broad:
        return {}
    member_ids = {entity_id for community in broad.values() for entity_id in community.entity_ids}
    entities = {entity.id: entity for entity in index.all(Entity) if entity.id in member_ids}
    titles = _titles(index, broad.values())
    written = _written(index)

    named: dict[str, str] = {}
    for question_id, community in broad.items():
        members = [entities[each] for each in community.entity_ids if each in entities]
        if topic := topic_of(members, titles.get(community.id, ""), written):
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
    return {community_id: title_by_chunk[chunk_id] for community_id, chunk_id in chunk_by_community.items()}


def _chunk_of_main_document(document_by_chunk: Mapping[str, str]) -> str | None:
    """Return a chunk of the document that at least half of the chunks are of; None if no document has as many."""
    if not document_by_chunk:
        return None

    [(main_document, count)] = Counter(document_by_chunk.values()).most_common(1)
    if count < 2 or count < OF_ONE_DOCUMENT * len(document_by_chunk):
        return None
    return next(id for id, document in document_by_chunk.items() if document == main_document)


def _written(index: Index) -> Counter[str]:
    """How often the passages, or as many of them as tell, have each word as it is written."""
    ids = index.ids(Chunk)
    drawn = ids[:: max(1, len(ids) // WORDS_READ)]
    return Counter(word for chunk in index.chunks_by_id(drawn) for word in _TOKEN.findall(chunk.text))


def _apart(names: Iterable[str], title: str = "") -> list[str]:
    """Those of which none stands in an earlier one or in the title, nor the other way round."""
    apart: list[str] = []
    for name in names:
        if not any(_within(name, other) for other in [title, *apart]):
            apart.append(name)
    return apart


def _tells(name: str, written: Mapping[str, int]) -> bool:
    parts = name.split()
    if len(parts) > LONGEST_NAME or any(map(str.isdigit, name)) or (len(parts) == 1 and _is_word(name, written)):
        return False
    return len(name) >= SHORTEST or not name.isascii() or name.isupper() or "." in name


def _is_word(name: str, written: Mapping[str, int]) -> bool:
    """Whether the texts often write a name of one word small, or a form of it: "Steam" is a name where they seldom
    write "steam", and "Prevention" a word that began a sentence.

    >>> _is_word("Members", {"Members": 2, "members": 1}), _is_word("Steam", {"Steam": 8, "steam": 2})
    (True, False)
    """
    if name.islower():
        return False
    small = sum(written.get(form, 0) for form in _forms(name.lower()))
    return small > 0 and small >= OFTEN_SMALL * written.get(name, 0)


def _forms(word: str) -> set[str]:
    """The word, its singular or plural, and its forms as an English verb.

    >>> sorted(_forms("approve"))
    ['approve', 'approved', 'approves', 'approving']
    """
    if word.endswith("s"):
        return {word, word[:-1]}
    if word.endswith("e"):
        return {word, f"{word}s", f"{word}d", f"{word[:-1]}ing"}
    return {word, f"{word}s", f"{word}ed", f"{word}ing"}


def _within(name: str, other: str) -> bool:
    """Whether one of the two is the other, a part of it, or its plural."""
    first, second = name.casefold(), other.casefold()
    return (
        f" {first} " in f" {second} " or f" {second} " in f" {first} " or f"{first}s" == second or f"{second}s" == first
    )
