"""The question generator in the package learned from no question that an evaluation asks."""

import gzip
import json
from pathlib import Path

from kraq_dspy.eval.questions import LEARNED_FILE, fingerprint_of
from kraq_dspy.models.lms.local_models import QUESTIONS, adapter_folder


def test_no_question_of_any_set_is_among_those_that_it_learned_from(shared_data: Path) -> None:
    learned = set(json.loads((Path(adapter_folder(QUESTIONS)[0]) / LEARNED_FILE).read_text("utf-8")))
    sets = [*shared_data.glob("*/questions.jsonl.gz"), *shared_data.glob("*/asked.jsonl.gz")]
    asked = [json.loads(line)["question"] for file in sets for line in gzip.decompress(file.read_bytes()).splitlines()]
    assert len(learned) > 1000
    assert len(asked) > 10_000
    assert [question for question in asked if fingerprint_of(question) in learned] == []
