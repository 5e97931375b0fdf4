// SPDX-License-Identifier: Apache-2.0

package snowflake_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

func TestConformance(t *testing.T) {
	for name, layout := range map[string]keygen.Layout{
		"twitter": keygen.Twitter(),
		"wide sequence": {
			Epoch: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Millisecond,
			Fields: []keygen.Field{{Kind: keygen.Time, Bits: 39}, {Kind: keygen.Worker, Bits: 4}, {Kind: keygen.Sequence, Bits: 20}},
		},
		"worker lowest": {
			Epoch: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), Unit: 10 * time.Millisecond,
			Fields: []keygen.Field{{Kind: keygen.Time, Bits: 35}, {Kind: keygen.Sequence, Bits: 12}, {Kind: keygen.Worker, Bits: 16}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var workers atomic.Int64
			keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
				return open(t, snowflake.Config{Layout: layout, Worker: workerid.Static(workers.Add(1) - 1)})
			})
			t.Run("coarse", func(t *testing.T) {
				keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
					return open(t, snowflake.Config{Layout: layout, Worker: workerid.Static(workers.Add(1) - 1), Coarse: true})
				})
			})
		})
	}
}

func open(t testing.TB, cfg snowflake.Config) *snowflake.Generator {
	t.Helper()
	g, err := snowflake.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}
