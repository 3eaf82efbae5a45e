"""Prepared answers: their store, their sources, how they are made and reviewed, and the search among them."""
