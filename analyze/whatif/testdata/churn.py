"""Random requests, to see what PyTorch's allocator makes of them.

Run: python3 churn.py SEED STEPS FRACTION OUT, on a GPU or on the bookkeeping CUDA runtime that the
corpus was made with; PYTORCH_CUDA_ALLOC_CONF holds the settings. Writes OUT.pickle, a snapshot of
the whole run, and OUT.json, all of memory_stats() at its end.
"""
import json
import os
import random
import sys

import torch

seed, steps, fraction, out = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
torch.cuda.init()
if fraction < 1:
    torch.cuda.memory.set_per_process_memory_fraction(fraction)
torch.cuda.memory._record_memory_history(enabled="all", context="all", stacks="python", max_entries=10**7)
rng = random.Random(seed)
side = [torch.cuda.Stream() for _ in range(2)]
live, target = [], 60


def ask(size, stream):
    if stream is None:
        return torch.empty(size, dtype=torch.uint8, device="cuda")
    with torch.cuda.stream(stream):
        return torch.empty(size, dtype=torch.uint8, device="cuda")


def size():
    r = rng.random()
    if r < .4:
        return rng.randint(1, 64 << 10)
    if r < .6:
        return rng.randint(1, 1 << 20)
    if r < .8:
        return rng.randint(1, 16 << 20)
    if r < .97:
        return rng.randint(1 << 20, 40 << 20)
    return rng.randint(40 << 20, 400 << 20)


for i in range(steps):
    if i % 500 == 0:
        target = rng.randint(10, 120)
    if len(live) < target or rng.random() < .3:
        s = rng.choice([None, None, None, side[0], side[1]])
        n = size()
        try:
            t = ask(n, s)
        except torch.OutOfMemoryError:
            continue
        if rng.random() < .05:
            t.record_stream(rng.choice(side))
        live.append(t)
        del t
    if len(live) > target or rng.random() < .4 and live:
        k = rng.randrange(len(live))
        live[k] = live[-1]
        live.pop()
    if rng.random() < 1 / 400:
        torch.cuda.empty_cache()

torch.cuda.memory._dump_snapshot(out + ".pickle")
with open(out + ".json", "w") as f:
    free, total = torch.cuda.mem_get_info()
    json.dump({"conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""), "fraction": fraction, "total": total, "free": free,
               "stats": dict(torch.cuda.memory_stats())}, f)
