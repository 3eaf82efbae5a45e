"""Lists every data set by name."""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.datasets import (
    bioasq,
    cmmlu,
    cmu_wiki_qa,
    dolly,
    hotpot_qa,
    lhm,
    multihop_rag,
    musique,
    narrative_qa,
    openbook_qa,
    pub_health,
    qasper,
    trivia_qa,
)
from kraq_dspy.eval.datasets.dataset import Dataset
from kraq_dspy.eval.datasets.hub import HubTable, RawRow, fetch_tables, read_tables
from kraq_dspy.eval.datasets.local import is_dataset, load_local


@dataclass(frozen=True, slots=True)
class Source:
    """Where a data set's tables are on the hub, and how their rows become a Dataset."""

    tables: tuple[HubTable, ...]
    convert: Callable[[Mapping[str, Iterable[RawRow]]], Dataset]


SOURCES: Mapping[str, Source] = {
    module.NAME: Source(module.TABLES, module.convert)
    for module in (
        trivia_qa,
        hotpot_qa,
        pub_health,
        musique,
        dolly,
        multihop_rag,
        narrative_qa,
        qasper,
        openbook_qa,
        cmmlu,
        cmu_wiki_qa,
        lhm,
    )
}
NAMES = tuple(sorted((*SOURCES, bioasq.NAME)))


def load_dataset(name: str, folder: Path) -> Dataset:
    """The data set `name` from `folder / name`: files in the uniform schema, or what `fetch_dataset` left there.

    No network is used. Raises EvaluationError, with the command that gets it, when it is absent.
    """
    place = folder / name
    if is_dataset(place):
        return load_local(place)
    if name == bioasq.NAME:
        files = sorted(place.glob("*.json"))
        abstracts = place / bioasq.ABSTRACTS
        if not files:
            raise EvaluationError(f"{str(place)!r} holds no golden files. {bioasq.HOW_TO_GET}")
        return bioasq.load_bioasq(files, abstracts if abstracts.is_file() else None)
    source = _source(name, folder)
    return source.convert(read_tables(name, source.tables, folder))


def fetch_dataset(name: str, folder: Path, *, files: Sequence[Path] = ()) -> None:
    """Downloads a data set from the hub into `folder / name`. BioASQ is not on the hub: its `files` are copied.

    Raises EvaluationError when it cannot be had.
    """
    if name == bioasq.NAME:
        if not files:
            raise EvaluationError(f"BioASQ is not on the hub. {bioasq.HOW_TO_GET}")
        bioasq.load_bioasq(files)  # refuses what is no golden file
        (folder / name).mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copyfile(file, folder / name / file.name)
        return
    if files:
        raise EvaluationError(f"{name!r} comes from the hub; files are for {bioasq.NAME!r} alone.")
    fetch_tables(name, _source(name, folder).tables, folder)


def _source(name: str, folder: Path) -> Source:
    if name not in SOURCES:
        raise EvaluationError(
            f"There is no data set {name!r} in {str(folder)!r}, nor one that can be fetched under that name. Known: "
            f"{', '.join(NAMES)}; a folder with questions.jsonl.gz in the uniform schema works under any name."
        )
    return SOURCES[name]
