"""Asks a question of each kind, and drops what cannot be one: no question, no answer of the text, a giveaway."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import dspy

from kraq_dspy import signatures
from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.step import FittingPredict, SignatureLike, Step, signature_for
from kraq_dspy.language.names import with_another_name
from kraq_dspy.language.text import content_words, sentences
from kraq_dspy.programs.kraq.element_list import plain_words
from kraq_dspy.programs.kraq.question_text import MARKS, question_in, stands_alone
from kraq_dspy.programs.testset import kinds
from kraq_dspy.state import SavableModule

_QUESTION_WORD = re.compile(r"(?:who|whom|whose|what|when|where|which|why|how)\b", re.IGNORECASE)
_AROUND_WORDS = "?,.;:!()'\"“”‘’؟？"

ASKED: Mapping[str, tuple[type[dspy.Signature], tuple[str, ...]]] = {
    kinds.FACT: (signatures.AskFact, ("passage",)),
    kinds.BRIDGE: (signatures.AskBridge, ("first_passage", "second_passage")),
    kinds.LIST: (signatures.AskList, ("passages",)),
    kinds.COMPARISON: (signatures.AskComparison, ("first_passage", "second_passage")),
    kinds.BROAD: (signatures.AskBroad, ("passages",)),
}
"""The step that asks for a kind, and its inputs that are shortened where they do not fit. The kinds without an answer
begin as questions for facts."""
LONGEST_ANSWER = 25
"""Words of an answer, which is copied; nuggets are statements and may be longer."""
CLOSED = frozenset(("yes", "no"))
SAID = 0.6
"""Share of a description's telling words that its passage has."""
ARTICLES = frozenset(("the", "a", "an"))


class AskForRow(SavableModule):
    """A question of one kind with its answers. `rejected` says why it is none; "" for a question that may be used.

    `signature` takes the place of the step's own: it needs the same outputs.

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"question": "Where did Ada live?", "answer": "London"}])):
    ...     AskForRow("fact")(passage="Ada lived in London.", about=["Ada"]).answers
    ['London']
    """

    outputs: ClassVar[dict[str, Any]] = {"question": str, "answers": list[str], "rejected": str}

    def __init__(self, kind: str, signature: SignatureLike = None) -> None:
        super().__init__()
        own, shortened = ASKED[kinds.FACT if kind in kinds.WITHOUT_ANSWER else kind]
        self.kind = kind
        self.ask = FittingPredict(signature_for(own, signature), *shortened)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        reply = await call(self.ask, **inputs)
        question = with_mark(question_in(reply.question or ""))
        answers = _answers(reply)
        if "link" not in inputs:
            fault = self._fault(question, answers, inputs)
            return dspy.Prediction(question=question, answers=answers, rejected=fault)

        link = inputs["link"]
        described = phrase_of((reply.description or "").strip(), link)
        question = with_description(question, link, described)
        fault = self._fault(question, answers, inputs, hidden=[link])
        if not fault and any(plain_words(answer) == plain_words(link) for answer in answers):
            fault = "asks for what links the passages"
        if not fault and described.lower() in question.lower() and not is_said(described, inputs["first_passage"]):
            fault = "is described as no passage says"
        return dspy.Prediction(question=question, answers=answers, rejected=fault)

    def _fault(
        self, question: str, answers: Sequence[str], inputs: Mapping[str, Any], hidden: Sequence[str] = ()
    ) -> str:
        """Why question and answers are of no use, by their words; "" for nothing."""
        texts = _texts(inputs)
        fault = fault_in(question, answers, texts, self.kind, hidden)
        if not fault and not stands_alone(question, "\n".join(texts), self.ask.signature.instructions):
            return "does not stand alone"
        return fault

    forward = blocking(aforward)


class SupposeOfAnother(SavableModule):
    """The question with another name in the place of one of its own, so that it supposes what is not so.

    If the model keeps the name, or asks nothing, the other name is put in as it stands: small models often copy the
    question.

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"changed": "Where did Eve live?"}])):
    ...     SupposeOfAnother()(question="Where did Ada live?", name="Ada", other="Eve").question
    'Where did Eve live?'
    """

    outputs: ClassVar[dict[str, Any]] = {"question": str, "rejected": str}

    def __init__(self) -> None:
        super().__init__()
        self.change = Step(signatures.AskFalsePremise)

    async def aforward(self, question: str, name: str, other: str) -> dspy.Prediction:
        written = question_in((await call(self.change, question=question, name=name, other=other)).changed or "")
        put_in = with_another_name(question, name, other)
        is_changed = other in written and name not in written and written.endswith(MARKS)
        changed = written if is_changed else put_in
        return dspy.Prediction(question=changed, rejected="" if changed != question else "was not changed")

    forward = blocking(aforward)


class PutOtherwise(SavableModule):
    """The question in other words; the question itself where the model loses a name of it, or asks nothing.

    >>> from dspy.utils import DummyLM
    >>> with dspy.context(lm=DummyLM([{"paraphrase": "In which city was Ada's home?"}])):
    ...     PutOtherwise()(question="Where did Ada live?", avoid=["live"]).question
    "In which city was Ada's home?"
    """

    outputs: ClassVar[dict[str, Any]] = {"question": str}

    def __init__(self) -> None:
        super().__init__()
        self.paraphrase = Step(signatures.ParaphraseQuestion)

    async def aforward(self, question: str, avoid: Sequence[str]) -> dspy.Prediction:
        words = question_in((await call(self.paraphrase, question=question, avoid=list(avoid))).paraphrase or "")
        bare = [word.strip(_AROUND_WORDS) for word in question.split()[1:]]  # the first is a question's word
        names = [word for word in bare if word[:1].isupper() or word[:1].isdigit()]
        keeps_names = all(name in words for name in names)
        return dspy.Prediction(question=words if words.endswith(MARKS) and keeps_names else question)

    forward = blocking(aforward)


def with_mark(question: str) -> str:
    """The question with the mark and the capital that small models leave out.

    >>> with_mark('who wrote "Night'), with_mark("It was written in 1956.")
    ('Who wrote "Night"?', 'It was written in 1956.')
    """
    if not _QUESTION_WORD.match(question) or question.endswith((*MARKS, ".", "!")):
        return question
    closed = f'{question}"' if question.count('"') % 2 else question
    return f"{closed[0].upper()}{closed[1:]}?"


def with_description(question: str, name: str, description: str) -> str:
    """The question with the description in the place of a name; as it is where the description is none, or has it.

    A small model that is asked to leave a name out nearly always writes it. So it may, and the description is put in.

    >>> with_description("When was Ada Lovelace born?", "Ada Lovelace", "the daughter of Lord Byron")
    'When was the daughter of Lord Byron born?'
    """
    if not description or plain_words(name) in plain_words(description):
        return question

    without_article = re.sub(rf"\b[Tt]he (?={re.escape(name)})", "", question)
    changed = with_another_name(without_article, name, description)
    return changed[:1].upper() + changed[1:]


def phrase_of(description: str, name: str) -> str:
    """The description without what it says around it: "Ada was the daughter of Byron." is a sentence about the name.

    >>> phrase_of("Ada was a daughter of Byron. She wrote.", "Ada"), phrase_of("The daughter of Byron.", "Ada")
    ('the daughter of Byron', 'the daughter of Byron')
    """
    sentence = next(iter(sentences(description)), "").rstrip(".")
    about_name = re.fullmatch(
        rf"(?:the )?{re.escape(name)},? (?:is|was|are|were) (?:an?|the) (?P<said>.+)", sentence, re.I
    )
    return f"the {about_name['said']}" if about_name else _uncapitalized(sentence)


def is_said(description: str, passage: str) -> bool:
    """Whether the passage has most telling words of a description.

    >>> is_said("the daughter of Lord Byron", "Lord Byron had a daughter."), is_said("a king", "She wrote.")
    (True, False)
    """
    telling = set(content_words(description))
    return len(telling & set(content_words(passage))) >= SAID * len(telling)


def _uncapitalized(description: str) -> str:
    """The description as it stands within a sentence; its first word alone may be "The"."""
    article, space, rest = description.partition(" ")
    return f"{article.lower()}{space}{rest}" if article.lower() in ARTICLES else description


def fault_in(
    question: str,
    answers: Sequence[str],
    texts: Sequence[str],
    kind: str,
    hidden: Sequence[str] = (),
) -> str:
    """Tell why question and answers are of no use, by their words alone; "" where nothing is wrong
    with them.

    >>> fault_in("Who was Ada?", ["a poet"], ["Ada was a mathematician."], "fact")
    'the answer is not in the passages'
    """
    if not question.endswith(MARKS):
        return "nothing was asked"
    if not answers or (kind == kinds.LIST and len(answers) < 2):
        return "nothing was answered"
    if any(plain_words(name) in plain_words(question) for name in hidden):
        return "names what links the passages"
    return "" if kind == kinds.BROAD else _fault_in_answers(question, answers, texts, kind)


def _fault_in_answers(question: str, answers: Sequence[str], texts: Sequence[str], kind: str) -> str:
    text, plain_question = plain_words("\n".join(texts)), plain_words(question)
    for answer in answers:
        words = answer.split()
        if len(words) > LONGEST_ANSWER:
            return "the answer is long"
        if ARTICLES.intersection(words[-1:]):  # something stood behind it
            return "the answer is cut off"
    for answer in answers:
        if plain_words(answer) not in text and answer.lower() not in CLOSED:
            return "the answer is not in the passages"
    if kind != kinds.COMPARISON and any(plain_words(answer) in plain_question for answer in answers):
        return "gives its answer away"
    return ""


def _answers(reply: Any) -> list[str]:
    """The answer, the items of a list, or the nuggets of a broad question."""
    given: str | Sequence[str] = next((reply[name] for name in ("answer", "items", "nuggets") if reply.get(name)), [])
    texts = [given] if isinstance(given, str) else list(given)
    return list(dict.fromkeys(text.strip().rstrip(".") for text in texts if text and text.strip(" .")))


def _texts(inputs: Mapping[str, Any]) -> list[str]:
    """The passages among the inputs of a step."""
    texts: list[str] = []
    for name, value in inputs.items():
        if name.endswith("passage"):
            texts.append(value)
        elif name == "passages":
            texts += value
    return texts
