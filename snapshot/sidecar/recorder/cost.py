"""What the recorder costs: python3 cost.py [MILLIONS of objects]. Needs torch. Prints what it takes
of each step, and what a dump takes for each million of objects that the collector tracks."""
import gc
import os
import sys
import tempfile
import time

import torch

import snapana_recorder as r


class Sample:
    def __init__(self, n):
        self.path, self.label, self.box = "images/%d.jpg" % n, n, [n, n + 1]


def resident(name):
    with open("/proc/self/status") as f:
        return [int(line.split()[1]) * 1024 for line in f if line.startswith(name)][0]


def steps(model, opt, count):
    """CPU time of each step, and of what the recorder does in it, in all threads."""
    took, ours = [], []
    for _ in range(count):
        begin = time.process_time()
        opt.zero_grad()
        model(torch.zeros(16, 64)).sum().backward()
        opt.step()
        end = time.process_time()
        r.step()
        ours.append(time.process_time() - end)
        took.append(end - begin)
    return sorted(took), sorted(ours)


def main():
    millions = float(sys.argv[1]) if len(sys.argv) > 1 else 1
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(50)])
    opt = torch.optim.Adam(model.parameters())
    n = int(millions * 1e6) // 5
    data = [[Sample(i) for i in range(n)], [{"text": "t%d" % i, "meta": {}, "ids": [i]} for i in range(n)],
            [(i, [i]) for i in range(n)]]
    gc.collect()
    torch.set_num_threads(1)
    count = 3000
    with tempfile.TemporaryDirectory() as folder:
        r.start(os.path.join(folder, "run"), devices="all")
        took, ours = steps(model, opt, count)
        print("a step: %.2f ms of CPU" % (took[count // 2] * 1000))
        for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1)):
            at = min(int(share * count), count - 1)
            print("  in it, step() of the recorder, %-5s: %.2f ms" % (name, ours[at] * 1000))
        objects = len(gc.get_objects())
        before = resident("VmRSS")
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")  # the peak starts anew
        begin, cpu = time.perf_counter(), time.process_time()
        r.dump()
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
        print("dump of %.2f M objects: %.2f s, %.2f s of CPU, %.2f s of CPU for each million"
              % (objects / 1e6, wall, cpu, cpu / objects * 1e6))
        print("peak of resident memory in it: + %.1f %%" % (100 * (resident("VmHWM") / before - 1)))
        r.stop()
    del data


main()
