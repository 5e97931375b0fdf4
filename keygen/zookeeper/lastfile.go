// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/shardid/shardid/internal/statefile"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// lastKnown is the content of the file from which a process starts when ZooKeeper is down: its
// worker id, and how far it was used. Until is the tick that ZooKeeper stored; no other process
// may issue ids below it. The generation shows that the right belongs to this file.
type lastKnown struct {
	Addr       string    `json:"addr"`
	Path       string    `json:"path"`
	Epoch      time.Time `json:"epoch"`
	Unit       string    `json:"unit"`
	Layout     string    `json:"layout,omitempty"` // "" if a version wrote the file that stored none
	Worker     int64     `json:"worker"`
	Generation int64     `json:"generation"`
	Ceiling    int64     `json:"ceiling"`
	Until      int64     `json:"until"`
	Written    time.Time `json:"written"` // by the own clock
	Sum        uint32    `json:"sum"`     // CRC-32 of the other fields
}

func (k lastKnown) summed() lastKnown {
	k.Sum = 0
	k.Sum = statefile.Sum(k)
	return k
}

// emptyRecord returns a record without a worker id.
func (w *Workers) emptyRecord(l keygen.Layout) lastKnown {
	return lastKnown{Addr: w.addr, Path: w.cfg.Path, Epoch: l.Epoch.UTC(), Unit: l.Unit.String(), Layout: l.Fingerprint()}
}

// readFile reads the file. It returns nil when there is none, or when it belongs to another
// address, path or layout. The error unused says how such a file could be used, nil when it
// cannot.
func (w *Workers) readFile(l keygen.Layout) (last *lastKnown, unused, err error) {
	if w.cfg.File == "" {
		return nil, nil, nil
	}
	text, err := os.ReadFile(w.cfg.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", workerid.ErrRecord, err)
	}
	var k lastKnown
	if err := json.Unmarshal(text, &k); err != nil || k.summed().Sum != k.Sum {
		return nil, nil, fmt.Errorf("%w %s: the file is damaged; delete it, and start while ZooKeeper is up", workerid.ErrRecord, w.cfg.File)
	}
	want := w.emptyRecord(l)
	relation := w.claim(l).Relation(k.Layout)
	switch {
	case k.Addr != want.Addr || k.Path != want.Path || !k.Epoch.Equal(want.Epoch) || k.Unit != want.Unit:
		return nil, nil, nil
	case relation == workerid.Own || relation == workerid.Stated:
		return &k, nil, nil
	case k.Layout == "":
		unused = fmt.Errorf("a version that stores no layout wrote the file %s; if you know that its layout was %q, set WorkersConfig.Former to that", w.cfg.File, want.Layout)
	}
	return nil, unused, nil
}

// writeFile writes the file, if one is configured. The ceiling of e may be used only after
// writeFile returned nil.
func (w *Workers) writeFile(l keygen.Layout, e entry, now time.Time) error {
	if w.cfg.File == "" {
		return nil
	}
	k := w.emptyRecord(l)
	k.Worker, k.Generation, k.Ceiling, k.Until, k.Written = e.worker, e.Generation, e.Ceiling, e.Until, now.UTC()
	if err := statefile.Replace(w.cfg.File, encode(k.summed())); err != nil {
		return fmt.Errorf("%w %s: %w", workerid.ErrRecord, w.cfg.File, err)
	}
	return nil
}
