"""Audits what papers say of an index apart from their tables: bias, diversity, people's ratings, sizes of stores."""
