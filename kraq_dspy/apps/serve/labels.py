"""Answers the requests of the page on which a person labels human questions: `kraq testset label FILE DIR --page`.

The page is a face of `eval/labeling.py`, as the terminal is, so both write the same file and each goes on where the
other stopped. A server has it only if it was started for it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kraq_dspy.apps.serve import requests
from kraq_dspy.apps.serve.api import Api
from kraq_dspy.apps.serve.atlas import Json
from kraq_dspy.apps.serve.refusals import RequestError
from kraq_dspy.apps.serve.served import ServedIndex
from kraq_dspy.apps.serve.testset_desk import LabelingDesk
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.labeling import NOTHING_TO_UNDO, Labeling, Sitting, excerpt, id_of
from kraq_dspy.workspace import Workspace


class LabelApi:
    """What the page asks: the question to be labeled now, and what a person decides about it."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def state(self, query: requests.Query) -> Json:
        """The question to be labeled now with its pooled passages, and how far the labels are. 404 without a desk."""
        served = self.api.index_of(query)
        desk = labeling_desk(served)
        with desk.lock, _file_is_read():
            return _state(desk, _labeling(served, desk))

    def decide(self, body: requests.LabelRequest) -> Json:
        """The next question, after one is labeled or put off, or the last label is taken back.

        Raises RequestError for a question that was labeled meanwhile, and a passage that no retriever brought.
        """
        served = self.api.index_of(body)
        desk = labeling_desk(served)
        with desk.lock, _file_is_read():
            labeling = _labeling(served, desk)
            if body.action == "undo":
                if desk.sitting.undo(labeling) is None:
                    raise RequestError(409, "nothing_to_undo", NOTHING_TO_UNDO)
            else:
                self._answer(body, labeling, desk.sitting)
            return _state(desk, labeling)

    def _answer(self, body: requests.LabelRequest, labeling: Labeling, sitting: Sitting) -> None:
        example = next((each for each in labeling.left if id_of(each.question) == body.id), None)
        if example is None:
            raise RequestError(409, "changed", "This question has a label already. Load the page again.")
        if body.action == "later":
            labeling.put_off(example)
            return

        pooled = {chunk.id: chunk for chunk in labeling.passages(example)}
        unknown = [id for id in body.passages if id not in pooled]
        if unknown:
            raise RequestError(422, "no_such_passage", f"No retriever brought the passage {unknown[0]!r:.80}.")
        sitting.label(labeling, example, [pooled[id] for id in dict.fromkeys(body.passages)])


@contextmanager
def _file_is_read() -> Iterator[None]:
    """Raises RequestError, with the line, if somebody damaged the file of labels meanwhile: it stays as it is."""
    try:
        yield
    except EvaluationError as error:
        raise RequestError(
            409, "damaged", f"{error} Nothing was written; mend the file and load the page again."
        ) from error


def labeling_desk(served: ServedIndex) -> LabelingDesk:
    """Raises RequestError if the server was not started for labeling, or the caller is not its owner."""
    desk = served.desk.labels if served.desk is not None else None
    if desk is None:
        raise RequestError(404, "no_labels", "This server labels nothing: kraq testset label FILE DIR --page")
    return desk


def _labeling(served: ServedIndex, desk: LabelingDesk) -> Labeling:
    """Made anew when the index has changed: its passages may be others."""
    make: Callable[[Workspace], Labeling] = desk.over
    labeling: Labeling = served.kept("labeling", make)
    return labeling


def _state(desk: LabelingDesk, labeling: Labeling) -> dict[str, Any]:
    desk.n_labeled, desk.n_left = len(labeling.labeled), len(labeling.left)
    example, question = labeling.next(), None
    if example is not None:
        desk.sitting.show()
        passages = [
            {
                "id": chunk.id,
                "document_id": chunk.document_id,
                "title": chunk.title or chunk.document_id,
                "excerpt": excerpt(example.question, chunk),
                "text": chunk.text,
            }
            for chunk in labeling.passages(example)
        ]
        question = {
            "id": id_of(example.question),
            "text": example.question,
            "answers": list(example.answers),
            "passages": passages,
        }
    desk.summary = desk.sitting.summary(labeling)
    return {
        "file": desk.out.name,
        "total": len(labeling.questions),
        "labeled": desk.n_labeled,
        "left": desk.n_left,
        "summary": desk.summary,
        "question": question,
    }
