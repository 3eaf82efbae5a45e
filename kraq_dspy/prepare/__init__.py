"""What some programs and retrievers look up, made offline once: `kraq precompute DIR --qa-pairs`, `--raptor`, ..."""
