"""`python -m kraq_dspy.cli` is `kraq`."""

from kraq_dspy.cli import main

main()
