// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/database"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/serve"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	serve.Config

	source, listen, tokenFile string
	noAuth                    bool
	connections               int
	grace                     time.Duration
	layout                    layoutFlags
}

func newServe() *cobra.Command {
	f := serveFlags{Config: serve.Config{Tags: 1000, Batch: 10_000, Wait: 3 * time.Second}, grace: 10 * time.Second, connections: 16}
	cmd := &cobra.Command{
		Use:   "serve --source DATABASE",
		Short: "Give ids over HTTP, with the paths of Leaf's server",
		Long: `Serve gives ids to programs that are not written in Go. Its paths are those of
Leaf's server, /api/segment/get/TAG, /api/snowflake/get/ANY and
/decodeSnowflakeId?snowflakeId=ID, and besides /api/segment/batch/TAG?n=100,
/api/snowflake/batch/ANY?n=100, /metrics, /livez, /readyz and /status/.

Segments come from leaf_alloc and leases of worker ids from worker_lease, so
several servers can run at once; see shardid schema. SIGTERM stops a
server after it has answered pending requests.`,
		Example: "  shardid serve --source 'user:password@tcp(host:3306)/shop'\n  shardid serve --source postgres://user@host:5432/shop\n  shardid serve --source ids.db --listen 0.0.0.0:8080 --token-file /etc/shardid/token",
		Args:    command.NoArgs("name the database with --source"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	f.layout.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.source, "source", os.Getenv(command.SourceVariable), "the database, as "+database.Forms+" (default $"+command.SourceVariable+")")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8080", "address to listen on")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the token that requests must carry; it is read again when it changes, and on SIGHUP")
	flags.BoolVar(&f.noAuth, "no-auth", false, "allow everybody who reaches --listen")
	flags.StringVar(&f.Namespace, "namespace", "shardid", "namespace of the worker ids; servers whose snowflake ids must differ share one")
	flags.BoolVar(&f.Guarded, "guarded", false, "skip segments that a fail-over to a replica may have lost; for all programs that use leaf_alloc, so not beside Leaf")
	flags.Var(input.Between(1, 1_000_000, &f.Tags), "tags", "how many tags may be open at once")
	flags.Var(input.Between(1, 10_000, &f.connections), "connections", "how many connections to the database may be open at once")
	flags.Var(input.Between(1, 1_000_000, &f.Batch), "max-batch", "how many ids one request may ask for")
	flags.Var(input.Between(time.Millisecond, time.Hour, &f.Wait), "wait", "how long a request waits for ids")
	flags.Var(input.Between(time.Millisecond, time.Hour, &f.grace), "grace", "how long pending requests may take when the server stops")
	flags.Lookup("source").DefValue = ""
	return cmd
}

func (f *serveFlags) run(ctx context.Context, stderr io.Writer) (err error) {
	log := slog.New(slog.NewTextHandler(stderr, nil))
	if f.Layout, err = f.layout.layout(); err != nil {
		return err
	}
	if f.noAuth && f.tokenFile != "" {
		return input.Errorf("--no-auth and --token-file exclude each other; give one")
	}
	if f.tokenFile != "" {
		if f.Token, err = serve.OpenToken(f.tokenFile, log); err != nil {
			return err
		}
		defer onHangup(func() { _ = f.Token.Reload() })() // on failure it refuses requests and logs the error
	}
	if f.Namespace == "" {
		return input.Errorf("--namespace is empty; give the name that the servers share, or leave the flag out for shardid")
	}
	if f.source == "" {
		return database.Unnamed(command.SourceVariable)
	}
	if f.DB, err = database.OpenForWriting(ctx, f.source, database.Refused); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.DB.Close()) }()
	f.DB.SetMaxOpenConns(f.connections)
	f.DB.SetMaxIdleConns(f.connections)
	f.DB.SetConnMaxIdleTime(time.Minute)
	service, err := serve.New(ctx, f.Config)
	if err != nil {
		return err
	}
	if err := service.Check(ctx); err != nil {
		return errors.Join(database.Failed(err, fmt.Errorf("--source: no ids can be given from this database: %w", err)), service.Close())
	}
	l, err := serve.Listen(ctx, f.listen, f.Token, f.noAuth)
	if err != nil {
		return errors.Join(err, service.Close())
	}
	log.Info("serving ids", "address", l.Addr().String())
	return service.Run(ctx, l, f.grace, log)
}

// onHangup calls do at each SIGHUP until the function that it returns is called.
func onHangup(do func()) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-hangups:
				do()
			case <-ended:
				return
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(ended)
		<-done
	}
}
