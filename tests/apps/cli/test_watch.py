import json
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
from stand_in import stand_in
from typer.testing import CliRunner

from kraq_dspy.apps.cli.status import look
from kraq_dspy.asset.store.index import Index
from kraq_dspy.build.index.build import build_index
from kraq_dspy.errors import IndexStateError
from kraq_dspy.records import Document
from kraq_dspy.settings import EncoderSettings, RoleSettings, RunSettings, Settings
from tests.whole_program import app

DOCUMENTS = [
    Document(f"d{n}", f"Town{n}", f"Anna Stone founded Town{n}. Town{n} lies near Lake Bert.") for n in range(30)
]


def test_a_build_is_watched_from_beside_until_it_is_complete(tmp_path: Path) -> None:
    with stand_in(latency_ms=60) as server:
        settings = Settings(
            encoder=EncoderSettings(name="stand-in", api_base=server.url),
            run=RunSettings(concurrency=2),
            roles={"default": RoleSettings(model="hosted_vllm/stand-in", api_base=server.url)},
        )
        out = tmp_path / "x.kraq"

        def work() -> None:
            try:
                build_index(DOCUMENTS, out, settings=settings)
            except BaseException:
                shutil.rmtree(out, ignore_errors=True)  # ends the watch
                raise

        build = threading.Thread(target=work)
        build.start()
        while build.is_alive() and not (out / "manifest.json").exists():
            time.sleep(0.01)
        result = CliRunner().invoke(app, ["status", str(out), "--watch", "--every", "0.2", "--json"])
        build.join()
    looks = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert len(looks) > 2
    calls = [sum(used["calls"] for used in status["usage"].values()) for status in looks]
    assert calls == sorted(calls)
    assert calls[0] < calls[-1]
    assert [status["complete"] for status in looks] == [False] * (len(looks) - 1) + [True]


def test_a_complete_index_is_shown_once(tmp_path: Path) -> None:
    build_index(DOCUMENTS[:2], tmp_path / "x.kraq")
    result = CliRunner().invoke(app, ["status", str(tmp_path / "x.kraq"), "--watch"])
    assert result.exit_code == 0
    assert "complete" in result.output
    assert "extract" in result.output


def test_a_build_whose_process_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    build_index(DOCUMENTS[:2], tmp_path / "x.kraq")
    with Index.open(tmp_path / "x.kraq", write=True) as index:
        index.update_manifest(complete=False)
    gone = subprocess.Popen(["true"])
    gone.wait()
    (tmp_path / "x.kraq" / "lock").write_text(json.dumps({"pid": gone.pid}))
    result = CliRunner().invoke(app, ["status", str(tmp_path / "x.kraq"), "--watch"])
    assert result.exit_code == 0
    assert "interrupted" in result.output


def test_what_is_no_index_cannot_be_watched(tmp_path: Path) -> None:
    with pytest.raises(IndexStateError, match="no index"):
        look(tmp_path / "x.kraq")
