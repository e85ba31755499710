package redact

import (
	"regexp"
	"strings"
	"sync"
)

// public are words that everybody's files have: of the format, of PyTorch's messages, counters and options, of the
// tables that drivers print, and of English between them. They are no secret wherever they stand.
var public = sync.OnceValue(func() map[string]bool {
	return set(`
action addr size stream time us frames device free compile context user metadata forward pool id internal category cpp
address total allocated active requested segment type is expandable blocks block state history real filename line name fx
node op target original trace stage segments traces settings external annotations host owner private small large pending
awaiting inactive start end annotate alloc completed map unmap oom snapshot workspace frame stack streams default
memory of out tried allocate allocation allocations to cuda pytorch gib mib kib tib gb mb kb tb bytes byte by reserved
capacity in torch and outofmemoryerror try if setting fragmentation avoid for a which has the conf see management
documentation unallocated but use using used process processes max min including non this variables environment with
cached allowed on error hip rocm npu xpu mps cpu gpu gpus may upper cause system limit other failure runtimeerror
acceleratorerror device devices at empty cache intel ascend current peak freed freeable retries tot cur metric summary
ooms usage cudamalloc cudamallocasync hipmallocasync hipmalloc releasable oversize allocs statistics statistic count avg num
all small_pool large_pool gc threshold garbage collection per fraction pinned catch round register threads reserve
background lock release rounding capture record reuse roundup power divisions throw segment lowest
an as be been have not no or was were will would could can it its that than then there these from into over under only
also more most less many too after before up down please already still
ratio high watermark disable recommended operations stacktrace traceback recent call last file warning info debug critical fatal
error exception raise raised none true false nan inf null
version driver toolkit smi nvidia amd geforce rtx gtx titan tesla quadro graphics xp ti super laptop max_q
ecc ci gi mig persistence bus disp fan temp perf pwr cap compute shared volatile uncorr util process names running found
graphic vol dec ofa jpg bar enc ce sm unc off na ii pid pids
timestamp index gpu_name uuid pstate clocks draw power temperature utilization vram fb bar1 product brand
step steps global iteration iter iterations epoch epochs batch idx update rank ranks world local node
ts wall date datetime phase split mode label tag event train training eval evaluation validation val test
mem get info stats sample samples reading readings name stat gauge counter value values unit key figure
segmentation fault killed aborted process exited code signal core dumped
jan feb mar apr may jun jul aug sep oct nov dec mon tue wed thu fri sat sun utc gmt
active_bytes inactive_split cudnn cublas nccl gloo mkl openmp deterministic backend native git interop tf
capability multiprocessors python implementation thresholds enabled method malloc cpython fork spawn forkserver
os kernel distribution libc container overcommit thp cgroup ram swap cpus swappiness shm env linux windows darwin glibc
musl ubuntu debian fedora centos rhel rocky alma alpine arch suse docker podman kubernetes lts gnu smp x aarch
as data rss memlock nofile nproc library libraries rlimit
dump exit run program producer recorder nvml header holders uses
pss ppid fds hwm available children tensors objects
bit fp bf int uint float double half bool complex bfloat quint qint tensor
whole begin lap laps inside thread timer
cpu_only unknown insufficient permissions requested functionality supported denied permission
hook closure list dict tuple set deque object array cell function partial lru generator coroutine class module cpp
cycle interpreter root attr global local contents element dictkey defaults self func args base grad fn next saved
variable owner weight bias parameter parameters param buffer buffers optimizer model layers layer loss losses output outputs
input inputs hidden states logits labels target targets features
graph gc fraction hard soft warn caught background size_mb max_split garbage_collection pool cpu oversubscribe
ghost ghosts leak oom growth healthy peak fragmentation capacity verdict findings headline severity confidence heuristic
snap snapshots pickle pkl json html gz zst xz bz zip txt log out report
collections ordereddict restore jit
sub mul add div relu linear conv bn
sync rejections pools requests runtime capacty capac rejected preemptively because exceed would enough you your t otherwise
graphs supplied eb please according currently tcc wddm mcdm unlimited stderr stdout stdin calling more than maximum suggest
defaultcpuallocator cudacachingallocator cachingallocator hipcachingallocator
allocator outofmemory cublas_status_alloc_failed status failed failure create handle snapana`)
})

// tokens that torch and Python give names to, which decide what snapana makes of a function: as they are, or anywhere in
// a longer word (analyze/ghost/cause.go, analyze/frames/class.go).
var (
	judgedWords = sync.OnceValue(func() map[string]bool {
		return set(`memo batch batches data sample samples log logs logger logging store stores load get next make read
build create draw iter prepare move to new stage upload alloc init kv cache reorder state dict weights pretrained from set
module tensor device forward backward step main closure process worker allocate`)
	})
	judgedParts = []string{"memoiz", "memois", "cache", "collate", "loader", "fetch", "hook", "callback", "closure",
		"wrapper", "history", "record", "track", "remember", "append", "collect", "accumulate", "convolution", "onvolution"}
	// of scopes that the program or torch names (analyze/steps, analyze/phase)
	scopeWords = sync.OnceValue(func() map[string]bool {
		return set(`optimizer step profilerstep sgd adam adamw adagrad adadelta adamax asgd lbfgs nadam radam rmsprop rprop
sparseadam adafactor zero grad enumerate dataloader datapipe profiler torch compiled region torchdynamo compiledfunction
aotdispatcher pregraph bytecode forward backward dataparallel distributeddataparallel fsdp fullyshardeddataparallel nccl
gloo c d all reduce gather scatter broadcast comms param record autograd distributed call compiledfxgraph post pre
singleprocessdataloaderiter multiprocessingdataloaderiter next cache lookup send recv barrier alltoall base coalesced
train training validation eval epoch batch iter iteration warmup inference generate prefill decode loss copy out in prefetch for
rs wait reshard accumulate`)
	})
	// attributes of torch's and of Python's objects (analyze/holder)
	attributes = sync.OnceValue(func() map[string]bool {
		return set(`_parameters _buffers _modules state param_groups _queue __context__ __cause__ __dict__
_forward_hooks _forward_pre_hooks _backward_hooks _backward_pre_hooks _post_accumulate_grad_hooks
_optimizer_step_pre_hooks _optimizer_step_post_hooks _global_forward_hooks _global_forward_pre_hooks
_global_backward_hooks`)
	})
	scopeParts = []string{"step", "batch", "iter", "epoch"}
	// releases are beginnings of the names of phases that give memory up (analyze/phase/release.go).
	releases = []string{"sleep", "offload", "off", "load", "unload", "release", "evict", "free", "clear", "cleanup", "clean",
		"up", "teardown", "tear", "down", "shutdown", "shut", "suspend", "park"}
)

// packages are installed packages and modules of Python that everybody can have.
var packages = sync.OnceValue(func() map[string]bool {
	return set(`torch torchvision torchaudio torchtext torchdata torchao torchrec torchtune torchmetrics torchelastic functorch
torch_npu torch_xla torchgen torchtitan triton numpy scipy pandas sklearn matplotlib pil cv2 skimage numba cupy jax jaxlib flax
transformers accelerate datasets tokenizers safetensors huggingface_hub peft trl diffusers evaluate optimum timm lightning
lightning_fabric lightning_utilities pytorch_lightning deepspeed megatron apex transformer_engine xformers flash_attn
bitsandbytes vllm sglang ray xgboost lightgbm wandb tensorboard mlflow tqdm omegaconf hydra fire click typer rich yaml
fairseq fairscale composer streaming monai ultralytics open_clip clip sentence_transformers gradio fastapi starlette
uvicorn anyio trio flask requests urllib3 aiohttp httpx pydantic attr attrs einops kornia albumentations dgl
torch_geometric pytorch3d nerfstudio gsplat detectron2 mmcv mmdet mmengine nemo espnet speechbrain whisper
intel_extension_for_pytorch auto_gptq gptqmodel awq liger_kernel unsloth llmcompressor compressed_tensors outlines xgrammar
ipykernel ipython ipython_genutils traitlets jupyter jupyter_client jupyter_core tornado nbclient notebook zmq debugpy
pytest _pytest pluggy py setuptools pkg_resources pip wheel distutils cloudpickle dill joblib psutil nvtx pynvml cuda
nvidia cutlass flashinfer xfuser gpustat memray snapana_recorder snapana six packaging typing_extensions filelock
fsspec regex sentencepiece tiktoken sympy networkx jinja2 wrapt decorator absl ml_collections tensorflow keras
abc argparse asyncio base64 bdb builtins bz2 cmd code codecs collections concurrent contextlib contextvars copy copyreg csv
ctypes dataclasses datetime decimal difflib dis enum faulthandler fractions functools gc genericpath getpass gzip heapq hashlib
importlib inspect io ipaddress itertools json linecache logging lzma math multiprocessing numbers operator optparse os
pathlib pdb pickle pkgutil platform posixpath ntpath pprint profile cprofile queue random re reprlib runpy sched select
selectors shelve shutil signal site socket sqlite3 ssl stat statistics string struct subprocess sys tarfile tempfile textwrap
threading time timeit tokenize trace traceback tracemalloc types typing unittest urllib uuid warnings weakref xml zipfile
zipimport _bootstrap _bootstrap_external _weakrefset __main__ __future__`)
})

// folders are parts of paths that are where they are on everybody's machine.
var folders = sync.OnceValue(func() map[string]bool {
	return set(`home users root usr opt var tmp temp mnt media srv etc bin sbin lib lib64 libexec local share src include run proc
sys dev data volumes private applications library frameworks python.framework versions cellar homebrew .local .cache .venv
venv .conda conda miniconda anaconda miniconda3 anaconda3 miniforge miniforge3 mambaforge mamba micromamba envs pkgs
pyenv .pyenv virtualenvs site-packages dist-packages scripts programs python appdata roaming microsoft program files
workspace app content kaggle working databricks sagemaker nfs scratch lustre gpfs
apex optimizers bitsandbytes optim __pycache__ . ..`)
})

// stems are names of files, without their endings, that decide what snapana makes of a frame.
var stems = sync.OnceValue(func() map[string]bool {
	return set(`__init__ __main__ cache_engine cache_utils snapana_recorder copy pickle threading thread runpy contextlib functools
base_events events runners process popen_fork`)
})

// endings are those of files of code.
var endings = sync.OnceValue(func() map[string]bool {
	return set(`.py .pyx .pyc .pyi .ipynb .c .cc .cpp .cxx .cu .cuh .h .hh .hpp .hxx .hip .inc .inl .tcc .s .so .dll .exe .pyd .o
.pickle .pkl .json .html .gz .zst .xz .bz2 .zip .snapana .log .txt .out .err .csv .yaml .yml .jsonl .digest .whl .egg
.parquet .pb .folded .svg .png .pdf .md`)
})

// symbols begin names of C++ that are torch's and its language's.
var symbols = regexp.MustCompile(`^(?:at|c10|c10d|caffe2|torch|std|__gnu_cxx|__cxxabiv1|onnx|c10_npu|at_npu|torch_npu|c10_hip)::`)

// common begin names of C++ and C of what torch is built on, and of Python: theirs if they are made of words that these
// have (cWords), since programs put code of their own there, and name it alike.
var common = lazily(`^(?:cub|thrust|pybind11|cutlass|cute|nvfuser|cudnn|cudnn_frontend|fmt|tensorpipe|gloo|nccl|` +
	`moodycamel|unwind|sycl|dnnl|ideep)::|^(?:_?_?Py[A-Z_]\w*|__Pyx_\w*|cu[A-Z]\w*|` +
	`(?:cuda|cublas|cublasLt|cudnn|cusparse|cusolver|cufft|hip|rocblas|miopen|nccl|mkl|dnnl)[A-Z_]\w*|` +
	`THP\w+|CU[a-z]+_st|binary_i?op1?|_?_?libc_\w+|` +
	`_start|main|start_thread|_{0,2}clone3?|execute_native_thread_routine|dlopen|dlsym|malloc|free|` +
	`_?object_vacall|method_vectorcall\w*|cfunction_\w+|slot_\w+|type_call|tuple\w*|builtin_\w+|run_mod|run_eval_code_obj|` +
	`pymain_\w+|pyrun_\w+|unknown|ThreadPool|run_conv_plan|gemm\w*|sgemm\w*|functorch)$`)

// cWords are words of such names that torchWords and ofC lack.
var cWords = sync.OnceValue(func() map[string]bool {
	return set(`abort access activation address agent algo alias all alloc any args argument ascii ast async attr attribute attributes
backward batch batched bfloat bias binary block blocks broadcast builtin bytes cached call calloc calls cast caster
cell cfunction clear clone cluster code collective comm complex config constant context conv convolution cooperative
coro counting cpp create ctx cu cub cublas cucontext cuda cudart cudnn cuevent custream cute cutlass data dealloc
decref default del delitem descr descriptor destroy detail device dgemm dict discard dispatch dispatcher dlopen dlsym
dnnl double dropout dtype each end engine ensure epilogue err eval evaluate event ex exception exec execute execution
export extra fast fastcall fetch file filter finalize flags float for format forward frame free function functor
gather geam gemm gemv gen generator generic getattr getattro getitem gil gloo granularity graph group grouped half
handle hash heuristic hgemm hip histogram host if impl import incref init initialize instantiate interactive internal
interp iop iter iterator kernel kernels keyword keywords kw kwds kwnames launch layout libc list load loader long
lookup loop main mainloop malloc map mapping matmul mem memcpy memset merge method miopen mkl mod module mp mro native
nb nccl nd new next no noargs node normalization number ob obj objargs object occupancy occurred one op op_ par parser
peer pending permutation plan pointer policy pool pooling preconfig prepend primary process properties ptr py pybind
pymain pyrun pyx query radix rank raw ready realloc recv reduce ref reference release repr reserve restore retain
return richcompare rnn roc rocblas routine run runtime save scan scatter segmented select send seq sequence set
setattr setattro setitem sgemm shape simple size slice slot softmax sort sq st stack stackref start state status
storage str stream stride strided string synchronize system tagged tensor tensorpipe tfloat thp thread thrust tile to
tp traceback transform traverse trsm tstate tuple type ulong unary unchecked unicode unique unload unmap unwind
unwinder utf vacall value varargs variable vectorcall visit wait warp workspace wrap wrapper zip`)
})

// special are the names of methods that Python and libraries call.
var special = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for name := range set(`init call new del enter exit aenter aexit aiter anext await iter next len length_hint contains repr str bytes
hash bool int float complex index format round trunc floor ceil sizeof dir doc dict module name qualname annotations annotate slots
getattr getattribute setattr delattr getitem setitem delitem missing reversed get set delete set_name init_subclass
class_getitem prepare instancecheck subclasscheck subclasshook copy deepcopy reduce reduce_ex getstate setstate getnewargs
getnewargs_ex replace post_init create_fn build_class import main file all path fspath buffer release_buffer closure class
eq ne lt le gt ge add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor neg pos abs invert
radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand ror rxor
iadd isub imul imatmul itruediv ifloordiv imod ipow ilshift irshift iand ior ixor
torch_function torch_dispatch tensor_flatten tensor_unflatten array array_function array_ufunc array_interface array_priority
array_wrap cuda_array_interface dlpack dlpack_device coerce_same_metadata_as_tangent coerce_tangent_metadata
obj_flatten obj_unflatten fx_create_arg fx_repr jit_unused_properties constants getitems wrapped self func`) {
		out["__"+name+"__"] = true
	}
	return out
})

// ofC are words of the language between names.
var ofC = sync.OnceValue(func() map[string]bool {
	return set(`const volatile unsigned signed int char short long float double bool void auto operator anonymous namespace lambda
struct class enum template typename decltype noexcept int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
size_t ssize_t ptrdiff_t wchar_t new delete static inline constexpr true false nullptr clone constprop isra part cold abi cxx11
gnu basic_string`)
})

func set(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}
