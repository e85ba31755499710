import sys
import time

TOTAL, BASE = 1 << 34, 0x7F0000000000
used, enabled, blocks, trace = 0, False, [], []
slow = [0]  # seconds that a snapshot takes


def allocate(size):
    global used
    address = BASE + used
    size = (size + 511) // 512 * 512
    used += size
    blocks.append((address, size))
    if enabled:
        frame = sys._getframe(2)
        trace.append({"action": "alloc", "addr": address, "size": size, "stream": 0, "time_us": time.time_ns() // 1000,
                      "frames": [{"filename": frame.f_code.co_filename, "line": frame.f_lineno,
                                  "name": frame.f_code.co_name}]})
    return address


def _record_memory_history(on="all", **_):
    global enabled
    enabled = bool(on)
    trace.clear()


def _snapshot():
    until = time.monotonic() + slow[0]
    while time.monotonic() < until:
        time.sleep(0.01)
    segment = {"device": 0, "address": BASE, "total_size": TOTAL // 2, "allocated_size": used, "active_size": used,
               "requested_size": used, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
               "is_expandable": False, "frames": [], "blocks": [
                   {"address": a, "size": n, "requested_size": n, "state": "active_allocated", "frames": []}
                   for a, n in blocks] + [
                   {"address": BASE + used, "size": TOTAL // 2 - used, "requested_size": 0, "state": "inactive",
                    "frames": []}]}
    return {"segments": [segment], "device_traces": [list(trace)]}
