// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

// JavaScript's numbers are float64, and so is what encoding/json makes of a
// number when it is not told a type.
func TestJSSafeIDsSurviveJavaScript(t *testing.T) {
	layout := keygen.JSSafe()
	ids := []int64{1, 1<<53 - 1}
	for _, at := range []time.Time{layout.Epoch, time.Now(), layout.Expires().Add(-layout.Unit)} {
		for _, p := range []keygen.Parts{{Time: at, Worker: 31, Sequence: 127}, {Time: at, Sequence: 1}} {
			id, err := layout.Compose(p)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id, id-1)
		}
	}
	g, err := snowflake.New(t.Context(), snowflake.Config{Layout: layout, Worker: workerid.Static(31)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	issued := make([]int64, 100)
	if err := g.Fill(t.Context(), issued); err != nil {
		t.Fatal(err)
	}
	for _, id := range append(ids, issued...) {
		survives(t, id)
		if id > 0 {
			survives(t, scramble(t, scrambler(t, 53), id))
		}
	}
}

func survives(t *testing.T, id int64) {
	t.Helper()
	text, err := json.Marshal(id)
	if err != nil {
		t.Fatal(err)
	}
	var number any
	if err := json.Unmarshal(text, &number); err != nil {
		t.Fatal(err)
	}
	if back := int64(number.(float64)); back != id || id > 1<<53-1 {
		t.Errorf("%d came back as %d", id, back)
	}
}
