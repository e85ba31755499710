package change_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/change"
)

// TestEvaluations has a search try torch.no_grad where a program evaluates with gradients, and nowhere else: others keep what comes out
// of an evaluation, and autocast its copies of weights.
func TestEvaluations(t *testing.T) {
	want := map[string]string{
		"convnet_no_grad": "no-grad=convnet.py:167", "llama_no_grad": "no-grad=llama.py:275",
		"vit_checkpoint": "no-grad=vit_train.py:58",
	}
	files, err := filepath.Glob(lab + "*.pickle.xz")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	got := map[string]string{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".pickle.xz")
		if testing.Short() && want[name] == "" {
			continue
		}
		for _, c := range input(t, file).Candidates() {
			if c.Kind == change.NoGrad {
				got[name] += c.Text
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
