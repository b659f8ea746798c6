"""Asks Ibid and its peers the same questions about the same folder, with the
same scripted model, and prints tables of the results.

What was measured with the same program, script and flags is kept in WORK/results,
and is not measured again: a run that was interrupted goes on."""

import argparse
import contextlib
import hashlib
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from judge import judge
from systems import HERE, MODES, SYSTEMS, Watched
from table import errors, modes, table

TOP_K = 12  # Ibid's default
SEEDS = ("", "two")


def measure(system, args, url, log):
    """Measures one run of one system, and judges each answer."""
    store = args.work / "store"
    shutil.rmtree(store, ignore_errors=True)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(args.work / "home"),
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "none",
        "TOP_K": str(system.passages if args.own else TOP_K),
    }
    # No telemetry, and no waiting for a network.
    env |= {
        "ANONYMIZED_TELEMETRY": "False",
        "HAYSTACK_TELEMETRY_ENABLED": "False",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "HF_HUB_OFFLINE": "1",
    }
    ingest, ask = system.commands(args.work, args.folder, store)

    account(url)
    start, before = time.monotonic(), ended()
    process = Watched(ingest, env, log)
    with contextlib.suppress(RuntimeError):
        while True:
            process.line()
    figures = {"ingest": time.monotonic() - start, "ingest_memory": process.peak, "ingest_work": ended() - before}
    if process.process.returncode:
        raise RuntimeError(f"{system.name}: reading the folder failed; see {log.name}")
    calls = account(url)
    figures |= {"vector_calls": len(calls), "vector_tokens": sum(c["tokens_in"] for c in calls)}

    start = time.monotonic()
    process = Watched(ask, env, log)
    try:
        system.begin(process)
        answers = []
        for question in args.asked:
            answer = system.ask(process, question)
            if not answers:
                figures |= {"start": time.monotonic() - start, "start_work": process.spent()}
            answers.append(judge(question, answer, account(url)))
        figures["memory"] = process.peak
        figures["work"] = (process.spent() - figures["start_work"]) / max(1, len(answers) - 1)
    finally:
        process.stop()
    figures["answers"], figures["size"] = answers, system.size(args.work)
    return figures


def ended():
    """Returns the CPU seconds of the child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def account(url):
    """Returns the calls to the model since the last time."""
    with urllib.request.urlopen(urllib.request.Request(f"{url}/account", method="POST")) as reply:
        return json.load(reply)


def versions(systems):
    """Names this commit and the pinned versions."""
    commit = subprocess.check_output(["git", "describe", "--always", "--dirty"], cwd=HERE, text=True).strip()
    yield f"Ibid {commit}; Python {platform.python_version()}"
    for venv in dict.fromkeys(s.venv for s in systems if s.venv):
        yield ", ".join((HERE / f"requirements-{venv}.txt").read_text().replace("==", " ").split("\n")[:-1])


def kept(system, args, setting, n):
    """Returns the file of a run, whose name says all that it depends on."""
    depends = hashlib.sha256()
    documents = sorted(f for f in args.folder.rglob("*") if f.is_file())
    vectors = HERE / "../../../../retrieve/embed/table.bin"
    for file in [*system.files(args.work), HERE / "writer.py", HERE / "judge.py", vectors, args.questions, *documents]:
        depends.update(file.read_bytes())
    said = json.dumps([setting, args.count, args.own, str(system.commands(Path(), Path(), Path()))])
    depends.update(said.replace(str(HERE), "").encode())
    slug = re.sub(r"\W+", "-", system.name).strip("-").lower()
    return args.work / "results" / f"{slug}-{n}-{depends.hexdigest()[:12]}.json"


@contextlib.contextmanager
def model(args, setting):
    """Serves the scripted model, and yields its address."""
    writer = [sys.executable, HERE / "writer.py", "-questions", args.questions, *setting["errors"]]
    fast = [] if setting["delays"] else ["-no-delays"]
    process = subprocess.Popen([args.work / "model", *fast, *writer], stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def measured(systems, args, setting, runs=1):
    """Returns the runs of each system, those that are kept or else new ones: in turn, so
    that a busy machine hinders all of them."""
    results = [(system, []) for system in systems if re.search(args.only, system.name)]
    with contextlib.ExitStack() as stack, (args.work / "log").open("a") as log:
        url = ""
        for n in range(runs):
            for system, done in results:
                file = kept(system, args, setting, n)
                if not file.exists():
                    url = url or stack.enter_context(model(args, setting))
                    load, start = os.getloadavg()[0], time.monotonic()
                    figures = measure(system, args, url, log) | {"load": load}
                    took = time.monotonic() - start
                    print(f"{system.name} {' '.join(setting['errors'])}: {took:.0f} s, load {load:.1f}", file=sys.stderr)
                    file.with_suffix(".new").write_text(json.dumps(figures))
                    file.with_suffix(".new").rename(file)
                done.append(json.loads(file.read_text()))
    return results


def rates():
    """Yields the name of each error rate, and flags of writer.py."""
    for alike in ("", ", and again when asked again"):
        for misled in (0, 1, 3):
            for wrong in range(1 if alike else 0, 4):
                name = f"{f'{wrong} in 10' if wrong else '0'}{alike} / {f'{misled} in 6' if misled else 'none'}"
                yield name, [f"-wrong={wrong}", f"-misled={misled}", *(["-alike"] if alike else [])]


def show(args, name, rows, runs):
    """Prints a table, and the load and versions of its runs."""
    with (args.work / f"{name}.md").open("w") as out:
        for cells in rows:
            print("| " + " | ".join(cells) + " |", file=out)
        loads = [run["load"] for _, done in runs for run in done]
        print(f"\n{os.cpu_count()} processors, load {min(loads):.1f} to {max(loads):.1f}\n", file=out)
        for line in versions([system for system, _ in runs]):
            print(f"- {line}", file=out)
    print((args.work / f"{name}.md").read_text(), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, help="folder with the virtual environments and the binaries")
    parser.add_argument("--folder", type=Path, required=True, help="documents")
    parser.add_argument("--questions", type=Path, required=True, help="questions in the format of data/questions.jsonl")
    parser.add_argument("--count", type=int, default=24, help="questions to ask, evenly spaced in the file; 0: all")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--own", action="store_true", help=f"each library's default number of passages, not {TOP_K} for all")
    parser.add_argument("--no-delays", action="store_true", help="the model of the main table replies at once, as in the others")
    parser.add_argument("--only", default="", help="run only systems whose name has this regular expression")
    parser.add_argument(
        "--tables",
        default="main",
        help="those to make, with commas: main; modes: Ibid by each of its gates; errors: by how often the model errs, for two seeds",
    )
    parser.add_argument("--errors", default="", help="flags of writer.py for the tables main and modes: how often the model errs")
    args = parser.parse_args()
    for key in ("work", "folder", "questions"):
        setattr(args, key, getattr(args, key).resolve())
    asked = [json.loads(line) for line in args.questions.read_text(encoding="utf-8").splitlines() if line.strip()]
    if 0 < args.count < len(asked):
        asked = [asked[i * len(asked) // args.count] for i in range(args.count)]
    args.asked = asked
    for name in ("home", "results"):
        (args.work / name).mkdir(exist_ok=True)

    wanted = args.tables.split(",")
    if "main" in wanted:
        results = measured(SYSTEMS, args, {"errors": args.errors.split(), "delays": not args.no_delays}, args.runs)
        show(args, "main", table(results, asked), results)
    if "modes" in wanted:
        results = measured(MODES, args, {"errors": args.errors.split(), "delays": False}, args.runs)
        show(args, "modes", modes(results, asked), results)
    if "errors" in wanted:
        pair = [s for name in ("Ibid, released", "Ibid") for s in SYSTEMS if s.name == name]
        every, found = [], []
        for name, flags in rates():
            runs = [measured(pair, args, {"errors": [*flags, f"-seed={seed}"], "delays": False}) for seed in SEEDS]
            every += [result for run in runs for result in run]
            found.append((name, *([run[i][1][0] for run in runs] for i in range(len(pair)))))
        show(args, "errors", errors(found, asked), every)


main()
