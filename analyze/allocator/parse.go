package allocator

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"strings"
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

// setting is a key: the release that knows it first, and what reads its value.
type setting struct {
	since Release
	// Since 2.10 the keys that all devices have are read after all others, the size of segments first.
	common, first bool
	read          func(p *parser, key string)
}

var settings = map[string]setting{
	"backend": {200, false, false, (*parser).backend},
	"max_split_size_mb": {109, true, false, func(p *parser, key string) {
		if p.Conf.MaxSplit = p.atLeast(key); p.Conf.MaxSplit > MaxRequest || p.Conf.MaxSplit < 0 {
			p.Conf.MaxSplit = -1
		}
	}},
	"max_non_split_rounding_mb": {206, true, false, func(p *parser, key string) {
		p.Conf.MaxNonSplitRounding = p.atLeast(key)
	}},
	"large_segment_size_mb": {211, false, true, func(p *parser, key string) {
		n := p.whole(key)
		if n <= MinLargeAlloc>>20 {
			p.invalid(fmt.Sprintf("CachingAllocator option large_segment_size_mb must be > %d MB", MinLargeAlloc>>20))
		} else if n > MaxRequest>>20 {
			p.fail("RuntimeError", "p.block != nullptr && p.block->ptr != nullptr INTERNAL ASSERT FAILED")
		}
		p.Conf.LargeSegment = int64(min(n, MaxRequest>>20)) << 20
	}},
	"garbage_collection_threshold": {112, true, false, func(p *parser, key string) {
		v := p.real(key)
		switch p.Conf.GCThreshold = v; {
		case v > 0 && v < 1:
		case !p.old:
			p.invalid("garbage_collect_threshold is invalid, set it in (0.0, 1.0)")
		case v >= 1:
			p.invalid("garbage_collect_threshold too big, set it 0.0~1.0")
		default:
			p.invalid("garbage_collect_threshold too small, set it 0.0~1.0")
		}
	}},
	"per_process_memory_fraction": {210, false, false, func(p *parser, key string) {
		if p.Conf.Fraction = p.real(key); !(p.Conf.Fraction >= 0 && p.Conf.Fraction <= 1) {
			p.invalid("per_process_memory_fraction is invalid, set it in [0.0, 1.0]")
		}
	}},
	"roundup_power2_divisions": {112, true, false, (*parser).roundup},
	"expandable_segments":      {201, true, false, func(p *parser, key string) { p.Conf.Expandable = p.truth(key) }},
	"throw_on_cudamalloc_oom":  {212, false, false, func(p *parser, key string) { p.Conf.Reject = p.truth(key) }},

	// Without effect on where memory goes.
	"release_lock_on_cudamalloc":        {202, false, false, (*parser).ignoredTruth},
	"release_lock_on_hipmalloc":         {202, false, false, (*parser).ignoredTruth},
	"graph_capture_record_stream_reuse": {209, false, false, (*parser).ignoredTruth},
	"pinned_use_cuda_host_register":     {202, false, false, (*parser).ignoredTruth},
	"pinned_use_hip_host_register":      {202, false, false, (*parser).ignoredTruth},
	"pinned_use_background_threads":     {206, true, false, (*parser).ignoredTruth},
	"pinned_free_catch_all":             {213, false, false, (*parser).ignoredTruth},
	"pinned_max_round_threshold_mb":     {213, true, false, func(p *parser, key string) { p.whole(key) }},
	"pinned_max_cached_size_mb":         {213, true, false, func(p *parser, key string) { p.whole(key) }},
	"pinned_num_register_threads": {202, false, false, func(p *parser, key string) {
		n := p.whole(key)
		got := fmt.Sprintf(", got %d", n)
		switch {
		case !powerOfTwo(n) && p.old:
			p.invalid("Number of register threads has to be power of 2")
		case !powerOfTwo(n):
			p.invalid("Number of register threads has to be power of 2" + got)
		case n > 128 && p.old:
			p.invalid("Number of register threads should be less than or equal to 128")
		case n > 128:
			p.invalid("Number of register threads should be less than or equal to 128" + got)
		}
	}},
	"pinned_reserve_segment_size_mb": {210, false, false, func(p *parser, key string) {
		if p.whole(key) == 0 {
			p.invalid("Pinned reserve segment size has to be greater than 0")
		}
	}},
}

// tokens cuts at the four signs of the grammar, which are tokens too, and leaves blanks out.
func (r Release) tokens(s string) []string {
	skipped := blanks
	if r.before(oneParser) {
		skipped = " "
	}
	var out []string
	word := func(w string) {
		w = strings.Map(func(c rune) rune {
			if strings.ContainsRune(skipped, c) {
				return -1
			}
			return c
		}, w)
		if w != "" {
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
	old     bool // up to 2.9, where CUDA has a parser of its own
	tokens  []string
	at      int
	loose   int // signs that were others, or that were not there
	Reading
	err *Refusal
}

func (p *parser) done() (Reading, error) {
	if p.err != nil {
		return Reading{}, p.err
	}
	return p.Reading, nil
}

// fail keeps the first error, which is that of an unknown key where one came before.
func (p *parser) fail(class, text string) {
	if p.err == nil {
		p.err = cmp.Or(p.Unknown, &Refusal{p.release, class, strings.TrimSpace(text)})
	}
}

// invalid is a check of torch's own that failed.
func (p *parser) invalid(text string) {
	if p.old {
		p.fail("RuntimeError", text)
	} else {
		p.fail("ValueError", text)
	}
}

// outside is the common parser's error for a string that ends too early. Where a key has no value it aborts the import
// of torch.
func (p *parser) outside(class string) { p.fail(class, "Index out of bounds in ConfigTokenizer") }

func (p *parser) misread(written, read string) {
	if written != read {
		p.Misread = append(p.Misread, Misread{written, read})
	}
}

// load finds the backend, as torch does while it is imported. The common parser then goes over all keys, too.
func (p *parser) load() {
	n := len(p.tokens)
	if p.old {
		for i, t := range p.tokens {
			if t == "backend" && i+2 < n && p.tokens[i+1] == ":" {
				p.Conf.Async = p.tokens[i+2] == "cudaMallocAsync"
				break
			}
		}
		return
	}
	for p.at = 0; p.at < n && p.err == nil; p.at++ { // the comma
		key := p.tokens[p.at]
		p.skip()
		if key == "backend" && p.err == nil {
			p.Conf.Async = p.tokens[p.at-1] == "cudaMallocAsync"
			return
		}
	}
}

// skip goes past a key and its value.
func (p *parser) skip() {
	if p.at += 2; p.at >= len(p.tokens) {
		p.outside("")
		return
	}
	if p.tokens[p.at] == "[" {
		for p.at < len(p.tokens) && p.tokens[p.at] != "]" {
			p.at++
		}
		if p.at == len(p.tokens) {
			p.fail("", "Expected closing bracket ']' in ConfigTokenizer but reached end of config")
		}
	}
	p.at++
}

// pass reads the settings that are wanted, and skips the others.
func (p *parser) pass(wanted func(*setting) bool) {
	for p.at = 0; p.at < len(p.tokens) && p.err == nil; {
		key := p.tokens[p.at]
		set, known := settings[key]
		if !known || p.release.before(set.since) {
			unknown := &Refusal{p.release, "ValueError", "Unrecognized key '" + key + "' in CUDA allocator config."}
			if p.old {
				unknown = &Refusal{p.release, "RuntimeError", "Unrecognized CachingAllocator option: " + key}
			}
			if p.Unknown = cmp.Or(p.Unknown, unknown); !known {
				p.err = p.Unknown
				return
			}
		}
		p.Conf.Needs = max(p.Conf.Needs, set.since)
		if !wanted(&set) {
			p.skip()
			p.at++
			continue
		}
		from, loose := p.at, p.loose
		p.at++
		p.sign(":")
		set.read(p, key)
		if p.loose != loose && key == "roundup_power2_divisions" {
			p.misread(p.text(from), key+":"+cmp.Or(p.Conf.Roundup.String(), "1"))
		} else if p.loose != loose && p.err == nil {
			p.misread(p.text(from), key+":"+p.tokens[from+2])
		}
		if p.err == nil && p.at < len(p.tokens) {
			if pair := p.text(from); !p.old && p.tokens[p.at] != "," {
				p.misread(pair+p.tokens[p.at], pair)
			}
			p.sign(",")
		}
	}
}

// text is what was read from a token on.
func (p *parser) text(from int) string {
	return strings.Join(p.tokens[from:min(p.at, len(p.tokens))], "")
}

// sign goes past a sign. The common parser does not look whether it is one.
func (p *parser) sign(want string) {
	if p.at >= len(p.tokens) || p.tokens[p.at] != want {
		p.loose++
		if p.old {
			p.fail("RuntimeError", "Error parsing CachingAllocator settings, expected "+want)
		}
	}
	p.at++
}

// next takes the token that should be a value.
func (p *parser) next(missing string) string {
	if p.at++; p.at <= len(p.tokens) {
		return p.tokens[p.at-1]
	}
	if p.old {
		p.fail("RuntimeError", missing)
	} else {
		p.outside("RuntimeError")
	}
	return ""
}

func missing(key string) string { return "Error, expecting " + key + " value" }

// whole reads a number and says what is read of it where that is not what is written.
func (p *parser) whole(key string) uint64 {
	text := p.next(missing(key))
	n := p.number(text, false)
	p.misreadNumber(key, text, n)
	return n
}

func (p *parser) misreadNumber(key, text string, n uint64) {
	if p.err == nil && !digits(text) {
		p.misread(key+":"+strings.TrimSpace(text), fmt.Sprintf("%s:%d", key, n))
	}
}

// number reads a token as a release's parser does: as far as it is a number, and what is negative wraps around.
func (p *parser) number(text string, boundary bool) uint64 {
	if p.err != nil {
		return 0
	}
	neg, n, ok, fits := integer(text)
	function := "stoull"
	switch {
	case p.old && boundary:
		function = "stoul"
	case p.old:
		function = "stoi"
		fits = fits && (n <= math.MaxInt32 || neg && n == math.MaxInt32+1)
	}
	switch {
	case !ok:
		p.fail("RuntimeError", function)
	case !fits:
		p.fail(p.rangeError(), function)
	case neg:
		n = -n
	}
	return n
}

func (p *parser) rangeError() string {
	if p.release.before(215) {
		return "RuntimeError"
	}
	return "IndexError"
}

func (p *parser) real(key string) float64 {
	text := p.next(missing(key))
	if p.err != nil {
		return 0
	}
	v, used, fits := decimal(text)
	switch {
	case used == "":
		p.fail("RuntimeError", "stod")
	case !fits:
		p.fail(p.rangeError(), "stod")
	default:
		p.misread(key+":"+strings.TrimSpace(text), key+":"+used)
	}
	return v
}

func (p *parser) truth(key string) bool {
	expected := "Expected a single True/False argument for " + key
	text := p.next(expected)
	switch {
	case p.err != nil || text == "True" || text == "False":
	case p.old:
		p.invalid(expected)
	default:
		p.invalid(fmt.Sprintf("Expected 'True' or 'False' at index %d in ConfigTokenizer but got '%s'", p.at-1, text))
	}
	return text == "True"
}

func (p *parser) ignoredTruth(key string) { p.truth(key) }

// backend is not cudaMallocAsync, or load had seen it, unless there are several.
func (p *parser) backend(string) {
	switch p.next("Error parsing backend value") {
	case "native":
	case "cudaMallocAsync":
		text := "Allocator backend parsed at runtime != allocator backend parsed at load time"
		if !p.old {
			text += ", cudaMallocAsync != native"
		}
		p.fail("RuntimeError", text)
	default:
		p.invalid("Unknown allocator backend, options are native and cudaMallocAsync")
	}
}

// atLeast reads a size in MiB and gives it in bytes. Up to 2.9 it must be above that of large segments.
func (p *parser) atLeast(key string) int64 {
	n, least := p.whole(key), uint64(p.Conf.LargeSegment>>20)
	switch {
	case p.old && n <= least:
		p.invalid(fmt.Sprintf("CachingAllocator option %s too small, must be > %d", key, least))
	case n < least:
		p.invalid(fmt.Sprintf("CachingAllocator option %s too small, must be >= %d", key, least))
	case n >= math.MaxUint64>>20: // torch takes this for the largest size, and adding to it wraps around
		return -1 << 20
	}
	return int64(min(n, MaxRequest>>20)) << 20
}

// roundup reads the divisions, one number for all sizes or a list by interval. What ">" says is
// for the intervals above the last one; releases before 2.10 change that one too.
func (p *parser) roundup(key string) {
	up, from := &p.Conf.Roundup, p.at-2
	p.Conf.Exact = p.release.before(202)
	divisions := "For roundups, the divisions has to be power of 2"
	if p.release.before(208) {
		divisions = "For roundups, the divisons has to be power of 2"
	}
	set := func(from, to int, n uint64) {
		for i := from; i < to; i++ {
			up[i] = int64(min(n, 1<<40))
		}
	}
	text := p.next(missing(key))
	if text != "[" {
		n := p.number(text, false)
		p.misreadNumber(key, text, n)
		if !powerOfTwo(n) {
			p.invalid(divisions + " ")
		}
		set(0, len(up), n)
		return
	}
	last, first := 0, true
	overwritten := false
	for ; p.err == nil && p.at < len(p.tokens) && p.tokens[p.at] != "]"; p.comma() {
		bound := p.tokens[p.at]
		p.at++
		p.sign(":")
		div := p.next("Error parsing roundup_power2_divisions value")
		n := p.number(div, false)
		p.misreadNumber(key+":["+bound, div, n)
		switch {
		case !powerOfTwo(n) && p.release.before(202):
			p.invalid(divisions + " ")
		case n != 0 && !powerOfTwo(n):
			p.invalid(divisions + " or 0 to disable roundup ")
		}
		if bound == ">" {
			above := last + 1
			if p.old {
				overwritten = overwritten || !first && up[last] != int64(n)
				above = last
			}
			set(above, len(up), n)
			continue
		}
		boundary := p.number(bound, true)
		if p.err == nil && !digits(bound) {
			p.misread(key+":["+strings.TrimSpace(bound), fmt.Sprintf("%s:[%d", key, boundary))
		}
		if !powerOfTwo(boundary) {
			p.invalid("For roundups, the intervals have to be power of 2 ")
		}
		last = min(max(bits.Len64(boundary)-1, 0), len(up)-1)
		low := last
		if first {
			low = 0
		}
		set(low, last+1, n)
		first = false
	}
	if p.at++; p.at > len(p.tokens) && !p.old {
		p.fail("", "Expected closing bracket ']' in ConfigTokenizer but reached end of config")
	}
	if p.err == nil && overwritten {
		p.misread(p.text(from), key+":"+cmp.Or(up.String(), "1"))
	}
}

// comma goes past the one between two entries of a list.
func (p *parser) comma() {
	switch {
	case p.err != nil:
	case p.at < len(p.tokens):
		if p.tokens[p.at] != "]" {
			p.sign(",")
		}
	case p.old:
		p.sign(",") // up to 2.4 it may crash
	default:
		p.outside("RuntimeError")
	}
}
