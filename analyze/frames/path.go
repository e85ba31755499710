package frames

import (
	"cmp"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// path is the file of a frame with what its folders tell, all with slashes. Packages are installed in folders of their
// own; pex and pip's caches run them from where a wheel was unpacked, "torch-2.6.0-cp312-linux_x86_64.whl".
type path struct {
	file      string
	installed string // below the folder of installed packages, empty outside of it
	torch     string // below torch's own folder, empty outside of that
}

// torchTree begins paths below torch's folder, of the code that is in stacks. It tells torch's tree, which may be
// a checkout or named relative to the build's folder, from another project's folder of that name.
var torchTree = regexp.MustCompile(`^(?:nn/(?:modules|parallel|utils|attention)/|nn/(?:functional|parameter|init)\.py` +
	`|(?:optim|autograd|distributed|amp|fx|jit|profiler|multiprocessing)/|utils/(?:data/|checkpoint\.py|_)` +
	`|cuda/(?:__init__|graphs|memory|random|streams|_\w+)\.py` +
	`|(?:functional|serialization|storage|overrides|library)\.py|_[a-z])`)

// cut reads a path. This is the one place that knows how paths are written, of Unix or of Windows.
func cut(file string) path {
	p := path{file: strings.ReplaceAll(file, `\`, "/")}
	for _, dir := range [...]string{"/site-packages/", "/dist-packages/", ".whl/", ".egg/"} {
		if i := strings.LastIndex(p.file, dir); i >= 0 {
			p.installed = p.file[i+len(dir):]
			if below, ok := strings.CutPrefix(p.installed, "torch/"); ok {
				p.torch = below
			}
			return p
		}
	}
	if i := strings.LastIndex("/"+p.file, "/torch/"); i >= 0 && torchTree.MatchString(p.file[i+len("torch/"):]) {
		p.torch = p.file[i+len("torch/"):]
	}
	return p
}

// standard is in paths of Python's own library: of Unix, and of Windows, where the folder above it is named after
// the release or the distribution.
var standard = regexp.MustCompile(`/lib(?:64)?/python3|(?i:^[a-z]:/.*` +
	`(?:python-?3[\d.]*(?:-windows[^/]*)?|(?:conda|forge)3?(?:/envs/[^/]+)?)/lib/)`)

// Short is a path for people, without the folders above an installed package.
func Short(file string) string {
	return cmp.Or(cut(file).installed, file)
}

// Known is where in a path begins what is the same on all machines: the folder of installed packages, torch's own, or
// that of Python's library. It is the path's length where nothing is.
func Known(file string) int {
	p := cut(file)
	switch {
	case p.installed != "":
		at := len(p.file) - len(p.installed) - 1
		return strings.LastIndexByte(p.file[:at], '/') + 1
	case p.torch != "":
		return len(p.file) - len(p.torch) - len("torch/")
	}
	if m := standard.FindStringIndex(p.file); m != nil {
		return strings.LastIndex(strings.ToLower(p.file[:m[1]]), "/lib") + 1
	}
	return len(p.file)
}

// Base is the last part of a path, of Unix or of Windows.
func Base(file string) string { return file[strings.LastIndexAny(file, `/\`)+1:] }

var withLine = regexp.MustCompile(`^(.*?):\d+(?: |$)`)

// Bare drops the folders of a frame as text, "dir/file.py:1 function". C++ frames have none.
func Bare(frame string) string {
	m := withLine.FindStringSubmatch(frame)
	if m == nil {
		return frame
	}
	return frame[strings.LastIndexAny(m[1], `/\`)+1:]
}

// Brief is a frame as text without folders, a C++ one by its qualified name, and the operator or backward function
// that it runs, "" for none. Telling says that the frame means something to an engineer: code of Python but for what
// torch calls on with, or an operation; not the interpreter and not the inside of torch.
func Brief(frame string) (words, operation string, telling bool) {
	m := withLine.FindStringSubmatch(frame)
	if m != nil && isPython(m[1]) {
		return Bare(frame), "", tells(m[1], frame[len(m[0]):])
	}
	symbol := frame
	if m != nil {
		symbol = frame[len(m[0]):]
	}
	operation, _ = Operation(symbol)
	return CppName(symbol), operation, operation != ""
}

// tells reports whether a function of Python is more than a step on the way to another.
func tells(file, name string) bool {
	p, c := cut(file), Classify(file, name)
	switch c.Part() {
	case ModuleCall, ModuleWrapper, ModuleMove, Wrapper:
		return false
	}
	// Its private modules, and the module that calls the modules in it.
	inside := strings.HasPrefix(p.torch, "_") || strings.HasPrefix(p.torch, "utils/_") ||
		p.torch == "nn/modules/container.py"
	return c.Origin() > Plumbing && !inside && !c.Has(CallsOn|WithoutGrad) && !isGenerated(p.file, name)
}

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

// interpreter is the name of the program that runs Python.
var interpreter = regexp.MustCompile(`^python[\d.]*[a-z]?$`)

// isPython tells the files of Python frames from those of C++ ones: sources, libraries, the interpreter, or unknown.
func isPython(file string) bool {
	if file == "" || file == "??" || strings.Contains(file, ".so.") || interpreter.MatchString(Base(file)) {
		return false
	}
	switch filepath.Ext(file) {
	case ".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp", ".hxx", ".hip", ".inc", ".inl", ".tcc", ".S",
		".s", ".so", ".dll", ".exe", ".pyd", ".o":
		return false
	}
	return true
}
