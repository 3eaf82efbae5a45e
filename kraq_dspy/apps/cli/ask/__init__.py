"""Commands that answer questions, and how each kind of answer is shown."""
