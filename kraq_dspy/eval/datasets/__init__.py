"""Loads public question-answering sets in one schema, from the hub or from local files.

kraq data fetch hotpot_qa --out data
load_dataset("hotpot_qa", Path("data"))
"""

from kraq_dspy.eval.datasets.dataset import Dataset, Example, PassageTriples, load_local, sample_to_tokens
from kraq_dspy.eval.datasets.sources import NAMES, fetch_dataset, load_dataset

__all__ = [
    "NAMES",
    "Dataset",
    "Example",
    "PassageTriples",
    "fetch_dataset",
    "load_dataset",
    "load_local",
    "sample_to_tokens",
]
