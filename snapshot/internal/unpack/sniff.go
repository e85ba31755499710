package unpack

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

	isEmpty      Kind = "empty"
	isSQLite     Kind = "SQLite"
	isLFS        Kind = "LFS"
	isCheckpoint Kind = "checkpoint"
	isPacked     Kind = "packed"
	isText       Kind = "text"
	isOther      Kind = "other"
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
	{"SQLite format 3\x00", isSQLite},
	{"version https://git-lfs", isLFS},
	// torch.save before 1.6 begins with a pickled magic number (torch/serialization.py, MAGIC_NUMBER).
	{"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", isCheckpoint},
	{"7z\xbc\xaf\x27\x1c", isPacked},
	{"\x04\x22\x4d\x18", isPacked}, // lz4
	{"Rar!", isPacked},
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
	msg, kind := "", in.Kind
	switch ext := strings.ToLower(filepath.Ext(in.name)); {
	case kind == isEmpty && len(in.Containers) > 0:
		msg = "contains nothing: the " + in.Containers[len(in.Containers)-1] + " data is empty"
	case kind == isEmpty:
		return &snapshot.FormatError{Offset: 0, Err: snapshot.ErrTruncated,
			Msg: "the file is empty; the dump may have failed or still be running"}
	case kind == isSQLite:
		msg = "is an SQLite database, perhaps an export of Nsight Systems, not a memory snapshot; " + dump
	case kind == isLFS:
		msg = "is a Git LFS pointer, not the file itself; run `git lfs pull` to fetch it"
	case kind == isCheckpoint:
		msg = "is a torch.save checkpoint, not a memory snapshot; " + dump
	case kind == isPacked:
		msg = "is an archive of an unsupported kind; unpack it and name one snapshot"
	case ext == ".nsys-rep" || ext == ".qdrep":
		msg = "is a report of Nsight Systems, not a memory snapshot; " + dump
	case ext == ".ncu-rep":
		msg = "is a report of Nsight Compute, not a memory snapshot; " + dump
	case kind == isText && memoryViz(in.head):
		msg = "is what python -m torch.cuda._memory_viz printed about a snapshot, not the snapshot itself; " + dump
	case kind == isText:
		line, _, _ := bytes.Cut(bytes.TrimSpace(bytes.TrimPrefix(in.head, bom)), []byte("\n"))
		msg = "is a text file (it begins with " + quote(line) + "), not a memory snapshot; " + dump
	default:
		msg = "is binary data of an unknown kind, not a memory snapshot; " + dump
	}
	return notSnapshot(msg)
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
