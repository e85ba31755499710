package unpack

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/snapana/snapana/snapshot"
)

// Kind is what the first bytes of a file show it to be.
type Kind string

const (
	Pickle Kind = "pickle"
	JSON   Kind = "JSON"

	isHTML  Kind = "HTML"
	isZip   Kind = "zip"
	isGzip  Kind = "gzip"
	isZstd  Kind = "zstd"
	isXz    Kind = "xz"
	isBzip2 Kind = "bzip2"

	isEmpty   Kind = "empty"
	isLFS     Kind = "LFS"
	isPacked  Kind = "packed"
	isForeign Kind = "foreign" // which foreign tells
	isText    Kind = "text"
	isOther   Kind = "other"
)

// layer reports whether something may be inside.
func (k Kind) layer() bool {
	return slices.Contains([]Kind{isHTML, isZip, isGzip, isZstd, isXz, isBzip2}, k)
}

var bom = []byte("\xef\xbb\xbf")

var magics = []struct {
	magic string
	kind  Kind
}{
	{"\x1f\x8b", isGzip},
	{"\x28\xb5\x2f\xfd", isZstd},
	{"\xfd7zXZ\x00", isXz},
	{"BZh", isBzip2},
	{"PK\x03\x04", isZip},
	{"PK\x05\x06", isZip}, // an archive of nothing
	{"version https://git-lfs", isLFS},
	{"7z\xbc\xaf\x27\x1c", isPacked},
	{"\x04\x22\x4d\x18", isPacked}, // lz4
	{"Rar!", isPacked},
}

// strangers are files that people have beside snapshots: patterns of their first bytes, and what they are.
var strangers = [][2]string{
	// torch.save before 1.6 begins with a pickled magic number (torch/serialization.py, MAGIC_NUMBER).
	{`\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19`, "a torch.save checkpoint"},
	// A length of 8 bytes, and that much JSON (github.com/huggingface/safetensors, "Format").
	{`.{4}\x00{4}\{[" }]`, "a safetensors file, the weights of a model"},
	{`GGUF`, "a GGUF file, the weights of a model"},
	{`\x89HDF\r\n`, "an HDF5 file"},
	{`\x93NUMPY`, "a NumPy array"},
	{`SQLite format 3\x00`, "an SQLite database, perhaps an export of Nsight Systems"},
	{`PERFILE2`, "a recording of perf"},
	{`memray\x00`, "a recording of memray"},
	// A Profile's sample types, its first field, are two numbers each (proto/profile.proto of pprof).
	{`\x0a[\x04-\x08]\x08.{1,2}\x10`, "a pprof profile"},
	// A dict whose keys are tuples of file, line and function (Python/marshal.c, Lib/cProfile.py).
	{`[{\xfb][)(\xa8\xa9]\x03`, "a profile of cProfile"},
	{`\x89PNG\r\n|\xff\xd8\xff`, "a picture"},
	{`\x7fELF`, "a program or a core dump"},
	{`%PDF-`, "a PDF document"},
	// JSON: what torch.profiler and other tracers write.
	{`\s*\{\s*"schemaVersion":\s*\d+,\s*"deviceProperties":`, traceOfEvents},
	{`\s*\{.*"traceEvents":`, traceOfEvents},
	{`\s*\[\s*\{[^{}]*"ph":\s*"`, traceOfEvents},
	{`\s*\{\s*"schema":\s*"snapana\.`, "what snapana found in a file, not the file itself"},
	{`\s*\{.*speedscope\.app/file-format`, "a profile for speedscope"},
	{`\s*<\?xml.*<nvidia_smi_log>`, "what `nvidia-smi -q -x` prints"},
}

const traceOfEvents = "a trace of events, as torch.profiler exports it for Chrome and Perfetto"

var patterns = sync.OnceValue(func() (out []*regexp.Regexp) {
	for _, s := range strangers {
		out = append(out, regexp.MustCompile("^(?s:"+s[0]+")"))
	}
	return out
})

// latin makes each byte a character, as regular expressions want it.
func latin(b []byte) string {
	runes := make([]rune, len(b))
	for i, c := range b {
		runes[i] = rune(c)
	}
	return string(runes)
}

// stranger says what begins so, "" if that is none of strangers.
func stranger(head []byte) string {
	text := latin(head)
	for i, p := range patterns() {
		if p.MatchString(text) {
			return strangers[i][1]
		}
	}
	return ""
}

// textPickle matches the beginnings of pickles of protocol 0 and 1, which have no magic
// number: a MARK with the opcode that closes or opens a container, an empty container with
// what follows one, or a GLOBAL.
var textPickle = regexp.MustCompile(`^(\([dlt][p.(q]|\(+[dl]p\d|[\]}][qr(.VUXS]|` +
	`(\(i|\(?c)[A-Za-z_][\w.]*\n[A-Za-z_][\w.]*\n[(pq)\]}.N])`)

func sniff(head []byte) Kind {
	if len(head) == 0 {
		return isEmpty
	}
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.kind
		}
	}
	if stranger(head) != "" {
		return isForeign
	}
	if len(head) > 262 && string(head[257:262]) == "ustar" {
		return isPacked
	}
	if head[0] == 0x80 && (len(head) == 1 || head[1] < 0x10) {
		return Pickle
	}
	if textPickle.Match(head) {
		return Pickle
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, bom), " \t\r\n")
	switch {
	case len(text) > 0 && (text[0] == '{' || text[0] == '['):
		return JSON
	case len(text) > 1 && text[0] == '<' && (text[1] == '!' || text[1]|0x20 >= 'a' && text[1]|0x20 <= 'z'):
		return isHTML
	case Printable(head, "\n\r\t"):
		return isText
	}
	return isOther
}

// Printable reports whether head begins a text with no other control characters than those. The last
// character may be cut.
func Printable(head []byte, controls string) bool {
	for i := 0; i < len(head); {
		r, n := utf8.DecodeRune(head[i:])
		broken := r == utf8.RuneError && n == 1 && len(head)-i >= utf8.UTFMax
		if broken || r < ' ' && !strings.ContainsRune(controls, r) {
			return false
		}
		i += n
	}
	return true
}

// Stranger is the error for what is no snapshot: what it is, and what to do.
func (in *Input) Stranger() error {
	const dump = "snapshots are written by torch.cuda.memory._dump_snapshot"
	if in.cut {
		return cutOff(Kind(in.Containers[len(in.Containers)-1]))
	}
	msg, class, kind := "", snapshot.ErrNotSnapshot, in.Kind
	switch ext := strings.ToLower(filepath.Ext(in.name)); {
	case kind == isEmpty && len(in.Containers) > 0:
		msg = "contains nothing: the " + in.Containers[len(in.Containers)-1] + " data is empty"
	case kind == isEmpty:
		return &snapshot.FormatError{Offset: 0, Err: snapshot.ErrTruncated,
			Msg: "the file is empty; the dump may have failed or still be running"}
	case kind == isLFS:
		msg = "is a Git LFS pointer, not the file itself; run `git lfs pull` to fetch it"
	case kind == isPacked:
		msg = "is an archive of an unsupported kind; unpack it and name one snapshot"
	case kind == isForeign:
		msg = "is " + stranger(in.head) + "; " + dump
	case ext == ".nsys-rep" || ext == ".qdrep":
		msg = "is a report of Nsight Systems, not a memory snapshot; " + dump
	case ext == ".ncu-rep":
		msg = "is a report of Nsight Compute, not a memory snapshot; " + dump
	case isRecording(in.head):
		msg, class = "is a recording of what is beside snapshots, not a snapshot", snapshot.Recording
	case bytes.HasPrefix(in.head, []byte("snapana digest\n")): // analyze/digest/FORMAT.md
		msg, class = "is a digest of a snapshot, not the snapshot itself", snapshot.Digest
	case kind == isText && memoryViz(in.head):
		msg = "is what python -m torch.cuda._memory_viz printed about a snapshot, not the snapshot itself; " + dump
	case kind == isText:
		line, _, _ := bytes.Cut(bytes.TrimSpace(bytes.TrimPrefix(in.head, bom)), []byte("\n"))
		msg, class = "is a text file (it begins with "+quote(line)+"), not a memory snapshot; "+dump, snapshot.Text
	default:
		msg = "is binary data of an unknown kind, not a memory snapshot; " + dump
	}
	return refuse("", class, "%s", msg)
}

// isRecording recognizes a .snapana file (snapshot/sidecar/FORMAT.md, "Stream").
func isRecording(head []byte) bool {
	return len(head) > 0 && (head[0]&0xf0 == 0x80 || head[0] == 0xde) &&
		bytes.Contains(head[:min(len(head), 200)], []byte("\xa4type\xa6header"))
}

// Likely reports whether what begins so has the keys of a snapshot.
func (in *Input) Likely() bool {
	return slices.ContainsFunc([]string{"segments", "device_traces", "total_size", "host_traces"}, func(key string) bool {
		return bytes.Contains(in.head, []byte(key))
	})
}

// memoryViz recognizes what torch/cuda/_memory_viz.py prints: trace, segsum and memory. The first two begin so in 2.1
// to 2.15.
func memoryViz(head []byte) bool {
	line, rest, _ := bytes.Cut(bytes.TrimSpace(bytes.TrimPrefix(head, bom)), []byte("\n"))
	next, _, _ := bytes.Cut(rest, []byte("\n"))
	return bytes.HasPrefix(line, []byte("Summary of segments >= ")) ||
		bytes.HasPrefix(line, []byte("Device ")) && bytes.HasSuffix(bytes.TrimSpace(line), []byte(" ----------------")) &&
			bytes.HasSuffix(bytes.TrimSpace(next), []byte(" entries"))
}

// quote shortens and quotes a piece of the input for a message.
func quote(b []byte) string {
	const most = 40
	s := strings.ToValidUTF8(string(b[:min(most, len(b))]), "")
	q := strconv.Quote(s)
	if len(b) > most {
		q += "..."
	}
	return q
}
