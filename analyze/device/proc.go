package device

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os/user"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/snapana/snapana/snapshot/sidecar"
	"github.com/snapana/snapana/snapshot/sorting"
)

// initialNamespace is the namespace of the machine's process numbers, those that the driver
// speaks in (PROC_PID_INIT_INO in include/linux/proc_ns.h).
const initialNamespace = "pid:[4026531836]"

// procTable tells processes from /proc.
type procTable struct {
	fsys    fs.FS
	boot    string
	there   bool // the system has a /proc
	machine bool // its numbers are the machine's
	all     bool // it shows every process of the machine
}

func newProcTable(fsys fs.FS) *procTable {
	t := &procTable{fsys: fsys}
	_, err := fs.Stat(fsys, "self")
	t.there = err == nil
	ns, err := fs.ReadLink(fsys, "self/ns/pid")
	t.machine = err == nil && ns == initialNamespace
	_, err = fs.Stat(fsys, "1/stat") // mounted with hidepid=2, /proc hides those of others
	t.all = t.machine && err == nil
	boot, _ := fs.ReadFile(fsys, "sys/kernel/random/boot_id")
	t.boot = strings.TrimSpace(string(boot))
	return t
}

// blind says why processes may be missing or unknown.
func (t *procTable) blind() string {
	if !t.there {
		return "this system has none: users, parents and states of processes are unknown"
	}
	if !t.machine {
		return "this is a container: processes outside may be missing, and their names and states are unknown"
	}
	return "processes of other users are hidden: their names and states are unknown"
}

// describe fills in what /proc knows of a process. Inside a container the driver's number may
// be that of another process there, so that only one that has the device open is described.
func (t *procTable) describe(p *sidecar.GPUProcess) {
	s, err := t.stat(p.PID)
	switch {
	case t.all && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)):
		p.State = Gone
		return
	case err != nil || !t.machine && !t.opensDevice(p.PID):
		return
	}
	p.State, p.PPID, p.Started = s.state, &s.ppid, &s.started
	cmdline, _ := fs.ReadFile(t.fsys, t.file(p.PID, "cmdline"))
	p.Name = programName(cmdline, s.comm)
	p.User, p.Namespaces = t.status(p.PID)
	for at := s.ppid; at > 1 && len(p.Parents) < maxParents; {
		p.Parents = append(p.Parents, at)
		up, err := t.stat(at)
		if err != nil {
			break
		}
		at = up.ppid
	}
}

// maxParents bounds the way up from a process.
const maxParents = 32

func (t *procTable) file(pid int64, name string) string {
	return strconv.FormatInt(pid, 10) + "/" + name
}

type stat struct {
	comm, state   string
	ppid, started int64
}

// stat reads /proc/PID/stat (proc_pid_stat(5)): the name is in parentheses and may hold any
// character, the other fields are numbers.
func (t *procTable) stat(pid int64) (stat, error) {
	data, err := fs.ReadFile(t.fsys, t.file(pid, "stat"))
	if err != nil {
		return stat{}, err
	}
	from, to := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if from < 0 || to < from {
		return stat{}, errors.New("no name in stat")
	}
	fields := strings.Fields(string(data[to+1:])) // from the third on
	if len(fields) < 20 {
		return stat{}, errors.New("stat is short")
	}
	s := stat{comm: string(data[from+1 : to]), state: Running}
	if fields[0] == "Z" || fields[0] == "X" {
		s.state = Zombie
	}
	if s.ppid, err = strconv.ParseInt(fields[1], 10, 64); err != nil {
		return stat{}, err
	}
	s.started, err = strconv.ParseInt(fields[19], 10, 64)
	return s, err
}

// status reads the user, and the process's numbers where it has several, outermost first.
func (t *procTable) status(pid int64) (name string, namespaces []int64) {
	data, _ := fs.ReadFile(t.fsys, t.file(pid, "status"))
	for line := range strings.Lines(string(data)) {
		key, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		switch {
		case key == "Uid" && len(fields) > 0:
			name = fields[0]
			if u, err := user.LookupId(name); err == nil {
				name = u.Username
			}
		case key == "NSpid" && len(fields) > 1:
			for _, f := range fields {
				n, _ := strconv.ParseInt(f, 10, 64)
				namespaces = append(namespaces, n)
			}
		}
	}
	return name, namespaces
}

// opensDevice reports whether a process has a device of the driver open.
func (t *procTable) opensDevice(pid int64) bool {
	dir := t.file(pid, "fd")
	files, _ := fs.ReadDir(t.fsys, dir)
	for _, f := range files {
		if to, err := fs.ReadLink(t.fsys, dir+"/"+f.Name()); err == nil && strings.HasPrefix(to, "/dev/nvidia") {
			return true
		}
	}
	return false
}

// programName says what runs: the program without folders and arguments, and for Python the
// script or module. Arguments may hold secrets and are left out.
func programName(cmdline []byte, comm string) string {
	args := strings.Split(strings.TrimRight(string(cmdline), "\x00"), "\x00")
	name := path.Base(args[0])
	if len(args) == 1 { // a title that the process gave itself
		name, _, _ = strings.Cut(name, " ")
	}
	if args[0] == "" { // a zombie, or a thread of the kernel
		name = comm
	}
	if strings.HasPrefix(name, "python") || strings.HasPrefix(name, "pypy") {
		name = strings.TrimSpace(name + " " + script(args[1:]))
	}
	if len(name) > maxName {
		name = name[:maxName]
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

const maxName = 120

// script is what Python runs, by the options that precede it.
func script(args []string) string {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-m" && i+1 < len(args):
			return "-m " + args[i+1]
		case a == "-c" && i+1 < len(args):
			for _, worker := range []string{"multiprocessing.spawn", "multiprocessing.forkserver",
				"multiprocessing.resource_tracker"} {
				if strings.Contains(args[i+1], worker) {
					return worker
				}
			}
			return "-c"
		case a == "-W" || a == "-X":
			i++
		case !strings.HasPrefix(a, "-"):
			return path.Base(a)
		}
	}
	return ""
}

// share gives a device the memory of the system, which the driver counts no memory of its own for: one that shares it
// with the CPU, as in GB10.
func (t *procTable) share(g *sidecar.GPU) {
	info, err := fs.ReadFile(t.fsys, "meminfo") // proc_meminfo(5)
	if err != nil {
		return
	}
	of := map[string]*int64{}
	for line := range strings.Lines(string(info)) {
		key, rest, _ := strings.Cut(line, ":")
		if n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64); err == nil {
			of[key] = new(n << 10)
		}
	}
	total, free := of["MemTotal"], of["MemAvailable"]
	if total == nil || free == nil || *free > *total {
		return
	}
	g.Total, g.Free, g.Used, g.Shared = total, free, new(*total-*free), true
}

// merge adds a process, whose parts in several of the driver's lists are one.
func merge(list []sidecar.GPUProcess, p sidecar.GPUProcess) []sidecar.GPUProcess {
	at := slices.IndexFunc(list, func(o sidecar.GPUProcess) bool {
		return o.PID == p.PID && equal(o.GPUInstance, p.GPUInstance) && equal(o.ComputeInstance, p.ComputeInstance)
	})
	if at < 0 {
		return append(list, p)
	}
	list[at].Kind += "+" + p.Kind
	if list[at].Used == nil {
		list[at].Used = p.Used
	}
	return list
}

func equal(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

// sorted orders processes by number.
func sorted(list []sidecar.GPUProcess) []sidecar.GPUProcess {
	sorting.Stable(list, func(a, b sidecar.GPUProcess) int { return cmp.Compare(a.PID, b.PID) })
	return list
}
