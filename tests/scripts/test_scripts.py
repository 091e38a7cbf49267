"""Scripts of a checkout: ``skillc train`` uninstalled, SmolLM2's course, the newcomer, torch's build, Slurm's batch.

Torch's build for processors is found without anybody being asked, and never ends in a dead end. The indexes are folders
with tiny wheels, read by the real pip; uv, which would ask the net, is a stand-in among them.
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from scripts.newcomer import PAGES, ROOT, Line, Newcomer, lines_of
from skillc_lab.cli.main import find_command, split_command
from skillc_lab.cli.options import parse
from trainers.engines import check_engine

SCRIPTS = ROOT / "scripts"
INSTALL = SCRIPTS / "install_torch.sh"
UV = '#!/bin/sh\necho "$@" > "$UV_ASKED"\n[ -z "$UV_SAYS" ] || { echo "$UV_SAYS" >&2; exit 1; }\n'


def stand_ins(folder: Path, skillc: str, accelerate: str = "", scontrol: str = "", **env: str) -> dict[str, str]:
    """Writes programs into a folder; the variables with which they are found before any other."""
    for name, text in {"skillc": skillc, "accelerate": accelerate, "scontrol": scontrol}.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", **env}


def test_training_runs_from_elsewhere(tmp_path: Path):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [sys.executable, str(SCRIPTS / "train.py"), "model=shipped", "steps=0"]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("skillc train: error: steps")


@pytest.mark.parametrize("engine", ["choosing", "transformers"])
def test_the_nights_commands_are_understood(tmp_path: Path, engine: str) -> None:
    pytest.importorskip("torch", reason="needs the train extra")
    env = stand_ins(tmp_path, skillc='printf "%s\\037" "$@" >> said\necho >> said', JOBS="1", ENGINE=engine)
    subprocess.run(["bash", str(SCRIPTS / "smollm2" / "night.sh"), "out"], cwd=tmp_path, env=env, check=True)
    said = [line.split("\x1f")[:-1] for line in (tmp_path / "said").read_text().splitlines()]
    commands = [(name.split()[-1], name, words) for name, words in map(split_command, said)]
    assert [last for last, *_ in commands] == ["get-model", "make-policy", "evaluate", *["train", "evaluate"] * 9]
    made = {last: parse(find_command(name).options, words, f"skillc {name}") for last, name, words in commands}
    recipe = made["make-policy"].recipe()
    assert recipe.demonstrations.env_kwargs["task_types"] == ("heat", "cool", "clean")
    assert set(recipe.demonstrations.error_rates_without_skill.values()) == {1.0}
    config = made["train"].config()
    assert (config.engine, config.trained_layers, config.precision) == (engine, "upper:15", "bfloat16_copy")
    check_engine(config.engine, config.engine_options)


def test_the_newcomer_types_every_line_of_the_pages():
    page = "```bash\nskillc a \\\n    b=1\n\nmake quick  # a minute\n```\n```python\nx = 1\n```\n```text\nno\n```"
    assert list(lines_of(page)) == [Line("skillc a b=1"), Line("make quick"), Line("x = 1\n", python=True)]
    typed = [line.text for name in PAGES for line in lines_of((ROOT / name).read_text(encoding="utf-8"))]
    assert {"make quick", "scripts/install_torch.sh python", "skillc doctor"} <= set(typed)


def test_the_newcomer_has_a_home_of_its_own_and_tells_what_failed(tmp_path: Path):
    newcomer = Newcomer(tmp_path / "new")
    newcomer.settle()
    own = Line('test $HOME -ef ../home && test ! -e .venv && test -z "$PYTHONPATH" && read said && test $said = :quit')
    lines = [own, Line("echo why; false"), Line("import os; assert os.path.isdir('skillc_lab')\n", python=True)]
    for line in lines:
        newcomer.type(line)
    assert [line.failed for line in lines] == ["", "status 1\nwhy\n", ""]
    busy = Line("make quick", seconds=90, work=9, transcript=80)
    assert Line("make quick").transcript_at_work() > 60 > busy.transcript_at_work()
    assert not newcomer.left_out(Line("make demo"))
    assert Newcomer(tmp_path, venv=tmp_path, short=True).left_out(Line("make demo"))


# Torch's build -------------------------------------------------------------------------------------------------------


def wheel(folder: Path, name: str, version: str, **files: str) -> str:
    """Writes a wheel into a folder of an index; returns its SHA-256."""
    info = f"{name}-{version}.dist-info"
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in files.items():
            entry = zipfile.ZipInfo(inside)
            entry.external_attr = 0o100755 << 16
            archive.writestr(entry, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def machine(tmp_path: Path):
    """Runs the script on a machine whose index has the builds named; uv ends as told."""
    (tmp_path / "scripts").mkdir()
    script = shutil.copy(INSTALL, tmp_path / "scripts")
    for build, version in {"cpu": "==2.13.0+cpu", "cuda": "===2.13.0"}.items():
        hashed = wheel(tmp_path / "all" / build, "torch", version.strip("="), **{"torch.py": build})
        (tmp_path / f"constraints-torch-{build}.txt").write_text(f"torch{version} --hash=sha256:{hashed}\n")
    wheel(tmp_path / "all" / "uv", "uv", "1.0", **{"uv-1.0.data/scripts/uv": UV})

    def run(builds: Sequence[str], uv_says: str = "not found", torch: str = "auto"):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "TORCH"))}
        env |= {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_TARGET": str(tmp_path / "site")}
        env |= {"PIP_FIND_LINKS": " ".join(str(tmp_path / "all" / build) for build in [*builds, "uv"])}
        env |= {"UV_ASKED": str(tmp_path / "asked"), "UV_SAYS": uv_says}
        return subprocess.run([script, sys.executable, torch], env=env, capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize(
    ("builds", "options", "ended", "found", "said"),
    [
        (["cpu", "cuda"], {}, 0, ["cpu"], r"\A\Z"),
        (["cpu", "cuda"], {"torch": "default"}, 0, ["cuda"], ""),
        (["cuda"], {"uv_says": ""}, 0, [], "uv, which knows"),
        (["cuda"], {"uv_says": "cause: no such host"}, 0, ["cuda"], r"\(no such host\)[\s\S]*GB"),
        (["other"], {}, 1, [], "HASHES"),
    ],
    ids=["the configured index", "the default build", "by uv", "its size is said", "what no hash knows"],
)
def test_what_can_be_installed_is(machine, tmp_path: Path, builds, options, ended, found, said):
    wheel(tmp_path / "all" / "other", "torch", "2.13.0", **{"torch.py": "a stranger's"})
    done, asked = machine(builds, **options), tmp_path / "asked"
    assert (done.returncode, [path.read_text() for path in tmp_path.glob("site/torch.py")]) == (ended, found)
    assert re.search(said, done.stderr if ended else done.stdout)
    assert asked.exists() == ("cpu" not in builds), "uv is asked where the index has no such build"
    pinned = f"--torch-backend cpu --no-deps --require-hashes -r {tmp_path}/constraints-torch-cpu.txt\n"
    assert not asked.exists() or asked.read_text().endswith(pinned)
    assert "://" not in INSTALL.read_text(), "uv knows where torch is published"


# Slurm's batch file, with stand-ins for Slurm and the launcher --------------------------------------------------------

LAUNCHER = """
echo "$@" > asked
bash -c 'trap "echo saved > saved; exit 130" TERM; touch started; while :; do sleep 0.05; done' &
child=$!
[ "$STAND_IN" = ends ] && kill -KILL "$child" && exit 7
wait "$child"
"""


def batch(place: Path, **env: str) -> subprocess.Popen[bytes]:
    known = {"SLURM_JOB_ID": "17", "SLURM_GPUS_ON_NODE": "4", "STAND_IN": "", **env}
    known = stand_ins(place, skillc="echo F", accelerate=LAUNCHER, scontrol="echo $@ > requeued", **known)
    words = ["bash", str(SCRIPTS / "slurm" / "train.sbatch"), "steps=3"]
    return subprocess.Popen(words, cwd=place, env=known, start_new_session=True)


def test_sigterm_reaches_the_training_and_the_job_is_queued_again(
    tmp_path: Path, wait_for: Callable[..., None]
) -> None:
    job = batch(tmp_path, SKILLC_LAUNCHER="fsdp2")
    wait_for((tmp_path / "started").exists)
    job.send_signal(signal.SIGTERM)
    assert job.wait(timeout=60) == 0
    assert (tmp_path / "saved").exists()
    assert (tmp_path / "requeued").read_text() == "requeue 17\n"
    words = (tmp_path / "asked").read_text().split()
    assert words[:5] == ["launch", "--num_processes", "4", "--config_file", "F"]
    assert words[-3:] == ["train", "resume=auto", "steps=3"]


def test_a_run_that_ends_by_itself_is_not_queued_again(tmp_path: Path) -> None:
    assert batch(tmp_path, STAND_IN="ends").wait(timeout=60) == 7
    assert not (tmp_path / "requeued").exists()
