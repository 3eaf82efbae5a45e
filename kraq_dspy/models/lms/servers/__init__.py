"""Speaks to model servers: transport, retries, prompt scores, and vLLM's command line."""
