package redact

import "sync"

// torchWords are the words in the names of torch's own folders and files, of releases from 1.13 to 2.15 with their headers:
// what else is in a tree like torch's is another's.
var torchWords = sync.OnceValue(func() map[string]bool {
	return set(`
a aa aarch abbrs abort abs absolute ac acc accelerator acceptable access accessor accum accumulate aclutils acos acosh
action activation ad adadelta adafactor adagrad adam adamax adamw adapter adaption adaptive add addbmm addcdiv addcmul
addmm addmv addr address adinterpreters adjoint adjust advanced affine after agent ai airy algebra algorithm
algorithms alias aliases align aligned alignment all allclose alloc allocation allocator allowlist along alpha alt
amatrix amax ambiguous amin aminmax amp amsgrad amx analysis analyze and angle annotate annotated annotation
annotations anomaly any ao aot aoti aotriton api apis appdirs appending applier apply approximate arange arccos
arccosh archive arcsin arcsinh arctan arctanh arg argmax argmin argparse args argsort argument arguments argwhere
arith arithmetic array arrayref artifact artifacts as asgd asin asinh asm assert assertion assertions associative
assume async at atan atanh aten atfork atleast atomic attachment attention attn attr attribute attributes augmented
auto autocast autodiff autogen autograd autogradzero autoheuristic automation autotune autotuner autows aux available
average averager averagers averaging avg avx avxantialias await awaits axis b back backcompat backend backends backoff
backport backtrace backward baddbmm bag bailout balance balancer barrier barriers bartlett base based basic batch
batched batching batchnorm baton bc beartype bench benchmark benchmarking bernoulli bessel beta bfloat bgemm bias
bicubic bilinear bin binary bincount binding binomial bisector bit bitmap bits bitset bitwise blackman blas
blasconstants blob block blockpartition blocks blockscaled bmm bn body bool bootstrap bottleneck bound bounds box
boxed boxing branch break bridge broadcast broken bsc bsr bucketer bucketing bucketization bucketize buffer buffers
build builder building builtin builtins bundled bundler bwd by byte bytecode bytes c cache cached cachemask caching
caffe calculate calculator call callable callback callbacks calls callstack can canonicalize cap capabilities
capability caps capture cartesian case cast casting cat catch categorical cauchy ccol cdist cdiv ceil cell celu chain
chalf change channel channelshuffle char chebyshev check checker checkpoint checkpointable checkpointer checkpointing
checks chi choice choices cholesky choose chrome chunk chunker chunking circular ck clamp class classes clean cleanup
clear cli client clip clock clone cloneable cloner closed closure closures cmake cmp cmul coalesce coalesced code
codecache codegen col collapse collate collect collection collections collective collectives coltile column
combination combinations combinatorics combined combining combo comm command common comms communicate communication
compare comparison compat compatibility compatible compilation compile compiled compiler compilers complex compliance
component components composable composite compositeexplicitautograd compositeexplicitautogradnonfunctional
compositeimplicitautograd compositeimplicitautogradnestedtensor comprehension compress compressed comptime computation
compute concat concatenate concrete cond condition conditional config configuration conflict conj consecutive
consolidate const constant constants constexpr constrain constraint constraints constructor container containers
contains content contention context contextlib contexts contiguity contiguous continuous contract contrib control
controlflow controller conv conversion conversions convert converter converters convolution coo coordinate copy
copysign core coreml corrcoef correct cos cosh cosine count counter counters counts cov coverage cow cowdeleter cox cp
cpp cpu cpuallocator cpuapply cpublas cpucaching cpufallback cpufixed cpufunctions cpugenerator cpuprofiling cpython
crash crc create creation cross crow csc cse cslt csr csrc ctc cts ctx cu cub cubic cublas cublaslt cuda cudaalgorithm
cudaallocator cudaapply cudablas cudacaching cudaconfig cudacontext cudadata cudadevice cudaevent cudaexception
cudafunctions cudageneral cudagenerator cudagraph cudagraphs cudagreen cudaguard cudahooks cudajit cudaloops
cudamacros cudamath cudamisc cudapluggable cudart cudascaled cudasparse cudastream cudasymmetric cudatensor cudatest
cudautils cudnn cufft cummax cummaxmin cummin cumprod cumsum cumulative cupti current cusolver cusparse cusparselt
cuspy custom cut cute cutedsl cutlass cvt cxx cycles cycling d dag data dataclass dataframe dataframes dataloader
datapipe datapipes dataset datasets db dbr dce ddp dead deadlock debug debugger debugging declarations decls decode
decoder decoding decomp decompose decomposed decomposition decompositions decorator decorators dedup dedupe
deduplicate deduplication default defaults defer defined definitions defs deg delegate deleter denormal dense dep
dependencies dependency deploy deprecated deprecation deps depthwise dequant dequantize desc descent descriptor
descriptors det detach detail details detection detector deterministic dev devcomm device diag diagflat diagnostic
diagnostics diagonal dialect dict dictionary dicts diff differentiable digamma digraph dilated dim dimension dimname
dims dir directory dirichlet disable disallow disjoint dispatch dispatcher dispatching dist distance distributed
distribution distributions div divide divider divisible division divisor dlconvertor dlpack dmaconnectivity dnn
dnncontext dnnl docs domain dont dot double dq draft draw drawer driver dropout dsl dsplit dstack dtensor dtype dtypes
dual dummy dump duplicate dwarf dyn dynamic dynamism dynamo e eager edge edges edit efc eff effect effectful effects
efficient efficientzerotensor eh eig eigh eigvals eigvalsh einops einsum either elastic elementwise elemt elf elfx
eliminate elimination else elu embed embedding emit emitter empty enabled encapsulation encoder encoders end engine
entr entropy entry enum enumerate enums env environment ep epi epilogue eq equal equalize erase erf erfc erfcx erfinv
error errors estimation estimator etcd euclidean eval evaluator event eventloop events everything evt ex exact example
examples exc except exception exceptions exclusively exec execution executor executorch exit exp expand expanded
expanding expands experimental expit explicit expm exponential export exportable exported exporter exposed expr ext
extension extensions extern external extra extract extraction extractor extras eye f fa fabackend factor factories
factory failures fake fall fallback family fast faulty fbcode fbgemm fde feature features fetch ff ffi fft fftfreq
fftn fftplan fftshift fftutils file filelister filelock fileopener filesystem fill filled filter final finalize find
finite first fishersnedecor fix fixed fixture fixup flags flash flat flatbuffer flatten flex flight flip fliplr flipud
float floating floatlist floor flop flow flush flydsl fmax fmin fmod fmt fn fnu fnuz fold folding foobar for foreach
fork forked format formats formatter formatting forward fp fpgm fq fr frac fractional frame framelocals freeze
freezing fresh frexp frobenius from frontend frozen fsdp fsspec full fully func funcname funcs function functional
functionalization functionalize functionalized functions functools functor functorch functors fuse fused fuser fusion
future futures fuzz fuzzer fuzzers fw fwd fx fxir gamma gammainc gammaincc gammaln gather gauge gcd gds ge gelu gemm
gemv gen general generalized generate generated generator generic geometric geometry geqrf ger get getitem getlimits
gfx gil github glob global globals glog gloo glu google gpu gputrace grad gradcheck gradient gradients gradual graph
graphs graphviz greater green grid group grouped grouping gru gt guard guards guided gumbel h hack hacks half halide
hamming handle handler handlers handles handling hann hardshrink hardsigmoid hardswish hardtanh has hash hashable
hashing hdr he head header headeronly headers health heapq heaviside helion helper helpers hermetic hermite heuristic
heuristics hf hfft hfftn hierarchical higher hinge hinting hints hip hipallocator hipblaslt hipcaching hipdnn hipguard
hiphooks hipify hipstream histc histogram histogramdd hoist holder hook hooks hop host hot householder hpuhooks hsplit
hspmm hstack hub huber hw hypot hypothesis i id identity idioms idx if iface ifft ifftn ifftshift igamma igammac
ignore ihfft ihfftn ilist ilp im imag imethod immutable impl implementations implemented implications implicit impls
import importer importlib imports in include includes indented independent index indexed indexing indices inductor
infer inference infinitely info information infra init initial initialize initializers inl inline inliner inner
inplace input inputs insert inspect instance instancenorm instantiator instruction instrument instrumentation int
integer interface interfaces interleave internal internals interned interop interp interpreter interval intlist into
intra intrinsic intrinsics intrusive inv invalid inverse invert invocation invocations invoke io iostream ipctypes
ipuhooks ir irange irfft irfftn irparser is isa isclose isfinite isin isinf isnan isneginf isolated isposinf isreal
istft istream item items iter iterator iterators itertools itt ivalue j jagged jit jiterator join joint jvp k kai
kaiser kernel kernels key kimpl kinds kineto kl kleidiai knapsack kron kthvalue kumaraswamy kwargs l label laguerre
lambda lanczos lane laplace last launch launcher launches layer layout layouts lazy lbfgs lcm ldexp ldl le leaf
leakage leaky learnable learned learnedheuristic learning left legacy legendre legit lengths lerp less level lexer
lgamma lib library lift light lightning like limit limiter limits linalg line linear linker linspace list lists
literal liveness lkj llga llvm load loader lobpcg local location locations lock locks log logaddexp logcumsumexp
logdet logger logging logic logical logistic logit logits logspace logsumexp long lookup loop loopnest loops loss low
lower lowered lowering lowerings lowrank lr lrucache lshift lstm lstsq lt ltc lu m macros magic maiahooks main make
manager mangler mangling manifest manipulation manual map mapping mappings maps margin mask masked maskedtensor
masquerading match matcher matching materialize materializer math mathfun matmul matrix max maximum maxinfo maybe me
mean median mem member memoizers memory memoryformats merge mesh meshgrid message messages meta metadata metal
metaprogramming method methods metrics mha micro microbatch migrate min mini minifier minimal minimum miopen
misaligned misc mises mish missing mixed mixin mixture mkl mkldnn mlcompiler mlexecutor mlfeature mlir mlmodel
mltensor mm mma mmcommon mmh mmranking mmutils mnist mobile mock mod mode model models modified module moduledict
modulelist modules moments monitor monkeytype more moveaxis movedim moving mp mpi mpp mps mpsallocator mpsdevice
mpsevent mpsfunctions mpsgenerator mpsgraph mpsguard mpshooks mpsprofiler mpsstream mse msort mt mtia mtiahooks
mtiamemory mul multi multiarch multiformat multigammaln multilabel multinomial multiple multipledispatch multiply
multiprocessing multistage multivariate muon mutation mutator mv mvlgamma mxfp n nadam naive name named namedtensor
names namespace naming nan nanmean nanmedian nanquantile nansum narrow native nativert nccl ncclbootstrap ncclcaching
ncclcomm nccllazy ncclsymmetric ncclutils ncclxstub nd ndarray ndtr ndtri ne nearest nearly necessary neg negative
neon neonantialias nested net network new nextafter nixl nll nn nnapi nnc nnpack nnz no node nodes noise non nonlinear
nonlocal nonzero norm normal normalization normalizations normalize norms not notification np nr ns nuclear null num
numa number numbers numel numeric numerics numpy nv nvfp nvfuser nvmath nvmmh nvrtc nvshmem nvshmemsymmetric nvtx obj
objc object objects obs observation observed observer observers of offload offloading offset offsets old on once one
onednn ones only onnx onnxrt op opaque open openmp operand operands operation operations operator operators opinfo ops
opset opt optests optim optimization optimizations optimize optimized optimizer optimizers optional options or
orchestration order ordered orgqr ormqr orthooks os oss out outer output outputs over overflows overlap overloaded
override overrideable overrides owned p pack package packaging packed packing pad padded padding paged pairs pairwise
pallas parallel param parameter parameterdict parameterlist parameters parametrization parametrizations parametrize
params pareto parse parser parsing partial partition partitioner partitioners pass passes passthrough patch patches
path pattern patterns pch pdist peephole peer per perf perfkernels permutation permute permuted persistent pftrace pg
pgo philox phony physical pickle pickler pimpl pin pinned pinv pinverse pipe pipeline pipelined pipelining pixel
pixelshuffle place placement plan plane planner planning plans plateau plumbing plus pm point pointer points pointwise
poisson polar polyfills polygamma polynomial pool pooling port portal positive post pow power powsum pre precision
precompile predicate predicated predispatch prefill prefix preload prelu prepack prepacked prepare preprocess
preservation preserves preserving presets prim primal prims print printer printers private privateuse privateuseone
process processed prod product profile profiler profiles profiling program projection promote promoted promotion prop
propagate propagation propagator properties property proto protocol proton provenance provider proxy prune pruner
pruning psi pt pthreadpool ptmcore ptr ptthread ptx put py pybind pycfunction pycute pydot pyfunctorch pyi pyobject
python pythoncapi pytorch pytree q qat qconfig qconv qembeddingbag qengine qint qkv qlinear qnnpack qparams qr qscheme
qschemes qtensor qtip quack qualified quant quantile quantizable quantization quantize quantized quantizer quasirandom
queue quint r rad radam radix ragged raii rand randint randn random randomization randperm range ranges rank ranking
ravel raw read reader real reciprocal record recorder recording records rectangle recursive recv recvrpc redirects
redispatch redistribute reduce reduced reducer reduction reductions redundancy redundant redux ref refcount refcounted
reference references refine refinement refinements reflection refs region regional regions register registerizer
registery registration registrations registry reinforcement reinplace relationship relaxed relu remainder remat remote
remove rename rendezvous renorm reorder repeat replace replacement replay replicate replicated replication report
reporting repr representation repro req request requires rescale reshape reshard resharding residual resize resolve
resolver resource resp response restore result resume retain retains return reverse rewrite rewriter rfactor rfft
rfftfreq rfftn right ring rms rmsnorm rmsprop rng rngengine rnn robin rocblas rocm rocshmem roll root rot rotary round
rounding routeddecoder row rowtile rowwise rpc rprop rref rrelu rshift rsqrt rsub rtn rules run runner runtime ruy sac
safe safeguard safetensors saliency same sample sampled sampler samplers sampling sanitizer sarif saturate save saved
saver scalar scalars scale scaled scaler scales scan scatter schedule scheduler schedulers schedules scheduling schema
schemas scipy scope scramble scribe script sdp sdpa sdpbackend search searchsorted sections segment segmented
segmenter select selecting selu semaphore semi sendrpc sensitive seqlen sequence sequencers sequential sequoia serde
serial serialization serialize serialized serializer server set setattr sets settings setup sfdp sgd sgn shader
shadows shallow shape shapes shard sharded sharder sharding shards shared sharing shift shifted shim shmem short show
shuffle shuttle side sigmoid sign signal signature signbit signed silu simd similarity simple simplifier sin sinc
single singleton sinh six size sizes sizevars skip skippable sleep slice slicing slogdet slot slots slow sm small smem
smm smooth snapshot sobol sock socket soft softmax softplus softshrink solve sonoma sort sorting source sources sparse
sparsecsrmps sparsemps sparsifier sparsity sparstity spatial spawn spdiags spec special specialize specialized
spectral spherical split splitter spmd spmm spsolve sqrt sqrth square squeeze src ssa ssize sspaddmm st stable
stableivalue stack stackref stacktraces stage stager staging standalone standard state stateful stateless states
static stats std stdlib step stft stmt storage store str strategies strategy stream streambase streamreader streams
strict stride strided strides string strings strobelight strong strtod struct structseq structure structured
structures stub stubs student style sub subclass subclasses subcmul subexpression subgraph subgraphs subproc
subprocess substitution substitutor subtract sugared suite sum summary support supported suppression svd svdvals sve
swa swap swapaxes swapdims switch sycl sym symbol symbolic symbolize symbolizer symbols symeig symint symm symmetric
symnode symops sympy sync synchronized syncs sys system t table tables tag tags tail take tan tanh task tasks tbb tbc
tcp tcpstore te team temp tempfile template templates tensor tensorboard tensordot tensorexpr tensorify tensorinv
tensorpipe tensorrt tensors tensorsolve test testing tests th thc thconcat thcp then thh thnn thp thread threaded
threading threadpool threshold through throughput thrust thunk tile tiling time timeit timer tls tlx tma to token
tokens tool tools top topk topo torch torchbind torchlib torchscript torchxla tp trace traceback tracepoint
tracepoints tracer tracing tracked tracker train training traits trampoline transform transformation transformations
transformed transformer transformercoder transformerlayer transformers transforms translation transport transpose
trapezoid trapz traversal traverse tree trees triangular trick trie tril trilinear triplet triton triu trivial true
trunc ts tunable tuner tuple tuples tvm two type typechecker typeid types typing u ucc uccfor ucctracing uccutils
ufuncs uint ukernel unary unbacked unbind unboxed undefined undefinedness under unflatten unfold unicode unification
uniform unify union unique uniquer unit universal unix unlift unpack unpickled unpickler unpool unroll unrolling
unsafe unscale unshard unshuffle unsqueeze unsupported unused unwind unwinder up update upgrader upgraders upsample
upsampling usage use user uses using utf util utils v valgrind validate validation validator value values vander var
vararg variable variables variadic variant varlen vdot vec vecdot vector vectorization vectorize vendor vendored
ventura verbose verification verifier version versioned versioner versions vf view views virtual virtualized vis
vision visit visitor visualize visualizer vitals viz vld vmap vml void vol von vsplit vst vstack vsx vulkan w wait
wamsgrad warn warning warnings warns warp watchdog weak web weibull weight weights where while win window windows
wishart with wkernel work worker workers wrap wrapped wrapper wrappers writer x xcta xeon xla xlahooks xlog xlogy xnn
xnnpack xor xpu xpucaching xpucontext xpudevice xpuevent xpuexception xpufunctions xpugenerator xpugraph xpugraphs
xpuguard xpuhooks xpumacros xpupluggable xpuscaled xpustream xputest xpuutils y z zarch zero zeros zerotensor zeta zip
zmath zoo`)
})

// stdlib are the modules of Python's own library, of all releases since 3.9, and folders beside them.
var stdlib = sync.OnceValue(func() map[string]bool {
	return set(`
__future__ __hello__ __phello__ _abc _aix_support _android_support _apple_support _ast _asyncio _bisect _blake2
_bootsubprocess _bz2 _codecs _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw _collections
_collections_abc _colorize _compat_pickle _compression _contextvars _crypt _csv _ctypes _curses _curses_panel
_datetime _dbm _decimal _elementtree _frozen_importlib _frozen_importlib_external _functools _gdbm _hashlib _heapq
_hmac _imp _interpchannels _interpqueues _interpreters _io _ios_support _json _locale _lsprof _lzma _markupbase _md5
_msi _multibytecodec _multiprocessing _opcode _opcode_metadata _operator _osx_support _overlapped _pickle _posixshmem
_posixsubprocess _py_abc _py_warnings _pydatetime _pydecimal _pyio _pylong _pyrepl _queue _random _scproxy _sha1
_sha256 _sha3 _sha512 _signal _sitebuiltins _socket _sqlite3 _sre _ssl _stat _statistics _string _strptime _struct
_suggestions _symtable _sysconfig _testcapi _testinternalcapi _thread _threading_local _tkinter _tokenize _tracemalloc
_types _typing _uuid _warnings _weakref _weakrefset _winapi _zoneinfo _zstd abc aifc annotationlib antigravity
argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect builtins bz2 cprofile calendar
cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall compression concurrent configparser
contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils
doctest email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools
gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp
importlib inspect io ipaddress itertools json keyword lib-dynload lib-tk lib2to3 linecache locale logging lzma mailbox
mailcap marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path
numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib
posix posixpath pprint profile profiling pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random
re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site
sitecustomize smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat
statistics string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile
termios test textwrap this threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle
turtledemo types typing unicodedata unittest urllib usercustomize uu uuid venv warnings wave weakref webbrowser winreg
winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo`)
})

// pythonSources are folders and files, without their endings, of the sources of Python and of C's library that are in stacks.
var pythonSources = sync.OnceValue(func() map[string]bool {
	return set(`
objects python modules include programs internal cpython sysdeps nptl csu x86 x86_64 aarch64 i386 arm powerpc powerpc64le s390x
generic posix unix sysv linux elf stdlib . ..
abstract boolobject bytesobject bytearrayobject call capsule cellobject classobject codeobject descrobject dictobject enumobject
exceptions fileobject floatobject frameobject funcobject genericaliasobject genobject iterobject listobject longobject
memoryobject methodobject moduleobject namespaceobject object obmalloc odictobject rangeobject setobject sliceobject structseq
tupleobject typeobject typevarobject unicodeobject weakrefobject stringlib
bltinmodule bytecodes ceval ceval_gil ceval_macros compile context errors executor_cases.c frame frozenmain gc
generated_cases.c getargs hamt import importdl initconfig intrinsics legacy_tracing instrumentation marshal modsupport
optimizer optimizer_bytecodes pylifecycle pystate pythonrun specialize structmember symtable sysmodule thread thread_pthread
traceback tracemalloc _warnings
main gcmodule _functoolsmodule _threadmodule itertoolsmodule _asynciomodule _operator _collectionsmodule _pickle _json _io
_ctypes callproc callbacks cfield stgdict _contextvarsmodule faulthandler signalmodule atexitmodule _struct posixmodule timemodule
_queuemodule _randommodule _weakref mathmodule selectmodule socketmodule _bisectmodule _heapqmodule
_freeze_module pycore_abstract pycore_call pycore_ceval pycore_frame pycore_function pycore_genobject pycore_object
pycore_pystate pycore_interp pycore_pyerrors pycore_tuple pycore_dict pycore_stackref pycore_typeobject
pycore_unicodeobject pycore_long pycore_list
start start_thread clone clone3 libc-start libc_start_call_main pthread_create`)
})
