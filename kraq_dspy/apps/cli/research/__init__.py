"""Commands that measure, optimize and train."""
