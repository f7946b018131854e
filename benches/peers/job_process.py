"""Jobs of a benchmark, each in a process of its own: `SCRIPT --job JSON`, which prints its answer as JSON."""

import json
import subprocess
import sys


def run(script, job, longest_s, environment=None):
    """The answer to a job, or {"error": …} where the process fails, says nothing, or takes longer than it may."""
    command = [sys.executable, script, "--job", json.dumps(job)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=longest_s, env=environment)
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {longest_s} s"}
    answer = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not answer:
        return {"error": (done.stderr.strip() or "no answer").splitlines()[-1][:300]}
    return json.loads(answer[-1])
