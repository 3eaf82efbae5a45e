"""Models that run in this process, and the engine that every model is asked through."""
