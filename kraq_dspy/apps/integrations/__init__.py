"""Holds retrievers in the shape that other frameworks ask for, one framework a file."""
