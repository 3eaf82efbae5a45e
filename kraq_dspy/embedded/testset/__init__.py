"""Asks questions whose answers stand in the text, by rules; of texts in English alone.

`facts` asks of one passage, `over_many` of several; `checks` reads what was asked. What takes the text of two passages
to ask, or a list of things, is asked by a language model alone.
"""
