"""Puts language models to work: roles, engines, structured replies, servers, and the meter of what is paid for."""
