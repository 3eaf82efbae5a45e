"""Makes views of an index: the part of it that some of its documents alone would have made."""
