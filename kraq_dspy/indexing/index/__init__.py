"""Makes an index, changes it, checks it, estimates it and hands it on."""
