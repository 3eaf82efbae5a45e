"""Maps a program over items: in memory, with kept results, or on a cluster."""
