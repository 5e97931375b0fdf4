// SPDX-License-Identifier: Apache-2.0

package openjob

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/shardid/shardid/sharding"
)

// Part is one setting that decides where the rows of a table go or which ids they get.
type Part struct{ name, text string }

// Setup are all such settings. Names are compared without regard to case, as databases do.
func (t *Table) Setup() []Part {
	return []Part{
		{"sharding key", strings.ToLower(t.Conf.Key)},
		{"rule", ruleText(t.Conf.Rule)},
		{"targets", fmt.Sprintf("%q", t.Conf.Cycle())},
		{"ids", t.Numbering()},
		{"via", t.viaText()},
		{"references", t.rewrittenText()},
	}
}

func (t *Table) viaText() string {
	if t.Conf.Via == "" {
		return ""
	}
	return referencesText(t.route.hops)
}

// rewrittenText names the references that change along with ids.
func (t *Table) rewrittenText() string {
	return referencesText(slices.DeleteFunc(slices.Clone(t.references), func(r link) bool { return r.to.IDs == nil }))
}

func referencesText(all []link) string {
	texts := make([]string, len(all))
	for i, r := range all {
		texts[i] = strings.ToLower(fmt.Sprintf("%q %q", r.column, r.to.Conf.Name))
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// ruleText describes a rule by its kind and by the slots that it gives sample keys. The
// memory representation of a caller's own rule could differ between processes.
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

// slotOf recovers from panics: a caller's own rule may panic over keys of other types.
func slotOf(r sharding.Rule, key any) (slot sharding.Slot, ok bool) {
	defer func() { _ = recover() }()
	slot, err := r.Slot(key)
	return slot, err == nil
}

// sampleKeys are small numbers, numbers around powers of two and around round ones, which
// are typical bounds, some texts, and for time rules the days of a century.
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
	if kind == sharding.KindOther { // some databases return numbers as text
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

// SetupDigest differs when a part differs, and discloses no secret.
func (t *Table) SetupDigest() string {
	var lines []string
	for _, p := range t.Setup() {
		sum := sha256.Sum256([]byte(p.text))
		lines = append(lines, p.name+"="+hex.EncodeToString(sum[:8]))
	}
	return strings.Join(lines, ";")
}

// Differs returns the differences between the tables and those stored under these names,
// with these digests. A table without a digest is accepted.
func (all Tables) Differs(names, digests []string) (found []string) {
	if !slices.EqualFunc(names, all.Names(), strings.EqualFold) {
		return []string{fmt.Sprintf("its tables were %s, and are %s now", strings.Join(names, ", "), strings.Join(all.Names(), ", "))}
	}
	for i, t := range all {
		if parts := differingParts(digests[i], t.SetupDigest()); digests[i] != "" && len(parts) > 0 {
			found = append(found, "table "+t.Conf.Name+": "+strings.Join(parts, ", "))
		}
	}
	return found
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
