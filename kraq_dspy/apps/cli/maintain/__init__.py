"""Commands that change, check and exchange an index."""
