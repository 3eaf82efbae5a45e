"""Asks questions whose answers stand in the text, by rules; of texts in English alone.

`facts` asks of one passage, `over_two` of two, `over_many` of several; `checks` reads what was asked.
"""
