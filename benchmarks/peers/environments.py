"""Makes an environment for each peer, of the versions that `requirements/PEER.txt` pins, all of them.

Nothing is resolved (`--no-deps`): the files are what `pip freeze` said once, less what only a graphics card wants.
"""

import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements")


def python_of(peer: str | None, out: Path) -> Path:
    """The interpreter that has the peer, in `out`/environments; made at the first call. This one where it is None."""
    if peer is None:
        return Path(sys.executable)
    folder = out / "environments" / peer
    python = folder / "bin" / "python"
    pinned = (REQUIREMENTS / f"{peer}.txt").read_text("utf-8")
    installed = folder / "installed.txt"
    if installed.exists() and installed.read_text("utf-8") == pinned:
        return python
    print(f"Making the environment of {peer} in {folder} (once, some minutes) ...", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    subprocess.run([*install, "--requirement", str(REQUIREMENTS / f"{peer}.txt")], check=True)
    installed.write_text(pinned, "utf-8")
    return python
