// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"encoding/json"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
)

// withoutLayout makes a process' file one of the version that noted no layout.
func withoutLayout(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var fields struct {
		Addr       json.RawMessage `json:"addr"`
		Path       json.RawMessage `json:"path"`
		Epoch      json.RawMessage `json:"epoch"`
		Unit       json.RawMessage `json:"unit"`
		Worker     json.RawMessage `json:"worker"`
		Generation json.RawMessage `json:"generation"`
		Ceiling    json.RawMessage `json:"ceiling"`
		Until      json.RawMessage `json:"until"`
		Written    json.RawMessage `json:"written"`
		Sum        uint32          `json:"sum"`
	}
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for _, sum := range []bool{false, true} { // the sum is that of the text with a sum of 0
		fields.Sum = 0
		if sum {
			fields.Sum = crc32.ChecksumIEEE(text)
		}
		if text, err = json.Marshal(fields); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Nobody knows the layout of such a file's worker id, unless somebody says it.
func TestAZooKeeperFileOfAVersionThatNotedNoLayoutStartsByWordOfFormerOnly(t *testing.T) {
	z := server.RunZooKeeper(t)
	c := z.Open(t, steady)
	cfg := withFile(t)
	w := openWorkers(t, c, cfg)
	g := snowflakes(t, w)
	worker, last := g.Stats().Worker, someIDs(t, g, 1)[0]
	testwait.Until(t, "a report", func() bool { return g.Stats().Reservations > 0 })
	z.Kill()
	_ = g.Close() // cannot tell ZooKeeper
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	withoutLayout(t, cfg.File)

	unsaid := openWorkers(t, c, cfg)
	if lease, err := unsaid.Acquire(t.Context(), fewWorkers()); err == nil || !strings.Contains(err.Error(), "Former") {
		t.Errorf("%v, %v", lease, err)
	}
	if err := unsaid.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.Former = fewWorkers()
	g = snowflakes(t, openWorkers(t, c, cfg))
	if id := someIDs(t, g, 1)[0]; g.Stats().Worker != worker || id <= last {
		t.Errorf("worker id %d, then %d; %d after %d", worker, g.Stats().Worker, id, last)
	}
}
