// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/shardid/shardid/examples/internal/web"
)

// Main is the program of a shop. It serves until it gets SIGINT or SIGTERM.
func Main(open func(context.Context, *Shop) (web.Shop, error)) {
	Run(func(ctx context.Context) error { return run(ctx, Parse(), open) })
}

// Run runs a program whose context ends by SIGINT or SIGTERM.
func Run(do func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := do(ctx)
	stop()
	if err != nil {
		slog.Error("the shop has ended", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, f Flags, open func(context.Context, *Shop) (web.Shop, error)) (err error) {
	s, err := Open(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	shop, err := open(ctx, s)
	if err != nil {
		return err
	}
	page, err := s.Page()
	if err != nil {
		return err
	}
	at, err := Listen(ctx, f)
	if err != nil {
		return err
	}
	return Serve(ctx, at, web.Handler(shop, page))
}

// Listen opens the address of the flags, and prints the URLs of the program.
func Listen(ctx context.Context, f Flags) (net.Listener, error) {
	at, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.Listen)
	if err == nil {
		slog.Info("the shop is open", "url", "http://"+at.Addr().String(), "status", "http://"+at.Addr().String()+"/debug/shardid/")
	}
	return at, err
}

// Serve answers requests until ctx ends. It then waits for requests in progress.
func Serve(ctx context.Context, at net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		stopped <- server.Shutdown(grace)
	}()
	if err := server.Serve(at); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
