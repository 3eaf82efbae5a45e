"""Declares every table and figure of the five papers that has measured results, and what stands for it here.

`catalogue` reads the declarations (a TOML file for each paper), `layout` puts a run's figures into a paper's rows and
columns, `listing` says which were run and sets ours beside theirs.
"""
