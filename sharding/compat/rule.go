// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"database/sql/driver"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/sharding"
)

var (
	_ sharding.Rule = bySuffix{}
	_ sharding.Rule = byNode(0)
)

// bySuffix is a ShardingAlgorithm as a rule. Slot i is the table with the i-th suffix.
type bySuffix struct {
	algorithm func(any) (string, error)
	places    map[string]sharding.Slot
	texts     bool // the column holds texts
}

func newBySuffix(algorithm func(any) (string, error), suffixes []string, texts bool) bySuffix {
	places := make(map[string]sharding.Slot, len(suffixes))
	for i, suffix := range suffixes {
		places[suffix] = sharding.Slot(i)
	}
	return bySuffix{algorithm, places, texts}
}

func (r bySuffix) Slots() int { return len(r.places) }

// Slot refuses keys that the column would convert to something other than what the
// algorithm sees. In a column of integers that is a text that is no integer; in a column of
// texts it is an integer or a text that ends with a space. A time is refused if rounding it
// to the second could lead to another table.
func (r bySuffix) Slot(key any) (sharding.Slot, error) {
	plain, err := plainKey(key)
	if err != nil {
		return 0, err
	}
	switch k := plain.(type) {
	case string:
		if key, plain, err = r.text(key, k); err != nil {
			return 0, err
		}
	case time.Time:
		return r.time(key, k)
	default:
		if r.texts {
			return 0, fmt.Errorf("%v: %w; text is expected, as TextKey says", plain, sharding.ErrKeyType)
		}
	}
	return r.place(key, plain)
}

// text returns the values that the algorithm gets for a text. If the column holds integers,
// that is the integer, however it is written.
func (r bySuffix) text(key any, text string) (given, plain any, err error) {
	if r.texts {
		if strings.HasSuffix(text, " ") {
			return nil, nil, fmt.Errorf("%q: %w; it ends with a space, which most collations ignore", text, sharding.ErrKeyType)
		}
		return key, text, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, nil, fmt.Errorf("%q: %w; an integer is expected: set TextKey if the column holds texts", text, sharding.ErrKeyType)
	}
	return n, n, nil
}

// time refuses a time that the column may round to a time of another table. No column type
// is coarser than a second, except types that store days.
func (r bySuffix) time(key any, at time.Time) (sharding.Slot, error) {
	slot, err := r.place(key, at)
	below := at.Truncate(time.Second)
	if at.Equal(below) {
		return slot, err
	}
	for _, stored := range []time.Time{below, below.Add(time.Second)} {
		if other, errStored := r.place(stored, stored); err == nil && (errStored != nil || other != slot) {
			return 0, fmt.Errorf("%v: %w: the column may round it into another table; truncate keys to the second, or to the day if the column is a DATE", at, sharding.ErrKeyType)
		}
	}
	return slot, err
}

// place passes the key to the algorithm unchanged. If the algorithm fails, place passes the
// int64 or string, for which algorithms are usually written.
func (r bySuffix) place(key, plain any) (sharding.Slot, error) {
	suffix, err := r.algorithm(key)
	if err != nil {
		suffix, err = r.algorithm(plain)
	}
	if err != nil {
		return 0, fmt.Errorf("%T: %w: %w", key, sharding.ErrKeyType, err)
	}
	slot, known := r.places[suffix]
	if !known {
		return 0, fmt.Errorf("%w: the suffix %q is not one of ShardingSuffixs", sharding.ErrNoSlot, suffix)
	}
	return slot, nil
}

// plainKey returns the key as int64 or string if it is an integer or a text of another Go
// type. NULL is an error.
func plainKey(key any) (any, error) {
	if valuer, ok := key.(driver.Valuer); ok && !isNil(key) {
		value, err := valuer.Value()
		if err != nil {
			return nil, fmt.Errorf("%T: %w: %w", key, sharding.ErrKeyType, err)
		}
		key = value
	}
	if isNil(key) {
		return nil, fmt.Errorf("NULL: %w", sharding.ErrKeyType)
	}
	v := reflect.Indirect(reflect.ValueOf(key))
	switch {
	case v.CanInt():
		return v.Int(), nil
	case v.CanUint() && v.Uint() <= math.MaxInt64:
		return int64(v.Uint()), nil
	case v.Kind() == reflect.String:
		return v.String(), nil
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		return string(v.Bytes()), nil
	}
	return v.Interface(), nil
}

func isNil(key any) bool {
	v := reflect.ValueOf(key)
	return key == nil || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice) && v.IsNil()
}

// The plugin stores the number of a row's table in the node bits of its
// snowflake ids.
const (
	nodeShift = 12
	nodes     = 1024
)

// byNode is the rule of the ids that the plugin made, for that many tables. An id with the
// number of a table that does not exist was not made by the plugin.
type byNode int

func (r byNode) Slots() int { return int(r) }

func (r byNode) Slot(key any) (sharding.Slot, error) {
	slot, err := sharding.Bits(nodeShift, 10).Slot(key)
	if err == nil && int(slot) >= int(r) {
		return 0, fmt.Errorf("%w: the id %v names table %d of %d", sharding.ErrNoSlot, key, slot, int(r))
	}
	return slot, err
}
