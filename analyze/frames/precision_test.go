package frames_test

import (
	"testing"

	"github.com/snapana/snapana/analyze/frames"
)

// TestPrecisionOf holds what torch.autocast makes of the results of torch's code, of release 2.15.
func TestPrecisionOf(t *testing.T) {
	for _, c := range []struct {
		file, name string
		want       frames.Precision
	}{
		{torch + "nn/modules/linear.py", "forward", frames.Weighs},
		{torch + "nn/modules/linear.py", "__init__", frames.AsGiven},
		{torch + "nn/modules/conv.py", "_conv_forward", frames.Weighs},
		{`C:\env\Lib\site-packages\torch\nn\modules\rnn.py`, "forward", frames.Half},
		{torch + "nn/functional.py", "multi_head_attention_forward", frames.Half},
		{torch + "functional.py", "einsum", frames.Contracts},
		{torch + "nn/functional.py", "layer_norm", frames.Full},
		{torch + "nn/functional.py", "batch_norm", frames.AsGiven},
		{torch + "nn/functional.py", "log_softmax", frames.Full},
		{torch + "nn/functional.py", "interpolate", frames.Full},
		{torch + "nn/functional.py", "gelu", frames.AsGiven},
		{torch + "functional.py", "norm", frames.Full},
		{torch + "_tensor.py", "wrapped", frames.Full},
		{torch + "_tensor.py", "__rsub__", frames.AsGiven},
		{torch + "distributions/normal.py", "log_prob", frames.Full},
		{"/home/me/model.py", "apply_rotary_emb", frames.Full},
		{"/home/me/model.py", "apply_rope", frames.Full},
		{"/home/me/model.py", "rotate_half", frames.AsGiven},
		{"/home/me/model.py", "europe_only", frames.AsGiven},
		{"/home/me/nn/functional.py", "layer_norm", frames.AsGiven},
	} {
		if got := frames.PrecisionOf(c.file, c.name); got != c.want {
			t.Errorf("%s %s: %d, want %d", c.file, c.name, got, c.want)
		}
	}
}
