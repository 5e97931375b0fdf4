// SPDX-License-Identifier: Apache-2.0

// Command shardid inspects AUTO_INCREMENT databases and moves their tables to shards while
// applications write, checks shards, gives ids over HTTP, decodes ids, and prints the DDL
// of the tables that generators need.
//
// Data goes to stdout and everything else to stderr. The exit codes are those
// of "shardid --help".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // for the zones of rules by time, on machines that have no list of zones
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
