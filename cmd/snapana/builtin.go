package main

import (
	"cmp"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze/device"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot/attach"
	"github.com/snapana/snapana/snapshot/carried"
	"github.com/snapana/snapana/snapshot/sidecar/recorder"
)

//go:embed manual/*.md
var manual embed.FS

// topics are the pages that are not about a command.
var topics = map[string]string{
	"errors":   "What programs are told of errors: codes and hints",
	"files":    "What snapana reads, how safely and how fast; exit codes",
	"python":   "import snapana: reports, recordings and comparisons in Python and notebooks",
	"terminal": "Widths, colors, progress, and defaults of flags",
	"verdicts": "What the verdicts and confidences mean",
}

// manPages lists the names of the manual's pages in alphabetical order.
func manPages() []string {
	files, _ := fs.Glob(manual, "manual/*.md") // it fails for bad patterns only
	for i := range files {
		files[i] = strings.TrimSuffix(path.Base(files[i]), ".md")
	}
	return files
}

func newMan(root *cobra.Command) *cobra.Command {
	pages := manPages()
	return &cobra.Command{
		Use:   "man [PAGE]",
		Short: "Print a page of the manual",
		Long: `Print a page of the manual, which is built in: one for each command, and some on topics.
Without a PAGE, list them.`,
		Example: `  snapana man
  snapana man ghosts`,
		ValidArgs: pages,
		RunE: listing("page", "man takes one PAGE, got %d", pages, func(i int) string {
			command, _, err := root.Find(pages[i : i+1])
			if about := topics[pages[i]]; about != "" || err != nil {
				return about
			}
			return command.Short
		}, func(w io.Writer, name string, o text.Options) (bool, error) {
			page, err := manual.ReadFile("manual/" + name + ".md")
			if err != nil {
				return false, nil
			}
			return true, text.Page(w, carried.Text(string(page)), o)
		}),
	}
}

func newSchema() *cobra.Command {
	names, commands := json.Schemas()
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print the JSON Schema of what --json prints",
		Long: `Print the JSON Schema (draft 2020-12) of one kind of JSON, named as in its field "schema".
Without a NAME, list the kinds and the commands that print them.`,
		Example: `  snapana schema
  snapana schema snapana.report/1 > report.schema.json`,
		ValidArgs: names,
		RunE: listing("schema", "schema takes one NAME, got %d; see `snapana schema --help`", names,
			func(i int) string { return "snapana " + commands[i] },
			func(w io.Writer, name string, _ text.Options) (bool, error) { return json.WriteSchema(w, name) }),
	}
}

// listing is the run of a command that prints one of the things that are built in, by its name, or lists
// them, each with what it is about. print reports whether there is one of that name.
func listing(what, tooMany string, names []string, about func(i int) string,
	print func(w io.Writer, name string, o text.Options) (bool, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		w := cmd.OutOrStdout()
		switch len(args) {
		case 0:
			return written(text.Index(w, names, about, look(cmd)))
		case 1:
			found, err := print(w, args[0], look(cmd))
			if !found {
				return unknown(what, args[0], names)
			}
			return written(err)
		}
		return misuse(tooMany, len(args))
	}
}

func newRecorder() *cobra.Command {
	return &cobra.Command{
		Use:   "recorder",
		Short: "Print the Python file that records which objects hold memory",
		Long: `Print snapana_recorder.py, one file without dependencies for Python 3.8 to 3.14 and PyTorch
1.13 to 2.15. Save it beside your program, or in a folder of PYTHONPATH, and run the program
with it: it writes the snapshot run.pickle and, beside it, run.snapana, which names the Python
objects that keep each tensor.`,
		Example: `  snapana recorder > snapana_recorder.py
  python -m snapana_recorder train.py --lr 0.1
  python -m snapana_recorder -o /scratch/night train.py`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(recorder.Source())
			return written(err)
		},
	}
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of snapana, Go and the GPU driver",
		Long: `Print the version of snapana, the commit and the Go release it was built with, what differs
between builds, and what it reads the GPU driver through: the library NVML, or in a build without
cgo the program nvidia-smi. Reading snapshots needs neither.`,
		Example: `  snapana version`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := fmt.Sprintf("snapana %s\n%s\n%s %s/%s\n%s\n%s\n", toolVersion(), commitLine(), runtime.Version(), runtime.GOOS,
				runtime.GOARCH, featureLine(), failure.Line(readerLine()))
			_, err := io.WriteString(cmd.OutOrStdout(), text.Fold(s, look(cmd).Columns()))
			return written(err)
		},
	}
}

// toolVersion is the version of the module as it was installed, or "devel".
func toolVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		return cmp.Or(info.Main.Version, "devel")
	}
	return "devel"
}

// commitLine says which commit this was built from, as far as Go recorded it: it does in a clone, unless told not to.
func commitLine() string {
	settings := buildSettings()
	commit, time := settings["vcs.revision"], settings["vcs.time"]
	if commit == "" {
		return "commit: not recorded"
	}
	line := "commit: " + commit + " of " + time
	if settings["vcs.modified"] == "true" {
		line += ", with changes that were not committed"
	}
	return line
}

// featureLine says in what builds differ.
func featureLine() string {
	features := "features: no cgo"
	if buildSettings()["CGO_ENABLED"] != "0" {
		features = "features: cgo"
	}
	features += ", driver by " + device.Reader
	if attach.Supported {
		features += ", attach"
	}
	return features
}

// buildSettings are the flags and the commit of the build.
func buildSettings() map[string]string {
	settings := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	return settings
}

// readerLine says what this build reads the driver through, and which release is there.
func readerLine() string {
	driver, err := device.Open()
	var version string
	if err == nil {
		defer driver.Close()
		version, err = driver.Version()
	}
	if err != nil {
		return device.Reader + ": not available, " + err.Error()
	}
	return device.Reader + ": " + version
}

func newCompletion(root *cobra.Command) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a shell completion script",
		Long:  `Print a script that makes a shell complete snapana's commands, flags and file names.`,
		Example: `  source <(snapana completion bash)
  snapana completion zsh > "${fpath[1]}/_snapana"
  snapana completion fish > ~/.config/fish/completions/snapana.fish`,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misuse("completion needs the name of a shell: bash, zsh, fish or powershell")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			w := cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return written(root.GenBashCompletionV2(w, true))
			case "zsh":
				return written(root.GenZshCompletion(w))
			case "fish":
				return written(root.GenFishCompletion(w, true))
			case "powershell":
				return written(root.GenPowerShellCompletionWithDesc(w))
			}
			return unknown("shell", args[0], shells)
		},
	}
}
