"""Finds passages: one interface (`ports.Retriever`), a file a retriever, one contract test that all of them pass."""
