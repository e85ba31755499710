package oomlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/snapana/snapana/snapshot"
)

// wrapAt breaks a text at spaces into lines of at most n bytes, each behind a prefix.
func wrapAt(text string, n int, prefix string) string {
	var b strings.Builder
	col := 0
	for _, word := range strings.Fields(text) {
		if col > 0 && col+1+len(word) > n {
			b.WriteString("\n")
			col = 0
		}
		if col == 0 {
			b.WriteString(prefix)
		} else {
			b.WriteString(" ")
		}
		b.WriteString(word)
		col += 1 + len(word)
	}
	return b.String() + "\n"
}

// hardAt breaks a text after every n bytes, as terminals do.
func hardAt(text string, n int) string {
	var b strings.Builder
	for len(text) > n {
		b.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	return b.String() + text
}

// TestDecorated holds that what terminals, loggers, web pages and programs do to a message
// does not change what is read.
func TestDecorated(t *testing.T) {
	const color = "\x1b[1;31m"
	plain := func(s string) string { return s }
	ways := map[string]func(string) string{
		"rank":        func(s string) string { return "[rank7]: " + s },
		"rank twice":  func(s string) string { return "[default7]:[rank7]: " + s + "\n[default7]:[rank7]: " },
		"logger":      func(s string) string { return "2024-05-01 12:00:00,123 - trainer - ERROR - " + s },
		"worker":      func(s string) string { return "(EngineCore_0 pid=812) ERROR 08-01 12:00:00 [core.py:12] " + s },
		"CRLF":        func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") + "\r\n" },
		"color":       func(s string) string { return color + s + "\x1b[0m\n" },
		"word colors": func(s string) string { return strings.ReplaceAll(s, " ", " "+color) },
		"HTML": func(s string) string {
			s = strings.NewReplacer("'", "&#39;", "<", "&lt;", ">", "&gt;", "\n", "<br/>", " CUDA", " <b>CUDA</b>",
				" memory",
				"&nbsp;<i class=\"k\">memory</i>").Replace(s)
			return "<pre><span style=\"color:red\">" + s + "</span></pre>"
		},
		"JSON": func(s string) string {
			b, _ := json.Marshal(map[string]string{"error": color + s})
			return string(b)
		},
		"Python's repr": func(s string) string { return "[\"" + strings.ReplaceAll(s, "\n", `\n`) + "\\n\", 1]" },
		"quoted":        func(s string) string { return "> " + strings.ReplaceAll(s, "\n", "\n> ") },
		"frame": func(s string) string {
			return strings.ReplaceAll(wrapAt(s, 60, "│ "), "\n", "   │\n") + "╰────╯\n"
		},
		"bars": func(s string) string { return strings.ReplaceAll(wrapAt(s, 60, "| "), "\n", " |\n") },
	}
	for _, n := range []int{20, 33, 60, 79, 100} {
		for name, prefix := range map[string]string{
			"": "", "indented": "    ", "ranks": "[rank7]: ", "compose": "trainer-0  | ", "srun": "7: ",
			"comment":    "# ",
			"logger":     "2024-05-01 12:00:00,123 - trainer - ERROR - ",
			"glog":       "E0501 12:00:00.123456 4242 logger.cc:12] ",
			"kubernetes": "2024-05-01T12:00:00.123456789Z stderr F ",
			"worker":     "(RayWorkerWrapper pid=9, ip=10.0.0.1) ",
		} {
			ways[fmt.Sprintf("wrapped at %d, %s", n, name)] = func(s string) string { return wrapAt(s, n, prefix) }
		}
		ways[fmt.Sprintf("broken at %d", n)] = func(s string) string { return hardAt(s, n) }
	}
	names, texts := cases(t)
	for i, text := range texts {
		if strings.Contains(names[i], "cut") || strings.Contains(names[i], "H: as") ||
			strings.Contains(names[i], "M:") ||
			strings.HasPrefix(names[i], "C: torch") {
			continue // they are decorated already, or depend on how their lines break
		}
		text = strings.TrimSuffix(text, "\n")
		want := collect(t, plain(text))[0]
		want.Rank, want.Class = 0, ""
		for way, f := range ways {
			var n int
			if k, _ := fmt.Sscanf(way, "broken at %d", &n); k == 1 {
				if at := strings.Index(text, "memory"); at >= 0 && at/n != (at+len("memory")-1)/n {
					continue // the anchor itself is broken: a limit of the scanner
				}
			}
			found := collect(t, f(text))
			if len(found) != 1 {
				t.Errorf("%s, %s: %d messages in\n%s", names[i], way, len(found), f(text))
				continue
			}
			got := found[0]
			got.Rank, got.Class = 0, ""
			if got.facts() != want.facts() {
				t.Errorf("%s, %s:\n got %s\nwant %s\nin %s", names[i], way, got.facts(), want.facts(), f(text))
			}
		}
	}
}

// TestRank reads ranks, and none out of other numbers.
func TestRank(t *testing.T) {
	for prefix, want := range map[string]int{
		"[rank3]: ": 3, "[rank12]:[E123] ": 12, "[default4]:": 4, "rank=5 ": 5, "Rank 6: ": 6, "7: ": 7,
		"local_rank: 2 ": 2,
		"":               -1, "2024-05-01 12:00:00 ": -1, "[GPU 3] ": -1, "ranking 3 ": -1,
	} {
		for _, class := range []string{"", "torch.OutOfMemoryError: "} {
			m := collect(t, "x\n"+prefix+class+"CUDA out of memory. Tried to allocate 2.00 MiB")
			if len(m) != 1 || m[0].Rank != want || m[0].Class != strings.TrimSuffix(class, ": ") {
				t.Errorf("%q: %+v, want rank %d", prefix+class, m, want)
			}
		}
	}
}

// TestCut cuts messages after every byte: what is still there is read as before, and a cut
// message says so.
func TestCut(t *testing.T) {
	names, texts := cases(t)
	for i, text := range texts {
		whole := collect(t, text)[0]
		fields := whole.fields()
		last := 0
		for n := range text {
			found := collect(t, text[:n])
			if len(found) > 1 {
				t.Fatalf("%s cut at %d: %d messages", names[i], n, len(found))
			}
			if len(found) == 0 {
				if last > 0 {
					t.Errorf("%s: found before, but not when cut at %d", names[i], n)
				}
				continue
			}
			m := &found[0]
			for name, s := range m.fields() {
				if fields[name] != s {
					t.Errorf("%s cut at %d: %s is %d, in the whole %d", names[i], n, name, s.Bytes, fields[name].Bytes)
				}
			}
			if len(m.fields()) < last {
				t.Errorf("%s cut at %d: fields are lost", names[i], n)
			}
			last = len(m.fields())
			if m.Device >= 0 && m.Device != whole.Device {
				t.Errorf("%s cut at %d: device %d", names[i], n, m.Device)
			}
			if last < len(fields) && !m.Cut && whole.Family != XPU {
				t.Errorf("%s cut at %d is not marked as cut: %s", names[i], n, m.facts())
			}
		}
	}
}

func errorsOf(r io.Reader) (out []Message, err error) {
	err = Scan(r, func(m Message) error { out = append(out, m); return nil })
	return out, err
}

func same(a, b []Message) bool {
	return slices.EqualFunc(a, b, func(a, b Message) bool { return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) })
}

// TestChunks slides messages over the buffer's end, and reads one byte at a time.
func TestChunks(t *testing.T) {
	_, texts := cases(t)
	all := strings.Join(texts, "\n-----\n")
	want := collect(t, all)
	if len(want) != len(texts) {
		for i, m := range want {
			t.Logf("%d %s", i, m.facts())
		}
		t.Fatalf("%d messages of %d", len(want), len(texts))
	}
	got, err := errorsOf(iotest.OneByteReader(strings.NewReader(all)))
	if err != nil || !same(got, want) {
		t.Errorf("one byte at a time: %d messages, %v", len(got), err)
	}
	for pad := bufferSize - len(all) - 200; pad < bufferSize+200; pad += 61 {
		got := collect(t, strings.Repeat("x", pad-1)+"\n"+all)
		for i := range got {
			got[i].Offset -= int64(pad)
			got[i].Line--
		}
		if !same(got, want) {
			t.Fatalf("behind %d bytes: %d messages of %d", pad, len(got), len(want))
		}
	}
}

// TestErrors holds that errors come through, after the messages before them.
func TestErrors(t *testing.T) {
	bad := errors.New("bad disk")
	text := "CUDA out of memory. Tried to allocate 2.00 MiB\n"
	got, err := errorsOf(io.MultiReader(strings.NewReader(text), iotest.ErrReader(bad)))
	if !errors.Is(err, bad) || len(got) != 1 {
		t.Errorf("%d messages, error %v", len(got), err)
	}
	if _, err := errorsOf(stuck{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that gives nothing: %v", err)
	}
	n := 0
	err = Scan(strings.NewReader(text+text), func(Message) error { n++; return bad })
	if err != bad || n != 1 {
		t.Errorf("error of the callback: %v after %d", err, n)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// TestMemory holds that memory does not grow with the log.
func TestMemory(t *testing.T) {
	line := logs["memory"] + logs["progress"]
	scan := func(size int64) float64 {
		return testing.AllocsPerRun(1, func() {
			if _, err := errorsOf(io.LimitReader(&forever{line: line}, size)); err != nil {
				t.Fatal(err)
			}
		})
	}
	if small, large := scan(1<<20), scan(16<<20); large > small+5 {
		t.Errorf("%v allocations for 16 MiB, %v for 1 MiB", large, small)
	}
}

type forever struct {
	line string
	at   int
}

func (f *forever) Read(p []byte) (int, error) {
	n := copy(p, f.line[f.at:])
	f.at = (f.at + n) % len(f.line)
	return n, nil
}

// FuzzScan: no input breaks the scanner, and chunks do not matter.
func FuzzScan(f *testing.F) {
	names, texts := cases(f)
	for i, text := range texts {
		f.Add(text)
		f.Add("[rank0]: \x1b[31m" + names[i] + "\n" + wrapAt(text, 40, "[rank0]: "))
		f.Add(strings.ReplaceAll(text, " ", "&nbsp;"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, err := errorsOf(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := errorsOf(iotest.OneByteReader(strings.NewReader(text)))
		if err != nil || !same(got, want) {
			t.Fatalf("one byte at a time: %d messages of %d, %v", len(got), len(want), err)
		}
		at := int64(-1)
		for _, m := range want {
			if m.Offset <= at || m.Offset >= int64(len(text)) || m.Line < 1 || len(m.Text) > 2048 {
				t.Fatalf("place of %+v", m)
			}
			if at = m.Offset; int64(strings.Count(text[:at], "\n"))+1 != m.Line {
				t.Fatalf("line %d at byte %d", m.Line, at)
			}
		}
	})
}

// A log of nothing but beginnings is refused with the place, and one with as many whole messages is not.
func TestBeginnings(t *testing.T) {
	var fault *snapshot.FormatError
	err := Scan(strings.NewReader(strings.Repeat("CUDA out of memory ", 200_000)), func(Message) error {
		return nil
	})
	if !errors.As(err, &fault) || !errors.Is(err, snapshot.ErrLimit) || fault.Offset < 1<<20 {
		t.Errorf("beginnings: %v", err)
	}
	const whole = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of " +
		"79.25 GiB of which 8.19 MiB is free.\n"
	n := 0
	err = Scan(strings.NewReader(strings.Repeat(whole, 150_000)), func(Message) error {
		n++
		return nil
	})
	if err != nil || n != 150_000 {
		t.Errorf("%d messages, %v", n, err)
	}
}
