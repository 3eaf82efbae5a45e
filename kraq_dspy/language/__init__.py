"""Holds what every room needs of a language: sentences, words, small words, and the guess which one a text is in."""
