"""Making an index, changing it, checking it, estimating it and handing it on."""
