"""Serves indexes over HTTP: a JSON API, an OpenAI-compatible one, and the page on which people explore an index."""
