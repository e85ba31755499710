package allocator

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"strings"
)

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
