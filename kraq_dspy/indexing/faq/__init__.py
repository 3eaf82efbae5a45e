"""Keeps prepared answers: their store and sources, how they are made and reviewed, and the search among them."""
