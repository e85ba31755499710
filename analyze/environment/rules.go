package environment

import "strings"

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

	{"torch.backend", "cudaMallocAsync keeps and gives back memory by other rules"},
	{"alloc.*", "the caching allocator rounds, splits and gives back memory by it"},
	{"env.PYTORCH*", "a setting of PyTorch"},
	{"env.CUDA_MODULE_LOADING", "EAGER loads all kernels into device memory at the start"},
	{"env.CUBLAS_WORKSPACE_CONFIG", "size of the cuBLAS workspaces of each stream"},
	{"env.CUDA_*", "which devices, connections and kernels the process has"},
	{"env.NCCL_*", "buffers and channels of NCCL"},
	{"torch.deterministic", "deterministic kernels need other workspaces"},
	{"torch.tf32", "other kernels and workspaces"},
	{"device.*", "another device: capacity, and workspaces by its kernels"},

	{"env.LD_PRELOAD", "another malloc (jemalloc, tcmalloc) gives memory back, or does not"},
	{"env.MALLOC_*", "glibc's arenas and thresholds decide whether freed memory goes back"},
	{"os.libc", "another malloc: musl and releases of glibc keep freed memory differently"},
	{"env.PYTHONMALLOC", "malloc in place of pymalloc, or debug allocators"},
	{"python.malloc", "malloc in place of pymalloc, or debug allocators"},
	{"python.gc_*", "when cycles that hold tensors are freed"},
	{"os.thp", "transparent huge pages: sparse heaps take 2 MiB for each page that is touched"},
	{"os.overcommit", "whether large reservations are granted"},

	{"os.cgroup_*", "limit of the container: beyond it the process is killed, whatever the machine has"},
	{"limit.*", "a limit of the process: allocations fail beyond it"},
	{"os.container", "limits, and size of /dev/shm"},
	{"host.ram", "the same growth fails earlier with less"},
	{"host.swap", "without swap a process is killed where another only gets slow"},
	{"host.swappiness", "how early memory is swapped out"},
	{"host.shm", "batches of workers pass through /dev/shm"},

	{"python.start_method", "forked workers share the parent's memory until they write to it; spawned ones have copies from the start"},
	{Children, "each has memory of its own, and prefetched batches"},
	{ChildrenPSS, "what the children have for themselves, at most"},
	{"world_size", "shards, buckets and communicators depend on the number of ranks"},
	{"torch.threads", "malloc arenas and buffers for each thread"},
	{"torch.interop_threads", "malloc arenas and buffers for each thread"},
	{"env.OMP_NUM_THREADS", "buffers for each thread"},
	{"env.MKL_NUM_THREADS", "buffers for each thread"},
	{"env.TORCH_*", "a setting of PyTorch"},
	{"host.cpus", "the number of threads and workers often follows it"},
}
