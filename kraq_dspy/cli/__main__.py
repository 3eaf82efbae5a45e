"""Runs `kraq` as `python -m kraq_dspy.cli`."""

from kraq_dspy.cli import main

main()
