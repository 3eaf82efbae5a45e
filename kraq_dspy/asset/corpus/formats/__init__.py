"""Reads files of each format family into rows: `readers` has every reader, `values` those of tables of questions."""
