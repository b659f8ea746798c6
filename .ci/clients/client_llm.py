"""Prints what the command llm gets."""

import json
import os
import signal
import subprocess
import sys

from told import NEXT, QUESTION, SLOWLY, Told, url

told = Told("llm", "llm")
home = sys.argv[3]
os.makedirs(home, exist_ok=True)
with open(f"{home}/extra-openai-models.yaml", "w") as f:
    f.write(f"- model_id: ibid\n  model_name: ibid\n  api_base: {url}\n  supports_schema: true\n")
env = {**os.environ, "LLM_USER_PATH": home, "OPENAI_API_KEY": "none", "PYTHONUNBUFFERED": "1"}
llm = [os.path.join(os.path.dirname(sys.executable), "llm"), "-m", "ibid"]


def run(*args):
    return subprocess.run([*llm, *args], env=env, capture_output=True, text=True, check=True).stdout.rstrip("\n")


told.answer("llm --no-stream", run("--no-stream", QUESTION))
told.answer("llm, stream", run(QUESTION))
told.follow("llm -c", run("-c", NEXT))
told.json("llm --schema", json.loads(run("--schema", "when str", QUESTION))["when"])


def interrupt():
    process = subprocess.Popen([*llm, SLOWLY], env=env, stdout=subprocess.PIPE)
    process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    process.wait()


told.stop("Ctrl-C", interrupt)
