// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
)

// Listen listens on an address. It refuses an address that other machines reach if there is
// no token, unless open allows everybody to get ids.
func Listen(ctx context.Context, address string, token *Token, open bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, input.Errorf("--listen %q is not an address; write it as 127.0.0.1:8080", address)
	}
	if token == nil && !open && !loopback(host) {
		return nil, input.Errorf("--listen %s is reached from other machines; give --token-file, or --no-auth if everybody there may have ids and see the status page", address)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, input.Errorf("--listen %s: %w; give a free address of this machine, as 127.0.0.1:8080", address, err)
	}
	return l, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Run answers requests on l until ctx ends or l fails. Then it accepts no new connections,
// answers pending requests for at most grace, and closes the generators.
func (s *Service) Run(ctx context.Context, l net.Listener, grace time.Duration, log *slog.Logger) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      s.cfg.Wait + 30*time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	var failure error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failure = server.Serve(l)
	}()
	select {
	case <-ended:
		log.Error("stopping, as no connections can be accepted", "grace", grace.String(), "error", failure)
	case <-ctx.Done():
		log.Info("stopping", "grace", grace.String())
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := server.Shutdown(within)
	if err != nil {
		err = errors.Join(errors.New("requests were pending when --grace ended"), server.Close())
	}
	<-ended
	if errors.Is(failure, http.ErrServerClosed) {
		failure = nil
	}
	return errors.Join(failure, err, s.Close())
}
