// SPDX-License-Identifier: Apache-2.0

package layoutfile

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/sharding"
)

// ruleText is a rule in the form of the layout file, "low(10)".
type ruleText string

var ruleForm = regexp.MustCompile(`^\s*(\w+)\s*\(([^()]*)\)\s*$`)

// ruleNames are the names that a ruleText may have.
const ruleNames = "low, bits, mod, hash, hash_text, offset_step, compat, compat_text, ranges, list, epochs"

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
	}
	numbers, err := parseNumbers(arguments, ",")
	switch {
	case name == "interval":
		return nil, fmt.Errorf("rule %q is not possible in this file, which has no form for times; give the router to the packages that do the work, such as schema.Doctor and schema/versions", string(t))
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
