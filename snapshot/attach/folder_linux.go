package attach

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/snapana/snapana/snapshot/sidecar/recorder"
)

// folder is where requests and answers are, and the files until they are complete. Its files are opened through root,
// which follows no link out of it.
type folder struct {
	root  *os.Root
	path  string // for this process
	inner string // for the other one
	uid   int    // of the other one
	gid   int
	lease *os.File
}

// prepare gives the folder to the user of the other process, and locks the file by which that knows that we live.
func (f *folder) prepare() error {
	dir, err := f.root.Open(".")
	if err != nil {
		return err
	}
	err = own(f.uid, f.gid, dir)
	if err = errors.Join(err, dir.Close()); err != nil {
		return err
	}
	if err := f.write("lease", nil); err != nil {
		return err
	}
	if f.lease, err = f.root.Open("lease"); err != nil {
		return err
	}
	return unix.Flock(int(f.lease.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// request is what the recorder is asked for.
type request struct {
	Run        string  `json:"run"`         // name of the files, without their endings
	MaxEntries int     `json:"max_entries"` // of the history
	Seconds    float64 `json:"seconds"`     // how long the recording is to last
}

// reply is what it answers.
type reply struct {
	Error    string   `json:"error"` // a word: fault, torch, busy, over; "" where all went well
	What     string   `json:"what"`  // the fault
	Files    []string `json:"files"`
	Python   string   `json:"python"`
	CUDA     bool     `json:"cuda"` // the program has memory of a device
	WasOn    bool     `json:"was_on"`
	Recorded bool     `json:"recorded"`
	Reason   string   `json:"reason"`
	Faults   []string `json:"faults"`
}

// longest is the longest answer that is read.
const longest = 1 << 20

// err is what an answer says went wrong, if anything did.
func (r *reply) err() error {
	switch r.Error {
	case "":
		return nil
	case "torch":
		return &Error{Kind: NoTorch, what: "it has not imported PyTorch"}
	case "busy":
		return &Error{Kind: Busy, what: "another recording of it is going on"}
	case "over":
		return &Error{Kind: Failed, what: "the recorder in it has ended already"}
	}
	return &Error{Kind: Failed, what: "the recorder in it failed: " + r.What}
}

// fill writes what a process needs that the recorder is brought into.
func (f *folder) fill() error {
	if err := f.write("recorder.py", recorder.Source()); err != nil {
		return err
	}
	return f.write("script.py", []byte(strings.ReplaceAll(script, "FOLDER", pythonBytes(f.inner))))
}

// pythonBytes is a path as Python writes bytes.
func pythonBytes(path string) string {
	var b strings.Builder
	b.WriteString(`b"`)
	for i := range len(path) {
		fmt.Fprintf(&b, `\x%02x`, path[i])
	}
	return b.String() + `"`
}

// write makes a file as a whole.
func (f *folder) write(name string, data []byte) error {
	file, err := f.root.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = own(f.uid, f.gid, file)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return f.root.Rename(name+".new", name)
}

// Endings of requests: for the thread that an attach interrupts, and for the one that the recorder has where that
// cannot answer.
const (
	toMain = ".json"
	toAny  = ".any"
)

// ask puts a request into the folder.
func (f *folder) ask(name, to string, o Options) error {
	data, err := json.Marshal(request{filepath.Base(o.Output), o.MaxEntries, o.Record.Seconds()})
	if err != nil {
		return err
	}
	return f.write(name+to, data)
}

// pending reports whether a request has not been taken yet.
func (f *folder) pending(name string) bool {
	_, err := f.root.Lstat(name + toMain)
	return err == nil
}

// withdraw takes a request back, and reports false if it was taken just now.
func (f *folder) withdraw(name string) bool {
	return f.root.Rename(name+toMain, name+".withdrawn") == nil
}

// reply is the answer to a request, nil if there is none yet.
func (f *folder) reply(name string) (*reply, error) {
	file, err := f.open(name + ".reply")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, longest))
	if err != nil {
		return nil, err
	}
	return parseReply(data)
}

func parseReply(data []byte) (*reply, error) {
	r := new(reply)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, &Error{Kind: Failed, what: "the answer of the recorder in it cannot be read: " + err.Error()}
	}
	return r, nil
}

// open opens a file that the other process has written, which is to be a file and nothing else.
func (f *folder) open(name string) (*os.File, error) {
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // not to wait for a pipe's other end
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, errors.Join(err, fmt.Errorf("%s is no file", filepath.Join(f.path, name)))
	}
	return file, nil
}

// ours are the files that a recorder makes: NAME.snapana, or NAME.rank3.snapana where the program has a rank.
var ours = regexp.MustCompile(`^(\.rank\d+)?\.(snapana|pickle)$`)

// take moves the files of an answer to where they belong. What was there before gets the ending .old, as the recorder
// does.
func (f *folder) take(r *reply, o Options) (recording, snapshot string, err error) {
	to, name := filepath.Split(o.Output)
	if len(r.Files) > 2 {
		return "", "", &Error{Kind: Failed, what: "the answer of the recorder in it names files that are not its own"}
	}
	for _, file := range r.Files {
		if !strings.HasPrefix(file, name) || !ours.MatchString(file[len(name):]) {
			return "", "", &Error{Kind: Failed, what: "the answer of the recorder in it names files that are not its own"}
		}
		path := to + file
		if err := f.move(file, path); err != nil {
			return "", "", err
		}
		if filepath.Ext(file) == ".pickle" {
			snapshot = path
		} else {
			recording = path
		}
	}
	if recording == "" {
		return "", "", &Error{Kind: Failed, what: "the answer of the recorder in it names no file"}
	}
	return recording, snapshot, nil
}

// move moves a file out of the folder.
func (f *folder) move(name, to string) error {
	from, err := f.open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	if _, err := os.Lstat(to); err == nil {
		if err := os.Rename(to, to+".old"); err != nil {
			return err
		}
	}
	if info, err := from.Stat(); err == nil && uidOf(info) == os.Geteuid() &&
		os.Rename(filepath.Join(f.path, name), to) == nil {
		return nil
	}
	// Another user's, or on another disk.
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, from); err == nil {
		err = own(f.uid, f.gid, out) // as the recorder's files are, when root attaches
	}
	if err = errors.Join(err, out.Close()); err != nil {
		os.Remove(to)
	}
	return err
}

// close removes the folder with all that is in it.
func (f *folder) close() {
	if f.lease != nil {
		f.lease.Close()
	}
	if dir, err := f.root.Open("."); err == nil {
		names, _ := dir.Readdirnames(-1)
		dir.Close()
		for _, name := range names {
			f.root.Remove(name)
		}
	}
	f.root.Close()
	os.Remove(f.path)
}
