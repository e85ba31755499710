package html

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/analyze/ranks"
)

func ranksOf(t *testing.T, list []ranks.Rank) string {
	t.Helper()
	var b bytes.Buffer
	link := func(k *ranks.Rank) string { return fmt.Sprintf("rank%d.report/report.html", k.Number) }
	if err := WriteRanks(&b, ranks.Compare(list), link); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func rank(file string, active int64) ranks.Rank {
	return ranks.Rank{File: file, Status: finding.Healthy, Headline: "No problem found.", Reserved: 2 * active, Active: active,
		Growth: -1, Pieces: active / 4}
}

// TestRanks has a cell and a row for each rank, and a link to its report; the one that stands out is marked.
func TestRanks(t *testing.T) {
	var list []ranks.Rank
	for i := range 8 {
		list = append(list, rank(fmt.Sprintf("run/rank%d.pickle", i), 1<<30))
	}
	list[5].Active = 3 << 30
	list = append(list, ranks.Unread("run/rank8.pickle", fmt.Errorf("is <b>cut</b> off")))
	page := ranksOf(t, list)
	for what, n := range map[string]int{
		`<rect `: 5 * 9, `<tr id="rank-`: 9, `class="stands"`: 1, `href="rank5.report/report.html"`: 2,
		`<title>rank 5: 3.00 GiB</title>`: 1, `style="--part:33%">1.00 GiB`: 7, "Rank 5 uses 3x the median": 1,
		`is &lt;b&gt;cut&lt;/b&gt; off`: 1, "rank8.report": 0, `<td class="n tint h-growth" style="--part:0%">unknown`: 8,
		`<title>rank 8: could not be read</title>`: 1, "<script": 0, "9 snapshots, 1 of them unreadable": 2,
		`Next: <a href="rank5.report/report.html">the report of rank 5</a>, or <code>snapana report run/rank5.pickle</code>`: 1,
	} {
		if got := strings.Count(page, what); got != n {
			t.Errorf("%d times %q, want %d", got, what, n)
		}
	}
	if again := ranksOf(t, list); again != page {
		t.Error("equal ranks give another page")
	}
}

// TestManyRanks bounds the page, and merges the cells of ranks so that none is lost.
func TestManyRanks(t *testing.T) {
	var list []ranks.Rank
	for i := range 5000 {
		list = append(list, rank(fmt.Sprintf("run/rank%d.pickle", i), 1<<30))
	}
	list[4998].Active = 7 << 30
	page := ranksOf(t, list)
	if n := strings.Count(page, "<rect "); n != 5*1000 || len(page) > 8<<20 {
		t.Errorf("%d cells, %d bytes", n, len(page))
	}
	if !strings.Contains(page, "<title>rank 4998: 7.00 GiB</title>") || !strings.Contains(page, "Each column is 5 ranks") {
		t.Error("the highest of merged ranks is not shown")
	}
	if n := strings.Count(page, `<a href="#rank-`); n < 4*800 || n >= 5*1000 ||
		!strings.Contains(page, "904 more ranks have no row here.") ||
		!strings.Contains(page, "rank4998.report") {
		t.Errorf("%d cells lead to rows", n)
	}
	rows := make(map[string]bool)
	for _, s := range strings.Split(page, `<tr id="`)[1:] {
		rows[s[:strings.IndexByte(s, '"')]] = true
	}
	for _, s := range strings.Split(page, `<a href="#`)[1:] {
		if id := s[:strings.IndexByte(s, '"')]; !rows[id] {
			t.Fatalf("a cell leads to %s, which is not there", id)
		}
	}
	if page := ranksOf(t, []ranks.Rank{ranks.Unread("a", fmt.Errorf("x"))}); !strings.Contains(page, "no snapshot could be read") {
		t.Error("nothing read, and nothing said")
	}
}

// TestFirstFailure names the rank that failed first only where the times of all first failures tell.
func TestFirstFailure(t *testing.T) {
	for _, c := range []struct {
		first []int64
		want  string
	}{
		{[]int64{3e6, 1e6, 9e6}, "Rank 1 ran out of memory first, at "},
		{[]int64{3000, 1000, 9000}, "Rank 1 may have run out of memory first, at "},
		{[]int64{3e6, 1e6, 0}, "Rank 1 may have run out of memory first, at "},
		{[]int64{1e6, 0, 0}, "Which rank ran out of memory first is not known"},
		{[]int64{1000, 1000, 9000}, "Rank 0 and rank 1 ran out of memory at the same time, at "},
	} {
		var list []ranks.Rank
		for i, at := range c.first {
			k := rank(fmt.Sprintf("rank%d.pickle", i), 1<<30)
			k.Failure = &ranks.Failure{First: at, Time: 10000 - at}
			list = append(list, k)
		}
		page := ranksOf(t, list)
		if !strings.Contains(page, c.want) {
			t.Errorf("first failures at %v: want %q", c.first, c.want)
		}
	}
}
