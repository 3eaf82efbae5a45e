"""Chooses what suits a model's size: the program that reads passages, and how many questions it is asked for."""

import re

from kraq_dspy.programs.kraq.extract_graph import ExtractGraph, ExtractNames
from kraq_dspy.settings import QUESTIONS_BASE, Settings

SMALL = 2e9
"""Parameters below which a model is asked for names and links alone: with 1.5e9 it links six times as much so;
larger ones were not asked."""
CANDIDATES = 3
"""Questions that such a model, with an adapter, is asked for about a summary where templates ask beside it
(benchmarks/results/questions.md)."""
_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)
_TIMES = {"b": 1e9, "m": 1e6}


def extractor(settings: Settings) -> ExtractGraph | ExtractNames:
    """`settings.extract.preset`; "auto" goes by the model of the role "extractor": in the place of a small one the
    parser reads, unless the settings say which types of names count, or for whom."""
    extract = settings.extract
    types = [each.strip() for each in extract.types.split(",") if each.strip()]
    by_parse = extract.preset == "auto" and is_small(settings.role("extractor").model)
    if extract.preset == "small" or by_parse:
        by_parse = by_parse and not types and not extract.persona
        return ExtractNames(extract.grounded_names, types=types, persona=extract.persona, by_parse=by_parse)
    return ExtractGraph(extract.gleanings, extract.grounded_names, types=types, persona=extract.persona)


def asked_extractor(settings: Settings) -> ExtractGraph | ExtractNames:
    """The `extractor` that asks the model about every passage."""
    program = extractor(settings)
    if isinstance(program, ExtractNames):
        program.parser = ""
    return program


def candidates(settings: Settings) -> int:
    """`settings.questions.candidates`; unset, one question for each summary, as in the papers, unless templates and a
    small tuned generator share the communities."""
    if settings.questions.candidates is not None:
        return settings.questions.candidates
    return CANDIDATES if settings.questions.asked_by == "mixed" and has_small_tuned_generator(settings) else 1


def has_small_tuned_generator(settings: Settings) -> bool:
    """Whether the model of the role "generator" has an adapter, and a name that says that it is small."""
    role = settings.role("generator")
    is_tuned = role.adapter is not None or "#" in role.model or role.model == QUESTIONS_BASE
    return is_tuned and is_small(role.model)


def is_small(model: str) -> bool:
    """Whether its name, without that of an adapter, says that it has fewer than `SMALL` parameters
    ("gguf/qwen2.5-coder-0.5b.gguf": 5e8)."""
    sizes = _SIZE.findall(model.partition("#")[0].rpartition("/")[2])
    return bool(sizes) and float(sizes[-1][0]) * _TIMES[sizes[-1][1].lower()] < SMALL
