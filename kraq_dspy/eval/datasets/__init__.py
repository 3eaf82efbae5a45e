"""Loads public question-answering sets in one schema, from the hub or from local files.

kraq bench fetch hotpot_qa --out data
load_dataset("hotpot_qa", Path("data"))
"""

from kraq_dspy.eval.datasets.dataset import Dataset as Dataset
from kraq_dspy.eval.datasets.dataset import Example as Example
from kraq_dspy.eval.datasets.dataset import PassageTriples as PassageTriples
from kraq_dspy.eval.datasets.dataset import load_local as load_local
from kraq_dspy.eval.datasets.dataset import sample_to_tokens as sample_to_tokens
from kraq_dspy.eval.datasets.sources import NAMES as NAMES
from kraq_dspy.eval.datasets.sources import fetch_dataset as fetch_dataset
from kraq_dspy.eval.datasets.sources import load_dataset as load_dataset
