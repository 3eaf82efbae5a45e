"""Runs `kraq` as `python -m kraq_dspy`."""

from kraq_dspy.cli import main

main()
