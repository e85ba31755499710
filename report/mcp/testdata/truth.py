"""Writes truth.json: answers that are read off snapshots by Python's own pickle, none of them by snapana.

    python3 report/mcp/testdata/truth.py > report/mcp/testdata/truth.json

Events are walked forward, and what is live is kept by address. Sizes of events are what the program requested.
"""
import json
import lzma
import pathlib
import pickle

HERE = pathlib.Path(__file__).resolve().parent
FIXTURES = HERE.parents[2] / "fixtures"


def read(name):
    data = (FIXTURES / name).read_bytes()
    return pickle.loads(lzma.decompress(data) if name.endswith(".xz") else data)  # files of our own


def walk(snapshot, device=0):
    """Yields after each event: its number, the event, live blocks {address: (event of birth, size)}, reserved bytes."""
    trace = snapshot["device_traces"][device]
    signs = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
    reserved = sum(s["total_size"] for s in snapshot["segments"] if s["device"] == device)
    reserved -= sum(signs.get(e["action"], 0) * e["size"] for e in trace)
    live = {}
    for k, e in enumerate(trace):
        reserved += signs.get(e["action"], 0) * e["size"]
        if e["action"] == "alloc":
            live[e["addr"]] = (k, e["size"])
        elif e["action"] == "free_completed":
            live.pop(e["addr"], None)
        yield k, e, live, reserved


def owners(name, moments):
    """Who owned an address at moments that lie evenly in the trace: the oldest blocks, the newest, and between."""
    snapshot = read(name)
    n = len(snapshot["device_traces"][0])
    wanted = {n * (2 * i + 1) // (2 * moments): i for i in range(moments)}
    for k, _, live, _ in walk(snapshot):
        if k in wanted and live:
            blocks = sorted((born, size, address) for address, (born, size) in live.items())
            born, size, address = blocks[wanted[k] * (len(blocks) - 1) // max(moments - 1, 1)]
            yield {"file": name, "address": hex(address + size // 3), "at": k, "born": born, "requested": size}


def failure(name, device=0):
    snapshot = read(name)
    for _, e, _, reserved in walk(snapshot, device):
        if e["action"] == "oom":
            last = {"file": name, "device_free": e.get("device_free", e.get("addr")), "reserved": reserved}
    return last


def main():
    ranks = [f"ranks/rank{n}.pickle.xz" for n in range(4)]
    ends = {name: sum(s["active_size"] for s in read(name)["segments"] if s["device"] == 0)
            for name in ["healthy.pickle", "ghost.pickle", "fragmentation.pickle"]}
    out = {
        "owners": [q for name in ["healthy.pickle", "ghost.pickle", "fragmentation.pickle", ranks[1]]
                   for q in owners(name, 3)],
        "failures": [failure(name) for name in ["fragmentation.pickle", ranks[2],
                                                "lab/devices/truth/one_of_four_oom.pickle.xz",
                                                "lab/devices/truth/data_parallel_oom.pickle.xz"]],
        "ranks": [{"rank": n, "reserved": max(reserved for *_, reserved in walk(read(name)))}
                  for n, name in enumerate(ranks)],
        "ends": [{"a": a, "b": b, "delta": ends[b] - ends[a]} for a in ends for b in ends if a < b],
    }
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
