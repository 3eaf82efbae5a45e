"""`kraq eval`: the papers' tables, measured and shown."""
