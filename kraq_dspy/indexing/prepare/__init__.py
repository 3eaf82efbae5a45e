"""Makes offline, once, what some programs and retrievers look up: `kraq precompute DIR qa-pairs`, `raptor`, ..."""
