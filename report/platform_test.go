package report

import (
	"bytes"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/platform"
	"github.com/snapana/snapana/report/html"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot/load"
)

// ofCUDA are the words that only users of CUDA can follow. Paths of files and names of C++ functions have no dots.
var ofCUDA = regexp.MustCompile(`nvidia-smi|PYTORCH_CUDA_ALLOC_CONF|CUDA_VISIBLE_DEVICES|torch\.cuda\.|cudaMalloc|` +
	`cudaFree|cudaHostRegister|NCCL|cuBLAS|CUDA (?:graph|context|memory)`)

// TestPlatforms writes the reports of recordings as if another kind of device had made them (synthetic: the lab's
// recordings, with the settings and the backend of the other). No output may give its owner advice for CUDA.
func TestPlatforms(t *testing.T) {
	files := []string{"fragmentation.pickle", "ghost.pickle", "healthy.pickle", "pinned.pickle"}
	for _, name := range []string{"oom", "oom_fraction", "oom_others", "oom_uncaught_pool", "gc_threshold", "graph", "never",
		"legacy_true", "expandable", "state", "pinned_only", "pinned_registered", "streams", "uncached"} {
		files = append(files, "lab/traces/2.14/"+name+".pickle.xz")
	}
	if testing.Short() {
		files = files[:4]
	}
	for _, name := range files {
		s, err := load.Open(t.Context(), filepath.Join("..", "fixtures", name), load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range s.Settings.Values {
			if strings.HasPrefix(v.Key, "PYTORCH_") {
				s.Settings.Values[i].Key = "PYTORCH_ALLOC_CONF"
			}
		}
		for _, backend := range []string{"xpu", "npu", "hip"} {
			s.Writer.Backend = backend
			r, err := analyze.Run(t.Context(), s, analyze.Options{Capacity: 2 << 30})
			if err != nil {
				t.Fatal(err)
			}
			for output, write := range map[string]func(io.Writer) error{
				"text":     func(w io.Writer) error { return text.Verdict(w, r, text.Options{}) },
				"summary":  func(w io.Writer) error { return text.Summary(w, r, text.Options{All: true}) },
				"Markdown": func(w io.Writer) error { return text.Markdown(w, r) },
				"JSON":     func(w io.Writer) error { return json.Write(w, r) },
				"HTML":     func(w io.Writer) error { return html.Write(w, r, html.DefaultBytes) },
			} {
				var out bytes.Buffer
				if err := write(&out); err != nil {
					t.Fatal(err)
				}
				for _, at := range ofCUDA.FindAllIndex(out.Bytes(), -1) {
					if found := string(out.Bytes()[at[0]:at[1]]); found != "torch.cuda." || backend != "hip" { // ROCm's too
						t.Errorf("%s as %s, %s: ...%s...", name, platform.Of(backend).Name, output,
							out.Bytes()[max(at[0]-80, 0):min(at[1]+40, out.Len())])
					}
				}
			}
		}
	}
}
