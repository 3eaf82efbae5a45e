"""A request says all that a question is asked with."""

from kraq_dspy.workspace import Request


def test_options_that_are_no_field_of_a_request_are_inputs_of_the_program() -> None:
    request = Request.of("Who?", "traditional", {"refuse": True, "style": "short", "inputs": {"tone": "dry"}})
    assert (request.refuse, request.inputs) == (True, {"tone": "dry", "style": "short"})


def test_a_whole_request_is_asked_as_it_is() -> None:
    request = Request("Who?", next_questions=0)
    assert Request.of(request, "combined", {}) is request
