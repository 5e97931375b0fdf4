// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stalled is a service that runs, with a request for an id under way.
type stalled struct {
	going    chan struct{} // lets the request go on once it is closed
	stopping chan struct{} // is closed when the service takes no more requests
	status   chan int      // the request's, 0 for none
	ended    chan error    // Run's
}

func stall(ctx context.Context, t *testing.T, l net.Listener, grace time.Duration) stalled {
	t.Helper()
	s := open(t, nil)
	of := stalled{make(chan struct{}), make(chan struct{}), make(chan int, 1), make(chan error, 1)}
	begun, actual := make(chan struct{}), s.segments.open
	s.segments.open = func(ctx context.Context, name string) (generator, error) {
		close(begun)
		select {
		case <-of.going:
			return actual(ctx, name)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	log := slog.New(slog.NewTextHandler(notice(of.stopping), nil))
	go func() { of.ended <- s.Run(ctx, l, grace, log) }()
	go func() {
		answer, err := http.Get("http://" + l.Addr().String() + "/api/segment/get/order")
		if err != nil {
			of.status <- 0
			return
		}
		_ = answer.Body.Close()
		of.status <- answer.StatusCode
	}()
	<-begun
	return of
}

// notice is closed by the first message.
type notice chan struct{}

func (n notice) Write(text []byte) (int, error) {
	close(n)
	return len(text), nil
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := Listen(t.Context(), "127.0.0.1:0", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestARequestUnderWayIsAnsweredWhenTheServerStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	s := stall(ctx, t, listen(t), 10*time.Minute)
	stop()
	<-s.stopping
	close(s.going)
	if code := <-s.status; code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

// broken is a listener that fails after the first connection.
type broken struct {
	net.Listener

	once  sync.Once
	fails chan struct{}
}

var errBroken = errors.New("no more files can be opened")

func (b *broken) Accept() (c net.Conn, err error) {
	b.once.Do(func() { c, err = b.Listener.Accept() })
	if c != nil || err != nil {
		return c, err
	}
	<-b.fails
	return nil, errBroken
}

func TestARequestUnderWayIsAnsweredWhenNoConnectionsCanBeTaken(t *testing.T) {
	l := &broken{Listener: listen(t), fails: make(chan struct{})}
	s := stall(t.Context(), t, l, 10*time.Minute)
	close(l.fails)
	<-s.stopping
	close(s.going)
	if code := <-s.status; code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	if err := <-s.ended; !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

func TestTheServerStopsWhenGraceEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	s := stall(ctx, t, listen(t), time.Millisecond)
	stop()
	if err := <-s.ended; err == nil || !strings.Contains(err.Error(), "requests were pending when --grace ended") {
		t.Error(err)
	}
	if code := <-s.status; code == http.StatusOK {
		t.Error("the request was answered")
	}
}

// pipe is a listener of one connection, of which it tells when the server closes it.
type pipe struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (p pipe) Accept() (net.Conn, error) {
	c, more := <-p.conn
	if !more {
		return nil, net.ErrClosed
	}
	return told{c, p.closed}, nil
}
func (p pipe) Close() error { close(p.conn); return nil }
func (pipe) Addr() net.Addr { return &net.TCPAddr{} }

type told struct {
	net.Conn

	closed chan struct{}
}

func (c told) Close() error {
	select {
	case <-c.closed:
	default:
		close(c.closed)
	}
	return c.Conn.Close()
}

func TestConnectionsThatStallAreClosed(t *testing.T) {
	const request = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, c := range map[string]struct {
		sends string
		reads bool
		after time.Duration
	}{
		"half a header":          {request[:len(request)-4], true, 5 * time.Second},
		"no body":                {"POST /decodeSnowflakeId HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\n", true, 10 * time.Second},
		"no second request":      {request, true, 2 * time.Minute},
		"the answer is not read": {request, false, 40 * time.Second}, // --wait and 30 seconds
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, func(c *Config) { c.Wait = 10 * time.Second })
				ctx, stop := context.WithCancel(t.Context())
				l := pipe{make(chan net.Conn), make(chan struct{})}
				ended := make(chan error)
				go func() { ended <- s.Run(ctx, l, time.Second, slog.New(slog.DiscardHandler)) }()
				client, server := net.Pipe()
				l.conn <- server
				begin := time.Now()
				if _, err := client.Write([]byte(c.sends)); err != nil {
					t.Error(err)
				}
				if c.reads {
					go func() { _, _ = io.Copy(io.Discard, client) }()
				}
				<-l.closed
				if took := time.Since(begin); took < c.after || took > c.after+time.Second {
					t.Errorf("it is closed after %v", took)
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				_ = client.Close()
			})
		})
	}
}
