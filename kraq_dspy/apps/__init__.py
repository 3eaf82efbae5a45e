"""Holds what people run over an index: the command line, servers, data sets, other frameworks."""
