"""Leads from chunks to representative questions: the pipeline KRAQ and its steps."""
