"""Makes the papers' tables by one command: opens or builds the index, asks the systems, keeps rows, reports.

`table` reads what a table asks for, `data` its questions and index, `systems` makes what is compared, `scoring` scores
one question. `asking`, `question_quality` and `faq_search` write the rows of a `run`, by the
table's kind. `summary` compares them, `grids` puts the figures into text, `terminal` shows them there and as a page.
"""
