"""Without the room of the embedded model an index is made and asked by another model, and what needs the room says so
in one sentence.

That no other file imports it is tested with the architecture.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from stand_in import stand_in

from kraq_dspy.embedded_model import ROOM

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = """
import sys
import kraq_dspy as kraq
from kraq_dspy.programs.kraq.asked_by import AskedBy, ListedPassages
from kraq_dspy.settings import QuestionSettings, RoleSettings, Settings

folder, url, *texts = sys.argv[1:]
settings = Settings(roles={"default": RoleSettings("hosted_vllm/m", api_base=url)})
report = kraq.build_index(texts, folder, settings=settings)
assert report.counts["questions"] and not report.failures, report
with kraq.Workspace.open(folder) as space:
    for program in ("traditional", "combined", "qa-rag", "graph-local"):
        assert space.ask("Who repaired the lamp?", program, refuse=False).hits

def needing_it(needs):
    try:
        needs()
    except kraq.errors.KraqError as error:
        print(type(error).__name__, *str(error).split())

by_templates = QuestionSettings(asked_by="templates")
needing_it(lambda: kraq.make_lm("embedded")("Who met Ada?"))
needing_it(lambda: AskedBy([], ListedPassages([]), by_templates, generator="m"))
"""
TEXTS = (
    "Mira Tolan repaired the old lamp in 1902. Orrin Vale paid Mira Tolan for the lamp.",
    "The great storm of 1903 destroyed the harbor of Harrow. Orrin Vale left Harrow.",
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of the same files, without the room."""
    folder = tmp_path_factory.mktemp("without")
    (folder / "kraq_dspy").mkdir()
    for path in (ROOT / "kraq_dspy").iterdir():
        if path.name not in ("embedded", "__pycache__"):
            (folder / "kraq_dspy" / path.name).symlink_to(path)
    return folder


def test_another_model_makes_and_asks_an_index_and_what_needs_the_room_says_that_it_is_not_there(
    checkout: Path, tmp_path: Path
) -> None:
    with stand_in() as server:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path / "harrow.kraq"), server.url, *TEXTS],
            cwd=checkout, env={**os.environ, "PYTHONPATH": str(checkout)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr

    of_the_model, of_templates = done.stdout.splitlines()
    for line in (of_the_model, of_templates):
        assert line.startswith("ModelError This installation of kraq-dspy has no embedded model")
        assert ROOM in line
