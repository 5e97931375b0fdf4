// SPDX-License-Identifier: Apache-2.0

package layoutfile

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/sharding"
)

// ruleText is a rule in the form of the layout file, "low(10)".
type ruleText string

var ruleForm = regexp.MustCompile(`^\s*(\w+)\s*\(([^()]*)\)\s*$`)

// ruleNames are the names that a ruleText may have.
const ruleNames = "low, bits, mod, hash, hash_text, offset_step, compat, compat_text, ranges, list, epochs, interval"

// rule returns the rule. The rule itself reports numbers out of range.
func (t ruleText) rule() (sharding.Rule, error) {
	if t == "" {
		return nil, errors.New(`give "rule", as low(10); shardid export --help has all rules`)
	}
	form := ruleForm.FindStringSubmatch(string(t))
	if form == nil {
		return nil, fmt.Errorf("rule %q: write it as low(10); shardid export --help has all rules", string(t))
	}
	name, arguments := form[1], form[2]
	switch name {
	case "epochs":
		return t.epochs(arguments)
	case "list":
		return t.list(arguments)
	case "interval":
		return t.interval(arguments)
	}
	numbers, err := parseNumbers(arguments, ",")
	switch {
	case err != nil && !slices.Contains(strings.Split(ruleNames, ", "), name):
		return nil, t.unknown()
	case err != nil:
		return nil, fmt.Errorf("rule %q: %w; write whole numbers with commas between them", string(t), err)
	}
	return t.make(name, numbers)
}

func parseNumbers(text, separator string) ([]int64, error) {
	var all []int64
	for part := range strings.SplitSeq(strings.TrimSpace(text), separator) {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", strings.TrimSpace(part))
		}
		all = append(all, n)
	}
	return all, nil
}

func (t ruleText) make(name string, n []int64) (sharding.Rule, error) {
	one := map[string]func(int) sharding.Rule{
		"low": sharding.Low, "mod": sharding.Mod, "hash": sharding.Hash, "hash_text": sharding.HashText, "compat": sharding.Compat,
		"compat_text": sharding.CompatText,
	}
	two := map[string]func(a, b int) sharding.Rule{"bits": sharding.Bits, "offset_step": sharding.OffsetStep}
	switch f, g := one[name], two[name]; {
	case f != nil && len(n) == 1:
		return f(int(n[0])), nil
	case g != nil && len(n) == 2:
		return g(int(n[0]), int(n[1])), nil
	case name == "ranges":
		return sharding.Ranges(n...), nil
	case f != nil:
		return nil, fmt.Errorf("rule %q: write one number, as in %s(8)", string(t), name)
	case g != nil:
		return nil, fmt.Errorf("rule %q: write two numbers, as in %s(1, 8)", string(t), name)
	}
	return nil, t.unknown()
}

func (t ruleText) unknown() error {
	return fmt.Errorf("rule %q is unknown; give one of %s", string(t), ruleNames)
}

// list parses "de = 0, fr = 1", or "7 = 0, 9 = 1": values of the key, and their slots. If
// every value is an integer, the key is one.
func (t ruleText) list(arguments string) (sharding.Rule, error) {
	const form = "write it as list(de = 0, fr = 1), each with a value of the key and its slot"
	texts, integers := map[string]sharding.Slot{}, map[int64]sharding.Slot{}
	for part := range strings.SplitSeq(arguments, ",") {
		value, number, found := strings.Cut(part, "=")
		value = strings.TrimSpace(value)
		slot, err := strconv.ParseInt(strings.TrimSpace(number), 10, 32)
		if !found || value == "" || err != nil {
			return nil, fmt.Errorf("rule %q: %q has no slot; %s", string(t), strings.TrimSpace(part), form)
		}
		if _, twice := texts[value]; twice {
			return nil, fmt.Errorf("rule %q: the value %s has two slots; %s", string(t), value, form)
		}
		texts[value] = sharding.Slot(slot)
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			integers[n] = sharding.Slot(slot)
		}
	}
	if len(integers) == len(texts) {
		return sharding.List(integers), nil
	}
	return sharding.List(texts), nil
}

// epochs parses "0 = 0, 1000000 = 0 1": the first id of an epoch, and the slots of the
// servers in the order of their offsets.
func (t ruleText) epochs(arguments string) (sharding.Rule, error) {
	var all []sharding.Epoch
	for part := range strings.SplitSeq(arguments, ",") {
		from, list, _ := strings.Cut(part, "=")
		first, err := parseNumbers(from, ",")
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w; write it as epochs(0 = 0, 1000000 = 0 1)", string(t), err)
		}
		slots, err := parseNumbers(strings.Join(strings.Fields(list), " "), " ")
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w; write it as epochs(0 = 0, 1000000 = 0 1)", string(t), err)
		}
		epoch := sharding.Epoch{From: first[0]}
		for _, slot := range slots {
			epoch.Slots = append(epoch.Slots, sharding.Slot(slot))
		}
		all = append(all, epoch)
	}
	return sharding.Epochs(all[0], all[1:]...), nil
}

// interval parses "2025-01-01, 2027-01-01, 24h, precision = 1ms, zone = Asia/Shanghai": the beginning of the
// first piece, the end of the last, the length of one, and how the column stores times.
func (t ruleText) interval(arguments string) (sharding.Rule, error) {
	const form = "write it as interval(2025-01-01, 2027-01-01, 24h), and add precision = 1ms or zone = Asia/Shanghai if the column stores times so"
	parts, zone, precision := strings.Split(arguments, ","), time.UTC, time.Duration(0)
	var options []string
	if len(parts) > 3 { //nolint:mnd // from, to, every
		parts, options = parts[:3], parts[3:]
	}
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		var err error
		switch value = strings.TrimSpace(value); strings.TrimSpace(name) {
		case "precision":
			precision, err = time.ParseDuration(value)
		case "zone":
			zone, err = time.LoadLocation(value)
		default:
			err = fmt.Errorf("%q is neither precision nor zone", strings.TrimSpace(name))
		}
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w; %s", string(t), err, form)
		}
	}
	if len(parts) < 3 { //nolint:mnd // from, to, every
		return nil, fmt.Errorf("rule %q: %s", string(t), form)
	}
	from, failed := parseTime(parts[0], zone)
	to, err := parseTime(parts[1], zone)
	every, wrong := time.ParseDuration(strings.TrimSpace(parts[2]))
	if err := cmp.Or(failed, err, wrong); err != nil {
		return nil, fmt.Errorf("rule %q: %w; %s", string(t), err, form)
	}
	return sharding.Interval(from, to, every).WithZone(zone).WithPrecision(precision), nil
}

// parseTime reads a day, or a time of a day, in a zone.
func parseTime(text string, zone *time.Location) (time.Time, error) {
	text = strings.TrimSpace(text)
	for _, layout := range []string{time.DateOnly, time.DateTime, time.RFC3339} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a day, as 2025-01-01, or a time, as 2025-01-01 12:00:00", text)
}
