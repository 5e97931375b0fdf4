// SPDX-License-Identifier: Apache-2.0

package ticket_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/ticket"
)

// memory is a ticket server in memory, which tests break, stop and set back.
type memory struct {
	numbering ticket.Numbering

	mu    sync.Mutex
	last  int64
	err   error
	hangs bool
	calls int
}

func server(offset, increment int64) *memory {
	return &memory{numbering: ticket.Numbering{Offset: offset, Increment: increment}, last: offset - increment}
}

var errDown = errors.New("connection refused")

func (m *memory) Numbering() (offset, increment int64) {
	return m.numbering.Offset, m.numbering.Increment
}

func (m *memory) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.hangs {
		m.mu.Unlock()
		<-ctx.Done()
		m.mu.Lock()
		return keygen.Span{}, ctx.Err()
	}
	if m.err != nil {
		return keygen.Span{}, m.err
	}
	span := keygen.Span{First: m.last + m.numbering.Increment, Count: n, Step: m.numbering.Increment}
	m.last = span.Last()
	return span, nil
}

func (m *memory) set(change func(*memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

func down(m *memory)  { m.err = errDown }
func hangs(m *memory) { m.hangs = true }
func back(m *memory)  { m.err, m.hangs = nil, false }

// soon is more than a server is passed over for and retried after.
const soon = 4 * time.Second
