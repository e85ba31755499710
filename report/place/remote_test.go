package place

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/snapana/snapana/fixtures/s3"
	"github.com/snapana/snapana/snapshot/store"
)

func pageOurs(name string) bool {
	return strings.HasSuffix(name, ".html") || strings.HasSuffix(name, ".png")
}

func pages(text string) []File {
	return []File{{Name: "index.html", Data: []byte(text)}, {Name: "a.png", Fill: func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}}, {Name: "b.png", Data: []byte(text)}}
}

// got is what an object holds.
func got(t *testing.T, name string) string {
	t.Helper()
	o, err := store.Open(store.With(t.Context()), name)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	data, _ := io.ReadAll(o)
	return string(data)
}

// A folder in a store is made and replaced; what is not ours stays.
func TestStore(t *testing.T) {
	s := s3.New(t)
	ctx := store.With(t.Context())
	const dir = "s3://bucket/out/run 1"
	if err := Create(ctx, dir, pages("one"), pageOurs); err != nil {
		t.Fatal(err)
	}
	if err := Create(ctx, dir, pages("two"), pageOurs); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if err := Write(ctx, dir+"/notes.txt", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	if err := Replace(ctx, dir, pages("two")[:2], pageOurs); err != nil {
		t.Fatal(err)
	}
	want := []string{"out/run 1/a.png", "out/run 1/index.html", "out/run 1/notes.txt"}
	if keys := s.Keys(t); !slices.Equal(keys, want) || got(t, dir+"/a.png") != "two" || got(t, dir+"/notes.txt") != "mine" {
		t.Error(keys)
	}
	if err := WriteBy(ctx, "s3://bucket/x", func(io.Writer) error { return io.ErrShortWrite }); err == nil ||
		slices.Contains(s.Keys(t), "x") {
		t.Error(err)
	}
	if err := Write(ctx, "gs://bucket/x", nil); err == nil {
		t.Error("another kind of URL was written to")
	}
}

// TestStoreKilled ends a writer before each of its requests: the first file, by which others are found, is there only
// with them. What is left is known not to be whole, and goes when the next one writes.
func TestStoreKilled(t *testing.T) {
	usual := tooLong
	t.Cleanup(func() { tooLong = usual })
	const dir = "s3://bucket/out"
	for at := int64(1); ; at++ {
		s := s3.New(t)
		if err := Create(store.With(t.Context()), dir, pages("old"), pageOurs); err != nil {
			t.Fatal(err)
		}
		ctx, kill := context.WithCancel(store.With(t.Context()))
		var n atomic.Int64
		s.Fault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if n.Add(1) < at {
				return false
			}
			kill()
			s3.Refuse(w, 400, "Killed") // all that follows, too
			return true
		})
		err := Replace(ctx, dir, pages("new"), pageOurs)
		kill()
		s.Fault(nil)
		if err == nil {
			if at < 8 {
				t.Errorf("it took %d requests", at)
			}
			break
		}
		keys := s.Keys(t)
		if slices.Contains(keys, "out/index.html") {
			text := got(t, dir+"/index.html")
			for _, f := range []string{"/a.png", "/b.png"} {
				if got(t, dir+f) != text {
					t.Errorf("killed at request %d: %s is another one's", at, f)
				}
			}
		}
		if marked := slices.Contains(keys, "out/"+mark); marked != (at > 1) {
			t.Errorf("killed at request %d: %v", at, keys)
		} else if marked {
			if err := Mend(store.With(t.Context()), dir, pageOurs); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Error(err)
			}
		}
		tooLong = 0
		if err := Mend(store.With(t.Context()), dir, pageOurs); err != nil {
			t.Error(err)
		}
		tooLong = usual
		if err := Replace(store.With(t.Context()), dir, pages("new"), pageOurs); err != nil || got(t, dir+"/a.png") != "new" {
			t.Errorf("killed at request %d: %v", at, err)
		}
	}
}

// TestStoreFails refuses one file: nothing of what was written stays.
func TestStoreFails(t *testing.T) {
	s := s3.New(t)
	s.Fault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "a.png") {
			s3.Refuse(w, 403, "AccessDenied")
			return true
		}
		return false
	})
	err := Create(store.With(t.Context()), "s3://bucket/out", pages("x"), pageOurs)
	if keys := s.Keys(t); !errors.Is(err, fs.ErrPermission) || len(keys) > 0 {
		t.Errorf("%v, left %v", err, keys)
	}
}

// TestAdd leaves what another put in the meantime, knows its own after an answer that was lost, and writes where the
// store knows no conditions.
func TestAdd(t *testing.T) {
	s := s3.New(t)
	ctx := store.With(t.Context())
	var all Series
	const name = "s3://bucket/out/a.digest"
	if err := all.Add(ctx, name, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := all.Add(ctx, name, []byte("two")); !errors.Is(err, fs.ErrExist) || got(t, name) != "one" {
		t.Errorf("%v, %q", err, got(t, name))
	}
	s.Fault(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Header.Get("If-None-Match") != "" {
			s3.Refuse(w, 501, "NotImplemented")
			return true
		}
		return false
	})
	if err := all.Add(ctx, name, []byte("two")); err != nil || got(t, name) != "two" {
		t.Errorf("%v, %q", err, got(t, name))
	}
	var puts atomic.Int64
	s.Fault(func(w http.ResponseWriter, r *http.Request, serve http.Handler) bool {
		if r.Method != http.MethodPut || puts.Add(1) > 1 {
			return false
		}
		serve.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
	if err := Create(ctx, "s3://bucket/new", pages("x"), pageOurs); err != nil || puts.Load() < 2 {
		t.Errorf("%v, %d times put", err, puts.Load())
	}
}
