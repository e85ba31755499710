package main

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"
)

//go:embed manual/*.md
var manual embed.FS

// topics are the pages that are not about a command.
var topics = map[string]string{
	"files":    "What snapana reads, how safely and how fast; exit codes",
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
	return &cobra.Command{
		Use:   "man [PAGE]",
		Short: "Print a page of the manual",
		Long: `Print a page of the manual, which is built in: one for each command, and some on topics.
Without a PAGE, list them.`,
		Example: `  snapana man
  snapana man ghosts`,
		ValidArgs: manPages(),
		RunE: func(cmd *cobra.Command, args []string) error {
			w := cmd.OutOrStdout()
			switch len(args) {
			case 0:
				for _, name := range manPages() {
					about := topics[name]
					if command, _, err := root.Find([]string{name}); about == "" && err == nil {
						about = command.Short
					}
					if _, err := fmt.Fprintf(w, "%-12s %s\n", name, about); err != nil {
						return written(err)
					}
				}
				return nil
			case 1:
				page, err := manual.ReadFile("manual/" + args[0] + ".md")
				if err != nil {
					return unknown("page", args[0], manPages())
				}
				_, err = w.Write(page)
				return written(err)
			}
			return fmt.Errorf("man takes one PAGE, got %d", len(args))
		},
	}
}
