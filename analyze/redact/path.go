package redact

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/snapana/snapana/analyze/frames"
)

// machines are for whom a library was built.
const machines = `(?:x86_64|aarch64|i386|arm|ppc64le|powerpc64le|s390x|riscv64)-linux-(?:gnu|musl)\w*|darwin|win_\w+|` +
	`linux_\w+`

const torchFolders = `(?:aten/src|c10/(?:core|cuda|util|hip|xpu|mobile)|torch/csrc|torch/include|caffe2)/`

var (
	made    = regexp.MustCompile(`[xX][bcdfghjkmnpqrtvwxz23456789]{8}[bcdfghjkmnpqrtvwxz]`)
	release = regexp.MustCompile(`^(?i:python-?[\d.]*t?(?:-windows)?|cpython-[\d.]+|` +
		`torch-\d+(?:\.\d+)*(?:\+(?:cpu|cu\d+|rocm[\d.]+|xpu))?(?:\.dist-info|\.data)?|` +
		`v?\d{1,3}|v?\d+(?:\.\d+){1,2}|[a-z]:)$`)
	cell      = regexp.MustCompile(`^<(ipython-input-\d+)-[^>]*>$`)
	shared    = lazily(`^(.+?)(\.so(?:\.[\d.]+)?|\.(?:cpython-\d+[a-z]*(?:-(?:` + machines + `))?|abi3)\.so)$`)
	libraries = lazily(`^lib(?:torch(?:_cpu|_cuda|_cuda_linalg|_hip|_xpu|_python|_global_deps)?|` +
		`c10(?:_cuda|_hip|_xpu)?|caffe2_nvrtc|cuda|cudart|cudadevrt|` +
		`cu(?:blas|blasLt|dnn|fft|file|pti|rand|solver|solverMg|sparse|sparseLt|tensor|inj64)[\d.]*|cudnn_[a-z]+_(?:infer|train)|` +
		`cudnn_(?:adv|cnn|ops|graph|heuristic|engines_[a-z_]+)|nvrtc|nvrtc-builtins|nvToolsExt|nvJitLink|nvidia-ml|` +
		`nvshmem_host|nvinfer|nccl|c|m|pthread|stdc\+\+|gcc_s|dl|rt|gomp|` +
		`python[\d.]*[a-z]?|amdhip64|rocblas|MIOpen|hsa-runtime64|ascendcl|shm|mkl_[a-z0-9_]+|iomp5)$`)
	whole = regexp.MustCompile(`^<eval_with_key>\.\d+$|` +
		`^<(?:string|stdin|unknown|console|module|lambda|__array_function__ internals|unwind unsupported)>$`)
	// built are parts of paths below which the code of torch, of Python and of C's library was built.
	built      = regexp.MustCompile(`(?:^|/)(` + torchFolders + `|(?:Objects|Python|Modules|Include|Programs|sysdeps|nptl|csu)/)`)
	torchBuilt = regexp.MustCompile(`^` + torchFolders)
	isC        = regexp.MustCompile(`\.(?:c|cc|cpp|cxx|cu|cuh|h|hh|hpp|hip|inl|S|s)$`)
	// python3 is the folder of Python's own library, with what else its name has: the beginning tells whose a frame is.
	python3 = regexp.MustCompile(`^(python3(?:\.?\d+)?t?)(.+)$`)
	// condas are the ends of folders that do, on Windows.
	condas = regexp.MustCompile(`(?i)^(.+?)((?:conda|forge)3?|python-?3[\d.]*)$`)
)

// Path replaces the parts of a file's path that are not the same on all machines. What package frames takes from the path
// stays: how deep it is, its ending, the folder of installed packages and what is below, Python's own library, torch's.
func (r *Redactor) Path(file string) string {
	return r.often(0, file, "", func() string { return r.path(file) })
}

func (r *Redactor) path(file string) string {
	if file == "" || file == "??" || file == "none" {
		return file
	}
	if strings.HasPrefix(file, "<") {
		return r.noFile(file)
	}
	if isC.MatchString(file) && !strings.ContainsAny(file, `/\`) {
		return r.listed(file, torchWords()) // as torch's builds name their files
	}
	at, words := r.known(file)
	var b strings.Builder
	for start := 0; start < at; {
		end := start + strings.IndexAny(file[start:], `/\`)
		if end < start {
			end = len(file)
		}
		b.WriteString(r.part(file[start:end], end == len(file)))
		if end < len(file) {
			b.WriteByte(file[end])
		}
		start = end + 1
	}
	switch {
	case words != nil:
		for _, part := range slashed.FindAllString(file[at:], -1) {
			if folders()[part] {
				b.WriteString(part)
				continue
			}
			b.WriteString(r.listed(part, words))
		}
	case at < len(file):
		b.WriteString(r.keep(file[at:]))
	}
	return b.String()
}

// slashed are the parts of a path, and what is between them.
var slashed = regexp.MustCompile(`[/\\]|[^/\\]+`)

// listed is a part of a path in a tree that has parts of these words.
func (r *Redactor) listed(part string, words map[string]bool) string {
	stem := part
	if ext := path.Ext(part); ext != part && endings()[strings.ToLower(ext)] {
		stem = strings.TrimSuffix(part, ext)
	}
	if words[strings.ToLower(stem)] || strings.Trim(stem, "._/\\") == "" || stems()[strings.ToLower(stem)] {
		return r.keep(part)
	}
	all := !longNumber.MatchString(stem)
	for _, w := range split(stem) {
		all = all && (!isWord(w) || words[strings.ToLower(w)])
	}
	if all {
		return r.keep(part)
	}
	bare := strings.TrimLeft(stem, "_") // a module that is nobody else's concern begins so
	return stem[:len(stem)-len(bare)] + r.pseudonym(Paths, bare) + part[len(stem):]
}

// longNumber is none of a release or a size.
var longNumber = regexp.MustCompile(`\d{5}`)

// known is where in a path begins what is public, and the words that it is made of, nil for any.
func (r *Redactor) known(file string) (at int, words map[string]bool) {
	at = frames.Known(file)
	slashed := strings.ReplaceAll(file, `\`, "/")
	tail := slashed[at:]
	switch short := frames.Short(file); {
	case at == len(file):
	case short != file: // installed
		first, _, _ := strings.Cut(short, "/")
		if r.strict && !isPackage(strings.TrimSuffix(first, ".py")) {
			return len(file), nil
		}
		if strings.Contains(short, "../") { // it is elsewhere
			return len(file), nil
		}
		if folder := strings.TrimSuffix(tail, "/"+short); r.strict && !isPackage(folder) && !folders()[folder] { // a wheel
			at = len(file) - len(short)
		}
		if r.strict && first == "torch" {
			return at, torchWords()
		}
	case strings.HasPrefix(tail, "torch/"):
		words = torchWords()
	default: // Python's own library
		parts := strings.SplitN(tail, "/", 4)
		n := 1 // behind "lib", as Windows has it
		if len(parts) > 2 && strings.HasPrefix(strings.ToLower(parts[1]), "python3") {
			n = 2
		}
		if n == 2 && !release.MatchString(parts[1]) || len(parts) <= n || !isStdlib(parts[n]) {
			return len(file), nil
		}
	}
	if m := built.FindStringSubmatchIndex(slashed); m != nil && m[2] < at && isC.MatchString(slashed) {
		if at = m[2]; torchBuilt.MatchString(slashed[at:]) {
			words = torchWords()
		} else {
			words = pythonSources()
		}
	}
	return at, words
}

// isStdlib reports whether a file or folder is one of Python's own library.
func isStdlib(part string) bool {
	name := strings.TrimSuffix(strings.ToLower(part), ".py")
	return stdlib()[name] || strings.HasPrefix(name, "_sysconfigdata") || name == "__pycache__"
}

// isPackage reports whether a package, or module, is one that everybody can have.
func isPackage(name string) bool {
	name = strings.ToLower(name)
	name, rest, _ := strings.Cut(name, "-") // torch-2.6.0.dist-info
	return packages()[name] && (rest == "" || rest[0] >= '0' && rest[0] <= '9')
}

// part is a folder, or the file itself.
func (r *Redactor) part(part string, isFile bool) string {
	lower := strings.ToLower(part)
	switch {
	case part == "", folders()[lower], release.MatchString(part), stems()[lower], made.FindString(part) == part:
		return part
	case strings.HasPrefix(part, "torchinductor_"):
		return "torchinductor_" + r.pseudonym(Paths, part[len("torchinductor_"):])
	case strings.HasPrefix(part, "fx_generated__"):
		return "fx_generated__" + r.pseudonym(Paths, part[len("fx_generated__"):])
	}
	if m := shared().FindStringSubmatch(part); m != nil && isFile {
		if libraries().MatchString(m[1]) {
			return part
		}
		return r.pseudonym(Paths, m[1]) + m[2]
	}
	if m := python3.FindStringSubmatch(lower); m != nil && !isFile {
		return part[:len(m[1])] + r.pseudonym(Paths, part[len(m[1]):])
	}
	if m := condas.FindStringSubmatch(part); m != nil && !isFile {
		return r.pseudonym(Paths, m[1]) + m[2]
	}
	ext := path.Ext(part)
	if !endings()[strings.ToLower(ext)] || ext == part {
		ext = ""
	}
	stem := strings.TrimSuffix(part, ext)
	if made.FindString(stem) == stem {
		return part
	}
	for _, known := range []string{"cache_utils", "Register", "Redispatch", "Conv_v7", "Conv_v8"} {
		if rest, ok := strings.CutPrefix(stem, known); ok && isFile {
			if rest == "" {
				return part
			}
			return known + "_" + r.pseudonym(Paths, rest) + ext
		}
	}
	if ext == ".whl" || ext == ".egg" {
		name, rest, _ := strings.Cut(stem, "-")
		if isPackage(name) {
			return part
		}
		if released.MatchString(rest) {
			return r.pseudonym(Paths, name) + "-" + rest + ext
		}
	}
	if stems()[strings.ToLower(stem)] || isFile && isC.MatchString(part) && pythonSources()[stem] {
		return part
	}
	if isFile && pythonProgram.MatchString(part) {
		return part
	}
	return r.pseudonym(Paths, stem) + ext
}

// released is what follows the name of a package in the name of its file.
var released = regexp.MustCompile(`^\d+(?:\.\d+)*(?:-py[\d.]+)?$`)

var pythonProgram = regexp.MustCompile(`^(?:python[\d.]*[a-z]?(?:\.exe)?|torchrun|accelerate|` +
	`deepspeed|vllm|ipython3?|jupyter-(?:lab|notebook|kernel|server|nbconvert|console|run|execute)|pytest|setup\.py)$`)

// noFile is what stands in the place of a file where code comes from elsewhere.
func (r *Redactor) noFile(file string) string {
	if whole.MatchString(file) {
		return file
	}
	if m := cell.FindStringSubmatch(file); m != nil {
		return "<" + m[1] + "-" + r.pseudonym(Paths, file) + ">"
	}
	inner := strings.TrimSuffix(file[1:], ">")
	end := file[1+len(inner):]
	for _, begin := range []string{"frozen ", "attrs generated init ", "attrs generated ", "eval_with_key>"} {
		if name, ok := strings.CutPrefix(inner, begin); ok {
			if begin == "frozen " && !slices.ContainsFunc(strings.Split(name, "."), func(part string) bool {
				return !isStdlib(part) && !isPackage(part) && part != "util" && part != "machinery" && part != "metadata"
			}) {
				return file
			}
			return "<" + begin + r.pseudonym(Paths, name) + end
		}
	}
	return "<" + r.pseudonym(Paths, inner) + end
}
