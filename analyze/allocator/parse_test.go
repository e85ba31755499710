package allocator

import (
	"slices"
	"testing"
)

func slots(v ...int64) (up Roundup) {
	copy(up[:], v)
	return up
}

func TestParseConf(t *testing.T) {
	with := func(set func(*Conf)) Conf {
		c := Default()
		set(&c)
		return c
	}
	same := func(div int64) (up Roundup) {
		for i := range up {
			up[i] = div
		}
		return up
	}
	for _, c := range []struct {
		release Release
		text    string
		want    Conf
	}{
		{Newest, "", Default()},
		{Newest, "backend:native", Default()},
		{Newest, "backend:cudaMallocAsync", with(func(c *Conf) { c.Async = true })},
		{Newest, " expandable_segments : True ", with(func(c *Conf) { c.Expandable = true })},
		{Newest, "expandable_segments:True,expandable_segments:False", Default()},
		{Newest, "max_split_size_mb:20,", with(func(c *Conf) { c.MaxSplit = 20 * mib })},
		{206, "max_split_size_mb:21", with(func(c *Conf) { c.MaxSplit = 21 * mib })},
		{Newest, "max_split_size_mb:18446744073709551615", Default()},
		{Newest, "max_split_size_mb:1073741824", with(func(c *Conf) { c.MaxSplit = MaxRequest })},
		{Newest, "max_non_split_rounding_mb:40", with(func(c *Conf) { c.MaxNonSplitRounding = 40 * mib })},
		{Newest, "max_split_size_mb:64,large_segment_size_mb:64", with(func(c *Conf) {
			c.MaxSplit, c.LargeSegment, c.MaxNonSplitRounding = 64*mib, 64*mib, 64*mib
		})},
		{Newest, "large_segment_size_mb:12,max_split_size_mb:12", with(func(c *Conf) {
			c.MaxSplit, c.LargeSegment, c.MaxNonSplitRounding = 12*mib, 12*mib, 12*mib
		})},
		{Newest, "garbage_collection_threshold:0.8", with(func(c *Conf) { c.GCThreshold = 0.8 })},
		{Newest, "per_process_memory_fraction:0.5,throw_on_cudamalloc_oom:True",
			with(func(c *Conf) { c.Fraction, c.Reject = 0.5, true })},
		{Newest, "roundup_power2_divisions:4", with(func(c *Conf) { c.Roundup = same(4) })},
		{Newest, "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", with(func(c *Conf) {
			c.Roundup = slots(1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8)
		})},
		{Newest, "roundup_power2_divisions:[>:4]", with(func(c *Conf) {
			c.Roundup = slots(0, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
				4, 4, 4, 4, 4)
		})},
		{Newest, "roundup_power2_divisions:[]", Default()},
		{Newest, "roundup_power2_divisions:[65536:2]", with(func(c *Conf) { c.Roundup = same(2) })},
		// The next four are what torch 2.6 was seen to make of them.
		{206, "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", with(func(c *Conf) {
			c.Roundup = slots(1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 8, 8, 8, 8, 8, 8)
		})},
		{206, "roundup_power2_divisions:[>:4]", with(func(c *Conf) { c.Roundup = same(4) })},
		{206, "roundup_power2_divisions:[64:8,>:1,128:2]", with(func(c *Conf) {
			c.Roundup = slots(8, 8, 8, 8, 8, 8, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1)
		})},
		{206, "roundup_power2_divisions:[64:8,256:4,>:1]", with(func(c *Conf) {
			c.Roundup = slots(8, 8, 8, 8, 8, 8, 8, 0, 1, 1, 1, 1, 1, 1, 1, 1)
		})},
		{Newest, "pinned_use_background_threads:True,pinned_num_register_threads:8,release_lock_on_cudamalloc:False",
			Default()},
	} {
		got, err := c.release.ParseConf(c.text)
		got.Needs = 0
		if err != nil || got != c.want {
			t.Errorf("%v %q: %+v, error %v; want %+v", c.release, c.text, got, err, c.want)
		}
	}
}

// TestRead has what torch takes for something else than what is written, and how it refuses the rest. All strings, and
// all releases, are in fixtures/lab.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		release Release
		text    string
		want    []Misread
	}{
		{Newest, "max_split_size_mb: 128 ,", nil},
		{209, "max_split_size_mb:128abc", []Misread{{"max_split_size_mb:128abc", "max_split_size_mb:128"}}},
		{Newest, "max_split_size_mb:+128", []Misread{{"max_split_size_mb:+128", "max_split_size_mb:128"}}},
		{Newest, "max_split_size_mb:-1",
			[]Misread{{"max_split_size_mb:-1", "max_split_size_mb:18446744073709551615"}}},
		{Newest, "max_split_size_mb,128", []Misread{{"max_split_size_mb,128", "max_split_size_mb:128"}}},
		{Newest, "garbage_collection_threshold:0.5x",
			[]Misread{{"garbage_collection_threshold:0.5x", "garbage_collection_threshold:0.5"}}},
		{Newest, "roundup_power2_divisions:[64:8x]y", []Misread{
			{"roundup_power2_divisions:[64:8x", "roundup_power2_divisions:[64:8"},
			{"roundup_power2_divisions:[64:8x]y", "roundup_power2_divisions:[64:8x]"}}},
		{Newest, "roundup_power2_divisions:[256,1]",
			[]Misread{{"roundup_power2_divisions:[256,1]", "roundup_power2_divisions:1"}}},
		{209, "roundup_power2_divisions:[256:1,512:2,>:8]",
			[]Misread{{"roundup_power2_divisions:[256:1,512:2,>:8]", "roundup_power2_divisions:[256:1,>:8]"}}},
		{Newest, "roundup_power2_divisions:[256:1,512:2,>:8]", nil},
	} {
		got, err := c.release.Read(c.text)
		if err != nil || !slices.Equal(got.Misread, c.want) {
			t.Errorf("%v %q: misread %q, error %v; want %q", c.release, c.text, got.Misread, err, c.want)
		}
	}
	for _, c := range []struct {
		release    Release
		text, want string
	}{
		{209, "max_split_size_mb:x", "torch 2.9 refuses it: RuntimeError: stoi"},
		{Newest, "max_split_size_mb:x", "torch refuses it: RuntimeError: stoull"},
		{210, "foo:1", "torch 2.10 refuses it: ValueError: Unrecognized key 'foo' in CUDA allocator config."},
		{215, "max_split_size_mb", "torch 2.15 refuses it: Index out of bounds in ConfigTokenizer"},
	} {
		if _, err := c.release.Read(c.text); err == nil || err.Error() != c.want {
			t.Errorf("%v %q: error %v, want %q", c.release, c.text, err, c.want)
		}
	}
	got, err := Release(209).Read("large_segment_size_mb:64")
	if err != nil || got.Unknown == nil || got.Conf.LargeSegment != 64*mib {
		t.Errorf("a key of a later release: %+v, error %v", got, err)
	}
}

// TestConfString holds that settings that are written read back as the same.
func TestConfString(t *testing.T) {
	for _, text := range []string{
		"",
		"backend:cudaMallocAsync",
		"expandable_segments:True",
		"large_segment_size_mb:40,max_split_size_mb:64",
		"max_split_size_mb:128,max_non_split_rounding_mb:30,roundup_power2_divisions:8",
		"roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
		"roundup_power2_divisions:[1:0,>:4]",
		"roundup_power2_divisions:[16384:2,>:0]",
		"roundup_power2_divisions:[1:2,2:0,4:0,8:16,>:1]",
		"garbage_collection_threshold:0.8,per_process_memory_fraction:0.25,throw_on_cudamalloc_oom:True",
	} {
		c, err := ParseConf(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := c.String(); got != text {
			t.Errorf("%q is written as %q", text, got)
		}
	}
	old, err := Release(206).ParseConf("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]")
	if err != nil {
		t.Fatal(err)
	}
	if got := old.String(); got != "roundup_power2_divisions:[256:1,512:2,>:8]" {
		t.Errorf("divisions of torch 2.6 are written as %q", got)
	}
}

func TestNeeds(t *testing.T) {
	for text, want := range map[string]Release{
		"": 0, "expandable_segments:True": 201, "large_segment_size_mb:40,expandable_segments:True": 211,
		"throw_on_cudamalloc_oom:True": 212,
	} {
		if c, err := ParseConf(text); err != nil || c.Needs != want {
			t.Errorf("%q needs torch %v (error %v), want %v", text, c.Needs, err, want)
		}
	}
}

func FuzzParseConf(f *testing.F) {
	for _, s := range []string{"", "max_split_size_mb:64,", "roundup_power2_divisions:[256:1,>:8]",
		"expandable_segments:True", "[:,]"} {
		f.Add(s, 206)
	}
	f.Fuzz(func(t *testing.T, s string, release int) {
		c, err := Release(release).ParseConf(s)
		if err != nil {
			return
		}
		again, err := ParseConf(c.String())
		again.Needs, c.Needs = 0, 0
		again.Exact, c.Exact = false, false // of the release, not of the text
		for i := range c.Roundup {          // 0 and 1 are both off
			c.Roundup[i], again.Roundup[i] = max(c.Roundup[i], 1), max(again.Roundup[i], 1)
		}
		if err != nil || again != c {
			t.Errorf("%q is %+v; written as %q it is %+v, error %v", s, c, c.String(), again, err)
		}
	})
}
