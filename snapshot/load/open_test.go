package load

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/snapana/snapana/snapshot"
)

// tiny is the smallest snapshot: {"segments": [], "device_traces": [[]]}.
const tiny = "\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces]]au."

func packed(t *testing.T, data string, open func(io.Writer) (io.WriteCloser, error)) string {
	t.Helper()
	var b bytes.Buffer
	w, err := open(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func gz(t *testing.T, data string) string {
	return packed(t, data, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil })
}

func zst(t *testing.T, data string) string {
	return packed(t, data, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) })
}

func xzd(t *testing.T, data string) string {
	return packed(t, data, func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) })
}

func zipped(t *testing.T, members ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i+1 < len(members); i += 2 {
		w, err := z.Create(members[i])
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, members[i+1])
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// plotPage is a page like those of _memory_viz._format_viz.
func plotPage(pickles ...string) string {
	var b strings.Builder
	b.WriteString("\n<!DOCTYPE html>\n<html>\n<body>\n<script type=\"module\">\nconst local_files = [")
	for i, p := range pickles {
		if i > 0 {
			b.WriteString(", ")
		}
		p += strings.Repeat("\x00", 3-len(p)%3)
		fmt.Fprintf(&b, `{"name": "snapshot.pickle", "base64": "%s"}`, base64.StdEncoding.EncodeToString([]byte(p)))
	}
	b.WriteString("]\nadd_local_files(local_files, 'Active Memory Timeline')\n</script>\n</body>\n")
	return b.String()
}

// devices makes a snapshot of n devices, to tell snapshots apart.
func devices(n int) string {
	return "\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces](" + strings.Repeat("]", n) + "eu."
}

func TestContainers(t *testing.T) {
	const text = `{"segments": [], "device_traces": [[]]}`
	for _, tt := range []struct {
		name, data, want string
	}{
		{"protocol 0", "(dp0\nVsegments\np1\n(lp2\nsVdevice_traces\np3\n(lp4\n(lp5\nas.", "pickle protocol 0"},
		{"protocol 1", "}q\x00(X\x08\x00\x00\x00segmentsq\x01]q\x02X\x0d\x00\x00\x00device_tracesq\x03]q\x04]q\x05au.",
			"pickle protocol 0"},
		{"protocol 4", tiny, "pickle protocol 4"},
		{"bytes after STOP", tiny + "\x00\x00more", "pickle protocol 4"},
		{"JSON", text, "JSON"},
		{"JSON with a mark and blanks", "\xef\xbb\xbf \r\n" + text, "JSON"},
		{"gzip", gz(t, tiny), "gzip > pickle protocol 4"},
		{"two gzip members", gz(t, tiny[:9]) + gz(t, tiny[9:]), "gzip > pickle protocol 4"},
		{"zstd", zst(t, tiny), "zstd > pickle protocol 4"},
		{"xz", xzd(t, tiny), "xz > pickle protocol 4"},
		{"gzip of JSON", gz(t, text), "gzip > JSON"},
		{"zip", zipped(t, "a/", "", "a/snap.pickle", tiny, "__MACOSX/a", "x", "a/README", "words"),
			"zip > pickle protocol 4"},
		{"zip of gzip", zipped(t, "snap", gz(t, tiny)), "zip > gzip > pickle protocol 4"},
		{"gzip of zip", gz(t, zipped(t, "snap", tiny)), "gzip > zip > pickle protocol 4"},
		{"page", plotPage(tiny), "HTML > pickle protocol 4"},
		{"gzip of page", gz(t, plotPage(tiny)), "gzip > HTML > pickle protocol 4"},
		{"page with much before", "<html>" + strings.Repeat(" ", 1<<17-3) + plotPage(tiny), "HTML > pickle protocol 4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "snap")
			if err := os.WriteFile(path, []byte(tt.data), 0o666); err != nil {
				t.Fatal(err)
			}
			opened, err := Open(t.Context(), path, Options{})
			if err != nil {
				t.Fatal("Open:", err)
			}
			piped, err := Read(t.Context(), iotest.OneByteReader(strings.NewReader(tt.data)), "stdin", Options{})
			if err != nil {
				t.Fatal("Read:", err)
			}
			for _, s := range []*snapshot.Snapshot{opened, piped} {
				if got := strings.Join(s.Container, " > "); got != tt.want {
					t.Errorf("container %q, want %q", got, tt.want)
				}
				if len(s.Traces) != 1 {
					t.Errorf("%d traces, want 1", len(s.Traces))
				}
			}
			if opened.Name != "snap" || piped.Name != "stdin" {
				t.Errorf("names %q and %q", opened.Name, piped.Name)
			}
		})
	}
}

func TestPageOfSeveral(t *testing.T) {
	page := plotPage(devices(1), devices(2), devices(3))
	for i := range 3 {
		s, err := Read(t.Context(), strings.NewReader(page), "plot.html", Options{Index: i})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Traces) != i+1 {
			t.Errorf("index %d gives the snapshot with %d devices", i, len(s.Traces))
		}
		if s.Page != i || s.Pages != 3 {
			t.Errorf("number %d of %d", s.Page, s.Pages)
		}
	}
	_, err := Read(t.Context(), strings.NewReader(page), "plot.html", Options{Index: 3})
	if err == nil || !strings.Contains(err.Error(), "has 3 snapshots") {
		t.Errorf("index 3: %v", err)
	}
}

func TestRejected(t *testing.T) {
	gzipped := gz(t, strings.Repeat(tiny, 50))
	broken := []byte(gz(t, tiny))
	broken[len(broken)-6] ^= 0xff
	for _, tt := range []struct {
		name, data string
		class      error
		want       string
	}{
		{"nothing", "", snapshot.ErrTruncated, "at byte 0: the file is empty"},
		{"SQLite", "SQLite format 3\x00\x10\x00", snapshot.ErrNotSnapshot, "SQLite database"},
		{"LFS", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", snapshot.ErrNotSnapshot,
			"Git LFS pointer"},
		{"text", "Hello there.\nMore.\n", snapshot.Text, `text file (it begins with "Hello there.")`},
		{"text that resembles a pickle", "import\nfoo\n", snapshot.ErrNotSnapshot, "text file"},
		{"binary", "\x00\x01\x02\x00", snapshot.ErrNotSnapshot, "binary data"},
		{"program", "\x7fELF\x02\x01\x01\x00\x00", snapshot.ErrNotSnapshot, "is a program or a core dump"},
		{"safetensors", "\x80\x04\x00\x00\x00\x00\x00\x00{\"__metadata__\":{}}", snapshot.ErrNotSnapshot, "safetensors"},
		{"HDF5", "\x89HDF\r\n\x1a\n\x00", snapshot.ErrNotSnapshot, "HDF5"},
		{"perf", "PERFILE2\x68\x00\x00", snapshot.ErrNotSnapshot, "recording of perf"},
		{"pprof", gz(t, "\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x04"), snapshot.ErrNotSnapshot, "pprof profile"},
		{"cProfile", "{)\x03\xfa\x08train.py", snapshot.ErrNotSnapshot, "cProfile"},
		{"trace of the profiler", "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [" + strings.Repeat("{}, ", 999),
			snapshot.ErrNotSnapshot, "is a trace of events"},
		{"trace of Chrome", gz(t, `{"displayTimeUnit": "ms", "traceEvents": []}`), snapshot.ErrNotSnapshot,
			"is a trace of events"},
		{"trace as a list", `[{"name": "x", "ph": "X"}]`, snapshot.ErrNotSnapshot, "is a trace of events"},
		{"report", "{\n \"schema\": \"snapana.report/1\",", snapshot.ErrNotSnapshot, "is what snapana found"},
		{"report's page", `<!DOCTYPE html><meta name="generator" content="snapana">`, snapshot.ErrNotSnapshot,
			"is a page about a snapshot"},
		{"recording", "\x83\xa4type\xa6header\xa4time\x01\xa6format\xa7snapana", snapshot.Recording, "is a recording"},
		{"nvidia-smi", "<?xml version=\"1.0\" ?>\n<nvidia_smi_log>", snapshot.ErrNotSnapshot, "nvidia-smi -q -x"},
		{"checkpoint", zipped(t, "model/data.pkl", "x", "model/version", "3"), snapshot.ErrNotSnapshot, "torch.save"},
		{"old checkpoint", "\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", snapshot.ErrNotSnapshot,
			"torch.save"},
		{"zip of many", zipped(t, "one.pickle", tiny, "two.pickle", tiny), snapshot.ErrNotSnapshot,
			`zip archive of 2 files ("one.pickle", "two.pickle" ...)`},
		{"zip of none", zipped(t), snapshot.ErrNotSnapshot, "no file in it"},
		{"zip cut off", zipped(t, "a", tiny)[:40], snapshot.ErrCorrupt, "damaged or was cut off"},
		{"tar", strings.Repeat("a", 257) + "ustar\x00" + strings.Repeat("\x00", 300), snapshot.ErrNotSnapshot,
			"unpack it"},
		{"page without", "<!DOCTYPE html><p>words</p>", snapshot.ErrNotSnapshot, "without a snapshot"},
		{"pre-digested page", `<html><script>const a = {"actions": [], "suffix_table": []}`, snapshot.ErrNotSnapshot,
			"torch 2.0"},
		{"page cut off", plotPage(tiny)[:150], snapshot.ErrTruncated, "the file ends here"},
		{"page with bad base64", `<html>{"base64": "gASV!!!!"}`, snapshot.ErrCorrupt, "damaged"},
		{"pickle cut off", tiny[:20], snapshot.ErrTruncated, "at byte 20: the file ends here"},
		{"os.system", "cos\nsystem\n(S'true'\ntR.", snapshot.ErrRefused, "os.system"},
		{"another pickle", "\x80\x04}\x8c\x01a\x8c\x01bs.", snapshot.Data,
			`a pickle, but not a memory snapshot`},
		{"another JSON", `{"a": 1}`, snapshot.Data, "JSON, but not a memory snapshot"},
		{"JSON cut off", `{"segments": [`, snapshot.ErrTruncated, "the file ends here"},
		{"gzip of nothing", gz(t, ""), snapshot.ErrNotSnapshot, "the gzip data is empty"},
		{"gzip header only", gzipped[:5], snapshot.ErrTruncated, "ends in the middle"},
		{"gzip cut off", gzipped[:20], snapshot.ErrTruncated, "ends"},
		{"gzip damaged", string(broken), snapshot.ErrCorrupt, "gzip: the compressed data is damaged"},
		{"zstd damaged", zst(t, tiny)[:8] + "garbage", snapshot.ErrCorrupt, "zstd: "},
		{"packed too often", gz(t, gz(t, gz(t, gz(t, tiny)))), snapshot.ErrLimit, "more than 3 layers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bad file.pickle")
			if err := os.WriteFile(path, []byte(tt.data), 0o666); err != nil {
				t.Fatal(err)
			}
			_, openErr := Open(t.Context(), path, Options{})
			_, readErr := Read(t.Context(), strings.NewReader(tt.data), "a/b.pickle", Options{})
			for err, name := range map[error]string{openErr: path, readErr: "a/b.pickle"} {
				var fe *snapshot.FormatError
				if !errors.As(err, &fe) || !errors.Is(err, tt.class) {
					t.Fatalf("error %v (%T) is not a FormatError of class %q", err, err, tt.class)
				}
				msg := err.Error()
				if !strings.HasPrefix(msg, name+": ") || strings.Count(msg, "b.pickle") > 1 ||
					!strings.Contains(msg, tt.want) {
					t.Errorf("message %q, want %q in it and %q in front, once", msg, tt.want, name)
				}
				if strings.Contains(msg, "\n") {
					t.Errorf("message of several lines: %q", msg)
				}
			}
		})
	}
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, snapshot.ErrNotSnapshot) ||
		!strings.Contains(err.Error(), dir+": is a directory") {
		t.Errorf("directory: %v", err)
	}
	absent := filepath.Join(dir, "absent.pickle")
	if _, err := Open(t.Context(), absent, Options{}); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), absent) {
		t.Errorf("absent: %v", err)
	}
	fault := errors.New("cable pulled")
	_, err := Read(t.Context(), io.MultiReader(strings.NewReader(tiny[:9]), iotest.ErrReader(fault)), "x", Options{})
	if !errors.Is(err, fault) || !strings.Contains(err.Error(), "read x: ") {
		t.Errorf("failing reader: %v", err)
	}
}

func TestMaxBytes(t *testing.T) {
	for _, data := range []string{tiny, gz(t, tiny), zst(t, tiny), plotPage(tiny), zipped(t, "a", tiny)} {
		_, err := Read(t.Context(), strings.NewReader(data), "x", Options{MaxBytes: int64(len(tiny)) - 1})
		var limit *snapshot.LimitError
		if !errors.Is(err, snapshot.ErrLimit) || !errors.As(err, &limit) || limit.Bytes != int64(len(tiny))-1 {
			t.Errorf("%.10q below the limit: %v", data, err)
		}
		opt := Options{MaxBytes: int64(len(tiny)) + 8}
		if _, err := Read(t.Context(), strings.NewReader(data), "x", opt); err != nil {
			t.Errorf("%.10q within the limit: %v", data, err)
		}
	}
}

// TestBomb unpacks much to a file of almost nothing, without any limit set.
func TestBomb(t *testing.T) {
	_, err := Read(t.Context(), strings.NewReader(gz(t, "\x80\x04"+strings.Repeat("N0", 40<<20))), "x", Options{})
	if !errors.Is(err, snapshot.ErrLimit) {
		t.Error(err)
	}
	var limit *snapshot.LimitError
	if msg := fmt.Sprint(err); !strings.Contains(msg, "decompression bomb") || !errors.As(err, &limit) ||
		limit.Bytes != 0 {
		t.Errorf("message %q", msg)
	}
}

func TestPartial(t *testing.T) {
	event := `{"action": "alloc", "addr": %d, "size": 512, "stream": 0}`
	var events []string
	for i := range 1000 {
		events = append(events, fmt.Sprintf(event, 512*i))
	}
	whole := `{"segments": [], "device_traces": [[` + strings.Join(events, ", ") + `]]}`
	for name, data := range map[string]string{
		"JSON":         whole[:len(whole)/2],
		"gzip":         gz(t, whole)[:len(gz(t, whole))/2],
		"gzip, broken": gz(t, whole)[:len(gz(t, whole))/2] + strings.Repeat("\xff", 100),
	} {
		if _, err := Read(t.Context(), strings.NewReader(data), "x", Options{}); err == nil {
			t.Errorf("%s: no error without Partial", name)
		}
		s, err := Read(t.Context(), strings.NewReader(data), "x", Options{Partial: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.Partial == nil || len(s.Traces) != 1 || s.Traces[0].Len() < 100 || s.Traces[0].Len() > 900 {
			t.Errorf("%s: Partial %v, traces %v", name, s.Partial, len(s.Traces))
		}
	}
}

func TestProgress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	data := `{"device_traces": [[]], ` + strings.Repeat(" ", 3<<20) + `"segments": []}`
	if err := os.WriteFile(path, []byte(data), 0o666); err != nil {
		t.Fatal(err)
	}
	calls := 0
	_, err := Open(t.Context(), path, Options{Progress: func(done, total int64) {
		calls++
		if done <= 0 || done > total || total != int64(len(data)) {
			t.Errorf("progress %d of %d", done, total)
		}
	}})
	if err != nil || calls < 2 {
		t.Errorf("%d calls, error %v", calls, err)
	}
}

// TestChecksum tells data from other data, and from the same in another container, far behind its beginning too.
func TestChecksum(t *testing.T) {
	sum := func(r io.Reader) uint32 {
		t.Helper()
		s, err := Read(t.Context(), r, "stdin", Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s.Checksum
	}
	long := func(what string) string {
		return `{"segments": [], "notes": "` + strings.Repeat("x", 3<<20) + what + `", "device_traces": [[]]}`
	}
	a := sum(strings.NewReader(long("a")))
	if got := sum(strings.NewReader(gz(t, long("a")))); got != a {
		t.Errorf("compressed: %08x, want %08x", got, a)
	}
	if got := sum(iotest.HalfReader(strings.NewReader(long("a")))); got != a {
		t.Errorf("read otherwise: %08x, want %08x", got, a)
	}
	if got := sum(strings.NewReader(long("b"))); got == a {
		t.Error("that of other data is the same")
	}
	if got := sum(strings.NewReader(tiny)); got != crc32.Checksum([]byte(tiny), crc32.MakeTable(crc32.Castagnoli)) {
		t.Errorf("of a small file: %08x", got)
	}
	if a, b := sum(strings.NewReader(tiny+strings.Repeat("x", 9<<20))), sum(strings.NewReader(tiny+
		strings.Repeat("x", 2<<20))); a != b {
		t.Errorf("what is far behind the data counts: %08x, %08x", a, b)
	}
}

// TestRecognize tells files that begin as snapshots do, whatever their names.
func TestRecognize(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{
		"snap": tiny, "list": "\x80\x04]}(\x8c\x06deviceK\x00\x8c\x0atotal_sizeK\x00ua.", "x.gz": gz(t, tiny),
		"text.json": `{"device_traces": [[]]}`, "page": plotPage(tiny),
		"not a.pickle": "\x80\x04}\x8c\x01a\x8c\x01bs.", "not b.pickle": "segments\n", "not c": "", "not d": gz(t, "x"),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
		if got, want := Recognize(t.Context(), path), !strings.HasPrefix(name, "not "); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if Recognize(t.Context(), dir) || Recognize(t.Context(), filepath.Join(dir, "absent")) {
		t.Error("a folder, or nothing, is a snapshot")
	}
}
