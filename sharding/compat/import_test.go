// SPDX-License-Identifier: Apache-2.0

package compat_test

import (
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/compat"
)

// imported is a router over one table of go-gorm/sharding's.
func imported(t *testing.T, c compat.Config) *sharding.Router {
	t.Helper()
	table, err := compat.Import("orders", "shop", c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := sharding.New(sharding.DBs{"shop": new(sql.DB)}, table)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// theirs returns the suffix of the plugin's table, by its own description: the number of the key,
// or the CRC-32 of a text that is not a number, with as many digits as the number of shards has.
func theirs(shards int, key any) string {
	n := 0
	switch key := key.(type) {
	case int:
		n = key
	case int64:
		n = int(key)
	case string:
		parsed, err := strconv.Atoi(key)
		if err != nil {
			parsed = int(crc32.ChecksumIEEE([]byte(key)))
		}
		n = parsed
	}
	format := "orders_%0" + strconv.Itoa(len(strconv.Itoa(shards))) + "d"
	return fmt.Sprintf(format, n%shards)
}

func TestImportedTablesFindTheRowsWhereThePluginStoredThem(t *testing.T) {
	integers := []any{0, 1, 63, 64, 1000003, int64(9223372036854775807), "7", "0012", "+5"}
	texts := []any{"7", "0012", "+5", "", "abc", "größer", " 7", "9223372036854775808", "1e3"}
	for _, shards := range []uint{1, 2, 9, 10, 64, 99, 100, 1000, 9999} {
		for isText, keys := range map[bool][]any{false: integers, true: texts} {
			r := imported(t, compat.Config{ShardingKey: "user_id", NumberOfShards: shards, TextKey: isText})
			for _, key := range keys {
				got, err := r.Target("orders", key)
				if want := theirs(int(shards), key); err != nil || got.Table != want {
					t.Errorf("%d shards, key %q: %v, %v; the plugin looks in %s", shards, key, got, err, want)
				}
			}
		}
	}
}

// The database converts them: 3 is found under "3 ", "3e0" and "3abc" in a column of
// integers, and "abc" under "abc " and 0 in one of texts.
func TestKeysThatTheColumnConvertsAreRefused(t *testing.T) {
	algorithm := func(value any) (string, error) {
		return fmt.Sprintf("_%d", crc32.ChecksumIEEE(fmt.Append(nil, value))%4), nil
	}
	for name, c := range map[string]compat.Config{
		"the plugin's algorithm": {ShardingKey: "k", NumberOfShards: 4},
		"one's own": {
			ShardingKey: "k", ShardingAlgorithm: algorithm, PrimaryKeyGenerator: compat.PKCustom,
			ShardingSuffixs: func() []string { return []string{"_0", "_1", "_2", "_3"} },
		},
	} {
		for isText, keys := range map[bool][]any{
			false: {"3 ", "3e0", " 3", "3.0", "3abc", "0x3", "abc", "", []byte("3e0"), sql.NullString{String: "3 ", Valid: true}},
			true:  {3, uint8(3), "abc ", []byte("3 "), sql.NullInt64{Int64: 3, Valid: true}},
		} {
			c.TextKey = isText
			r := imported(t, c)
			for _, key := range keys {
				if got, err := r.Target("orders", key); !errors.Is(err, sharding.ErrKeyType) {
					t.Errorf("%s, texts %v: %v (%T): %v, %v", name, isText, key, key, got, err)
				}
			}
		}
		c.TextKey = false
		r := imported(t, c)
		want, err := r.Target("orders", 7)
		for _, key := range []any{"7", "007", "+7", []byte("7")} {
			if got, errText := r.Target("orders", key); err != nil || errText != nil || got != want {
				t.Errorf("%s: %q: %v, %v; 7 is in %v, %v", name, key, got, errText, want, err)
			}
		}
	}
}

// A table of each month.
func TestATimeThatMayBeRoundedIntoAnotherTableIsRefused(t *testing.T) {
	byMonth := func(value any) (string, error) {
		at, ok := value.(time.Time)
		if !ok {
			return "", errors.New("no time")
		}
		return at.UTC().Format("_200601"), nil
	}
	r := imported(t, compat.Config{
		ShardingKey: "at", ShardingAlgorithm: byMonth, ShardingSuffixs: func() []string { return []string{"_202610", "_202611"} }, PrimaryKeyGenerator: compat.PKCustom,
	})
	november := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for before, want := range map[time.Duration]string{time.Second: "_202610", 1500 * time.Millisecond: "_202610", 0: "_202611", -time.Millisecond: "_202611"} {
		if got, err := r.Target("orders", sql.NullTime{Time: november.Add(-before), Valid: true}); err != nil || got.Table != "orders"+want {
			t.Errorf("%v before the month: %v, %v", before, got, err)
		}
	}
	for _, before := range []time.Duration{1, time.Millisecond, 999 * time.Millisecond} {
		if got, err := r.Target("orders", november.Add(-before)); !errors.Is(err, sharding.ErrKeyType) {
			t.Errorf("%v before the month: %v, %v", before, got, err)
		}
	}
}

// The plugin would use orders_-1, which does not exist.
func TestNegativeKeysAreRefusedInsteadOfSearchedForInAMissingTable(t *testing.T) {
	r := imported(t, compat.Config{ShardingKey: "user_id", NumberOfShards: 4})
	for _, key := range []any{-1, int64(-3), "-1"} {
		if got, err := r.Target("orders", key); !errors.Is(err, sharding.ErrNoSlot) {
			t.Errorf("%v: %v, %v", key, got, err)
		}
	}
}

func TestIDsOfThePluginLeadToTheirTableFromIDFromOn(t *testing.T) {
	r := imported(t, compat.Config{ShardingKey: "user_id", NumberOfShards: 8, IDFrom: 1 << 40})
	for table := range 8 {
		id := int64(1541815603606036480)&^(1023<<12) | int64(table)<<12 | 77
		got, err := r.TargetBy("orders", "id", id)
		if err != nil || got.Table != fmt.Sprintf("orders_%d", table) {
			t.Errorf("id %d of table %d: %v, %v", id, table, got, err)
		}
	}
	if got, err := r.TargetBy("orders", "id", 5<<12); !errors.Is(err, sharding.ErrMissingKey) {
		t.Errorf("an id from before: %v, %v", got, err)
	}
	if got, err := r.TargetBy("orders", "id", int64(1<<41)|9<<12); !errors.Is(err, sharding.ErrNoSlot) {
		t.Errorf("an id of table 9 of 8: %v, %v", got, err)
	}
	if table, _ := imported(t, compat.Config{ShardingKey: "user_id", NumberOfShards: 8}).Table("orders"); table.Also != nil {
		t.Error("ids are trusted although nobody said from where on")
	}
}

type userID int64

func TestACustomAlgorithmIsUsed(t *testing.T) {
	byCountry := func(value any) (string, error) {
		country, ok := value.(string)
		if !ok {
			return "", errors.New("no country")
		}
		return "_" + strings.ToLower(country), nil
	}
	r := imported(t, compat.Config{
		ShardingKey: "country", TextKey: true, ShardingAlgorithm: byCountry,
		ShardingSuffixs: func() []string { return []string{"_de", "_fr", "_it"} }, PrimaryKeyGenerator: compat.PKCustom,
	})
	for _, key := range []any{"IT", []byte("it"), sql.NullString{String: "it", Valid: true}} {
		if got, err := r.Target("orders", key); err != nil || got.Table != "orders_it" {
			t.Errorf("%v: %v, %v", key, got, err)
		}
	}
	for key, want := range map[any]error{"es": sharding.ErrNoSlot, 7: sharding.ErrKeyType, nil: sharding.ErrKeyType, sql.NullString{}: sharding.ErrKeyType} {
		if got, err := r.Target("orders", key); !errors.Is(err, want) {
			t.Errorf("%v: %v, %v", key, got, err)
		}
	}
}

// Algorithms are written for the type of the model's field; a key of another type
// leads to the same table.
func TestAnAlgorithmTakesKeysOfEveryIntegerType(t *testing.T) {
	modulo := func(value any) (string, error) {
		switch id := value.(type) {
		case int:
			return fmt.Sprintf("_%02d", id%20), nil
		case int64:
			return fmt.Sprintf("_%02d", id%20), nil
		}
		return "", errors.New("no integer")
	}
	r := imported(t, compat.Config{ShardingKey: "user_id", NumberOfShards: 20, ShardingAlgorithm: modulo})
	seven := int32(27)
	for _, key := range []any{27, int64(27), uint8(27), userID(27), &seven, sql.NullInt64{Int64: 27, Valid: true}} {
		if got, err := r.Target("orders", key); err != nil || got.Table != "orders_07" {
			t.Errorf("%T: %v, %v", key, got, err)
		}
	}
	var none *int32
	if _, err := r.Target("orders", none); !errors.Is(err, sharding.ErrKeyType) {
		t.Error(err)
	}
}

func TestImportNamesTheFieldThatIsWrong(t *testing.T) {
	algorithm := func(any) (string, error) { return "", errors.New("no such key") }
	list := func(suffixes ...string) func() []string { return func() []string { return suffixes } }
	for says, c := range map[string]compat.Config{
		"ShardingKey: is empty":                {NumberOfShards: 4},
		"NumberOfShards: is 0":                 {ShardingKey: "k"},
		"NumberOfShards: is 10000":             {ShardingKey: "k", NumberOfShards: 10000},
		"NumberOfShards: is 70000":             {ShardingKey: "k", NumberOfShards: 70000, ShardingAlgorithm: algorithm},
		"ShardingSuffixs: is nil":              {ShardingKey: "k", ShardingAlgorithm: algorithm},
		"ShardingAlgorithm(0): no such key":    {ShardingKey: "k", NumberOfShards: 2, ShardingAlgorithm: algorithm},
		"ShardingSuffixs: returned nothing":    {ShardingKey: "k", ShardingAlgorithm: algorithm, ShardingSuffixs: list()},
		"ShardingSuffixs: one suffix is empty": {ShardingKey: "k", ShardingAlgorithm: algorithm, ShardingSuffixs: list("_a", "")},
		`ShardingSuffixs: "_a" occurs twice`:   {ShardingKey: "k", ShardingAlgorithm: algorithm, ShardingSuffixs: list("_a", "_b", "_a")},
		"ShardingSuffixs: differ from":         {ShardingKey: "k", NumberOfShards: 2, ShardingSuffixs: list("_00", "_01")},
		"PrimaryKeyGenerator: 9":               {ShardingKey: "k", NumberOfShards: 2, PrimaryKeyGenerator: 9},
		"IDFrom: the plugin":                   {ShardingKey: "k", NumberOfShards: 2, PrimaryKeyGenerator: compat.PKCustom, IDFrom: 1},
		"not a plain SQL name":                 {ShardingKey: "k", ShardingAlgorithm: algorithm, ShardingSuffixs: list("_-1")},
	} {
		if _, err := compat.Import("orders", "shop", c); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), `"orders"`) {
			t.Errorf("%v; want %q", err, says)
		}
	}
}
