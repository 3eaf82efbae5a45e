"""`kraq catalogue`: the prepared answers of an index."""
