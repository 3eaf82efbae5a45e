"""The steps of the KRAQ pipeline."""
