"""Language models as judges, and how far they agree with people."""
