package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/snapana/snapana/report/fleet"
)

// Files that a shell completes, by their endings, without those of compression.
var (
	snapshotFiles = []string{".pickle", ".pkl", ".json", ".html", ".zip", ".tar"}
	recorderFiles = []string{".snapana"}
	counterFiles  = []string{".jsonl", ".json", ".log", ".txt", ".out", ".csv", ".pickle", ".msgpack", ".snapana"}
	logFiles      = []string{".log", ".txt", ".out", ".err"}
	ruleFiles     = []string{".yaml", ".yml"}
	pictureFiles  = []string{".png", ".svg"}
	packedFiles   = []string{".gz", ".zst", ".xz", ".bz2", ".tgz"}
)

// oneOf makes a shell complete a flag to one of words.
func oneOf[S ~string](cmd *cobra.Command, flag string, words []S) {
	list := make([]cobra.Completion, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	complete(cmd, flag, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
}

func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // there is no such flag
	}
}

// completeAll makes a shell complete arguments and flags of all commands: to files of the kinds that they take, and to no
// files where they take none.
func completeAll(root *cobra.Command) {
	all := slices.Concat(snapshotFiles, recorderFiles)
	args := map[string]struct {
		most  int
		files []string
	}{
		"report": {1, snapshotFiles}, "summary": {1, snapshotFiles}, "state": {1, snapshotFiles}, "peak": {1, snapshotFiles},
		"at": {1, snapshotFiles}, "whatif": {1, snapshotFiles}, "plot": {1, snapshotFiles}, "serve": {1, snapshotFiles},
		"ghosts": {1, all}, "diff": {many, snapshotFiles}, "fit": {many, snapshotFiles}, "ranks": {many, snapshotFiles},
		"slurm": {many, snapshotFiles}, "kubernetes": {many, snapshotFiles}, "task": {1, []string{fleet.Ending}},
		"redact": {many, slices.Concat(all, logFiles)},
		"oom":    {1, logFiles}, "stats": {many, counterFiles}, "compare-env": {2, recorderFiles}, root.Name(): {1, snapshotFiles},
	}
	flags := map[string]cobra.CompletionFunc{
		"recorder": filesOf(recorderFiles), "before": filesOf(recorderFiles), "readings": filesOf(recorderFiles),
		"snapshot": filesOf(snapshotFiles), "rules": filesOf(ruleFiles), "map": filesOf(pictureFiles), "plot": filesOf(pictureFiles),
	}
	outputs := map[string]cobra.CompletionFunc{
		"plot": filesOf(pictureFiles), "fit": filesOf(pictureFiles), "nvml": filesOf(recorderFiles), "report": filesOf(nil),
	}
	every := append(root.Commands(), root)
	for _, cmd := range root.Commands() {
		every = append(every, cmd.Commands()...)
	}
	for _, cmd := range every {
		if a, ok := args[cmd.Name()]; ok {
			cmd.ValidArgsFunction = atMost(a.most, filesOf(a.files))
		} else if cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = atMost(1, cobra.FixedCompletions(cmd.ValidArgs, cobra.ShellCompDirectiveNoFileComp))
			cmd.ValidArgs = nil
		}
		register := func(f *pflag.Flag) {
			if _, has := cmd.GetFlagCompletionFunc(f.Name); has || f.NoOptDefVal != "" {
				return
			}
			how := flags[f.Name]
			if f.Name == "output" {
				how = outputs[cmd.Name()]
			}
			if how == nil {
				how = cobra.NoFileCompletions
			}
			complete(cmd, f.Name, how)
		}
		cmd.Flags().VisitAll(register)
		cmd.PersistentFlags().VisitAll(register)
	}
}

// atMost completes so many arguments, and none after them.
func atMost(n int, f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, word)
	}
}

// filesOf completes to folders and to the files with one of those endings, packed or not. Where a word can be neither of
// them it is left to the shell, which knows all files: what a file is, its name need not tell.
func filesOf(ends []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		dir, begins := filepath.Split(word)
		entries, err := os.ReadDir(openable(dir))
		if err != nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var found []cobra.Completion
		named := 0
		for _, e := range entries {
			name := e.Name()
			if !strings.HasPrefix(name, begins) || begins == "" && name[0] == '.' {
				continue
			}
			info, err := os.Stat(filepath.Join(openable(dir), name)) // what a link leads to
			switch {
			case err != nil:
			case info.IsDir():
				found = append(found, dir+name+"/")
			case ending(name, ends):
				found = append(found, dir+name)
				named++
			}
		}
		switch {
		case named == 0 && ends != nil || len(found) == 0:
			return nil, cobra.ShellCompDirectiveDefault
		case named == 0:
			return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// openable is a folder as a shell means it.
func openable(dir string) string {
	if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(dir, "~/") {
		return home + dir[1:]
	}
	if dir == "" {
		return "."
	}
	return dir
}

// ending reports whether a name has one of the endings, and one of compression behind it or none.
func ending(name string, ends []string) bool {
	name = strings.ToLower(name)
	for _, p := range packedFiles {
		name = strings.TrimSuffix(name, p)
	}
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(name, end) })
}
