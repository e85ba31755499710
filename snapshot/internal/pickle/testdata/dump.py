"""Prints what CPython reads from each snapshot, one line a record, for comparison with ours."""
import pickle
import sys


class Data(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}")


def text(s):
    return s.encode("utf-8", "surrogatepass").hex()


def line(n):
    return n if 0 < n < 2**31 else 0  # torch writes 2**64 - 1 for an unknown line


def render(record):
    frames = (f"{text(f['filename'])}:{line(f['line'])}:{text(f['name'])}" for f in record["frames"])
    return "[" + " ".join(frames) + "]"


def show(name):
    printed, numbers, out = {}, {}, []

    def frames(record):
        if "frames" not in record:
            return "-"
        key = id(record["frames"])
        if key not in printed:
            stack = render(record)
            if stack not in numbers:
                numbers[stack] = len(numbers) + 1
                out.append(f"stack {numbers[stack]} {stack}")
            printed[key] = str(numbers[stack])
        return printed[key]

    with open(name, "rb") as f:
        top = Data(f).load()
    if isinstance(top, list):
        top = {"segments": top}
    for s in top["segments"]:
        pool = tuple(s.get("segment_pool_id", (0, 0)))
        out.append(f"segment {s['device']} {s.get('address', 0)} {s['total_size']} {s.get('allocated_size', 0)} "
                   f"{s.get('active_size', 0)} {s.get('requested_size', 0)} {s.get('stream', 0) & (2**64 - 1)} "
                   f"{s.get('segment_type', '')} {pool[0]},{pool[1]} {int(s.get('is_expandable', False))} {frames(s)}")
        for b in s["blocks"]:
            out.append(f"block {b.get('address', 0)} {b['size']} {b.get('requested_size', 0)} {b['state']} "
                       f"{frames(b)}")
            for h in b.get("history", []):
                out.append(f"history {h['addr']} {h['real_size']} {frames(h)}")
    for d, trace in enumerate(top.get("device_traces", [])):
        out.append(f"trace {d} {len(trace)}")
        for e in trace:
            out.append(f"event {e['action']} {e.get('device_free', e.get('addr', 0))} {e.get('size', 0)} "
                       f"{e.get('stream', 0) & (2**64 - 1)} {e.get('time_us', 0)} {text(e.get('compile_context', ''))} "
                       f"{text(e.get('user_metadata', ''))} {frames(e)}")
    for a in top.get("external_annotations", []):
        out.append(f"annotation {a['stage']} {text(a['name'])} {a['device']} {a['time_us']}")
    out.append("end of file")
    print("\n".join(out))


for name in sys.argv[1:]:
    show(name)
