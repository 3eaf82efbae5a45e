from kraq_dspy.models.lms.engines.embedded.answer import answer


def test_a_person_is_found_behind_an_office() -> None:
    passages = [
        "Executive Order 10925, signed by President John F. Kennedy on March 6, 1961, required contractors to take "
        "affirmative action. Secretary of Labor Arthur Goldberg, the Vice Chair, was in charge of it."
    ]
    reply = answer("Who signed Executive Order 10925?", passages, lambda _, texts: [0.0] * len(texts))
    assert reply.startswith("President John F. Kennedy.")
