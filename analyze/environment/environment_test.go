package environment_test

import (
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/environment"
	"github.com/snapana/snapana/snapshot/sidecar"
)

func file(name string, env map[string]any, samples ...sidecar.Sample) *sidecar.File {
	return &sidecar.File{Name: name, Runs: []sidecar.Run{{Header: sidecar.Header{Program: "train.py"}, Env: env,
		Samples: samples}}}
}

func children(pss ...int64) sidecar.Sample {
	s := sidecar.Sample{Children: []sidecar.Child{}}
	for _, n := range pss {
		s.Children = append(s.Children, sidecar.Child{PSS: &n})
	}
	return s
}

func TestCompare(t *testing.T) {
	a := file("a", map[string]any{"torch.version": "2.6.0", "torch.cuda": "12.4", "host.ram": int64(64 << 30),
		"host.cpus": int64(8), "os.kernel": "6.1", "torch.tf32": false,
		"env.LD_PRELOAD": "libjemalloc.so.2", "library.xformers": "0.0.29", "os.cgroup_memory_max": int64(1<<63 - 4096),
		"host.swappiness": int64(60), "limit.as": int64(8 << 30)},
		children(1000), children(1000, 1000))
	b := file("b", map[string]any{"torch.version": "2.4.1", "host.ram": int64(32 << 30), "host.cpus": int64(8),
		"os.kernel": "6.2", "torch.tf32": true,
		"alloc.PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync", "host.swappiness": int64(10),
		"os.cgroup_memory_max": int64(16 << 30)},
		children(), children(1100, 1000))
	c, err := environment.Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range c.Rows {
		if r.Differs {
			got = append(got, r.Name+"="+r.A+"|"+r.B)
			if (r.Why == "") != (r.Name == "os.kernel") {
				t.Errorf("%+v", r)
			}
		}
	}
	want := []string{"torch.version=2.6.0|2.4.1", "library.xformers=0.0.29|",
		"alloc.PYTORCH_CUDA_ALLOC_CONF=|backend:cudaMallocAsync", "torch.tf32=false|true",
		"env.LD_PRELOAD=libjemalloc.so.2|", "os.cgroup_memory_max=|16.0 GiB", "limit.as=8.00 GiB|", "host.ram=64.0 " +
			"GiB|32.0 GiB", "host.swappiness=60|10", "os.kernel=6.1|6.2"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
	if c.Single != 1 || c.A != "a" || c.B != "b" { // torch.cuda
		t.Errorf("%d settings of one only, %s, %s", c.Single, c.A, c.B)
	}
	b.Runs[0].Samples = []sidecar.Sample{children(3000, 1000, 1000)}
	if c, err = environment.Compare(a, b); err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Rows {
		if strings.HasPrefix(r.Name, "samples.") && (!r.Differs || r.Why == "") {
			t.Errorf("%+v", r)
		}
	}
	if _, err := environment.Compare(a, file("b", nil)); err == nil ||
		!strings.Contains(err.Error(), "b has no environment") {
		t.Errorf("%v", err)
	}
	if _, err := environment.Compare(&sidecar.File{Name: "x"}, a); err == nil {
		t.Error("nothing compared")
	}
}
