package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newCompletion(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a shell completion script",
		Long:  `Print a script that makes a shell complete snapana's commands, flags and file names.`,
		Example: `  source <(snapana completion bash)
  snapana completion zsh > "${fpath[1]}/_snapana"
  snapana completion fish > ~/.config/fish/completions/snapana.fish`,
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("completion needs the name of a shell: bash, zsh, fish or powershell")
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
			return unknown("shell", args[0], cmd.ValidArgs)
		},
	}
}
