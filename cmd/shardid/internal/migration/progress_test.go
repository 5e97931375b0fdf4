// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/schema/migrate"
)

// half is a table of which a run before this one has copied half.
func half(copied float64) migrate.Progress {
	return migrate.Progress{Phase: migrate.PhaseCopying, Tables: []migrate.TableProgress{{Name: "orders", Rows: 1000, Copied: copied}}}
}

func TestALineOfACopySaysHowLongItStillTakes(t *testing.T) {
	var b bytes.Buffer
	l := &progressLines{w: &b}
	l.show(half(0.5), 0, "")
	if strings.Contains(b.String(), "left") {
		t.Errorf("nothing is known yet: %s", b.String())
	}
	b.Reset()
	l.began = l.began.Add(-time.Minute)
	l.show(half(0.75), 250, "")
	if !strings.Contains(b.String(), ", about 1m0s left\n") {
		t.Errorf("a quarter took a minute, and a quarter is left: %s", b.String())
	}
	b.Reset()
	paused := half(0.75)
	paused.Paused = true
	l.show(paused, 250, "")
	if strings.Contains(b.String(), "left") {
		t.Errorf("it is paused: %s", b.String())
	}
}
