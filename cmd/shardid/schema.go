// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema"
)

func newSchema() *cobra.Command {
	var kind string
	cmd := &cobra.Command{
		Use:   "schema --dialect mysql|postgres|sqlite",
		Short: "Print the SQL that creates shardid's own tables",
		Long: `Schema prints the SQL that creates leaf_alloc, which has the counters of segments,
WORKER_NODE, which has the worker ids of cached generators, and worker_lease and
worker_namespace, which have the leases of worker ids. It can be run again where they
exist.`,
		Example: "  shardid schema --dialect mysql | mysql shop",
		Args:    command.NoArgs("name the kind of database with --dialect"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printDDL(cmd.OutOrStdout(), kind)
		},
	}
	cmd.Flags().StringVar(&kind, "dialect", "", "the database: mysql (also for MariaDB), postgres or sqlite")
	return cmd
}

func printDDL(w io.Writer, kind string) error {
	if kind == "" {
		return input.Errorf("which database is the SQL for? give --dialect mysql, postgres or sqlite")
	}
	ddl, err := schema.DDL(kind)
	if err != nil {
		return input.Errorf("--dialect %q is unknown; give mysql, postgres or sqlite", dialect.RedactDSN(kind))
	}
	_, err = io.WriteString(w, ddl)
	return err
}
