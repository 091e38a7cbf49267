#!/bin/sh
# Installs the build of torch that the constraints pin: scripts/install_torch.sh [PYTHON [auto|cpu|default]]
#
# Without a GPU that is the build for processors: from the package index that pip knows, or else by uv, which is a
# package itself and knows where that build is published, or else the default build, which runs on processors too.
# Whatever comes is compared with the hashes in constraints-torch-*.txt. TORCH_INDEX names one index more.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
python=${1:-python3}
build=${2:-auto}
if [ "$build" = auto ]; then
  build=cpu
  # On macOS there is one build only.
  if [ "$(uname -s)" != Linux ] || command -v nvidia-smi >/dev/null 2>&1; then build=default; fi
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
quiet=--quiet

install() { # what pip says is kept for the end
  "$python" -m pip install $quiet --disable-pip-version-check ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "$@" 2>>"$work/said"
}
pinned() { install --no-deps --require-hashes -r "$root/constraints-torch-$1.txt"; }
last_words() { sed -e 's/^ *cause: //' -e '/^ *$/d' "$work/said" | tail -n 1; }

if [ "$build" = cpu ]; then
  if pinned cpu; then exit 0; fi
  echo "Your package index has no build of torch for processors. uv, which knows where torch publishes it, is asked ..."
  if install --target "$work/uv" uv; then PATH=$work/uv/bin:$PATH; fi
  if uv pip install --quiet --python "$python" --torch-backend cpu --no-deps --require-hashes \
    -r "$root/constraints-torch-cpu.txt" 2>>"$work/said"; then exit 0; fi
  echo "uv could not get it ($(last_words)). The default build follows: some 2.7 GB instead of 0.2, as it brings CUDA along."
fi
quiet= # so much is worth a progress bar
if pinned cuda; then exit 0; fi
cat "$work/said" >&2
echo "No build of torch that constraints-torch-*.txt pin could be installed from here; pip's and uv's words stand above." >&2
exit 1
