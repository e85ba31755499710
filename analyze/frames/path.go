package frames

import (
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// path is the file of a frame with what its folders tell.
type path struct {
	file        string // as recorded
	isInstalled bool
	installed   string // below the folder of installed packages, with slashes
	torch       string // below the last folder named torch, empty outside of one
	relative    bool   // the path begins with that folder
}

// cut reads a path. This is the one place that knows how paths are written: of Windows' only
// what lies behind site-packages gets slashes, and its torch is in no Part for that reason.
func cut(file string) path {
	p := path{file: file}
	for _, dir := range [...]string{"/site-packages/", "/dist-packages/", `\site-packages\`} {
		if i := strings.LastIndex(file, dir); i >= 0 {
			p.isInstalled, p.installed = true, strings.ReplaceAll(file[i+len(dir):], `\`, "/")
			break
		}
	}
	if i := strings.LastIndex(file, "/torch/"); i >= 0 {
		p.torch = file[i+len("/torch/"):]
	} else if p.torch, p.relative = strings.CutPrefix(file, "torch/"); !p.relative {
		p.torch = ""
	}
	return p
}

// isTorchSource recognizes torch where it runs from a checkout of its own.
func (p path) isTorchSource() bool {
	if p.relative {
		return false
	}
	switch top, _, _ := strings.Cut(p.torch, "/"); top {
	case "_compile.py", "_dynamo", "_functorch", "_inductor", "_tensor.py", "autograd", "cuda",
		"distributed", "functional.py", "nn", "optim", "utils":
		return true
	}
	return false
}

// Short is a path for people, without the folders above an installed package.
func Short(file string) string {
	if p := cut(file); p.isInstalled {
		return p.installed
	}
	return file
}

// Base is the last part of a path, of Unix or of Windows.
func Base(file string) string { return file[strings.LastIndexAny(file, `/\`)+1:] }

// Function names the function of a frame, "train (train.py)".
func Function(s *snapshot.Snapshot, id snapshot.FrameID) string {
	f := s.Frames.Get(id)
	return s.Strings.Get(f.Name) + " (" + Base(s.Strings.Get(f.File)) + ")"
}

// Call names the function of a frame as who does something: "train()", and code outside of functions by its
// file: "train.py".
func Call(s *snapshot.Snapshot, id snapshot.FrameID) string {
	f := s.Frames.Get(id)
	switch name := s.Strings.Get(f.Name); {
	case name == "<module>":
		return Base(s.Strings.Get(f.File))
	case strings.HasPrefix(name, "<"):
		return Function(s, id)
	default:
		return name + "()"
	}
}

// IsPython tells the files of Python frames from those of C++ ones, which may be unknown.
func IsPython(file string) bool {
	if file == "" || file == "??" || strings.Contains(file, ".so.") {
		return false
	}
	if i := strings.LastIndexByte(file, '.'); i >= 0 {
		switch file[i:] {
		case ".cpp", ".cc", ".c", ".h", ".hpp", ".cu", ".cuh", ".S", ".so", ".o":
			return false
		}
	}
	return true
}
