package redact_test

import (
	"bufio"
	"regexp"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/analyze/redact"
)

// TestPath is what becomes of paths; x stands for a pseudonym. Whatever it is, its class stays.
func TestPath(t *testing.T) {
	made := regexp.MustCompile(`x[a-z0-9]{9}`)
	for path, want := range map[string][2]string{ // names, strict
		"/home/alice/proj/train.py":                                      {"/home/x/x/x.py"},
		`C:\Users\bob\proj\main.py`:                                      {`C:\Users\x\x\x.py`},
		"/home/alice/venv/lib/python3.11/site-packages/torch/nn/init.py": {"/home/x/venv/lib/python3.11/site-packages/torch/nn/init.py"},
		"/o/lib/python3.11/site-packages/acme/a.py": {"/x/lib/python3.11/site-packages/acme/a.py",
			"/x/lib/python3.11/site-packages/x/x.py"},
		"/home/a/src/torch/optim/adam.py":     {"/home/x/src/torch/optim/adam.py"},
		"/usr/lib/python3.12/threading.py":    {"/usr/lib/python3.12/threading.py"},
		"/tmp/torchinductor_alice/ab/cabc.py": {"/tmp/torchinductor_x/x/x.py"},
		"<ipython-input-12-abcdef>":           {"<ipython-input-12-x>"},
		"<string>":                            {"<string>"},
		"<frozen importlib._bootstrap>":       {"<frozen importlib._bootstrap>"},
		"<frozen acme.core>":                  {"<frozen x>"},
		"<eval_with_key>.5":                   {"<eval_with_key>.5"},
		"/build/alice/aten/src/ATen/Op.cpp":   {"/x/x/aten/src/ATen/Op.cpp"},
		"/work/vllm/worker/cache_engine.py":   {"/x/x/x/cache_engine.py"},
		"??":                                  {"??"},
		// like torch's tree, or Python's, and what is in them is not
		"/home/a/torch/_models/llama_acme.py":             {"/home/x/torch/_models/x.py"},
		"/home/a/torch/optim/acme.py":                     {"/home/x/torch/optim/x.py"},
		"/home/a/torch/distributed/elastic/agent/api.py":  {"/home/x/torch/distributed/elastic/agent/api.py"},
		"/o/site-packages/torch/_acme/x.py":               {"/x/site-packages/torch/_acme/x.py", "/x/site-packages/torch/_x/x.py"},
		"/home/a/lib/python3.11/acme/process.py":          {"/home/x/lib/python3.11/x/process.py"},
		"/home/a/lib/python3.11-acme/json/decoder.py":     {"/home/x/lib/python3.11x/x/x.py"},
		"C:/work/acmeconda3/Lib/json/decoder.py":          {"C:/x/xconda3/Lib/json/decoder.py"},
		"C:/work/acmeconda3/Lib/acme/decoder.py":          {"C:/x/xconda3/Lib/x/x.py"},
		"/home/a/Programs/acme/kernel.cu":                 {"/home/x/Programs/x/x.cu"},
		"/home/a/Programs/acme.ipynb":                     {"/home/x/Programs/x.ipynb"},
		"/usr/src/python/Objects/call.c":                  {"/usr/src/python/Objects/call.c"},
		"./csu/../sysdeps/nptl/libc_start_call_main.h":    {"./csu/../sysdeps/nptl/libc_start_call_main.h"},
		"/home/a/third_party/acme/x.cpp":                  {"/home/x/x/x/x.cpp"},
		"/o/libcustomer.so":                               {"/x/x.so"},
		"/o/libtorch_cuda.so":                             {"/x/libtorch_cuda.so"},
		"/o/libcublasLt.so.12":                            {"/x/libcublasLt.so.12"},
		"/o/torch-2.1+acme.7/a":                           {"/x/x/x"},
		"/o/site-packages/../acme/a.py":                   {"/x/site-packages/../x/x.py"},
		"/o/acme-1.2-py3-none-any.whl/torch/nn/init.py":   {"/x/acme-1.2-py3-none-any.whl/torch/nn/init.py", "/x/x.whl/torch/nn/init.py"},
		"<frozen os.acme>":                                {"<frozen x>"},
		"/home/a/bin/jupyter-acme":                        {"/home/x/bin/x"},
		"/home/x/miniconda3/envs/e/lib/python3.9/copy.py": {"/home/x/miniconda3/envs/x/lib/python3.9/copy.py"},
	} {
		for i, strict := range []bool{false, true} {
			r := redact.New([]byte("a"), strict)
			got := r.Path(path)
			expect := want[i]
			if expect == "" {
				expect = want[0]
			}
			if text := made.ReplaceAllString(got, "x"); text != expect {
				t.Errorf("%s (strict %v): %s, want %s", path, strict, text, expect)
			}
			if again := redact.New([]byte("a"), strict).Path(path); again != got {
				t.Errorf("%s: %s, and then %s", path, got, again)
			}
			for _, name := range []string{"f", "<module>", "__init__", "forward", "step"} {
				if was, is := frames.Classify(path, name), frames.Classify(got, name); was != is {
					t.Errorf("%s is of another class as %s", path, got)
				}
			}
		}
	}
}

// TestTexts is what becomes of other texts of a file; x stands for a pseudonym.
func TestTexts(t *testing.T) {
	made := regexp.MustCompile(`(?i)(x)[a-z0-9]{9}`)
	for _, c := range [][2]string{
		{`{"user_metadata": "{\"a\": [\"10.1.2.3\", \"00:11:22:33:44:55\", \"10:20:30\", 1.5]}"}`,
			`{"user_metadata": "{\"a\": [\"x\", \"x\", \"10:20:30\", 1.5]}"}`},
		{`{"user_metadata": "1.2.3.4"}`, `{"user_metadata": "x"}`},
		{`{"user_metadata": ["123456789012", "+49 30 1234567", "4111 1111 1111 1111", "17", "10:20:30"]}`,
			`{"user_metadata": ["x", "x", "x", "17", "10:20:30"]}`},
		{`{"badge": "123456789", "phone": "+49 30 1234567", "total": "85899345920", "gpu_name": "NVIDIA A100-SXM4-80GB"}`,
			`{"x": "x", "x": "x", "total": "85899345920", "gpu_name": "NVIDIA A100-SXM4-80GB"}`},
		{`{"external_annotations": [{"name": "step 3 of 1f0c9b1e-aaaa-4bbb-8ccc-9d8e7f6a5b4c"}, {"name": "deadbeef1234567 step_12_batch_3"},
{"name": "ip-10-1-2-3 aa:bb:cc:dd:ee:ff a@b.com"}, {"name": "account 123456789012 epoch1step2"}]}`,
			`{"external_annotations": [{"name": "step 3 x x"}, {"name": "x step_12_batch_3"},
{"name": "x x x"}, {"name": "x x epoch1step2"}]}`},
		{`{"env": {"env.NCCL_DEBUG": "INFO", "library.acme": "1.2", "library.vllm": "0.9", "ACME_TOKEN": "1"}}`,
			`{"env": {"env.NCCL_DEBUG": "INFO", "library.x": "1.2", "library.vllm": "0.9", "X_X": "1"}}`},
		{`{"env": {"torch.version": "2.6.0+cu124", "os.distribution": "Debian GNU/Linux 13 (acme)", "library.vllm": "0.9+acme1"}}`,
			`{"env": {"torch.version": "2.6.0+cu124", "os.distribution": "Debian GNU/Linux 13 (x)", "library.vllm": "0.9+x"}}`},
		{`{"message": "CUDA out of memory. Tried to allocate 2.00 GiB\nacme"}`,
			`{"x": "CUDA out of memory. Tried to allocate 2.00 GiB\nx"}`},
		{`{"name": "at 10:20:30 from 00:11:22:33:44:55 and 2001:10::1"}`, `{"name": "x"}`},
	} {
		r := redact.New([]byte("a"), false)
		var b strings.Builder
		if err := r.Copy(&b, bufio.NewReader(strings.NewReader(c[0]))); err != nil {
			t.Fatal(err)
		}
		if got := made.ReplaceAllString(b.String(), "$1"); got != c[1] {
			t.Errorf("%s: %s, want %s", c[0], got, c[1])
		}
	}
	strict := redact.New(nil, true)
	var b strings.Builder
	const classes = `{"nodes": [{"type": "__main__.Tracker"}, {"type": "torch.nn.Linear"}, {"type": "dict"}, {"type": "acme.Store"},
{"type": "_thread._local"}, {"dropped": {"graph_nodes": 3}}, {"key": "'torch._dynamo.pgo'"},
{"filename": "/opt/venv/lib/python3.12/site-packages/torch/_dynamo/utils.py"}]}`
	if err := strict.Copy(&b, bufio.NewReader(strings.NewReader(classes))); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Contains(got, "Tracker") || strings.Contains(got, "acme") || !strings.Contains(got, "torch.nn.Linear") ||
		!strings.Contains(got, `"dict"`) || !strings.Contains(got, "_thread._local") || !strings.Contains(got, `{"graph_nodes": 3}`) {
		t.Errorf("strict: %s", got)
	}
	if found := strict.Scanner().Deep([]byte(b.String())); len(found) > 0 {
		t.Errorf("strict: %v is left in %s", found, b.String())
	}
	for text, want := range map[string]string{
		"10:20:30 at fe80::1, 2001:10::1, 00:11:22:33:44:55": "10:20:30 at x, x, x",
		"at::cuda::malloc": "at::cuda::malloc",
		"from ip-10-1-2-3.ec2.internal, AA-BB-CC-DD-EE-FF":                "from x, x",
		"as arn:aws:iam::123456789012:role/acme":                          "as x",
		"user ghp_16C7e42F292c6912E7710c838347Ae178B4a":                   "user x_x",
		"key 0123456789abcdef0123456789abcdef01234567":                    "key x",
		"pod/acme-7d9f8b6c5-x2x4z 0x7f00":                                 "x/x 0x7f00",
		"GPU 0 serial number: 1563221017234":                              "GPU 0 x x: x",
		"NVIDIA H100 80GB HBM3":                                           "NVIDIA H100 80GB HBM3",
		"|    0   N/A  N/A   42      C   acme   00000000:AF:00.0  9MiB |": "|    0   N/A  N/A   42      C   x   00000000:AF:00.0  9MiB |",
		"2026-11-23T10:11:12.12Z acme E0501 12:00:00.1 \x1b[31mCUDA":      "2026-11-23T10:11:12.12Z x E0501 12:00:00.1 \x1b[31mCUDA",
		"[1,0]<stderr>:RuntimeError: CUDA out of memory (acme)":           "[1,0]<stderr>:RuntimeError: CUDA out of memory (x)",
		"GPU 0 has a total capacty of 1 GiB, 2 B in private pools":        "GPU 0 has a total capacty of 1 GiB, 2 B in private pools",
		`|====|\n| acme |     512 B  |\n|====|`:                           `|====|\n| x |     512 B  |\n|====|`,
		"loss=0.5,lr=1e-05 user=acme to a@b.c s3://b/k=1":                 "loss=0.5,x=1e-05 user=x to x x",
	} {
		r := redact.New(nil, false)
		var b strings.Builder
		if err := r.Copy(&b, bufio.NewReader(strings.NewReader(text+"\n"))); err != nil {
			t.Fatal(err)
		}
		if got := made.ReplaceAllString(b.String(), "$1"); got != want+"\n" {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for name, want := range map[string]string{
		"gpu-node-17_4242.1700000000000.pickle": "x_4242.1700000000000.pickle", "rank_17.pickle": "rank_17.pickle",
		"alice-rank3.pickle": "x-rank3.pickle", "ip-10-1-2-3_rank0.pickle": "x_rank0.pickle",
		"1f0c9b1e-aaaa-4bbb-8ccc-9d8e7f6a5b4c.pickle": "x.pickle",
	} {
		if got := made.ReplaceAllString(redact.New(nil, false).Name(name), "$1"); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestNames is what becomes of names of functions; x stands for a pseudonym.
func TestNames(t *testing.T) {
	made := regexp.MustCompile(`(?i)(x)[a-z0-9]{9}`)
	for name, want := range map[string][2]string{ // names, strict
		"acme_loss":                       {"acme_loss", "x_x"},
		"__getitem__":                     {"__getitem__", "__getitem__"},
		"__acme__":                        {"__acme__", "__x__"},
		"at::native::add":                 {"at::native::add", "at::native::add"},
		"acme::(anonymous namespace)::go": {"acme::(anonymous namespace)::go", "x::(anonymous namespace)::x"},
		"torch::cuda::(anonymous namespace)::gather_with_cpp()": {"torch::cuda::(anonymous namespace)::gather_with_cpp()",
			"torch::cuda::(anonymous namespace)::gather_with_cpp()"},
		"torch::f(acme::T*)":                           {"torch::f(acme::T*)", "torch::f(x::X*)"},
		"cutlass::gemm::device::Gemm<acme::E>":         {"cutlass::gemm::device::Gemm<acme::E>", "cutlass::gemm::device::Gemm<x::X>"},
		"cutlass::gemm::device::AcmeGemm":              {"cutlass::gemm::device::AcmeGemm", "x::x::device::XX"},
		"_PyEval_EvalFrameDefault":                     {"_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault"},
		"PyInit_acme":                                  {"PyInit_acme", "XInit_x"},
		"cudaAcme":                                     {"cudaAcme", "xX"},
		"_GLOBAL__sub_I_acme.cpp":                      {"_GLOBAL__sub_I_x.cpp", "_X__x_X_x.cpp"},
		"acme::f()::(lambda at /home/a/k.cu:3:5)":      {"acme::f()::(lambda at /home/x/x.cu:3:5)", "x::x()::(lambda at /x/x/x.x:3:5)"},
		"_GLOBAL__N__0a1b2c3d_4_acme_cu_9d8e7f6a::run": {"_GLOBAL__N__x::run", "_X__X__x::x"},
		"run of a@b.com":                               {"run of x", "x x x@x.x"},
	} {
		for i, strict := range []bool{false, true} {
			r := redact.New(nil, strict)
			var b strings.Builder
			in := `{"frames": [{"filename": "k.cpp", "name": "` + name + `"}]}`
			if strings.HasPrefix(name, "acme_") || strings.HasPrefix(name, "__") || strings.HasPrefix(name, "run") {
				in = strings.Replace(in, "k.cpp", "k.py", 1)
			}
			if err := r.Copy(&b, bufio.NewReader(strings.NewReader(in))); err != nil {
				t.Fatal(err)
			}
			_, got, _ := strings.Cut(made.ReplaceAllString(b.String(), "$1"), `"name": "`)
			if got = strings.NewReplacer(`"}]}`, "", `\u003c`, "<", `\u003e`, ">").Replace(got); got != want[i] {
				t.Errorf("%s (strict %v): %s, want %s", name, strict, got, want[i])
			}
		}
	}
}

// TestScanner finds words in all the ways that they may be written.
func TestScanner(t *testing.T) {
	r := redact.New(nil, false)
	r.Path("/home/wonderland/ünder/x.py")
	s := r.Scanner()
	for what, text := range map[string]string{
		"plain": "by wonderland.", "escaped": `a "\u00fcnder" b`, "percent": "a%C3%BCnder/ %C3%BCnder b", "HTML": "&uuml;nder",
		"base64": "x " + strings.Repeat("eHh4", 16) + "L3dvbmRlcmxhbmQv",
	} {
		if len(s.Deep([]byte(text))) == 0 {
			t.Errorf("nothing was found in %s: %s", what, text)
		}
	}
	if found := s.Deep([]byte("wonderlands, a home, " + r.Path("/home/wonderland/y"))); len(found) > 0 {
		t.Errorf("%v was found in nothing", found)
	}
}

// TestLanguage replaces words of functions that are also words of C++'s symbols, and does not take what stays of those
// for a leak.
func TestLanguage(t *testing.T) {
	r := redact.New(nil, true)
	name := r.Texts().Name
	for symbol, file := range map[string]string{
		"clone3": "./misc/../sysdeps/unix/sysv/linux/x86_64/clone3.S", "at::empty() [clone .isra.0]": "EmptyTensor.cpp",
	} {
		if got := name(symbol, file); got != symbol {
			t.Errorf("%q became %q", symbol, got)
		}
	}
	own := name("acme_clone", "/o/acme.cpp")
	if strings.Contains(own, "acme") {
		t.Errorf("%q is left", own)
	}
	if found := r.Scanner().Deep([]byte("at::empty() [clone .isra.0] " + own)); len(found) > 0 {
		t.Errorf("%v was found in nothing", found)
	}
}
