"""Makes figures of the rows of runs, and shows them: in the terminal, as a page, as a frame of pandas."""
