package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/analyze/oom"
	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/analyze/window"
	"github.com/snapana/snapana/report"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/load"
	"github.com/snapana/snapana/snapshot/memstats"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// explain adds to an error what to do about it: it looks for the file that was meant, and into the one that was named.
func explain(ctx context.Context, err error) error {
	var fault *snapshot.FormatError
	var path *fs.PathError
	switch {
	case errors.As(err, &fault):
		if msg, hint, is := redirect(ctx, fault); msg != "" {
			said := *fault
			said.Msg, said.Err, said.Op, said.Offset = msg, is, "", -1
			return failure.Advise(hint, &said)
		}
	case errors.As(err, &path) && errors.Is(err, fs.ErrNotExist):
		return meant(path, err)
	}
	return inFlags(err)
}

// redirect says what a file is that is no snapshot, as its content tells, and which command reads it; "" where none
// does.
func redirect(ctx context.Context, fault *snapshot.FormatError) (msg, hint string, is snapshot.Stranger) {
	name := text.Arg(fault.Name)
	if !errors.As(fault, &is) && errors.Is(fault, snapshot.ErrCorrupt) && fault.Offset < 1<<10 {
		is = snapshot.Text // a log may begin as JSON does: "[rank0]: ..."
	}
	switch is {
	case snapshot.Folder:
		msg, hint = inFolder(ctx, fault.Name)
		return msg, hint, is
	case snapshot.Recording:
		hint = fmt.Sprintf("`snapana ghosts %s` and `snapana stats %[1]s` read it", name)
		return "is a recording of what a program and the driver said, not a memory snapshot; " + hint, hint, is
	case snapshot.Digest:
		hint = fmt.Sprintf("`snapana ranks %s` and `snapana check %[1]s` read it", name)
		return fault.Msg + "; " + hint, hint, is
	case snapshot.Text:
		if fault.Name == "stdin" {
			hint = "`snapana oom -` reads logs"
			return fault.Msg + "; " + hint, hint, is
		}
		if log, err := oom.OpenLog(ctx, fault.Name, nil); err == nil && log.Messages > 0 {
			hint = fmt.Sprintf("`snapana oom %s` explains it", name)
			return fmt.Sprintf("is a log with %s, not a memory snapshot; %s",
				units.Plural(log.Messages, "out-of-memory message"), hint), hint, is
		}
		fallthrough
	case snapshot.Data:
		if err := new(analyze.Stats).Add(ctx, fault.Name, nil, analyze.StatsOptions{}); err == nil {
			hint = fmt.Sprintf("`snapana stats %s` judges them", name)
			return "is not a memory snapshot but has memory counters; " + hint, hint, is
		}
	}
	return "", "", is
}

// inFolder says which snapshots are in a folder.
func inFolder(ctx context.Context, dir string) (msg, hint string) {
	found := someSnapshots(ctx, dir, maxSeen)
	switch n := len(found); n {
	case 0:
		return "is a directory, and no snapshot was found in it", "name a snapshot, or a folder that has some"
	case 1:
		hint = "the snapshot in it is " + text.Arg(found[0])
		return "is a directory; " + hint, hint
	default:
		const most = 3
		list := make([]string, min(n, most))
		for i := range list {
			list[i] = text.Arg(found[i])
		}
		if n > most {
			list = append(list, "...")
		}
		hint = fmt.Sprintf("`snapana ranks %s` compares them", text.Arg(dir))
		return fmt.Sprintf("is a directory with %d snapshots: %s; %s", n, strings.Join(list, ", "), hint), hint
	}
}

// Bounds of the search for snapshots in a folder.
const (
	maxSeen  = 10_000 // entries
	maxBelow = 3      // folders below it
)

// snapshots lists the files in a folder, and in folders below it, that begin as snapshots do, in the order of their
// paths.
func snapshots(ctx context.Context, dir string) []string { return someSnapshots(ctx, dir, many) }

// someSnapshots looks at so many entries at most.
func someSnapshots(ctx context.Context, dir string, most int) (found []string) {
	seen, top := 0, strings.Count(input.Join(dir, "x"), string(filepath.Separator))
	input.Walk(ctx, dir, func(path string, d fs.DirEntry, err error) error {
		seen++
		deep := 1 + strings.Count(path, string(filepath.Separator)) - top
		hidden := path != dir && strings.HasPrefix(filepath.Base(path), ".")
		switch {
		case ctx.Err() != nil || seen > most:
			return fs.SkipAll
		case err != nil:
			return nil
		case d.IsDir() && (hidden || deep > maxBelow || strings.HasSuffix(path, report.Ending)):
			return fs.SkipDir
		case !d.IsDir() && !hidden && recognize(ctx, path):
			found = append(found, path)
		}
		return nil
	})
	return found
}

var (
	packed = regexp.MustCompile(`\.(gz|xz|bz2|zst|zip)$`)
	named  = regexp.MustCompile(`\.(pickle|pkl|json)\.\w+$`)
)

// recognize reports whether a file begins as a snapshot does. Of packed ones the name has to do: a few bytes of them may
// unpack to much.
func recognize(ctx context.Context, path string) bool {
	if packed.MatchString(path) {
		return named.MatchString(path)
	}
	return load.Recognize(ctx, path)
}

var url = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+://`)

var digits = regexp.MustCompile(`[0-9]+`)

// meant adds to the error of a path that leads to nothing what it was meant to be, where something is like it.
func meant(path *fs.PathError, err error) error {
	switch home, rest, _ := strings.Cut(path.Path, "/"); {
	case url.MatchString(path.Path):
		return err
	case home == "~":
		hint := "write $HOME/" + rest
		return failure.Advise(hint, fmt.Errorf("%w: the shell did not expand ~, %s", err, hint))
	}
	if near := likeIt(path.Path); near != "" {
		hint := fmt.Sprintf("did you mean %s?", text.Arg(near))
		return failure.Advise(hint, fmt.Errorf("%w (%s)", err, hint))
	}
	return err
}

// likeIt is the file or folder with the name most like that of path, in the same folder, or in one with a name like its
// own.
func likeIt(path string) string {
	dir, name := filepath.Split(filepath.Clean(path))
	if name == "" {
		return ""
	}
	if _, err := os.Stat(filepath.Clean(dir)); dir != "" && err != nil {
		above := likeIt(dir)
		if above == "" {
			return ""
		}
		path = filepath.Join(above, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		dir = above
	}
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range entries[:min(len(entries), maxSeen)] {
		if snapshot.Stem(e.Name()) == snapshot.Stem(name) && !e.IsDir() {
			return filepath.Join(dir, e.Name()) // with another ending
		}
		if digits.ReplaceAllString(e.Name(), "") != digits.ReplaceAllString(name, "") { // else it is another rank or step
			names = append(names, e.Name())
		}
	}
	near := nearest(name, names)
	if near == "" {
		return ""
	}
	return filepath.Join(dir, near)
}

// badFlag is the error for a flag that is unknown or has a bad value.
func badFlag(cmd *cobra.Command, err error) error {
	hint := ""
	var absent *pflag.NotExistError
	var bad *pflag.InvalidValueError
	switch {
	case errors.As(err, &absent):
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		word := absent.GetSpecifiedName()
		if short := absent.GetSpecifiedShortnames(); short != "" {
			word = short // -json
		}
		if near := nearest(word, known); near != "" && len(word) > 1 {
			hint = "did you mean --" + near + "?"
			err = fmt.Errorf("%w (%s)", err, hint)
		}
	case errors.As(err, &bad):
		if want := wants[bad.GetFlag().Value.Type()]; want != "" {
			err = misuse("invalid --%s %q; expected %s", bad.GetFlag().Name, bad.GetValue(), want)
		}
	}
	see := fmt.Sprintf("see `%s --help`", cmd.CommandPath())
	return failure.Advise(cmp.Or(hint, see), misuse("%w; %s", err, see))
}

// wants says what a value of a type is, where pflag says it in Go's words.
var wants = map[string]string{"int": "a whole number", "int64": "a whole number", "bool": "true or false",
	"duration": "a time like 1s or 500ms"}

// newHelp is the command for help about the others.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		Long:  "Print the help of a command, as COMMAND --help does.",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return commands(root), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(root, args[0])
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

const moreBytes = "if you trust it, allow more with --max-bytes"

// plainly is an error of reading a file without what to do about it in flags of the program.
func plainly(err error) error {
	if fault := (*snapshot.FormatError)(nil); errors.As(err, &fault) {
		return fault
	}
	if none := (*window.Error)(nil); errors.As(err, &none) {
		return none
	}
	return err
}

// inFlags adds to an error of reading what to do about it, in flags and commands of the program.
func inFlags(err error) error {
	var fault *snapshot.FormatError
	if !errors.As(err, &fault) {
		return err
	}
	said := *fault
	msg, hint := advice(fault.Msg, fault.Err)
	if said.Msg = msg; msg == fault.Msg {
		return err
	}
	return failure.Advise(hint, &said)
}

// advice is inFlags for the message of an error of that class, with what to do about it.
func advice(msg string, class error) (said, hint string) {
	var limit *snapshot.LimitError
	switch isSnapshot := errors.Is(class, snapshot.ErrSnapshot); {
	case errors.As(class, &limit) && limit.Bytes > 0:
		return fmt.Sprintf("exceeds the %d bytes that --max-bytes allows", limit.Bytes), moreBytes
	case limit != nil:
		hint = moreBytes
	case errors.Is(class, sidecar.ErrForeign) && isSnapshot:
		hint = "give a snapshot as FILE, and the recorder's file with --recorder"
	case errors.Is(class, sidecar.ErrForeign):
		hint = "`snapana recorder` prints the recorder that writes them"
	case isSnapshot:
		hint = "use `snapana report`"
	case errors.Is(class, memstats.ErrLongPickle):
		hint = "use `snapana report` if it is a snapshot"
		return msg + ", or " + hint, hint
	default:
		return msg, ""
	}
	return msg + "; " + hint, hint
}
