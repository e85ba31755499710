// Package environment compares what two recordings say of the machine, the libraries and the
// settings that their programs ran with, for memory that grows on one machine only.
package environment

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
	"github.com/snapana/snapana/snapshot/sorting"
)

// Comparison is two environments side by side.
type Comparison struct {
	A string `json:"a"` // base names
	B string `json:"b"`
	// Rows are those that are known to matter first, in the order of rules, then the others by name.
	Rows []Row `json:"rows"`
	// Single counts the settings that only one recording knows. They are no difference.
	Single int `json:"-"`
}

// Row is one setting. An empty value says that the recording does not have it, and Absent what
// that means: "not set", "unlimited" or "unknown".
type Row struct {
	Name    string `json:"name"`
	A       string `json:"a"`
	B       string `json:"b"`
	Absent  string `json:"absent"`
	Differs bool   `json:"differs"`
	Why     string `json:"why"` // why a difference matters for memory; "" when it is not known to
}

// Values of the samples, beside those of FORMAT.md.
const (
	Children    = "samples.children"
	ChildrenPSS = "samples.children_pss"
)

// Compare compares the environments of the last program in each file.
func Compare(a, b *sidecar.File) (*Comparison, error) {
	x, err := environment(a)
	if err != nil {
		return nil, err
	}
	y, err := environment(b)
	if err != nil {
		return nil, err
	}
	c := &Comparison{A: a.Name, B: b.Name, Rows: []Row{}}
	order := map[string]int{} // by name, its place in rules, or behind them
	for _, env := range []map[string]any{x, y} {
		for name := range env {
			if order[name] = slices.IndexFunc(rules, func(r rule) bool { return r.matches(name) }); order[name] < 0 {
				order[name] = len(rules)
			}
		}
	}
	for name, at := range order {
		row := Row{Name: name, A: text(name, x[name]), B: text(name, y[name]), Absent: absent(name)}
		row.Differs = row.A != row.B && (row.Absent != unknown || row.A != "" && row.B != "")
		if name == ChildrenPSS { // measured: never quite the same
			p, both := x[name].(int64)
			q, too := y[name].(int64)
			row.Differs = both && too && 4*max(p-q, q-p) > max(p, q)
		}
		if row.Absent == unknown && (row.A == "") != (row.B == "") {
			c.Single++
		}
		if at < len(rules) {
			row.Why = rules[at].why
		}
		c.Rows = append(c.Rows, row)
	}
	sorting.By(c.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(order[a.Name], order[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	return c, nil
}

// environment is the flat map of the last run that has one, with what its samples tell.
func environment(f *sidecar.File) (map[string]any, error) {
	for i := len(f.Runs) - 1; i >= 0; i-- {
		run := &f.Runs[i]
		if run.Env == nil {
			continue
		}
		env := maps.Clone(run.Env)
		if run.Program != "" {
			env["program"] = run.Program
		}
		if run.WorldSize != nil {
			env["world_size"] = *run.WorldSize
		}
		var looked bool
		var most, pss int64
		for k := range run.Samples {
			children := run.Samples[k].Children
			looked = looked || children != nil
			most = max(most, int64(len(children)))
			var sum int64
			for _, c := range children {
				if c.PSS != nil {
					sum += *c.PSS
				}
			}
			pss = max(pss, sum)
		}
		if looked {
			env[Children] = most
			if pss > 0 {
				env[ChildrenPSS] = pss
			}
		}
		return env, nil
	}
	return nil, &snapshot.NothingError{
		Msg: f.Name + " has no environment: the Python recorder did not write it, or it ends too early"}
}

// boundless is what version 1 of cgroups says for no limit, less what pages may take off it.
const boundless = 1 << 62

// text prints a value; bytes as such.
func text(name string, v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		if strings.HasPrefix(name, "os.cgroup_") && v >= boundless {
			return ""
		}
		if slices.Contains(inBytes, name) || strings.HasSuffix(name, ".total") {
			return units.Bytes(v)
		}
		return strconv.FormatInt(v, 10)
	}
	return ""
}

var inBytes = []string{"host.ram", "host.swap", "host.shm", "limit.as", "limit.data", "limit.rss", "limit.memlock",
	"os.cgroup_memory_max", "os.cgroup_memory_high", ChildrenPSS}

const unknown = "unknown"

func absent(name string) string {
	switch {
	case strings.HasPrefix(name, "limit."), strings.HasPrefix(name, "os.cgroup_memory_"):
		return "unlimited"
	case strings.HasPrefix(name, "env."), strings.HasPrefix(name, "alloc.PYTORCH"), name == "python.start_method":
		return "not set"
	case strings.HasPrefix(name, "library."):
		return "not found"
	}
	return unknown
}

// rule says why a setting matters for memory. A name that ends in a dot or a star stands for all
// names that begin with it.
type rule struct{ name, why string }

func (r rule) matches(name string) bool {
	if p, ok := strings.CutSuffix(r.name, "*"); ok {
		return strings.HasPrefix(name, p)
	}
	return name == r.name
}

// rules are in the order in which differences are shown: versions first, then what decides how
// memory is allocated, then how much there is, then how the program is spread over processes.
var rules = []rule{
	{"torch.version", "allocator, autograd and kernels differ between releases; so do their leaks"},
	{"torch.git", "another build of PyTorch"},
	{"torch.cuda", "size of the context, and workspaces of the libraries that come with it"},
	{"torch.hip", "ROCm has an allocator path and libraries of its own"},
	{"torch.cudnn", "workspaces and plan caches; some releases leak with varying shapes"},
	{"torch.nccl", "buffers for each communicator and channel"},
	{"torch.mkl", "MKL keeps buffers for each thread (MKL_DISABLE_FAST_MM)"},
	{"torch.openmp", "buffers for each thread"},
	{"driver.*", "size of the context, lazy loading of kernels"},
	{"python.version", "memory of objects, garbage collector, allocator"},
	{"library.*", "its caches, and what it keeps of tensors"},

	{"torch.backend", "cudaMallocAsync keeps and releases memory by other rules"},
	{"alloc.*", "how the caching allocator rounds, splits and releases memory"},
	{"env.PYTORCH*", "a setting of PyTorch"},
	{"env.CUDA_MODULE_LOADING", "EAGER loads all kernels into device memory at the start"},
	{"env.CUBLAS_WORKSPACE_CONFIG", "size of the cuBLAS workspaces of each stream"},
	{"env.CUDA_*", "which devices, connections and kernels the process has"},
	{"env.NCCL_*", "buffers and channels of NCCL"},
	{"torch.deterministic", "deterministic kernels need other workspaces"},
	{"torch.tf32", "other kernels and workspaces"},
	{"device.*", "another device: its capacity, and the workspaces of its kernels"},

	{"env.LD_PRELOAD", "another malloc (jemalloc, tcmalloc) may return freed memory or keep it"},
	{"env.MALLOC_*", "glibc's arenas and thresholds decide whether freed memory is returned"},
	{"os.libc", "another malloc: musl and releases of glibc keep freed memory differently"},
	{"env.PYTHONMALLOC", "malloc instead of pymalloc, or debug allocators"},
	{"python.malloc", "malloc instead of pymalloc, or debug allocators"},
	{"python.gc_*", "when cycles that hold tensors are freed"},
	{"os.thp", "transparent huge pages: sparse heaps take 2 MiB for each touched page"},
	{"os.overcommit", "whether large reservations are granted"},

	{"os.cgroup_*", "limit of the container: beyond it the process is killed, whatever the machine has"},
	{"limit.*", "a limit of the process: allocations fail beyond it"},
	{"os.container", "limits, and size of /dev/shm"},
	{"host.ram", "with less, the same growth fails earlier"},
	{"host.swap", "with swap a process that runs short gets slow; without, it is killed"},
	{"host.swappiness", "how early memory is swapped out"},
	{"host.shm", "batches of workers pass through /dev/shm"},

	{"python.start_method", "forked workers share the parent's memory until they write to it; spawned ones have " +
		"copies from the start"},
	{Children, "each has memory of its own, and prefetched batches"},
	{ChildrenPSS, "the children's share of memory (PSS), at its peak"},
	{"world_size", "shards, buckets and communicators depend on the number of ranks"},
	{"torch.threads", "malloc arenas and buffers for each thread"},
	{"torch.interop_threads", "malloc arenas and buffers for each thread"},
	{"env.OMP_NUM_THREADS", "buffers for each thread"},
	{"env.MKL_NUM_THREADS", "buffers for each thread"},
	{"env.TORCH_*", "a setting of PyTorch"},
	{"host.cpus", "the number of threads and workers often follows it"},
}
