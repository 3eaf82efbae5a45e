"""Knowledge-graph representative questions for retrieval-augmented generation, as DSPy programs."""
