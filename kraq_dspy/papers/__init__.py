"""Remakes the tables of the five papers: what only those who measure papers open.

`catalogue` reads what the papers printed (`printed/`), `tables` makes ours by one command, `listing` and `grids` lay
our figures out as the papers do. `audits` measures what a paper says of an index or a retriever apart from its tables.
"""
