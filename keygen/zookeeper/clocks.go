// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// timeServer answers each connection with the present time: milliseconds since 1970 as decimal
// digits, and a line feed. It owns one goroutine, which ends with close.
type timeServer struct {
	listener net.Listener
	now      func() time.Time
	done     chan struct{} // closed by close
	ended    sync.WaitGroup
}

func serveTime(addr string, now func() time.Time) (*timeServer, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("zookeeper: serve the time at WorkersConfig.Addr: %w", err)
	}
	k := &timeServer{listener: listener, now: now, done: make(chan struct{})}
	k.ended.Go(k.serve)
	return k, nil
}

func (k *timeServer) serve() {
	for {
		conn, err := k.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // for example, no file descriptor is left
			select {
			case <-time.After(pauseBetween):
			case <-k.done:
			}
		default:
			k.writeTime(conn)
		}
	}
}

// writeTime does not block, because its few bytes fit into the buffer of a new connection.
func (k *timeServer) writeTime(conn net.Conn) {
	_, _ = fmt.Fprintf(conn, "%d\n", k.now().UnixMilli()) // the client detects an incomplete answer
	_ = conn.Close()
}

func (k *timeServer) close() error {
	close(k.done)
	err := k.listener.Close()
	k.ended.Wait()
	return err
}

// reading is by how much the local clock is ahead of another one, and the error bound of that.
type reading struct{ ahead, within time.Duration }

const (
	peerTimeout  = time.Second           // bounds a request for another process's time
	pauseBetween = 50 * time.Millisecond // pause before a retry
	longestTime  = 20                    // characters of a time
)

// compare reads another clock, by ask, between two readings of the local one.
func compare(now func() time.Time, ask func() (time.Time, error)) (reading, error) {
	begin, before := time.Now(), now()
	theirs, err := ask()
	if err != nil {
		return reading{}, err
	}
	within := time.Since(begin) / 2
	return reading{before.Add(within).Sub(theirs), within + time.Millisecond}, nil // other processes round to milliseconds
}

// askTime returns the time of the process at addr.
func askTime(ctx context.Context, addr string) (time.Time, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return time.Time{}, err
		}
	}
	line, err := bufio.NewReader(io.LimitReader(conn, longestTime)).ReadString('\n')
	if err != nil {
		return time.Time{}, fmt.Errorf("%s does not tell the time: %w", addr, err)
	}
	ms, err := strconv.ParseInt(strings.TrimSuffix(line, "\n"), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s does not tell the time: %w", addr, err)
	}
	return time.UnixMilli(ms), nil
}

// average asks all processes at once, and returns by how much the local clock is ahead of the
// average of those that answered. A process that does not answer may be dead.
func average(ctx context.Context, now func() time.Time, addrs []string) (reading, error) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	readings, errs := make([]reading, len(addrs)), make([]error, len(addrs))
	var asked sync.WaitGroup
	for i, addr := range addrs {
		asked.Go(func() {
			readings[i], errs[i] = compare(now, func() (time.Time, error) { return askTime(ctx, addr) })
		})
	}
	asked.Wait()
	var sum reading
	count := time.Duration(0)
	for i, r := range readings {
		if errs[i] == nil {
			sum, count = reading{sum.ahead + r.ahead, sum.within + r.within}, count+1
		}
	}
	if count == 0 {
		return reading{}, errors.Join(errs...)
	}
	return reading{sum.ahead / count, sum.within / count}, nil
}

// differs returns true when the clocks certainly differ by more than the threshold.
func (r reading) differs(threshold time.Duration) bool { return r.ahead.Abs()-r.within > threshold }
