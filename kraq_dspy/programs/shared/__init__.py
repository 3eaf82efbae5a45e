"""Holds what several programs are made of."""
