package allocator

import (
	"fmt"
)

// Reading is what a release of torch makes of a settings string.
type Reading struct {
	Conf    Conf
	Misread []Misread
	// Unknown is how the release refuses the first key that only later ones know, which are read here all the
	// same; nil for none. See Conf.Needs.
	Unknown *Refusal
}

// Misread is a part of a settings string that torch takes, but not for what is written.
type Misread struct {
	Written string `json:"written"`
	Read    string `json:"read"` // what would be read in the same way
}

// Refusal is how a release refuses a settings string, in its own words. Measured: fixtures/lab/conf.py.
type Refusal struct {
	Release Release
	Class   string // of Python's exception; "" where the process ends without one
	Text    string
}

func (e *Refusal) Error() string {
	return fmt.Sprintf("%s refuses it: %s", e.Release.Torch(), e.Says())
}

// Says is what the program prints.
func (e *Refusal) Says() string {
	if e.Class == "" {
		return e.Text
	}
	return e.Class + ": " + e.Text
}

// Read reads a settings string, what PYTORCH_CUDA_ALLOC_CONF holds, as a release does (SPEC.md 5.2;
// c10/core/AllocatorConfig.cpp and c10/cuda/CUDAAllocatorConfig.cpp; up to 2.9 the latter alone). Settings of the host
// allocator have no effect. An error is a *Refusal.
func (r Release) Read(s string) (Reading, error) {
	p := &parser{release: r, old: r.before(oneParser), tokens: r.tokens(s)}
	p.Conf = Default()
	if p.load(); p.Conf.Async || p.err != nil {
		return p.done() // the rest is not read
	}
	if p.old {
		p.pass(func(*setting) bool { return true })
		return p.done()
	}
	p.pass(func(set *setting) bool { return !set.common && !set.first })
	p.pass(func(set *setting) bool { return set.first })
	p.Conf.MaxNonSplitRounding = p.Conf.LargeSegment
	p.pass(func(set *setting) bool { return set.common })
	return p.done()
}

// ParseConf gives the settings of a string. See Read.
func (r Release) ParseConf(s string) (Conf, error) {
	read, err := r.Read(s)
	return read.Conf, err
}
