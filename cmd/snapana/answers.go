package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/snapana/snapana/snapshot/sorting"
)

const (
	// slow is the size from which on reading a file again takes long enough to keep answers.
	slow = 8 << 20
	// maxAnswers is what all answers may take together. The oldest make room.
	maxAnswers = 64 << 20
	// maxAnswer is what one may take.
	maxAnswer = 4 << 20
	// settled is how long ago a file must have changed last: a change within one tick of the clock cannot be seen.
	settled = 2 * time.Second
	// samples of sampleSize bytes, evenly over a file, are compared beside what the system says of it.
	samples, sampleSize = 64, 4 << 10

	answerMark = "snapana answer 1\n"
)

// answers keeps what was printed about a large file, so that to ask again takes no time. An answer is told by the file,
// as identity tells it, by the program, and by the question. A nil one keeps nothing.
type answers struct {
	dir      string
	path     string
	identity string // of the file before it was read
	question string // all but the moment
}

// newAnswers is nil where answers are not to be kept: for standard input and small files, for what depends on more than
// the file, and where the user or the system says no.
func newAnswers(cmd *cobra.Command, path string, not ...string) *answers {
	dir := answersDir(os.Getenv("SNAPANA_CACHE"))
	if dir == "" || path == "-" || slices.ContainsFunc(not, cmd.Flags().Changed) {
		return nil
	}
	id, ok := identity(path)
	if !ok {
		return nil
	}
	var q strings.Builder
	fmt.Fprintf(&q, "%s\n%q\n%+v\n", program(), filepath.Base(path), look(cmd))
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "at" && f.Name != "of" {
			fmt.Fprintf(&q, "%s=%q\n", f.Name, f.Value)
		}
	})
	return &answers{dir: dir, path: path, identity: id, question: q.String()}
}

// answersDir is the folder of answers, "" for none: SNAPANA_CACHE names another than the user's, or is off.
func answersDir(named string) string {
	switch named {
	case "off", "0":
		return ""
	case "":
		dir, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		named = filepath.Join(dir, "snapana")
	}
	return filepath.Join(named, "answers")
}

// program tells one build of snapana from another.
func program() string {
	exe, err := os.Executable()
	if err != nil {
		return toolVersion()
	}
	info, err := os.Stat(exe)
	if err != nil {
		return toolVersion()
	}
	return fmt.Sprintf("%s %d %d", toolVersion(), info.Size(), info.ModTime().UnixNano())
}

// identity tells a file from every other and from itself before a change: by its place, its size, the times of its last
// change, which programs cannot set back, and samples of what is in it. It is false where the system does not tell, and
// for files that are small or that changed just now.
func identity(path string) (string, bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() < slow {
		return "", false
	}
	place, changed, ok := inode(info)
	if !ok || time.Since(changed) < settled {
		return "", false
	}
	h := sha256.New()
	part := make([]byte, sampleSize)
	for i := range int64(samples) {
		at := (info.Size() - sampleSize) * i / (samples - 1)
		if _, err := f.ReadAt(part, at); err != nil {
			return "", false
		}
		h.Write(part)
	}
	return fmt.Sprintf("%s %d %d %d %x", place, info.Size(), info.ModTime().UnixNano(), changed.UnixNano(), h.Sum(nil)), true
}

// file is where the answer for a moment lies, and what its head must say.
func (a *answers) file(moment string) (path, head string) {
	question := fmt.Sprintf("%s\n%smoment=%q\n", a.identity, a.question, moment)
	sum := sha256.Sum256([]byte(question))
	return filepath.Join(a.dir, hex.EncodeToString(sum[:])), answerMark + question
}

// get gives the answer for a moment, false where there is none that is whole and of this question.
func (a *answers) get(moment string) ([]byte, bool) {
	if a == nil || !private(a.dir) {
		return nil, false
	}
	path, head := a.file(moment)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	rest, ok := bytes.CutPrefix(data, []byte(head))
	if !ok || len(rest) < sha256.Size {
		return nil, false
	}
	sum := sha256.Sum256(rest[sha256.Size:])
	if !bytes.Equal(sum[:], rest[:sha256.Size]) {
		return nil, false
	}
	now := time.Now()
	os.Chtimes(path, now, now) // the oldest is the one that nobody asks for
	return rest[sha256.Size:], true
}

// put keeps an answer, if the file is still what it was. What prevents that is no failure of the command.
func (a *answers) put(moment string, text []byte) {
	if a == nil || len(text) > maxAnswer {
		return
	}
	if now, ok := identity(a.path); !ok || now != a.identity {
		return
	}
	if os.MkdirAll(a.dir, 0o700) != nil || !private(a.dir) {
		return
	}
	path, head := a.file(moment)
	f, err := os.CreateTemp(a.dir, "new-*")
	if err != nil {
		return
	}
	_, err = f.Write(sealed(head, text))
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	trim(a.dir)
}

// sealed is what the file of an answer has.
func sealed(head string, text []byte) []byte {
	sum := sha256.Sum256(text)
	return slices.Concat([]byte(head), sum[:], text)
}

// private reports whether a folder is one that nobody else can read or write.
func private(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && info.Mode().Perm()&0o077 == 0
}

// trim takes the oldest answers away until the rest is within its bound.
func trim(dir string) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	var files []os.FileInfo
	total := int64(0)
	for _, entry := range list {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
			total += info.Size()
		}
	}
	sorting.By(files, func(a, b os.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range files {
		if total <= maxAnswers {
			return
		}
		if os.Remove(filepath.Join(dir, info.Name())) == nil {
			total -= info.Size()
		}
	}
}

// keep prints by a function, and keeps what it prints.
func (a *answers) keep(w io.Writer, moment string, print func(io.Writer) error) error {
	if a == nil {
		return print(w)
	}
	var b bytes.Buffer
	if err := print(&b); err != nil {
		return err
	}
	a.put(moment, b.Bytes())
	_, err := w.Write(b.Bytes())
	return err
}
