package merge

import (
	"bytes"
	"database/sql/driver"
)

// Distinct returns the first of the rows whose keys are equal. It holds the keys that
// it has seen.
func Distinct(rows Rows, keys []Key, memory *Memory) Rows {
	seen := map[string]struct{}{}
	return fresh(rows, keys, func(key []byte) (bool, error) {
		if _, known := seen[string(key)]; known {
			return false, nil
		}
		seen[string(key)] = struct{}{}
		return true, memory.take(sizeOfEntry + len(key))
	})
}

// Unique returns the first of the rows whose keys are equal. Such rows must follow one
// another, as they do when the rows are ordered by the keys. It holds one key.
func Unique(rows Rows, keys []Key) Rows {
	var last []byte
	some := false
	return fresh(rows, keys, func(key []byte) (bool, error) {
		if some && bytes.Equal(last, key) {
			return false, nil
		}
		some, last = true, append(last[:0], key...)
		return true, nil
	})
}

// fresh returns the rows whose keys are new.
func fresh(rows Rows, keys []Key, isNew func(key []byte) (bool, error)) Rows {
	s := over(rows)
	var key []byte
	s.step = func(dest []driver.Value) error {
		for {
			err := rows.Next(dest)
			if err != nil {
				return err
			}
			if key, err = appendKeys(key[:0], keys, dest); err != nil {
				return err
			}
			if ok, err := isNew(key); ok || err != nil {
				return err
			}
		}
	}
	return s
}
