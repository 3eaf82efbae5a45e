"""Lists the representative questions of an index: `kraq questions`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from rich.text import Text
from typer import Option

from kraq_dspy.apps.cli.ask import show_suggested
from kraq_dspy.apps.cli.options import Flag, IndexDir, Json, Scoped, command_class
from kraq_dspy.apps.cli.terminal import counted, output, print_json, say, short
from kraq_dspy.apps.views import ListedQuestion, SuggestedQuestion
from kraq_dspy.asset.corpus.normalise import find_personal
from kraq_dspy.errors import ConfigError
from kraq_dspy.records import MENTIONS, Chunk, Question
from kraq_dspy.workspace.suggesting import starters
from kraq_dspy.workspace.topics import asking_first, topics


@command_class
class ListQuestions(Scoped):
    """List the representative questions, with the passages that answer them.

    The largest groups of each level stand first. A group whose question few of its passages answer shows its topic,
    with the question as an example. A group about which nothing could be asked stands last, with its topic alone.
    """

    index_dir: IndexDir
    level: Annotated[int | None, Option(min=0, help="Level to list; 0 is the broadest.")] = None
    source: Annotated[Literal["kraq", "random"], Option(help="kraq, or random for the baseline's questions.")] = "kraq"
    starters: Annotated[
        int | None,
        Option(min=1, help="N questions to begin with: answerable, and together about most of the corpus."),
    ] = None
    long: Annotated[bool, Flag("--long", help="Also level, passages and files of the group, and every passage.")] = (
        False
    )
    personal: Annotated[
        bool, Flag("--personal", help="Only questions with e-mail addresses, phone or card numbers.")
    ] = False
    json: Json = False

    def run(self) -> None:
        if self.starters is not None:
            self._show_starters(self.starters)
            return
        with self.readable(self.index_dir) as index:
            listed = list(index.questions(self.level, source=self.source))
            deepest = max((question.level for question in index.questions(source=self.source)), default=None)
            topic_by_id = topics(index, listed)
            shown = [id for question in listed for id in question.evidence[: None if self.long else 1]]
            passage_of = {chunk.id: chunk for chunk in index.chunks_by_id(list(dict.fromkeys(shown)))}

        if self.level is not None and deepest is not None and self.level > deepest:
            raise ConfigError(f"--level is {self.level}; the deepest level with questions here is {deepest}.")
        listed = asking_first(listed, topic_by_id)
        if self.personal:
            listed = [question for question in listed if find_personal(question.text)]

        if self.json:
            print_json([ListedQuestion.of(each, topic_by_id.get(each.id, "")).to_json() for each in listed])
            return
        self._show(listed, topic_by_id, passage_of)

    def _show(
        self, listed: Sequence[Question], topic_by_id: Mapping[str, str], passage_of: Mapping[str, Chunk]
    ) -> None:
        if not listed:
            say("No questions here." if self.level is None else f"No questions on level {self.level}.")
        for question in listed:
            topic = "" if self.personal else topic_by_id.get(question.id, "")  # it would hide what is looked for
            _show_question(question, topic, passage_of, is_long=self.long)

    def _show_starters(self, most: int) -> None:
        with self.readable(self.index_dir) as index:
            chosen = starters(index, most)
        if self.json:
            print_json([each.to_json() for each in SuggestedQuestion.all_of(chosen)])
        else:
            show_suggested(chosen, f"{self.index_dir} answers, among others:" if chosen else "No questions here.")


def _show_question(question: Question, topic: str, passage_of: Mapping[str, Chunk], *, is_long: bool) -> None:
    """The question, how many passages answer it, and the first of them."""
    output.print(shown_question(question, topic))
    if is_long:
        group = f"{counted(len(question.chunk_ids), 'passage')}, {counted(len(question.document_ids), 'file')}"
        say(f"    level {question.level}, stands for {group}", style="dim")
    if not question.evidence:
        return
    verb = "mentions" if question.evidence_by == MENTIONS else "answers"
    n_answering = len(question.evidence)
    head = f"{counted(n_answering, 'passage')} {verb if n_answering == 1 else verb[:-1]} it"
    for place, chunk in enumerate(passage_of[id] for id in question.evidence if id in passage_of):
        name = short(chunk.title or chunk.document_id, 60)
        before = f"    {head}: " if place == 0 else "    "
        output.print(Text.assemble((before, "dim"), name, (". ", "dim"), short(chunk.text, max(60, output.width - 60))))


def shown_question(question: Question, topic: str) -> Text:
    """Return the question; for a group that it does not stand for, the topic with the question as an example."""
    style = "dim" if question.duplicate_of else ""
    if not topic:
        return Text.assemble(short(question.text, 200), style=style)
    example = "" if question.is_topic else f", {counted(len(question.chunk_ids), 'passage')}, such as: {question.text}"
    return Text.assemble(("About ", "dim"), short(topic, 200), short(example, 240), style=style)
