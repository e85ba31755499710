package attach

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Run has a running program record its memory. When ctx ends, what has been recorded so far is taken.
func Run(ctx context.Context, o Options) (Result, error) {
	out, err := filepath.Abs(o.Output)
	if err != nil {
		return Result{}, err
	}
	o.Output = out
	p, err := openProcess(o.PID)
	if err != nil {
		return Result{}, err
	}
	d, err := p.door()
	if err != nil {
		return Result{}, err
	}
	f, err := p.folder(filepath.Dir(out))
	if err != nil {
		return Result{}, fmt.Errorf("make a folder for the recorder: %w", err)
	}
	defer f.close()
	if _, ok := d.(*injection); ok {
		if err := f.fill(); err != nil {
			return Result{}, err
		}
	}
	s := &session{o, p, d, f}
	r, elapsed, err := s.run(ctx)
	var e *Error
	if errors.As(err, &e) && (e.Kind == Unanswered || e.Kind == Refused) {
		if l := p.listener(); l != nil && !s.listens() { // which has a thread of its own
			s.door = l
			r, elapsed, err = s.run(ctx)
		}
	}
	if errors.As(err, &e) && e.Kind == NoTorch {
		e.Children = p.children()
	}
	if err != nil {
		return Result{}, err
	}
	res := Result{Python: r.Python, Listened: s.listens(), CUDA: r.CUDA, WasOn: r.WasOn, Recorded: r.Recorded, Exited: r.Reason == "exit",
		Elapsed: elapsed, Faults: r.Faults}
	res.Recording, res.Snapshot, err = f.take(r, o)
	return res, err
}

// process is the one to record.
type process struct {
	pid      int
	started  string // ticks since boot: a number may be given to another process
	uid, gid int    // effective
	inner    int    // its number as it sees it itself
	root     string // where its root folder is for us
}

// openProcess finds out about a process what anybody may know.
func openProcess(pid int) (*process, error) {
	p := &process{pid: pid, inner: pid, root: fmt.Sprintf("/proc/%d/root", pid)}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		if _, err := os.Stat("/proc/self/status"); err != nil {
			return nil, &Error{Kind: Failed, what: "there is no /proc to look for processes in"}
		}
		return nil, &Error{Kind: NoProcess, what: "there is no process with this number, or it may not be seen from here"}
	}
	state := ""
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		last := func(i int) int {
			if i >= len(fields) {
				return -1
			}
			n, _ := strconv.Atoi(fields[i])
			return n
		}
		switch key {
		case "State":
			state = strings.Join(fields, " ")
		case "Tgid":
			if n := last(0); n != pid {
				return nil, &Error{Kind: NoProcess, what: fmt.Sprintf("it is a thread of process %d", n)}
			}
		case "Uid":
			p.uid = last(1)
		case "Gid":
			p.gid = last(1)
		case "NSpid":
			p.inner = cmp.Or(last(len(fields)-1), pid)
		}
	}
	if strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X") {
		return nil, &Error{Kind: Ended, what: "it has ended"}
	}
	p.started = startOf(pid)
	if _, err := os.Stat(p.root + "/"); err != nil {
		p.root = "/" // only the owner may go through /proc; let us hope that the process sees what we see
	}
	return p, nil
}

// startOf is when a process was started, in ticks since boot (/proc/PID/stat, field 22), "" if it has ended.
func startOf(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}

func (p *process) alive() bool { return startOf(p.pid) == p.started }

// children are the processes with a Python that this one has started, as launchers do, in the order of their numbers.
func (p *process) children() []int {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, e := range all {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || len(out) == 16 {
			continue
		}
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(p.pid) {
			continue
		}
		maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
		if nameOfPython(parseMaps(maps)) != "" {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

// door is the way into the process: what its interpreter offers, else its own recorder, if that listens.
func (p *process) door() (door, error) {
	if p.uid != os.Geteuid() && os.Geteuid() != 0 {
		return nil, &Error{Kind: OtherUser, what: fmt.Sprintf("it belongs to the user with the number %d", p.uid)}
	}
	if !p.alive() {
		return nil, &Error{Kind: Ended, what: "it has ended"}
	}
	in, err := p.injection()
	if err == nil {
		return in, nil
	}
	if l := p.listener(); l != nil {
		return l, nil
	}
	return nil, err
}

// injection has the interpreter run a script.
type injection struct {
	p  *process
	py *python
}

func (p *process) injection() (*injection, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.pid))
	if err != nil {
		return nil, p.denied(err)
	}
	if len(maps) == 0 {
		return nil, &Error{Kind: NotPython, what: "it is a thread of the kernel, or ending"}
	}
	py, err := findPython(vm(p.pid), parseMaps(maps))
	if err != nil {
		return nil, p.denied(err)
	}
	return &injection{p, py}, nil
}

func (in *injection) knock(f *folder) error {
	if !in.p.alive() {
		return &Error{Kind: Ended, what: "it has ended"}
	}
	return in.p.denied(in.py.ask(f.inner + "/script.py"))
}

func (in *injection) heard() bool {
	waiting, err := in.py.waiting()
	return err == nil && !waiting
}

func (in *injection) leave() error {
	if !in.p.alive() {
		return nil
	}
	return in.p.denied(in.py.withdraw())
}

// denied says of an error of the system what it means here.
func (p *process) denied(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ESRCH) || errors.Is(err, fs.ErrNotExist):
		return &Error{Kind: Ended, what: "it has ended", err: err}
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOSYS):
		scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
		return &Error{Kind: Rights, what: rights(strings.TrimSpace(string(scope)))}
	case errors.Is(err, errUnmapped):
		return &Error{Kind: Ended, what: "its interpreter is starting or ending", err: err}
	}
	return err
}

// rights says why the system refuses, by what Yama's setting is; "" is none.
func rights(scope string) string {
	switch scope {
	case "1":
		return "the system lets only parents look into a process (kernel.yama.ptrace_scope is 1)"
	case "2", "3":
		return "the system lets only administrators look into a process, if anybody (kernel.yama.ptrace_scope is " +
			scope + ")"
	}
	return "the system does not let this user look into it; containers often lack the right to (CAP_SYS_PTRACE)"
}

// vm is the memory of the process with this number.
type vm int

func (pid vm) read(at uint64, p []byte) error {
	return moved(len(p))(unix.ProcessVMReadv(int(pid), local(p), remote(at, p), 0))
}

func (pid vm) write(at uint64, p []byte) error {
	return moved(len(p))(unix.ProcessVMWritev(int(pid), local(p), remote(at, p), 0))
}

func local(p []byte) []unix.Iovec {
	v := unix.Iovec{Base: &p[0]}
	v.SetLen(len(p))
	return []unix.Iovec{v}
}

func remote(at uint64, p []byte) []unix.RemoteIovec {
	return []unix.RemoteIovec{{Base: uintptr(at), Len: len(p)}}
}

// moved makes an error of what a call returns that was to move that many bytes.
func moved(want int) func(n int, err error) error {
	return func(n int, err error) error {
		if errors.Is(err, syscall.EFAULT) || err == nil && n != want {
			return errUnmapped
		}
		return err
	}
}

// listener asks the recorder that the program itself has imported.
type listener struct {
	root *os.Root // the folder of what listens
	name string   // the mark of this process
	gid  int
	uid  int
}

// listener finds the mark that a recorder leaves in /tmp/snapana-UID, with the number that the process has for itself.
// It is nil where there is none.
func (p *process) listener() *listener {
	tmp, err := os.OpenRoot(filepath.Join(p.root, "tmp"))
	if err != nil {
		return nil
	}
	defer tmp.Close()
	all, err := fs.ReadDir(tmp.FS(), ".")
	if err != nil {
		return nil
	}
	for _, e := range all { // the number of the user may be another one inside of a container
		if !e.IsDir() || !strings.HasPrefix(e.Name(), "snapana-") {
			continue
		}
		info, err := e.Info()
		if err != nil || info.Mode().Perm()&0o077 != 0 || uidOf(info) != p.uid {
			continue
		}
		dir, err := tmp.OpenRoot(e.Name())
		if err != nil {
			continue
		}
		name := fmt.Sprintf("%d-%s", p.inner, p.started)
		if mark, err := dir.Lstat(name); err == nil && mark.Mode().IsRegular() && uidOf(mark) == p.uid {
			return &listener{dir, name, p.gid, p.uid}
		}
		dir.Close()
	}
	return nil
}

func (l *listener) knock(f *folder) error {
	temp := l.name + ".new"
	file, err := l.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(f.inner)
	if err == nil {
		err = own(l.uid, l.gid, file)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return l.root.Rename(temp, l.name+".request")
}

func (l *listener) heard() bool {
	_, err := l.root.Lstat(l.name + ".request")
	return errors.Is(err, fs.ErrNotExist)
}

func (l *listener) leave() error {
	if err := l.root.Remove(l.name + ".request"); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func uidOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// own gives a new file to the user of the other process, if that is not us.
func own(uid, gid int, file *os.File) error {
	if uid == os.Geteuid() {
		return nil
	}
	return file.Chown(uid, gid)
}

// folder makes a folder that both processes see: beside the results, where the other process sees the same there and
// can write, so that large files need not be copied, else among its temporary files.
func (p *process) folder(dest string) (*folder, error) {
	if p.uid == os.Geteuid() && same(dest, filepath.Join(p.root, dest)) {
		if f, err := p.makeFolder("/", dest); err == nil {
			return f, nil
		}
	}
	f, err := p.makeFolder(p.root, "/tmp")
	if err != nil {
		if f, err := p.makeFolder(p.root, "/var/tmp"); err == nil {
			return f, nil
		}
	}
	return f, err
}

// same reports whether two paths lead to one folder.
func same(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// makeFolder makes a folder within one that the other process knows by the path in, and we below root.
func (p *process) makeFolder(root, in string) (*folder, error) {
	base, err := os.OpenRoot(filepath.Join(root, in))
	if err != nil {
		return nil, err
	}
	defer base.Close()
	for i := range 1000 {
		name := fmt.Sprintf(".snapana-%d-%d", os.Getpid(), i)
		err = base.Mkdir(name, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f := &folder{path: filepath.Join(root, in, name), inner: filepath.Join(in, name), uid: p.uid, gid: p.gid}
		if f.root, err = base.OpenRoot(name); err != nil {
			base.Remove(name)
			return nil, err
		}
		if err := f.prepare(); err != nil {
			f.close()
			return nil, err
		}
		return f, nil
	}
	return nil, err
}
