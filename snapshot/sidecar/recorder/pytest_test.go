package recorder

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fakeTorch is a torch of which one device has as much memory as tests say: real ones need a GPU, or the lab
// (fixtures/lab), whose torch ran the same tests.
const fakeTorch = `
import weakref
class Tensor:
    def __init__(self, n):
        self.n = n
        cuda.now += n
        cuda.most = max(cuda.most, cuda.now)
        if cuda.now > 1 << 20:
            cuda.now -= n
            raise RuntimeError("CUDA out of memory")
        weakref.finalize(self, cuda.free, n)
class memory:
    @staticmethod
    def _record_memory_history(enabled="all", **more): pass
    @staticmethod
    def _dump_snapshot(path): open(path, "w").write("snapshot of %d bytes" % cuda.now)
    @staticmethod
    def reset_peak_memory_stats(d=None): _C._cuda_resetPeakMemoryStats(d)
class _C:
    @staticmethod
    def _cuda_resetPeakMemoryStats(d): cuda.most = cuda.now
class cuda:
    now = most = 0
    memory = memory
    available = True
    @classmethod
    def free(cls, n): cls.now -= n
    is_available = classmethod(lambda cls: cls.available)
    is_initialized = init = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 1)
    memory_allocated = classmethod(lambda cls, d: cls.now)
    max_memory_allocated = classmethod(lambda cls, d: cls.most)
    reset_peak_memory_stats = memory.reset_peak_memory_stats
def empty(n): return Tensor(n)
`

const gpuTests = `
import pytest, torch
reset_peak_memory_stats = torch.cuda.reset_peak_memory_stats

@pytest.fixture(scope="module")
def model():
    return torch.empty(5000)

@pytest.fixture
def batch():
    return torch.empty(200)

@pytest.mark.limit_gpu_memory("1 KiB")
def test_fits(model, batch):
    del batch
    x = torch.empty(800)

@pytest.mark.limit_gpu_memory(900)
def test_too_much(model, batch):
    x = torch.empty(800)

@pytest.mark.limit_gpu_memory(900)
class TestMany:
    @pytest.mark.parametrize("n", [600, 701])
    def test_size(self, batch, n):
        torch.empty(n)

kept = []

@pytest.mark.limit_gpu_growth()
@pytest.mark.parametrize("n", [0, 7])
def test_leak(n, batch):
    if n:
        kept.append(torch.empty(n))

@pytest.mark.limit_gpu_growth("1k")
def test_small_leak():
    kept.append(torch.empty(100))

def test_memory(gpu_memory, batch, tmp_path):
    torch.empty(300)
    assert gpu_memory.peak == 500 and gpu_memory.growth == 200
    gpu_memory.dump(tmp_path / "x.pickle")
    assert (tmp_path / "x.pickle").exists()

def test_oom():
    torch.empty(2 << 20)

@pytest.mark.limit_gpu_memory("lots")
def test_wrong(): pass

@pytest.mark.limit_gpu_memory("1 GiB")
def test_fails_anyhow():
    assert not "this"

@pytest.mark.xfail
@pytest.mark.limit_gpu_memory(1)
def test_expected():
    torch.empty(2)
    assert False

@pytest.fixture(scope="class")
def shared():
    return torch.empty(5000)

@pytest.fixture(scope="class")
def asks(request):
    return request.getfixturevalue("shared"), torch.empty(3000)

@pytest.fixture(scope="class", params=[4000, 30])
def sized(request):
    return torch.empty(request.param)

cache = []

@pytest.fixture(scope="class", params=[4000, 30])
def cached(request):
    cache.append(torch.empty(request.param))
    return cache[-1]

class TestEndsCached:
    @pytest.mark.limit_gpu_growth()
    def test_clean(self, cached):
        torch.empty(10)

    @pytest.mark.limit_gpu_growth()
    def test_leak(self, cached):
        kept.append(torch.empty(75))

class TestEnds:
    @pytest.mark.limit_gpu_growth()
    def test_leak(self, shared):
        kept.append(torch.empty(71))

class TestEndsTwo:
    @pytest.mark.limit_gpu_growth()
    def test_leak(self, asks):
        kept.append(torch.empty(72))

class TestEndsClean:
    @pytest.mark.limit_gpu_memory(10)
    @pytest.mark.limit_gpu_growth()
    def test_clean(self, asks):
        torch.empty(10)

class TestEndsEach:
    @pytest.mark.limit_gpu_growth()
    def test_leak(self, sized):
        kept.append(torch.empty(73))

    @pytest.mark.limit_gpu_memory(10)
    @pytest.mark.limit_gpu_growth()
    def test_clean(self, sized):
        torch.empty(10)

def test_fails_with_memory():
    x = torch.empty(300)
    assert not "this"

@pytest.mark.limit_gpu_growth()
def test_leak_after():
    kept.append(torch.empty(74))

@pytest.mark.limit_gpu_growth()
def test_fails_once():
    x = torch.empty(300)
    assert not "this"

@pytest.mark.limit_gpu_memory(900)
@pytest.mark.parametrize("where", ["torch.cuda.", "torch.cuda.memory.", ""])
def test_reset(where):
    torch.empty(975)
    eval(where + "reset_peak_memory_stats")()
    assert torch.cuda.max_memory_allocated(0) == torch.cuda.memory_allocated(0)

@pytest.mark.parametrize("x", ["a/b", "a b"])
def test_name(x):
    assert not x
`

// failing is a test in files of which the names are nearly the same.
const failing = `
def test_f(gpu_memory):
    assert False
`

// pytest runs a file of tests with the plugin, and gives what is printed.
func pytest(t *testing.T, torch, tests string, args ...string) string {
	t.Helper()
	if exec.Command(python, "-c", "import pytest, xdist").Run() != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no pytest with xdist")
		}
		t.Skip("no pytest with xdist")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"test_gpu.py": tests, "torch.py": torch, "snapana": "#!/bin/sh\necho verdict on \"$(cat \"$1\")\"\n",
		"a/b_test.py": failing, "a_b_test.py": failing,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(python, append([]string{"-m", "pytest", "-p", "snapana_recorder", "-p", "no:cacheprovider", "-rA",
		"--tb=short"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PYTHONPATH="+here+":"+dir, "PYTHONDONTWRITEBYTECODE=1",
		"SNAPANA="+filepath.Join(dir, "snapana"))
	out, _ := cmd.CombinedOutput()
	if args := strings.Join(args, " "); strings.Contains(args, "shots") {
		files, _ := filepath.Glob(filepath.Join(dir, "shots", "*"))
		for _, f := range files {
			out = append(out, "kept "+filepath.Base(f)+"\n"...)
		}
	}
	return string(out)
}

var wants = []string{
	"PASSED test_gpu.py::test_fits", "FAILED test_gpu.py::test_too_much",
	"PASSED test_gpu.py::TestMany::test_size[600]", "FAILED test_gpu.py::TestMany::test_size[701]",
	"PASSED test_gpu.py::test_leak[0]", "ERROR test_gpu.py::test_leak[7]", "PASSED test_gpu.py::test_small_leak",
	"PASSED test_gpu.py::test_memory", "FAILED test_gpu.py::test_oom", "ERROR test_gpu.py::test_wrong",
	"FAILED test_gpu.py::test_fails_anyhow", "XFAIL test_gpu.py::test_expected",
	"The test allocated 1000 B of GPU memory at its peak on device 0, more than its limit of 900 B (1000 and 900 bytes).",
	"The test left 7 B of GPU memory behind on device 0, more than its limit of 0 B",
	"ERROR test_gpu.py::TestEnds::test_leak", "The test left 71 B",
	"ERROR test_gpu.py::TestEndsTwo::test_leak", "The test left 72 B", "PASSED test_gpu.py::TestEndsClean::test_clean",
	"ERROR test_gpu.py::TestEndsEach::test_leak[4000]", "ERROR test_gpu.py::TestEndsEach::test_leak[30]",
	"PASSED test_gpu.py::TestEndsEach::test_clean[4000]", "PASSED test_gpu.py::TestEndsEach::test_clean[30]",
	"The test left 73 B", "ERROR test_gpu.py::test_leak_after", "The test left 74 B",
	"PASSED test_gpu.py::TestEndsCached::test_clean[4000]", "PASSED test_gpu.py::TestEndsCached::test_clean[30]",
	"ERROR test_gpu.py::TestEndsCached::test_leak[4000]", "ERROR test_gpu.py::TestEndsCached::test_leak[30]",
	"The test left 75 B",
	"FAILED test_gpu.py::test_reset[torch.cuda.]", "FAILED test_gpu.py::test_reset[torch.cuda.memory.]",
	"FAILED test_gpu.py::test_reset[]",
	"The test allocated 975 B",
	`limit_gpu_memory takes a size such as "2 GiB", not 'lots'`,
}

func TestPytest(t *testing.T) {
	for _, args := range [][]string{nil, {"--snapana", "shots"}, {"--snapana", "shots", "-n", "2"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			out := pytest(t, fakeTorch, gpuTests, args...)
			want := wants
			if args != nil {
				want = append(want[:len(want):len(want)], "kept test_gpu.py_test_oom.pickle",
					"kept test_gpu.py_test_too_much.pickle",
					"kept test_gpu.py_test_leak_7_020e724c7688.teardown.pickle",
					"kept test_gpu.py_TestMany_test_size_701_e9d579a76eb8.pickle",
					"kept test_gpu.py_test_name_a_b_6ed72b9cc121.pickle", "kept test_gpu.py_test_name_a_b_2ebe9b17467a.pickle",
					"kept test_gpu.py_test_fails_anyhow.pickle", "kept a_b_test.py_test_f.pickle",
					"kept a_b_test.py_test_f_95b784929038.pickle", "verdict on snapshot of ")
			}
			for _, w := range want {
				if !strings.Contains(out, w) {
					t.Errorf("no %q", w)
				}
			}
			if strings.Contains(out, "INTERNALERROR") || strings.Contains(out, "kept test_gpu.py_test_fits") ||
				strings.Contains(out, "PytestUnknownMarkWarning") ||
				strings.Contains(out, "ERROR test_gpu.py::test_fails_once") {
				t.Error("internal error, a snapshot of a test that passed, an unknown mark, or two failures of one test")
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// TestPytestWithoutGPU skips what needs a GPU, and says why.
func TestPytestWithoutGPU(t *testing.T) {
	const tests = `
import pytest
@pytest.mark.limit_gpu_memory("1 GiB")
def test_limited(): assert False
def test_fixture(gpu_memory): assert False
def test_other(): pass
`
	for torch, why := range map[string]string{
		"class cuda:\n    is_available = staticmethod(lambda: False)\n": `SKIPPED \[4\] .*no GPU: torch.cuda.is_available\(\) is False`,
		"raise ImportError('x')\n":                                      `SKIPPED \[4\] .*no GPU: torch is not installed`,
	} {
		out := pytest(t, torch, tests, "--snapana", "shots")
		if !regexp.MustCompile(why).MatchString(out) || !strings.Contains(out, "1 passed, 4 skipped") {
			t.Errorf("want %s:\n%s", why, out)
		}
	}
}

// TestPytestLeavesOthersAlone holds that tests that ask for nothing keep torch's peak: an installed plugin is always loaded.
func TestPytestLeavesOthersAlone(t *testing.T) {
	const tests = `
import torch
def test_first(): torch.empty(500)
def test_second(): assert torch.cuda.max_memory_allocated(0) == 500
def test_late(request):
    kept = torch.empty(100)
    memory = request.getfixturevalue("gpu_memory")
    torch.empty(50)
    assert memory.peak == 50
`
	if out := pytest(t, fakeTorch, tests, "test_gpu.py"); !strings.Contains(out, "3 passed") {
		t.Error(out)
	}
}
