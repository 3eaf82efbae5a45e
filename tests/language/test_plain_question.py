from kraq_dspy.language.text import plain_question


def test_a_language_without_words_of_its_own_is_asked_in_english() -> None:
    assert plain_question("cs", ["Praha", "Brno"]) == "What is said about Praha and Brno?"
    assert plain_question("de", ["Der Rhein"]) == "Was wird zum Thema Rhein gesagt?"
