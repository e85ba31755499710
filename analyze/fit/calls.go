package fit

import (
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/frames"
	"github.com/snapana/snapana/snapshot"
)

// convolutions tells the stacks of convolutions.
func convolutions(s *snapshot.Snapshot) []bool {
	return stacksWith(s, func(file, name string) bool {
		return frames.Classify(file, name).Has(frames.Convolves)
	})
}

// attentions tells the stacks of attention, of a softmax that its code calls, and of distances.
func attentions(s *snapshot.Snapshot) []bool {
	return stacksWith(s, func(_, name string) bool {
		return strings.Contains(name, "attention") || strings.Contains(name, "cdist") ||
			strings.Contains(name, "softmax") && !strings.Contains(name, "log_softmax")
	})
}

// similarities tells the stacks of what compares the items of a batch with each other.
func similarities(s *snapshot.Snapshot) []bool {
	return stacksWith(s, func(_, name string) bool {
		return strings.Contains(name, "cosine_similarity") || strings.Contains(name, "pairwise_distance")
	})
}

// layers tells the stacks of layers that make something of each token alone, those within attention too.
func layers(s *snapshot.Snapshot) []bool {
	files := []string{"linear.py", "normalization.py", "sparse.py", "rnn.py", "conv.py", "batchnorm.py", "pooling.py"}
	return stacksWith(s, func(file, name string) bool {
		at := strings.LastIndex(file, "torch/nn/modules/")
		return strings.HasPrefix(name, "_in_projection") || at >= 0 && slices.Contains(files, file[at+len("torch/nn/modules/"):])
	})
}

// dropouts tells the stacks of dropout.
func dropouts(s *snapshot.Snapshot) []bool {
	return stacksWith(s, func(_, name string) bool { return strings.Contains(name, "dropout") })
}

// stacksWith tells the stacks that have such a frame.
func stacksWith(s *snapshot.Snapshot, is func(file, name string) bool) []bool {
	frames := make([]bool, s.Frames.Len()+1)
	for i := 1; i <= s.Frames.Len(); i++ {
		f := s.Frames.Get(snapshot.FrameID(i))
		frames[i] = is(s.Strings.Get(f.File), s.Strings.Get(f.Name))
	}
	out := make([]bool, s.Stacks.Len()+1)
	for i := range out {
		out[i] = slices.ContainsFunc(s.Stacks.Get(snapshot.StackID(i)), func(id snapshot.FrameID) bool { return frames[id] })
	}
	return out
}
