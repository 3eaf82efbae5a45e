"""Loads public question-answering sets in one schema, from the hub or from local files.

kraq bench fetch hotpot_qa --out data
load_dataset("hotpot_qa", Path("data"))
"""

from kraq_dspy.eval.datasets.dataset import (
    Dataset as Dataset,
    Example as Example,
    PassageTriples as PassageTriples,
    load_local as load_local,
    sample_to_tokens as sample_to_tokens,
)
from kraq_dspy.eval.datasets.sources import NAMES as NAMES, fetch_dataset as fetch_dataset, load_dataset as load_dataset
