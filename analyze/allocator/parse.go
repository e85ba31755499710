package allocator

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// ParseConf reads a settings string, what PYTORCH_CUDA_ALLOC_CONF holds, with a release's own constraints (SPEC.md 5.2;
// c10/core/AllocatorConfig.cpp, c10/cuda/CUDAAllocatorConfig.cpp; up to 2.8 the latter alone).
// Settings that are newer than the release are accepted too, see Conf.Needs, and those of the
// host allocator have no effect. An error is in torch's words where torch has some.
func (r Release) ParseConf(s string) (Conf, error) {
	p := &parser{release: r, conf: Default(), tokens: tokens(s)}
	// The other sizes are checked against this one, wherever it stands.
	for i := range p.tokens {
		if p.tokens[i] == "large_segment_size_mb" && (i == 0 || p.tokens[i-1] == ",") {
			p.at = i + 1
			p.colon()
			p.conf.LargeSegment = p.atLeastMiB("large_segment_size_mb", MinLargeAlloc>>20, false)
		}
	}
	p.conf.MaxNonSplitRounding = p.conf.LargeSegment
	for p.at = 0; p.at < len(p.tokens) && p.err == nil; {
		key := p.tokens[p.at]
		p.at++
		set, known := settings[key]
		if !known {
			says := "Unrecognized key '%s' in CUDA allocator config."
			if p.release.before(oneParser) {
				says = "Unrecognized CachingAllocator option: %s"
			}
			p.failf(says, key)
			break
		}
		p.conf.Needs = max(p.conf.Needs, set.since)
		p.colon()
		set.read(p, key)
		if p.err == nil && p.at < len(p.tokens) {
			p.expect(",")
		}
	}
	if p.err != nil {
		return Conf{}, p.err
	}
	return p.conf, nil
}

// setting is a key: the release that knows it first, and what reads its value.
type setting struct {
	since Release
	read  func(p *parser, key string)
}

var settings = map[string]setting{
	"backend": {200, (*parser).backend},
	"max_split_size_mb": {109, func(p *parser, key string) {
		p.conf.MaxSplit = p.atLeastMiB(key, p.conf.LargeSegment>>20, !p.release.before(oneParser))
	}},
	"max_non_split_rounding_mb": {206, func(p *parser, key string) {
		p.conf.MaxNonSplitRounding = p.atLeastMiB(key, p.conf.LargeSegment>>20, !p.release.before(oneParser))
	}},
	"large_segment_size_mb": {211, func(p *parser, key string) { p.next(key) }}, // already read
	"garbage_collection_threshold": {112, func(p *parser, key string) {
		if p.conf.GCThreshold = p.real(key); !(p.conf.GCThreshold > 0 && p.conf.GCThreshold < 1) {
			p.failf("garbage_collect_threshold is invalid, set it in (0.0, 1.0)")
		}
	}},
	"per_process_memory_fraction": {210, func(p *parser, key string) {
		if p.conf.Fraction = p.real(key); !(p.conf.Fraction >= 0 && p.conf.Fraction <= 1) {
			p.failf("per_process_memory_fraction is invalid, set it in [0.0, 1.0]")
		}
	}},
	"roundup_power2_divisions": {112, (*parser).roundup},
	"expandable_segments":      {201, func(p *parser, key string) { p.conf.Expandable = p.truth(key) }},
	"throw_on_cudamalloc_oom":  {212, func(p *parser, key string) { p.conf.Reject = p.truth(key) }},

	// Without effect on where memory goes.
	"release_lock_on_cudamalloc":        {202, (*parser).ignoredTruth},
	"release_lock_on_hipmalloc":         {202, (*parser).ignoredTruth},
	"graph_capture_record_stream_reuse": {209, (*parser).ignoredTruth},
	"pinned_use_cuda_host_register":     {201, (*parser).ignoredTruth},
	"pinned_use_hip_host_register":      {201, (*parser).ignoredTruth},
	"pinned_use_background_threads":     {206, (*parser).ignoredTruth},
	"pinned_free_catch_all":             {214, (*parser).ignoredTruth},
	"pinned_max_round_threshold_mb":     {213, func(p *parser, key string) { p.whole(key) }},
	"pinned_max_cached_size_mb":         {213, func(p *parser, key string) { p.whole(key) }},
	"pinned_num_register_threads": {201, func(p *parser, key string) {
		if n := p.whole(key); !powerOfTwo(n) {
			p.failf("Number of register threads has to be power of 2, got %d", n)
		} else if n > 128 {
			p.failf("Number of register threads should be less than or equal to 128, got %d", n)
		}
	}},
	"pinned_reserve_segment_size_mb": {209, func(p *parser, key string) {
		if p.whole(key) == 0 {
			p.failf("Pinned reserve segment size has to be greater than 0")
		}
	}},
}

// tokens cuts at the four signs of the grammar, which are tokens too, and leaves white space out.
func tokens(s string) []string {
	var out []string
	word := func(w string) {
		if w = strings.Join(strings.Fields(w), ""); w != "" {
			out = append(out, w)
		}
	}
	from := 0
	for i := range len(s) {
		if strings.IndexByte(",:[]", s[i]) >= 0 {
			word(s[from:i])
			out = append(out, s[i:i+1])
			from = i + 1
		}
	}
	word(s[from:])
	return out
}

// parser reads tokens into settings. After the first error it reads on without effect.
type parser struct {
	release Release
	conf    Conf
	tokens  []string
	at      int
	err     error
}

func (p *parser) failf(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// next takes the token that should be the value of key.
func (p *parser) next(key string) string {
	if p.at == len(p.tokens) {
		p.failf("Error, expecting %s value", key)
		return ""
	}
	p.at++
	return p.tokens[p.at-1]
}

// accept takes the next token if it is a sign.
func (p *parser) accept(sign string) bool {
	is := p.at < len(p.tokens) && p.tokens[p.at] == sign
	if is {
		p.at++
	}
	return is
}

func (p *parser) expect(sign string) {
	if !p.accept(sign) {
		p.failf("Error parsing CachingAllocator settings, expected %s", sign)
	}
}

func (p *parser) colon() { p.expect(":") }

func (p *parser) whole(key string) uint64 {
	text := p.next(key)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		p.failf("Expected a whole number for %s, got '%s'", key, text)
	}
	return n
}

func (p *parser) real(key string) float64 {
	text := p.next(key)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) {
		p.failf("Expected a number for %s, got '%s'", key, text)
	}
	return v
}

func (p *parser) truth(key string) bool {
	text := p.next(key)
	if text != "True" && text != "False" {
		p.failf("Expected a single True/False argument for %s, got '%s'", key, text)
	}
	return text == "True"
}

func (p *parser) ignoredTruth(key string) { p.truth(key) }

func (p *parser) backend(key string) {
	switch p.next(key) {
	case "native":
	case "cudaMallocAsync", "hipMallocAsync":
		p.conf.Async = true
	default:
		p.failf("Unknown allocator backend, options are native and cudaMallocAsync")
	}
}

// atLeastMiB reads a size in MiB and gives it in bytes. It must be above the least, or may be
// the least too.
func (p *parser) atLeastMiB(key string, least int64, orEqual bool) int64 {
	n := p.whole(key)
	switch {
	case orEqual && n < uint64(least):
		p.failf("CachingAllocator option %s too small, must be >= %d", key, least)
	case !orEqual && n <= uint64(least):
		p.failf("CachingAllocator option %s too small, must be > %d", key, least)
	}
	return int64(min(n, MaxRequest>>20)) << 20
}

// roundup reads the divisions, one number for all sizes or a list by interval. What ">" says is
// for the intervals above the last one; releases before 2.10 change that one too.
func (p *parser) roundup(key string) {
	up := &p.conf.Roundup
	set := func(from, to int, n uint64) {
		for i := from; i < to; i++ {
			up[i] = int64(min(n, 1<<40))
		}
	}
	if !p.accept("[") {
		n := p.whole(key)
		if !powerOfTwo(n) {
			p.failf("For roundups, the divisions has to be power of 2")
		}
		set(0, len(up), n)
		return
	}
	*up = Roundup{}
	last, first := 0, true
	for p.err == nil && !p.accept("]") {
		above := p.accept(">")
		boundary := uint64(1)
		if !above {
			boundary = p.whole(key)
		}
		if !powerOfTwo(boundary) {
			p.failf("For roundups, the intervals have to be power of 2")
		}
		p.colon()
		n := p.whole(key)
		if n != 0 && !powerOfTwo(n) {
			p.failf("For roundups, the divisions has to be power of 2 or 0 to disable roundup")
		}
		if above {
			from := last
			if !p.release.before(oneParser) {
				from++
			}
			set(from, len(up), n)
		} else {
			last = min(max(bits.Len64(boundary)-1, 0), len(up)-1)
			from := last
			if first {
				from = 0
			}
			set(from, last+1, n)
			first = false
		}
		if p.at == len(p.tokens) {
			p.expect("]")
		} else if p.tokens[p.at] != "]" {
			p.expect(",")
		}
	}
}
