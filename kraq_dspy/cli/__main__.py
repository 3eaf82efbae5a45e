"""`python -m kraq_dspy.cli` is `kraq`."""

from kraq_dspy.cli.main import main

main()
