"""llama.cpp's server in a process of its own: prompts come in as lines of JSON, times and tokens go out.

Run by `tests.bench.llama.LlamaCpp` with a Python that has xllamacpp (wheels of llama.cpp's own server),
which need not be ours: nothing but the standard library and xllamacpp is imported here.
"""

import json
import sys
import urllib.request
from typing import Any


def run(address: str, prompt: list[int], new: int) -> dict[str, Any]:
    """One prompt, nothing of it cached: the server's own seconds of reading and of decoding, the greedy tokens."""
    asked = {"prompt": prompt, "n_predict": new, "temperature": 0.0, "ignore_eos": True}
    asked |= {"cache_prompt": False, "return_tokens": True}
    request = urllib.request.Request(f"{address}/completion", json.dumps(asked).encode())
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as response:
        done = json.load(response)
    timings = done["timings"]
    first, rest = timings["prompt_ms"] / 1000, timings["predicted_ms"] / 1000
    return {"first": first, "seconds": first + rest, "tokens": done["tokens"]}


def main() -> None:
    """Serve until there is nothing more to read. Arguments: GGUF file, threads."""
    import xllamacpp  # type: ignore[import-not-found]  # another Python has it

    weights, threads = sys.argv[1:]
    params = xllamacpp.CommonParams()
    params.model.path, params.n_gpu_layers = weights, 0
    params.n_ctx, params.n_parallel, params.port = 2048, 1, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(threads)
    server = xllamacpp.Server(params)
    print(json.dumps({"version": xllamacpp.__version__}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(run(server.listening_address, asked["prompt"], asked["new"])), flush=True)


if __name__ == "__main__":
    main()
