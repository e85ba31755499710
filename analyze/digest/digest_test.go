package digest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/digest"
	"github.com/snapana/snapana/analyze/ranks"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/budget"
)

func source(path string) digest.Source {
	return digest.Source{Path: path, Size: 1000, Modified: 1700000000000000, SHA256: bytes.Repeat([]byte{7}, 32)}
}

// runs are analyzed snapshots of many kinds.
func runs(t testing.TB) map[string]*analyze.Result {
	out := map[string]*analyze.Result{}
	for _, c := range analyzetest.Verdicts() {
		out[c.Name] = c.Open(t)
	}
	out["empty"] = analyzetest.Empty(t)
	out["devices"] = analyzetest.Big(t, 3)
	return out
}

// TestRound reads what was written, with findings and their evidence, and writes the same bytes again.
func TestRound(t *testing.T) {
	for name, r := range runs(t) {
		d := digest.Of(source("/runs/"+name+"/rank7.pickle"), r, nil)
		data, err := d.Encode()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := digest.Decode(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, err := got.Encode()
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("%s: read and written again it differs: %v", name, err)
		}
		list, err := got.Findings.List()
		if want := r.Verdict.Findings; err != nil || len(list) != len(want) || len(want) > 0 &&
			!reflect.DeepEqual(list[0].Evidence.Request, want[0].Evidence.Request) {
			t.Errorf("%s: %d findings of %d: %v", name, len(list), len(want), err)
		}
		if got.Identity.Rank != 7 || got.Verdict.Headline != r.Verdict.Headline {
			t.Errorf("%s: rank %d, %q", name, got.Identity.Rank, got.Verdict.Headline)
		}
	}
}

// TestSums holds that tables lose no byte, however many rows are left out.
func TestSums(t *testing.T) {
	for name, r := range runs(t) {
		d := digest.Of(source("/x.pickle"), r, nil)
		for i := range d.Devices[:min(len(d.Devices), 1)] {
			for _, m := range d.Devices[i].Moments {
				sites, uses, stacks := m.Sites.Rest, m.Categories.Rest, m.Stacks.Rest
				for _, n := range m.Sites.Bytes {
					sites += n
				}
				for _, n := range m.Categories.Bytes {
					uses += n
				}
				for _, n := range m.Stacks.Bytes {
					stacks += n
				}
				if all := m.Totals.Active; sites != all || uses != all || stacks != all {
					t.Errorf("%s, %s: %d by site, %d by use, %d by stack, of %d", name, m.Name, sites, uses, stacks, all)
				}
			}
		}
	}
}

// TestVersions refuses newer versions, whatever else they have, and says why.
func TestVersions(t *testing.T) {
	data, err := digest.Failed(source("/x.pickle"), errors.New("is a text file")).Encode()
	if err != nil {
		t.Fatal(err)
	}
	newer := slices.Clone(data)
	newer[len("snapana digest\n")+1]++
	if _, err := digest.Decode(newer); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("a newer digest: %v", err)
	}
	if d, err := digest.Decode(data); err != nil || d.Fault != "is a text file" {
		t.Errorf("%v, %v", d, err)
	}
	for n := range data {
		if _, err := digest.Decode(data[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are taken for a digest", n, len(data))
		}
	}
	bad := slices.Clone(data)
	bad[40] ^= 1
	if _, err := digest.Decode(bad); !errors.Is(err, snapshot.ErrCorrupt) {
		t.Errorf("a changed bit: %v", err)
	}
}

// TestAbsent takes what a digest does not say for unknown, and refuses one that does not say what it is of.
func TestAbsent(t *testing.T) {
	body := func(path string) []byte {
		data, err := msgpack.Marshal(map[string]any{"source": map[string]any{"path": path, "sha256": make([]byte, 32)},
			"verdict": map[string]any{"status": "healthy"}, "devices": []any{map[string]any{}}})
		if err != nil {
			t.Fatal(err)
		}
		return digest.Sealed(append([]byte("snapana digest\n\x00\x01"), data...))
	}
	d, err := digest.Decode(body("/a.pickle"))
	if err != nil {
		t.Fatal(err)
	}
	if id := d.Identity; d.Source.Size != -1 || id.Rank != -1 || id.WorldSize != -1 || id.LocalRank != -1 {
		t.Errorf("%+v %+v", d.Source, id)
	}
	k := ranks.Of("a.pickle", d)
	if k.Device != -1 || k.Reserved != -1 || k.Active != -1 || k.Growth != -1 || k.Pieces != -1 || d.Devices[0].Total != -1 {
		t.Errorf("%+v", k)
	}
	if _, err := digest.Decode(body("")); !errors.Is(err, snapshot.ErrCorrupt) {
		t.Errorf("a digest of no file: %v", err)
	}
}

// TestDone finds a digest of the file as it is, and none of one that changed, failed or was read otherwise.
func TestDone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "rank[3].pickle")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	src, err := digest.Stat(t.Context(), file, "")
	if err == nil {
		err = src.Hash(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	write := func(d *digest.Digest) {
		t.Helper()
		data, err := d.Encode()
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, d.Source.Name()), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(digest.Failed(src, errors.New("is cut off")))
	if digest.List(t.Context(), dir).Done(t.Context(), &src) {
		t.Error("a digest that says a fault is done")
	}
	write(digest.Of(src, analyzetest.Failed(t), nil))
	there := digest.List(t.Context(), dir)
	if !there.Done(t.Context(), &src) {
		t.Error("a digest is not found")
	}
	for _, change := range []func(*digest.Source){
		func(s *digest.Source) { s.Size++ }, func(s *digest.Source) { s.Modified++ },
		func(s *digest.Source) { s.Options = "partial" }, func(s *digest.Source) { s.Path += "x" },
	} {
		other := src
		change(&other)
		if there.Done(t.Context(), &other) {
			t.Errorf("%+v is taken for done", other)
		}
	}
}

// TestHash allows the time that the checksum of a large file takes, though nobody decodes it.
func TestHash(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.pickle")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	meter := new(budget.Meter)
	for n := int64(1); n <= 2; n++ {
		src := digest.Source{Path: file}
		if err := src.Hash(budget.With(t.Context(), meter)); err != nil || meter.Bytes() != n<<20 {
			t.Errorf("%d bytes are allowed after %d MiB, %v", meter.Bytes(), n, err)
		}
	}
}

// FuzzDigest decodes whatever comes, with a checksum that fits: it is refused or read, and what is read can be written.
func FuzzDigest(f *testing.F) {
	data, err := digest.Of(source("/rank1.pickle"), analyzetest.Failed(f), nil).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[:len(data)-32])
	f.Add([]byte("snapana digest\n\x00\x01\x81\xa7devices\xdd\xff\xff\xff\xff"))
	f.Add([]byte("snapana digest\n\x00\x01" + strings.Repeat("\x91", 1000)))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := digest.Decode(digest.Sealed(data))
		if err != nil {
			if fault := (*snapshot.FormatError)(nil); !errors.As(err, &fault) {
				t.Fatalf("%v", err)
			}
			return
		}
		d.Findings.List()
		list := make([]ranks.Rank, 5)
		for i := range list {
			d.Source.Path, d.Identity.Rank = fmt.Sprintf("/rank%d.pickle", i), int64(i)
			list[i] = ranks.Of(d.Source.Path, d)
		}
		if err := json.WriteRanks(io.Discard, ranks.Compare(list)); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Encode(); err != nil && !strings.Contains(err.Error(), "more than") {
			t.Fatal(err)
		}
	})
}
