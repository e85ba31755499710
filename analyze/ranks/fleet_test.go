package ranks_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/snapana/snapana/analyze/digest"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/fixtures/fleet"
	"github.com/snapana/snapana/report/json"
)

// read makes ranks of the digests of a job.
func read(t testing.TB, j *fleet.Job) (list []ranks.Rank) {
	t.Helper()
	for _, r := range j.Present() {
		name, data := j.File(r)
		d, err := digest.Decode(data)
		if err != nil {
			list = append(list, ranks.Unread(name, err))
			continue
		}
		list = append(list, ranks.Of(d.Source.Path, d))
	}
	return list
}

// TestPlanted finds all that is wrong in made-up jobs, and nothing else, whether the mesh is given or not.
func TestPlanted(t *testing.T) {
	seeds, dp := 6, 8
	if os.Getenv("SNAPANA_FULL") != "" {
		seeds, dp = 12, 40
	}
	for seed := range seeds {
		tp, pp := 4, 4
		if seed%3 == 2 {
			tp, pp = 8, 5
		}
		j := fleet.New(uint64(seed), dp, tp, pp)
		list := read(t, j)
		for _, q := range []ranks.Question{{Mesh: j.Mesh}, {}} {
			c, err := q.Compare(list)
			if err != nil {
				t.Fatal(err)
			}
			check(t, fmt.Sprintf("seed %d, mesh %v", seed, q.Mesh != nil), j, c)
		}
	}
}

func check(t *testing.T, what string, j *fleet.Job, c *ranks.Comparison) {
	t.Helper()
	same := func(kind string, got, want []int) {
		t.Helper()
		got, want = slices.Clone(got), slices.Clone(want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %s are %v, want %v", what, kind, got, want)
		}
	}
	numbers := func(rows []int) (out []int) {
		for _, i := range rows {
			out = append(out, c.Ranks[i].Number)
		}
		return out
	}
	same("missing", c.Missing, j.Missing)
	var unread, stand, late, lists, leaks []int
	for i := range c.Ranks {
		k := &c.Ranks[i]
		if k.Fault != "" {
			unread = append(unread, k.Number)
		}
		if k.Stands {
			stand = append(stand, k.Number)
		}
	}
	same("unreadable", unread, slices.Concat(j.Unread, j.Damaged))
	same("that stand out", stand, slices.Concat(j.Leaks, j.Heavy))
	for _, s := range c.Stragglers {
		late = append(late, c.Ranks[s.Rank].Number)
	}
	same("stragglers", late, slices.Concat(j.Stragglers, j.Late))
	for _, s := range c.Stragglers {
		if n := c.Ranks[s.Rank].Number; (s.Late > 0) != slices.Contains(j.Late, n) || s.Late > 0 && s.Late != fleet.LateBy {
			t.Errorf("%s: rank %d began %d us late", what, n, s.Late)
		}
	}
	if len(c.Uncounted) != 1 || c.Uncounted[0].Unit != fleet.OtherUnit {
		t.Errorf("%s: not compared are the steps of %+v", what, c.Uncounted)
	} else {
		same("with other steps", numbers(c.Uncounted[0].Ranks), j.Unlike)
	}
	for _, h := range c.Hosts {
		lists = append(lists, numbers(h.Ranks)...)
	}
	same("on a heavy machine", lists, j.Heavy)
	if len(c.Odd) != 1 || c.Odd[0].Value != fleet.OddConf || c.Odd[0].Usual != fleet.Conf {
		t.Errorf("%s: odd settings %+v", what, c.Odd)
	} else {
		same("with odd settings", numbers(c.Odd[0].Ranks), j.Odd)
	}
	if len(c.Extras) != 1 || c.Extras[0].Site != fleet.ExtraSite || c.Ranks[c.Extras[0].Rank].Number != j.Extra {
		t.Errorf("%s: extras %+v, want of rank %d", what, c.Extras, j.Extra)
	}
	if f := c.First; f == nil || c.Ranks[f.Row].Number != j.Failed[0] || c.Ranks[f.Next].Number != j.Failed[1] ||
		f.Certain != (j.Certain || f.SameClock && len(j.Failed) == 2) && !f.SameClock {
		t.Errorf("%s: first %+v, want rank %d, %v", what, c.First, j.Failed[0], j.Certain)
	}
	failed := []int{}
	for i := range c.Ranks {
		if k := &c.Ranks[i]; k.Failure != nil {
			failed = append(failed, k.Number)
			if (k.Failure.Device == 1) != (k.Number == j.Second) {
				t.Errorf("%s: rank %d failed on device %d", what, k.Number, k.Failure.Device)
			}
		}
	}
	same("that failed", failed, j.Failed)
	for _, g := range c.Groups {
		if g.Status == finding.Ghost {
			leaks = append(leaks, numbers(g.Ranks)...)
		}
	}
	same("leaks", leaks, j.Leaks)
	for _, o := range c.Outliers {
		if slices.Contains(j.Leaks, c.Ranks[o.Rank].Number) && (len(o.Sites) == 0 || o.Sites[0].Site != fleet.LeakSite) {
			t.Errorf("%s: rank %d has more from %+v", what, c.Ranks[o.Rank].Number, o.Sites)
		}
	}
	want := j.Mesh.Axes[1:2]
	if j.Experts > 1 {
		want = j.Mesh.Axes[1:]
	}
	var tells []ranks.Axis
	for _, a := range c.Mesh.Axes {
		if a.Explains {
			tells = append(tells, a)
		}
	}
	if !slices.EqualFunc(tells, want, func(a, b ranks.Axis) bool { return a.Size == b.Size && a.Stride == b.Stride }) {
		t.Errorf("%s: the peaks differ by %+v, want %+v", what, tells, want)
	}
}

// TestExperts accuses no rank of what its experts have by design.
func TestExperts(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		j := fleet.New(100+seed, 16, 8, 4)
		j.Experts = 4 + 4*int(seed%2)
		list := read(t, j)
		c, err := ranks.Question{Mesh: j.Mesh}.Compare(list)
		if err != nil {
			t.Fatal(err)
		}
		check(t, fmt.Sprintf("seed %d", seed), j, c)
		c = ranks.Compare(list)
		for i := range c.Ranks { // without the mesh what is planted may be lost among what experts have
			if k := &c.Ranks[i]; k.Stands && !slices.Contains(j.Leaks, k.Number) && !slices.Contains(j.Heavy, k.Number) {
				t.Errorf("seed %d, no mesh: rank %d stands out by %d", seed, k.Number, k.Over)
			}
		}
		for _, x := range c.Extras {
			if x.Site != fleet.ExtraSite {
				t.Errorf("seed %d, no mesh: %+v", seed, x)
			}
		}
	}
}

// TestNoStacks compares what ranks have from a place with those of which it is known, and with none where too few are.
func TestNoStacks(t *testing.T) {
	for _, known := range []int{2, 8} { // of 16 ranks of each stage
		j := fleet.New(11, 16, 4, 4)
		j.Blind = nil
		for _, r := range j.Present() {
			if at := j.Mesh.Axes[0].Place(r); at >= known/4 && !slices.Contains(j.Leaks, r) {
				j.Blind = append(j.Blind, r)
			}
		}
		c, err := ranks.Question{Mesh: j.Mesh}.Compare(read(t, j))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range c.Outliers {
			k := &c.Ranks[o.Rank]
			told := len(o.Sites) == 1 && o.Sites[0].Site == fleet.LeakSite && o.Sites[0].Median == 0
			if wants := known > 2 && slices.Contains(j.Leaks, k.Number); told != wants || !told && len(o.Sites) > 0 {
				t.Errorf("%d of 16 with stacks: rank %d has more from %+v", known, k.Number, o.Sites)
			}
		}
	}
}

// TestAnyOrder compares a job in random orders, with some read twice, and has the same bytes each time.
func TestAnyOrder(t *testing.T) {
	j := fleet.New(3, 8, 4, 4)
	list := read(t, j)
	for i, r := range j.Present()[:3] { // copies, older states, failures to read what was read elsewhere
		d := j.Digest(r)
		if d.Fault != "" {
			continue
		}
		d.Source.Path = fmt.Sprintf("/copies/rank%05d.pickle", r)
		list = append(list, ranks.Of(d.Source.Path, d))
		old := j.Digest(r)
		old.Source.Modified--
		old.Source.SHA256[0] ^= byte(i + 1)
		old.Devices[0].Active *= 2
		list = append(list, ranks.Of(old.Source.Path, old))
		none := digest.Failed(digest.Source{Path: j.Digest(r).Source.Path}, os.ErrNotExist)
		list = append(list, ranks.Of(none.Source.Path, none))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var want []byte
	for range 20 {
		rng.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
		var b bytes.Buffer
		if err := json.WriteRanks(&b, ranks.Compare(list)); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = b.Bytes()
			check(t, "with copies", j, ranks.Compare(list))
		}
		if !bytes.Equal(b.Bytes(), want) {
			t.Fatal("the order of the ranks changes the comparison")
		}
	}
}

// TestAlike says nothing of ranks that differ by chance, and infers no mesh.
func TestAlike(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{2, 8, 64, 512} {
		for range 20 {
			var list []ranks.Rank
			for i := range n {
				peak := int64(100*mib) + rng.Int64N(12*mib)
				list = append(list, ranks.Rank{File: fmt.Sprintf("rank%d.pickle", i), Status: finding.Healthy, Active: peak,
					Reserved: 2 * peak, Steps: 10})
			}
			if c := ranks.Compare(list); c.Mesh != nil || len(c.Stragglers) > 0 || len(c.Extras) > 0 || len(c.Hosts) > 0 ||
				n >= 64 && len(c.Outliers) > 0 {
				t.Errorf("%d ranks alike: mesh %+v, stragglers %v, outliers %+v", n, c.Mesh, c.Stragglers, c.Outliers)
			}
		}
	}
}

func TestParseMesh(t *testing.T) {
	m, err := ranks.ParseMesh("dp=8, tp=8,pp=4")
	if err != nil || m.Size() != 256 || m.Axes[0].Place(255) != 7 || m.Axes[1].Place(37) != 1 || m.Axes[2].Place(37) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	for _, bad := range []string{"", "8", "dp", "dp=", "dp=0", "dp=-1", "dp=2,dp=2", "=4", "dp=99999999",
		"a=10000,b=10000,c=10000,d=10000,e=10000", "dp=2,,tp=2"} {
		if _, err := ranks.ParseMesh(bad); err == nil {
			t.Errorf("%q is taken for a mesh", bad)
		}
	}
	if _, err := (ranks.Question{Expected: 2}).Compare([]ranks.Rank{{File: "rank2.pickle"}}); err == nil {
		t.Error("of two ranks there is rank 2")
	}
}

// TestFewAtOnePlace accuses no rank of what its stage has, where a mesh of two ranks a stage is given.
func TestFewAtOnePlace(t *testing.T) {
	var list []ranks.Rank
	for i, peak := range []int64{61, 63, 63, 121, 63, 110, 61, 122} {
		list = append(list, ranks.Rank{File: fmt.Sprintf("rank%d.pickle", i), Status: finding.Healthy, Active: peak * mib})
	}
	m, err := ranks.ParseMesh("dp=2,pp=4")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ranks.Question{Mesh: m}.Compare(list)
	if err != nil || !c.Mesh.Axes[1].Explains || c.Mesh.Axes[0].Explains || len(c.Outliers) != 0 {
		t.Errorf("%+v, outliers %+v, %v", c.Mesh, c.Outliers, err)
	}
}

// TestManyAreNoOutliers accuses no rank where half of them hold more: that is how the program is laid out.
func TestManyAreNoOutliers(t *testing.T) {
	for _, peaks := range [][]int64{{10, 10, 10, 10, 20, 20, 20, 20}, {10, 10, 11, 11}} {
		var list []ranks.Rank
		for i, peak := range peaks {
			list = append(list, ranks.Rank{File: fmt.Sprintf("rank%d.pickle", i), Status: finding.Healthy, Active: peak * mib})
		}
		if c := ranks.Compare(list); len(c.Outliers) != 0 {
			t.Errorf("of %v: outliers %+v", peaks, c.Outliers)
		}
	}
}

// TestSamePath holds that machines with a file of the same path each are ranks of their own where the recorder tells them
// apart, and that nothing is left out without a word where it does not.
func TestSamePath(t *testing.T) {
	one := func(machine string, rank, modified int64, content byte) ranks.Rank {
		d := sound(t)
		d.Source.Path, d.Source.Modified, d.Source.SHA256 = "/tmp/dump.pickle", modified, bytes.Repeat([]byte{content}, 32)
		d.Identity.Machine, d.Identity.Rank = machine, rank
		return ranks.Of(d.Source.Path, d)
	}
	for name, c := range map[string]struct {
		list                 []ranks.Rank
		ranks, older, copies int
	}{
		"two machines":            {[]ranks.Rank{one("a", -1, 1, 1), one("b", -1, 2, 2)}, 2, 0, 0},
		"two ranks of a machine":  {[]ranks.Rank{one("a", 0, 1, 1), one("a", 1, 2, 2)}, 2, 0, 0},
		"states of each of two":   {[]ranks.Rank{one("a", 0, 1, 1), one("b", 1, 2, 2), one("a", 0, 3, 3), one("b", 1, 4, 4)}, 2, 2, 0},
		"nothing tells":           {[]ranks.Rank{one("", -1, 1, 1), one("", -1, 2, 2)}, 1, 1, 0},
		"one file, read twice":    {[]ranks.Rank{one("a", 0, 1, 1), one("a", 0, 1, 1)}, 1, 0, 1},
		"of one the machine only": {[]ranks.Rank{one("a", -1, 1, 1), one("", -1, 2, 2)}, 1, 1, 0},
	} {
		got := ranks.Compare(c.list)
		if len(got.Ranks) != c.ranks || got.Older != c.older || got.Copies != c.copies {
			t.Errorf("%s: %d ranks, %d older, %d copies; want %d, %d, %d", name, len(got.Ranks), got.Older, got.Copies, c.ranks,
				c.older, c.copies)
		}
	}
}

// sound is the digest of a rank of which nothing is to be told.
func sound(t *testing.T) *digest.Digest {
	t.Helper()
	j := fleet.New(3, 8, 4, 4)
	for _, r := range j.Present() {
		if d := j.Digest(r); d.Fault == "" {
			return d
		}
	}
	t.Fatal("no sound digest")
	return nil
}

// TestDamaged holds that a file that cannot be read costs its own rank only, also where it is said how many there are and
// its name tells no rank, or one that there cannot be.
func TestDamaged(t *testing.T) {
	for _, name := range []string{"scrambled.digest", "rank00001-abc-def.digest", "rank99999-abc-def.digest"} {
		var list []ranks.Rank
		for _, n := range []int64{0, 2, 3} {
			d := sound(t)
			d.Identity.Rank, d.Source.Path = n, fmt.Sprintf("/dumps/rank%d.pickle", n)
			list = append(list, ranks.Of(d.Source.Path, d))
		}
		got, err := ranks.Question{Expected: 4}.Compare(append(list, ranks.Unread(name, os.ErrInvalid)))
		if err != nil || got.Read != 3 || got.Ranks[3].Fault == "" {
			t.Errorf("%s: %v, %+v", name, err, got)
			continue
		}
		if missing := len(got.Missing); missing != 1 && name[:9] != "rank00001" || missing == 1 && got.Missing[0] != 1 {
			t.Errorf("%s: missing %v", name, got.Missing)
		}
	}
}
