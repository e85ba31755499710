package allocator

import (
	"fmt"
)

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
