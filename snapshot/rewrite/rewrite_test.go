package rewrite_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/rewrite"
)

// upper shows where a text stands in what it becomes.
func upper() *rewrite.Texts {
	return &rewrite.Texts{
		Text: func(at rewrite.Place, text string) string {
			if at.IsKey {
				return text
			}
			return strings.ToUpper(text) + "@" + at.Key + "/" + at.Above
		},
		Name: func(name, file string) string { return name + " of " + file },
		Line: strings.ToUpper,
	}
}

func TestJSON(t *testing.T) {
	in := `{"frames": [{"name": "f", "line": 1, "filename": "a\u00e9.py"}, {"filename": "b", "name": "g"}], "x": ["y", 1.5e3, null]}`
	want := `{"frames": [{"name": "f of aé.py", "line": 1, "filename": "AÉ.PY@filename/frames"}, ` +
		`{"filename": "B@filename/frames", "name": "g of b"}], "x": ["Y@x/", 1.5e3, null]}`
	var b bytes.Buffer
	if err := rewrite.JSON(&b, strings.NewReader(in), upper()); err != nil || b.String() != want {
		t.Errorf("%s, %v; want %s", b.String(), err, want)
	}
	for _, bad := range []string{`{"a": secret}`, `]`, `{"a": "b`} {
		if err := rewrite.JSON(io.Discard, strings.NewReader(bad), upper()); err == nil {
			t.Errorf("%s was copied", bad)
		}
	}
}

func TestPickle(t *testing.T) {
	for _, c := range []struct{ what, in, want string }{
		{"a key and its value", "}U\x01aU\x01bs.", "}U\x01aU\x04B@a/s."},
		{"two of them behind a mark", "}(U\x01aU\x01bU\x01cU\x01du.", "}(U\x01aU\x04B@a/U\x01cU\x04D@c/u."},
		{"one text at two places", "}(U\x01aU\x01bq\x00U\x01ch\x00u.", "}(U\x01aU\x04B@a/q\x00U\x01cX\x04\x00\x00\x00B@c/u."},
		{"a frame of protocol 4", "\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00K\x01.", "\x80\x04K\x01."},
		{"a name before its file", "}U\x06frames](}(U\x04nameU\x01fU\x08filenameU\x01xues.",
			"}U\x06frames](}(U\x04nameU\x06f of xU\x08filenameU\x11X@filename/framesues."},
		{"the only frame of a stack", "}(U\x01aK\x01U\x06frames]}(U\x04nameU\x01fU\x08filenameU\x01xuaU\x01cU\x01du.",
			"}(U\x01aK\x01U\x06frames]}(U\x04nameU\x06f of xU\x08filenameU\x11X@filename/framesuaU\x01cU\x04D@c/u."},
		{"the only text of a list, and a key behind none", "}(U\x01a]U\x01bq\x00aU\x01c]U\x01dh\x00u.",
			"}(U\x01a]U\x04B@a/q\x00aU\x01c]U\x01dX\x04\x00\x00\x00B@d/u."},
		{"the only entry of a dict in a dict", "}(U\x01a}U\x01bU\x01csU\x01dU\x01eu.", "}(U\x01a}U\x01bU\x05C@b/asU\x01dU\x04E@d/u."},
		{"what is behind the end", "U\x01a.secret", "U\x03A@/."},
		{"protocol 0", "(dp0\nVa\np1\nVb\np2\ns.", "(dp0\nVa\np1\nVB@a/\np2\ns."},
	} {
		var b bytes.Buffer
		if err := rewrite.Pickle(&b, strings.NewReader(c.in), upper()); err != nil || b.String() != c.want {
			t.Errorf("%s: %q, %v; want %q", c.what, b.String(), err, c.want)
		}
	}
	err := rewrite.Pickle(io.Discard, strings.NewReader("cos\nsystem\n(U\x02lstR."), upper())
	if !errors.Is(err, snapshot.ErrRefused) {
		t.Errorf("a call: %v", err)
	}
	if err := rewrite.Pickle(io.Discard, strings.NewReader("}U\x09a"), upper()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut text: %v", err)
	}
}

func TestMessagePack(t *testing.T) {
	in := "\x83\xa4type\xa6header\xa3run\xa1a\xa1l\x92\x01\xa1b"
	want := "\x83\xa4type\xadHEADER@type/he"
	var b bytes.Buffer
	if err := rewrite.MessagePack(&b, strings.NewReader(in), upper()); err != nil || !strings.Contains(b.String(), "A@run/header") ||
		!strings.Contains(b.String(), "\x92\x01") {
		t.Errorf("%q, %v; want %q", b.String(), err, want)
	}
}

// FuzzAll wants no panic, and none of the texts that are there.
func FuzzAll(f *testing.F) {
	f.Add([]byte("\x80\x04}(\x8c\x01aK\x01u."))
	f.Add([]byte(`{"a": ["b"]}`))
	f.Add([]byte("\x82\xa4type\xa6header\xa1a\x90"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		rewrite.Pickle(io.Discard, bytes.NewReader(data), upper())
		rewrite.JSON(io.Discard, bytes.NewReader(data), upper())
		rewrite.MessagePack(io.Discard, bytes.NewReader(data), upper())
		rewrite.Lines(io.Discard, bytes.NewReader(data), upper())
	})
}
