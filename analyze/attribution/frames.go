package attribution

import (
	"strconv"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// Site is the frame that a stack stands for: the innermost one of the user's own code, or
// else of another library than torch, or else the innermost one at all: "model.py:26
// forward". A stack of C++ alone goes by the backward function or the operator that it is in:
// "AddmmBackward0 (backward)". It is empty when the stack has no frames.
func Site(s *snapshot.Snapshot, stack snapshot.StackID) string {
	f, rank, ok := siteFrame(s, stack)
	if !ok {
		return ""
	}
	if rank <= native {
		if name := nativeSite(s, stack); name != "" {
			return name
		}
	}
	return text(s, f, Base(s.Strings.Get(f.File)))
}

// Place is Site in a sentence: a stack without frames is "a place that was not recorded".
func Place(s *snapshot.Snapshot, stack snapshot.StackID) string {
	if site := Site(s, stack); site != "" {
		return site
	}
	return "a place that was not recorded"
}

// siteFrame is the frame of Site and where its code comes from, false without frames.
func siteFrame(s *snapshot.Snapshot, stack snapshot.StackID) (snapshot.Frame, origin, bool) {
	best, rank := snapshot.Frame{}, plumbing
	ids := s.Stacks.Get(stack)
	for _, id := range ids {
		f := s.Frames.Get(id)
		if o := originOf(s, f); o > rank {
			best, rank = f, o
		}
		if rank == user {
			break
		}
	}
	if rank == plumbing && len(ids) > 0 {
		best = s.Frames.Get(ids[0])
	}
	return best, rank, len(ids) > 0
}

// Frames is a stack for people, innermost first: "file:line function". Frames that every
// stack has and that say nothing are left out (snapshot/SPEC.md 2.9), unless nothing else is
// there, and the folders above an installed package are cut off.
func Frames(s *snapshot.Snapshot, stack snapshot.StackID) []string {
	var out []string
	ids := s.Stacks.Get(stack)
	for _, all := range []bool{false, true} {
		for _, id := range ids {
			if f := s.Frames.Get(id); all || originOf(s, f) != plumbing {
				out = append(out, text(s, f, shorten(s.Strings.Get(f.File))))
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

func text(s *snapshot.Snapshot, f snapshot.Frame, file string) string {
	if file == "" {
		file = "?"
	}
	if f.Line > 0 {
		file += ":" + strconv.Itoa(int(f.Line))
	}
	if name := s.Strings.Get(f.Name); name != "" {
		file += " " + name
	}
	return file
}

// origin is where the code of a frame comes from, in rising order of interest.
type origin uint8

const (
	plumbing origin = iota // interpreter, dispatcher, module call wrappers
	core                   // C++ that every operator and every backward pass runs through
	native                 // other C++
	library                // torch and the standard library
	other                  // another installed package
	user
)

func originOf(s *snapshot.Snapshot, f snapshot.Frame) origin {
	return originOfText(s.Strings.Get(f.File), s.Strings.Get(f.Name))
}

func originOfText(file, name string) origin {
	switch {
	case isPlumbing(file, name):
		return plumbing
	case !IsPython(file) && isCore(cppName(name)):
		return core
	case !IsPython(file):
		return native
	case strings.HasPrefix(file, "<frozen"), file == "none":
		return library
	}
	if pkg, ok := installed(file); ok {
		if strings.HasPrefix(pkg, "torch/") {
			return library
		}
		return other
	}
	if strings.Contains(file, "/lib/python3") || strings.Contains(file, "/torchinductor_") || isTorchSource(file) {
		return library
	}
	return user
}

// isTorchSource recognises torch where it runs from a checkout of its own.
func isTorchSource(file string) bool {
	i := strings.LastIndex(file, "/torch/")
	if i < 0 {
		return false
	}
	switch rest, _, _ := strings.Cut(file[i+len("/torch/"):], "/"); rest {
	case "_compile.py", "_dynamo", "_functorch", "_inductor", "_tensor.py", "autograd", "cuda",
		"distributed", "functional.py", "nn", "optim", "utils":
		return true
	}
	return false
}

// IsLibrary reports whether a frame is inside torch, the standard library, or native code,
// as far as its path tells.
func IsLibrary(s *snapshot.Snapshot, id snapshot.FrameID) bool {
	return originOf(s, s.Frames.Get(id)) <= library
}

// installed cuts a path at the folder of installed packages.
func installed(file string) (string, bool) {
	for _, dir := range []string{"/site-packages/", "/dist-packages/", `\site-packages\`} {
		if i := strings.LastIndex(file, dir); i >= 0 {
			return strings.ReplaceAll(file[i+len(dir):], `\`, "/"), true
		}
	}
	return "", false
}

func shorten(file string) string {
	if pkg, ok := installed(file); ok {
		return pkg
	}
	return file
}

func isNative(file string) bool {
	if file == "??" {
		return true
	}
	if i := strings.LastIndexByte(file, '.'); i >= 0 {
		switch file[i:] {
		case ".cpp", ".cc", ".c", ".h", ".hpp", ".cu", ".cuh", ".S", ".so", ".o":
			return true
		}
	}
	return strings.Contains(file, ".so.")
}

// isPlumbing is the filter that torch's own viewer uses (_memory_viz.py _frame_filter), and
// the wrappers through which every module call goes.
func isPlumbing(file, name string) bool {
	switch name {
	case "_call_impl", "_wrapped_call_impl":
		return strings.HasSuffix(file, "torch/nn/modules/module.py")
	case "_start":
		return true
	}
	for _, part := range []string{"unwind::unwind", "CapturedTraceback::gather", "gather_with_cpp",
		"__libc_start_main", "PyEval_", "PyObject_", "PyFunction_"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	for _, part := range []string{"core/boxing", "/Register", "/Redispatch", "pythonrun.c", "Modules/main.c",
		"Objects/call.c", "Objects/methodobject.c", "pycore_ceval.h", "ceval.c", "cpython/abstract.h"} {
		if strings.Contains(file, part) {
			return true
		}
	}
	return false
}

// Base is the last part of a path, of Unix or of Windows.
func Base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }
