"""The server here stands in for vLLM: characters are its tokens, and a token has the log-probability -(its place)."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.errors import ModelError
from kraq_dspy.models.lms.prompt_scorer import VLLMPromptScorer, make_prompt_scorer
from kraq_dspy.settings import RoleSettings
from tests.conftest import TinyModels

BOS = 1


class Server(ThreadingHTTPServer):
    def __init__(self, *, is_vllm: bool = True, scores: bool = True) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.is_vllm, self.scores = is_vllm, scores
        self.requests: list[tuple[str, Any, str | None]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def api_base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: Any) -> None:
        return

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, body, self.headers.get("Authorization")))
        if self.path == "/tokenize" and self.server.is_vllm:
            begin = [BOS] if body["add_special_tokens"] else []
            return self.answer(200, {"tokens": begin + [ord(letter) for letter in body["prompt"]]})
        if self.path == "/v1/completions":
            if body["model"] == "absent":
                return self.answer(404, {"error": {"message": "The model `absent` does not exist."}})
            choices = []
            for index, ids in reversed(list(enumerate(body["prompt"]))):
                scores = [None, *({str(token): {"logprob": -float(i)}} for i, token in enumerate(ids[1:], 1))]
                choices.append({"index": index, "text": "x", "prompt_logprobs": scores if self.server.scores else None})
            return self.answer(200, {"choices": choices})
        return self.answer(404, {"detail": "Not Found"})

    def answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.shutdown()
    server.server_close()


def test_every_segment_gets_the_scores_of_its_own_tokens_and_the_first_token_none(server: Server) -> None:
    scorer = VLLMPromptScorer(server.api_base, "verifier")
    scores = scorer.prompt_logprobs([["Q:", " ab", "", "Yes"], ["Q:", "c"]])
    # The first prompt is BOS Q : _ a b Y e s, at the places 0 to 8.
    assert scores == [[(-1, -2), (-3, -4, -5), (), (-6, -7, -8)], [(-1, -2), (-3,)]]


def test_all_prompts_go_out_in_one_request_and_equal_texts_are_tokenised_once(server: Server) -> None:
    scorer = VLLMPromptScorer(server.api_base, "verifier", key="secret")
    scorer.prompt_logprobs([["Q:", "a", "Yes"], ["Q:", "b", "Yes"], ["Q:", "c", "Yes"]])
    completions = [body for path, body, _ in server.requests if path == "/v1/completions"]
    assert [len(body["prompt"]) for body in completions] == [3]
    assert (completions[0]["max_tokens"], completions[0]["prompt_logprobs"]) == (1, 0)
    tokenised = sorted(body["prompt"] for path, body, _ in server.requests if path == "/tokenize")
    assert tokenised == ["Q:", "Yes", "a", "b", "c"]
    assert {authorization for _, _, authorization in server.requests} == {"Bearer secret"}


def test_nothing_to_score_asks_nothing(server: Server) -> None:
    assert VLLMPromptScorer(server.api_base, "verifier").prompt_logprobs([]) == []
    assert server.requests == []


@pytest.mark.parametrize(
    ("options", "model", "message"),
    [
        ({"is_vllm": False}, "verifier", "needs vLLM; or choose another scorer: -P scorer=kraq"),
        ({"scores": False}, "verifier", "gave no log-probabilities of the prompt"),
        ({}, "absent", "answered 404: .*`absent` does not exist"),
    ],
)
def test_a_server_that_cannot_do_it_is_told_apart(options: dict[str, bool], model: str, message: str) -> None:
    server = Server(**options)
    try:
        with pytest.raises(ModelError, match=message):
            VLLMPromptScorer(server.api_base, model).prompt_logprobs([["a", "b"]])
    finally:
        server.shutdown()
        server.server_close()


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(ModelError, match=r"http://127\.0\.0\.1:9/tokenize cannot be reached"):
        VLLMPromptScorer("http://127.0.0.1:9/v1", "verifier").prompt_logprobs([["a", "b"]])


def test_a_role_gets_the_scorer_that_its_model_allows(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERIFIER_KEY", "secret")
    settings = RoleSettings(model="hosted_vllm/verifier", api_base=server.api_base, api_key_env="VERIFIER_KEY")
    make_prompt_scorer(settings).prompt_logprobs([["a", "b"]])
    assert {(body["model"], authorization) for _, body, authorization in server.requests} == {
        ("verifier", "Bearer secret")
    }
    monkeypatch.delenv("VERIFIER_KEY")
    with pytest.raises(ModelError, match="VERIFIER_KEY, which is not set"):
        make_prompt_scorer(settings)
    for model in ("embedded", "anthropic/claude", "hosted_vllm/no-address"):
        with pytest.raises(ModelError, match=r"cannot score prompts.*scorer=kraq"):
            make_prompt_scorer(RoleSettings(model=model))


def test_a_model_of_this_process_scores_as_torch_does(tiny_models: TinyModels, tmp_path: Path) -> None:
    import torch
    import transformers

    folder = tiny_models.llama(tmp_path / "tiny")
    prompt = ["Question: which city?", " Zürich", "\nYes"]
    [scores] = make_prompt_scorer(RoleSettings(f"transformers/{folder}", precision="fp32")).prompt_logprobs([prompt])

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    segments = [tokenizer(text, add_special_tokens=place == 0)["input_ids"] for place, text in enumerate(prompt)]
    model.train(False)
    ids = torch.tensor([[token for segment in segments for token in segment]])
    with torch.inference_mode():
        expected = torch.log_softmax(model(ids).logits[0, :-1], -1).gather(1, ids[0, 1:, None])[:, 0].tolist()
    assert [len(each) for each in scores] == [len(segments[0]) - 1, len(segments[1]), len(segments[2])]
    assert [score for each in scores for score in each] == pytest.approx(expected, abs=1e-4)
