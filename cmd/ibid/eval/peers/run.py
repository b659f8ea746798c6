"""Asks Ibid and its peers the same questions about the same folder, with the
same scripted model, and prints a table of the results."""

import argparse
import contextlib
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

from systems import HERE, MODES, SYSTEMS, Watched
from table import judge, table

TOP_K = 12  # Ibid's default


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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path, help="folder with the virtual environments and the binaries")
    parser.add_argument("--folder", type=Path, required=True, help="documents")
    parser.add_argument("--questions", type=Path, required=True, help="questions in the format of data/questions.jsonl")
    parser.add_argument("--count", type=int, default=24, help="questions to ask, evenly spaced in the file; 0: all")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--own", action="store_true", help=f"each library's default number of passages, not {TOP_K} for all")
    parser.add_argument("--only", default="", help="run only systems whose name has this regular expression")
    parser.add_argument("--modes", action="store_true", help="run Ibid alone, by each of its gates, and with --unproved mark")
    parser.add_argument("--errors", default="", help="flags of writer.py: how often the model errs")
    args = parser.parse_args()
    args.work, args.folder = args.work.resolve(), args.folder.resolve()
    asked = [json.loads(line) for line in args.questions.read_text(encoding="utf-8").splitlines() if line.strip()]
    if 0 < args.count < len(asked):
        asked = [asked[i * len(asked) // args.count] for i in range(args.count)]
    args.asked = asked
    (args.work / "home").mkdir(exist_ok=True)

    results = [(system, []) for system in (MODES if args.modes else SYSTEMS) if re.search(args.only, system.name)]
    loads = []
    writer = [sys.executable, HERE / "writer.py", "-questions", args.questions, *args.errors.split()]
    model = subprocess.Popen([args.work / "model", *writer], stdout=subprocess.PIPE, text=True)
    try:
        url = model.stdout.readline().strip()
        with (args.work / "log").open("w") as log:
            for n in range(args.runs):
                for system, runs in results:
                    loads.append(os.getloadavg()[0])
                    print(f"run {n + 1}: {system.name}, load {loads[-1]:.1f}", file=sys.stderr, flush=True)
                    runs.append(measure(system, args, url, log))
                report(results, args, loads)  # after each round, in case the run is interrupted
    finally:
        model.terminate()
        model.wait()
    print((args.work / "table.md").read_text())


def report(results, args, loads):
    """Writes results.json and table.md."""
    (args.work / "results.json").write_text(json.dumps({system.name: runs for system, runs in results}, indent=1))
    with (args.work / "table.md").open("w") as out:
        for cells in table(results, args.asked):
            print("| " + " | ".join(cells) + " |", file=out)
        print(f"\n{os.cpu_count()} processors, load {min(loads):.1f} to {max(loads):.1f}\n", file=out)
        for line in versions(system for system, _ in results):
            print(f"- {line}", file=out)


main()
