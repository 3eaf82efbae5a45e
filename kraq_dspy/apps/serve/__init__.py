"""Serves indexes over HTTP: a JSON API, and the page on which people explore an index."""
