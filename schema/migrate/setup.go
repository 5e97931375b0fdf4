package migrate

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/sharding"
)

// What is copied by one rule and looked for by another is lost, so a job remembers
// what it was begun with.

// SetupError says that a job was begun with another configuration than it is
// given now. Nothing was done. It is an ErrChanged.
type SetupError struct {
	// Differs says what, for each table: "table orders: rule, ids".
	Differs []string
}

// Error says what differs and what to do.
func (e *SetupError) Error() string {
	return "the job was begun with another configuration: " + strings.Join(e.Differs, "; ") +
		"; give it the one it had, or abort it with that one and begin anew"
}

// Is makes a SetupError an ErrChanged.
func (*SetupError) Is(target error) bool { return target == ErrChanged }

// part is one thing that decides where the rows of a table go or which ids they
// get.
type part struct{ name, text string }

// setup is all that does. Names are compared without regard to case, as
// databases do.
func (t *table) setup() []part {
	return []part{
		{"sharding key", strings.ToLower(t.conf.Key)},
		{"rule", ruleText(t.conf.Rule)},
		{"targets", fmt.Sprintf("%q", t.conf.Cycle())},
		{"ids", t.numbering()},
		{"via", t.viaText()},
		{"references", t.rewrittenText()},
	}
}

func (t *table) viaText() string {
	if t.conf.Via == "" {
		return ""
	}
	return referencesText(t.route.hops)
}

// rewrittenText names the references that change along with ids.
func (t *table) rewrittenText() string {
	return referencesText(slices.DeleteFunc(slices.Clone(t.references), func(r reference) bool { return r.to.ids == nil }))
}

func referencesText(all []reference) string {
	texts := make([]string, len(all))
	for i, r := range all {
		texts[i] = strings.ToLower(fmt.Sprintf("%q %q", r.column, r.to.conf.Name))
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// ruleText goes by what the rule says of itself, and by what it does: how one of
// somebody's own is written down in memory could differ from one process to the next.
func ruleText(r sharding.Rule) string {
	var b strings.Builder
	is := sharding.Describe(r)
	fmt.Fprintf(&b, "{Kind:%s Slots:%d Shift:%d Width:%d Offset:%d Step:%d}", is.Kind, is.Slots, is.Shift, is.Width, is.Offset, is.Step)
	if r, ok := r.(sharding.IntervalRule); ok && (r.Precision() != time.Second || r.Zone() != time.UTC) {
		fmt.Fprintf(&b, " %v %v", r.Precision(), r.Zone())
	}
	switch is.Kind {
	case sharding.KindRanges, sharding.KindList, sharding.KindEpochs: // which are plain numbers and texts
		fmt.Fprintf(&b, " %v", r)
	}
	for _, key := range sampleKeys(is.Kind) {
		slot, ok := slotOf(r, key)
		fmt.Fprintf(&b, " %d %t", slot, ok)
	}
	return b.String()
}

// slotOf: a rule of somebody's own may know one type only, and panic over others.
func slotOf(r sharding.Rule, key any) (slot sharding.Slot, ok bool) {
	defer func() { _ = recover() }()
	slot, err := r.Slot(key)
	return slot, err == nil
}

// sampleKeys are small numbers, those around powers of two and around round ones,
// as bounds are, some texts, and where it can matter the days of a century.
func sampleKeys(kind sharding.Kind) []any {
	keys := []any{int64(math.MaxInt64), int64(math.MinInt64)}
	for i := range int64(256) {
		keys = append(keys, i, fmt.Sprintf("%c%c", 'a'+i%26, 'a'+i/26))
	}
	for bit := 8; bit < 63; bit++ {
		keys = append(keys, around(1<<bit)...)
	}
	for round := int64(1); round <= math.MaxInt64/10; round *= 10 {
		for digit := range int64(9) {
			keys = append(keys, around(round*(digit+1))...)
		}
	}
	if kind == sharding.KindOther { // numbers come as text from some databases
		for _, key := range slices.Clone(keys) {
			keys = append(keys, fmt.Sprint(key))
		}
	}
	if kind != sharding.KindInterval && kind != sharding.KindOther {
		return keys
	}
	for day := range 36525 {
		keys = append(keys, time.Date(1970, 1, 1+day, 0, 0, 0, 0, time.UTC))
	}
	return keys
}

func around(n int64) []any { return []any{-n, n - 1, n, n + 1} }

// setupDigest tells the parts apart, and no secret.
func (t *table) setupDigest() string {
	var lines []string
	for _, p := range t.setup() {
		sum := sha256.Sum256([]byte(p.text))
		lines = append(lines, p.name+"="+hex.EncodeToString(sum[:8]))
	}
	return strings.Join(lines, ";")
}

func (w *openJob) sameSetup(ctx context.Context) error {
	return w.source.Do(ctx, func(s *backend.Session) error { return w.checkSetup(ctx, s) })
}

// checkSetup fails when the job is under way and was begun with another
// configuration. A table of which nothing is noted is taken as it is.
func (w *openJob) checkSetup(ctx context.Context, s *backend.Session) error {
	phase, err := w.phase(ctx, s)
	if err != nil || phase == "" || phase == proto.Aborted || phase == proto.Finalized {
		return err
	}
	var names, digests []string
	err = s.Each(ctx, func(rows *sql.Rows) error {
		var name, digest string
		err := rows.Scan(&name, &digest)
		names, digests = append(names, name), append(digests, digest)
		return err
	}, "SELECT name, setup FROM "+backend.SpanTable+" WHERE job = ? ORDER BY tbl", w.cfg.Name)
	if err != nil {
		return err
	}
	if differs := w.differs(names, digests); len(differs) > 0 {
		return &SetupError{differs}
	}
	return nil
}

func (w *openJob) differs(names, digests []string) (all []string) {
	if !slices.EqualFunc(names, w.names(), strings.EqualFold) {
		return []string{fmt.Sprintf("its tables were %s, and are %s now", strings.Join(names, ", "), strings.Join(w.names(), ", "))}
	}
	for i, t := range w.tables {
		if parts := differingParts(digests[i], t.setupDigest()); digests[i] != "" && len(parts) > 0 {
			all = append(all, "table "+t.conf.Name+": "+strings.Join(parts, ", "))
		}
	}
	return all
}

// differingParts names the parts of two digests that differ.
func differingParts(was, is string) (names []string) {
	before := strings.Split(was, ";")
	for p := range strings.SplitSeq(is, ";") {
		if !slices.Contains(before, p) {
			name, _, _ := strings.Cut(p, "=")
			names = append(names, name)
		}
	}
	return names
}
