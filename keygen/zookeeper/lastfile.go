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

// lastKnown is the content of the file from which a process starts when
// ZooKeeper is down: what it has of a worker id, and how far it has used it.
// Until is what ZooKeeper has written, and nobody else may issue ids below; the
// generation says that it is this file which has that right.
type lastKnown struct {
	Addr       string    `json:"addr"`
	Path       string    `json:"path"`
	Epoch      time.Time `json:"epoch"`
	Unit       string    `json:"unit"`
	Layout     string    `json:"layout,omitempty"` // "" of versions that noted none
	Worker     int64     `json:"worker"`
	Generation int64     `json:"generation"`
	Ceiling    int64     `json:"ceiling"`
	Until      int64     `json:"until"`
	Written    time.Time `json:"written"` // by the own clock
	Sum        uint32    `json:"sum"`     // of the others
}

func (k lastKnown) summed() lastKnown {
	k.Sum = 0
	k.Sum = statefile.Sum(k)
	return k
}

// about is a record about nothing yet.
func (w *Workers) about(l keygen.Layout) lastKnown {
	return lastKnown{Addr: w.addr, Path: w.cfg.Path, Epoch: l.Epoch.UTC(), Unit: l.Unit.String(), Layout: l.Fingerprint()}
}

// known reads the file. It returns nil when there is none, or one about another
// address, path or layout, which is then of no use; unused says what would make it of
// use, nil where nothing does.
func (w *Workers) known(l keygen.Layout) (last *lastKnown, unused, err error) {
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
		return nil, nil, fmt.Errorf("%w %s: it is damaged; delete it, and start while ZooKeeper is up", workerid.ErrRecord, w.cfg.File)
	}
	want := w.about(l)
	standing := w.claim(l).Standing(k.Layout)
	switch {
	case k.Addr != want.Addr || k.Path != want.Path || !k.Epoch.Equal(want.Epoch) || k.Unit != want.Unit:
		return nil, nil, nil
	case standing == workerid.Own || standing == workerid.Stated:
		return &k, nil, nil
	case k.Layout == "":
		unused = fmt.Errorf("the file %s is of a version that notes no layout; set WorkersConfig.Former to its layout if you know that it is this one's, %q", w.cfg.File, want.Layout)
	}
	return nil, unused, nil
}

// remember writes the file, if there is to be one. The ceiling of e may be used
// only after it returned nil.
func (w *Workers) remember(l keygen.Layout, e entry, now time.Time) error {
	if w.cfg.File == "" {
		return nil
	}
	k := w.about(l)
	k.Worker, k.Generation, k.Ceiling, k.Until, k.Written = e.worker, e.Generation, e.Ceiling, e.Until, now.UTC()
	if err := statefile.Replace(w.cfg.File, encode(k.summed())); err != nil {
		return fmt.Errorf("%w %s: %w", workerid.ErrRecord, w.cfg.File, err)
	}
	return nil
}
