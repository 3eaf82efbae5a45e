"""Commands that make offline what programs look up."""
