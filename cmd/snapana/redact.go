package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/snapana/snapana/analyze/redact"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/place"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/load"
	"github.com/snapana/snapana/snapshot/sorting"
)

// redactFlags say whether names are replaced in all that is read. All commands have them.
type redactFlags struct {
	how  string
	salt string
}

var redactWays = []string{"names", "strict"}

func (f *redactFlags) add(root *cobra.Command) {
	fl := root.PersistentFlags()
	fl.StringVar(&f.how, "redact", "", "replace paths, user and host names and notes by pseudonyms in all\n"+
		"that is printed or written; `WHAT` strict: function names too")
	fl.Lookup("redact").NoOptDefVal = "names"
	fl.StringVar(&f.salt, "salt", "", "derive the pseudonyms of --redact from `WORDS` that nobody guesses\n"+
		"(default: from the first file)")
	oneOf(root, "redact", redactWays)
}

type redactorKey struct{}

// redactorOf is what replaces names in a command, nil where nothing does.
func redactorOf(ctx context.Context) *redact.Redactor {
	r, _ := ctx.Value(redactorKey{}).(*redact.Redactor)
	return r
}

// saltBytes is how much of a file the default salt is made of.
const saltBytes = 1 << 20

// unredacted are commands that read no file, or write what others make of it, with what to do in their place.
var unredacted = map[string]string{
	"attach": "redact the files that it writes: `snapana redact`",
	"nvml":   "redact what it records: `snapana redact`",
	"fleet":  "make digests with `snapana digest --redact`, or of snapshots that `snapana redact` wrote",
	"mcp":    "give it files that `snapana redact` wrote",
	"merge":  "make digests of snapshots that `snapana redact` wrote",
}

// begin makes all that a command reads go through a redactor, if that is wanted or the command is what for.
func (f *redactFlags) begin(cmd *cobra.Command, args []string) error {
	always := cmd.Name() == "redact"
	if !always && !cmd.Flags().Changed("redact") {
		if f.salt != "" && cmd.Flags().Changed("salt") && cmd.Flags().Lookup("salt").Annotations[fromVariable] == nil {
			return misuse("--salt needs --redact")
		}
		return nil
	}
	if f.how != "" && !slices.Contains(redactWays, f.how) {
		return unknown("--redact", f.how, redactWays)
	}
	for c := cmd; c != nil; c = c.Parent() {
		if instead := unredacted[c.Name()]; instead != "" {
			return misuse("--redact cannot be used with %s; %s", c.Name(), instead)
		}
	}
	for name, why := range map[string]string{
		"source":   "shows lines of the program",
		"nvml":     "reads the machine itself; record it with `snapana nvml -o`, and name that with --readings",
		"baseline": "reads what was kept of a snapshot",
	} {
		if fl := cmd.Flags().Lookup(name); fl != nil && fl.Changed && fl.Value.String() != "false" {
			return misuse("--redact cannot be used with --%s, which %s", name, why)
		}
	}
	if f.salt == "" && cmd.Name() == "digest" {
		return misuse("--redact of digests needs --salt, so that a name is the same in the digests of all ranks")
	}
	salt := []byte(f.salt)
	if f.salt == "" {
		var err error
		if salt, err = derived(cmd, args); err != nil {
			salt = nil // whoever reads the file says what is wrong with it
		}
	}
	r := redact.New(salt, f.how == "strict")
	cmd.SetContext(context.WithValue(input.WithFilter(cmd.Context(), r.Filter()), redactorKey{}, r))
	return nil
}

// derived is a salt made of the beginning of the first file, so that the same file gives the same pseudonyms.
func derived(cmd *cobra.Command, args []string) ([]byte, error) {
	ctx, h := cmd.Context(), sha256.New()
	for _, a := range args {
		if a == "-" {
			in := bufio.NewReaderSize(cmd.InOrStdin(), saltBytes)
			head, err := in.Peek(saltBytes)
			h.Write(head)
			cmd.Root().SetIn(in)
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, err
			}
			return h.Sum(nil), nil
		}
		info, err := input.Stat(ctx, a)
		if err != nil {
			continue
		}
		if info.IsDir() {
			if a = firstFile(ctx, a); a == "" {
				continue
			}
		} else if !info.Mode().IsRegular() {
			continue // a pipe can be read once
		}
		file, err := input.Open(ctx, a)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		_, err = io.Copy(h, io.LimitReader(file, saltBytes))
		return h.Sum(nil), err
	}
	return nil, nil
}

// firstFile is the first of the files in a folder and below.
func firstFile(ctx context.Context, dir string) (first string) {
	input.Walk(ctx, dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasPrefix(d.Name(), ".") && (first == "" || path < first) {
			first = path
		}
		return nil
	})
	return first
}

// said is an error as it may be shown: of what is redacted without the names of files, and without a look at what is
// beside them.
func said(ctx context.Context, cmd *cobra.Command, err error) error {
	r := (*redact.Redactor)(nil)
	if cmd.Context() != nil {
		r = redactorOf(cmd.Context())
	}
	if r == nil {
		return naming(explain(ctx, err), cmd)
	}
	given := cmd.Flags().Args()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Name != "redact" && f.Name != "output" && f.Name != "salt" {
			given = append(given, f.Value.String())
		}
	})
	sorting.By(given, func(a, b string) int { return len(b) - len(a) })
	err = naming(inFlags(err), cmd)
	out := &nameless{r.Message(err.Error(), given), []error{err}}
	var fault *snapshot.FormatError
	var path *fs.PathError
	switch { // what tells the file apart from the message
	case errors.As(err, &fault):
		of := *fault
		of.Name = r.Name(fault.Name)
		out.is = []error{&of, err}
	case errors.As(err, &path):
		of := *path
		of.Path = r.Name(path.Path)
		out.is = []error{&of, err}
	}
	return out
}

// nameless is an error with names of files taken out of its message.
type nameless struct {
	message string
	is      []error
}

func (n *nameless) Error() string   { return n.message }
func (n *nameless) Unwrap() []error { return n.is }

// pseudonyms tells redactors apart in the options of a digest: equal words have equal pseudonyms. "" is no redactor.
func pseudonyms(ctx context.Context) string {
	r := redactorOf(ctx)
	if r == nil {
		return ""
	}
	how := "names"
	if r.Strict() {
		how = "strict"
	}
	return " redact=" + how + "," + r.Mark()
}

// without takes the name of a file out of a text, if names are replaced.
func without(ctx context.Context, text, file string) string {
	if r := redactorOf(ctx); r != nil {
		return r.Message(text, []string{file})
	}
	return text
}

func newRedact() *cobra.Command {
	var (
		in       inputFlags
		out, to  string
		asJSON   bool
		redacted []json.Redacted
	)
	cmd := &cobra.Command{
		Use:   "redact FILE... -o OUT",
		Short: "Write a snapshot that anyone may see, with the same verdict",
		Long: `Write what is in FILE (- for standard input) to OUT, with pseudonyms in place of whatever tells
who ran the program, where, and on what: folders and files of the program, users, hosts,
addresses, serial numbers, arguments, annotations and user metadata. Sizes, times, addresses in
memory and the shapes of stacks stay, so that the verdict is the same. --redact=strict also
replaces the names of the program's functions and of packages that are not public.

FILE is a snapshot, a .snapana file, a dump of memory counters or a log; anything else is
refused. OUT is a file, or a folder where several files are given or the name ends in a slash:
then each gets a name that is redacted, too. Afterwards OUT is searched for every word that was
replaced, and is not written if one is left.

--map writes the table of pseudonyms, which only you should see.`,
		Example: `  snapana redact snapshot.pickle -o public.pickle
  snapana redact --redact=strict --salt "$SECRET" snapshot.pickle.gz -o public.pickle.gz
  snapana redact --map mine.tsv run.pickle run.snapana -o public/`,
		Args: needs(1, many, "the FILES to redact"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return misuse("redact needs -o OUT, a file or a folder to write")
			}
			r := redactorOf(cmd.Context())
			dir := len(args) > 1 || strings.HasSuffix(out, "/")
			if info, err := os.Stat(out); err == nil && info.IsDir() {
				dir = true
			}
			if dir {
				if err := place.MkdirAll(out); err != nil {
					return written(err)
				}
			}
			// A recording says how large its snapshot is: that one comes first, and its new size is known.
			sorting.Stable(args, func(a, b string) int { return last(a) - last(b) })
			targets := make([]string, len(args))
			for i, file := range args {
				target := out
				if dir {
					target = filepath.Join(out, r.Name(file))
					if file == "-" {
						target = filepath.Join(out, "stdin.pickle")
					}
				}
				if same(file, target) {
					return misuse("%s would replace %s itself; name another -o", target, file)
				}
				if k := slices.Index(targets[:i], target); k >= 0 {
					return misuse("%s and %s would both be written to %s; give each a folder of its own with -o", args[k], file,
						target)
				}
				targets[i] = target
			}
			for i, target := range targets {
				n, err := redactFile(cmd, &in, args[i], target)
				if err != nil {
					return err
				}
				name := filepath.Base(target)
				redacted = append(redacted, json.Redacted{File: name, Bytes: n})
			}
			if to != "" {
				if err := writeMap(cmd.Context(), to, r); err != nil {
					return written(err)
				}
			}
			result := &json.Redaction{Strict: r.Strict(), Files: redacted, Replaced: r.Counts()}
			if asJSON {
				return written(json.WriteRedaction(cmd.OutOrStdout(), result))
			}
			if isBrief(cmd) {
				n := 0
				for _, c := range result.Replaced {
					n += c.Words
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), text.Fold(fmt.Sprintf("%s written, %s replaced; none of them is left",
					units.Plural(len(redacted), "file"), units.Plural(n, "word")), look(cmd).Columns()))
				return written(err)
			}
			return written(printRedaction(cmd.OutOrStdout(), result, look(cmd)))
		},
	}
	fl := cmd.Flags()
	in.addLimit(fl, "input")
	fl.IntVar(&in.index, "index", 0, "`NUMBER` of the snapshot in an HTML page that has several, from 0")
	fl.StringVarP(&out, "output", "o", "", "`FILE` or folder to write")
	fl.StringVar(&to, "map", "", "write the table of pseudonyms and what they stand for to `FILE` (mode 0600)")
	fl.BoolVar(&asJSON, "json", false, "print what was replaced as JSON")
	addBrief(fl)
	return cmd
}

// same reports whether two names are of one file.
func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// last is 1 for a .snapana file, and 0 for others.
func last(file string) int {
	if strings.HasSuffix(snapshot.PlainName(file), ".snapana") {
		return 1
	}
	return 0
}

// redactFile writes one file as a whole, or not at all where a word of the original is left in it.
func redactFile(cmd *cobra.Command, in *inputFlags, file, target string) (size int64, err error) {
	ctx, r := cmd.Context(), redactorOf(cmd.Context())
	meterOf(ctx).doing("redacting " + failure.Line(r.Name(file)))
	spool, err := os.CreateTemp("", "snapana-redact-")
	if err != nil {
		return 0, written(err)
	}
	os.Remove(spool.Name())
	defer spool.Close()
	var stdin io.Reader
	name := file
	if file == "-" {
		stdin, name = cmd.InOrStdin(), "stdin"
	}
	var failed error
	err = load.Unpacked(ctx, stdin, name, load.Options{MaxBytes: int64(in.maxBytes), Index: in.index}, func(from io.Reader) error {
		w := bufio.NewWriterSize(spool, 1<<18)
		if size, err = io.Copy(w, from); err != nil {
			return err
		}
		failed = w.Flush()
		return failed
	})
	if failed != nil {
		return 0, written(failed)
	} else if err != nil {
		return 0, err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return 0, written(err)
	}
	left, err := r.Scanner().Scan(bufio.NewReaderSize(spool, 1<<18))
	if err != nil {
		return 0, written(err)
	}
	if len(left) > 0 {
		return 0, fmt.Errorf("nothing was written: %s of the original would be left in it, for example the one of %s",
			units.Plural(len(left), "word"), left[0].Pseudonym)
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return 0, written(err)
	}
	return size, written(place.WriteBy(ctx, target, func(w io.Writer) error { return pack(w, spool, target) }))
}

// pack writes a file in the way that its name says.
func pack(w io.Writer, from io.Reader, name string) error {
	var to io.WriteCloser
	var err error
	switch strings.ToLower(filepath.Ext(name)) {
	case ".gz":
		to = gzip.NewWriter(w)
	case ".zst":
		to, err = zstd.NewWriter(w)
	default:
		_, err = io.Copy(w, from)
		return err
	}
	if err == nil {
		_, err = io.Copy(to, from)
	}
	if err == nil {
		err = to.Close()
	}
	return err
}

// writeMap writes the table of pseudonyms, which only its owner can read at any time.
func writeMap(ctx context.Context, path string, r *redact.Redactor) error {
	if err := place.MkdirAll(input.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = f.Chmod(0o600)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, p := range r.Table() {
		fmt.Fprintf(&b, "%s\t%q\n", p.Pseudonym, p.Word)
	}
	return place.Write(ctx, path, b.Bytes())
}

// printRedaction says what was written, and how much was replaced.
func printRedaction(w io.Writer, r *json.Redaction, o text.Options) error {
	var b strings.Builder
	for _, f := range r.Files {
		fmt.Fprintf(&b, "Wrote %s (%s). No word that was replaced is left in it.\n", f.File, units.Bytes(f.Bytes))
	}
	if len(r.Replaced) == 0 {
		b.WriteString("Nothing had to be replaced.\n")
	} else {
		b.WriteString("Replaced:\n")
	}
	for _, c := range r.Replaced {
		fmt.Fprintf(&b, "  %7d  %s\n", c.Words, c.Kind)
	}
	if !r.Strict {
		b.WriteString("Names of functions and of installed packages were kept; --redact=strict replaces those of the program.\n")
	}
	_, err := io.WriteString(w, text.Fold(b.String(), o.Columns()))
	return err
}
