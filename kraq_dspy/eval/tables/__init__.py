"""Makes the papers' tables by one command: opens or builds the index, asks the systems, keeps rows, reports.

`table` reads what a table asks for, `indexes` prepares what the systems need, `systems` makes them, `scoring` scores
one question, `run` and `question_quality` write the rows, `summary` compares them, `report` shows them. `coverage`
and `judge_calibration` are the two measurements that are no table of systems.
"""
