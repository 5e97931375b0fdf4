// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/manual"
)

// newManual is the command man, for packagers of the program.
func newManual() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY",
		Short:  "Write a manual page of each command",
		Long:   "Man writes a manual page of each command, shardid.1, shardid-migrate.1 and so on, into an\nexisting directory. Releases contain them.",
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return input.Errorf("which directory? give one that exists, as in shardid man .")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.Root().InitDefaultCompletionCmd()
			if err := manual.Write(args[0], cmd.Root()); err != nil {
				return input.Errorf("%w; name a directory that you may write to", err)
			}
			return nil
		},
	}
}
