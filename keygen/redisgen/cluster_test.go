// SPDX-License-Identifier: Apache-2.0

package redisgen_test

import (
	"context"
	"errors"
	"testing"

	"github.com/shardid/shardid/keygen/redisgen"
)

// moved is a client of a cluster whose master has failed over. It uses the old master until
// it is told to reload the list of masters.
type moved struct {
	*standIn

	told int
}

func (m *moved) Eval(ctx context.Context, script string, keys []string, args ...any) answer {
	if m.told == 0 {
		return answer{err: errors.New("dial tcp 127.0.0.1:7000: connect: connection refused")}
	}
	n, err := m.standIn.Eval(ctx, script, keys, args...).Int64()
	return answer{n, err}
}

func (m *moved) ReloadState(context.Context) { m.told++ }

type answer struct {
	n   int64
	err error
}

func (a answer) Int64() (int64, error) { return a.n, a.err }

func TestAClusterClientIsToldToLookForTheNewMasterAfterAnError(t *testing.T) {
	client := &moved{standIn: newStandIn()}
	counter, err := redisgen.New(client, redisgen.Config{Key: "ids"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := counter.Seed(t.Context(), 1); err == nil || client.told != 1 {
		t.Fatalf("told %d times after %v", client.told, err)
	}
	if _, err := counter.Seed(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := counter.Reserve(t.Context(), 10); err != nil || client.told != 1 {
		t.Errorf("told %d times, %v", client.told, err)
	}
}
