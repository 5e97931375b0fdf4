// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/shardid/shardid/integration/server"
)

// relay passes connections on to a server, and can hold back everything: then
// neither side hears of the other, and nobody is told.
type relay struct {
	listener net.Listener
	to       string
	ended    sync.WaitGroup

	mu     sync.Mutex
	passes chan struct{} // closed while bytes pass
	conns  []net.Conn
}

func relayTo(t *testing.T, addr string) *relay {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: listener, to: addr, passes: make(chan struct{})}
	close(r.passes)
	r.ended.Go(r.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		r.release()
		r.cut()
		r.ended.Wait()
	})
	return r
}

// open returns a client of the server behind the relay.
func (r *relay) open(t *testing.T, session time.Duration) *zk.Conn {
	t.Helper()
	c, err := server.DialZooKeeper(r.listener.Addr().String(), session)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).Dial("tcp", r.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		r.mu.Lock()
		r.conns = append(r.conns, client, server)
		r.mu.Unlock()
		r.ended.Go(func() { r.pass(client, server) })
		r.ended.Go(func() { r.pass(server, client) })
	}
}

func (r *relay) pass(to io.WriteCloser, from io.Reader) {
	defer func() { _ = to.Close() }()
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		<-r.passing()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (r *relay) passing() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.passes
}

// hold stops all bytes.
func (r *relay) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passes = make(chan struct{})
}

// release lets them pass again.
func (r *relay) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.passes:
	default:
		close(r.passes)
	}
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Close()
	}
}
