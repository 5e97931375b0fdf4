package shardsql

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/shardid/shardid/sharding/internal/merge"
)

// heldRows are rows in memory.
type heldRows struct {
	columns []string
	rows    [][]driver.Value
}

// held reads rows into memory and closes them. memory is how many bytes are left.
func held(from merge.Rows, memory *int) (_ merge.Rows, err error) {
	defer func() { err = both(err, from.Close()) }()
	h := &heldRows{columns: from.Columns()}
	for {
		row := make([]driver.Value, len(h.columns))
		switch err := from.Next(row); {
		case isEOF(err):
			return h, nil
		case err != nil:
			return nil, err
		}
		for i, v := range row {
			*memory -= valueSize
			switch v := v.(type) {
			case []byte: // the driver uses it again
				row[i] = bytes.Clone(v)
				*memory -= len(v)
			case string:
				*memory -= len(v)
			}
		}
		if *memory < 0 {
			return nil, &merge.MemoryError{Limit: answerMemory}
		}
		h.rows = append(h.rows, row)
	}
}

// valueSize is what a value takes besides its bytes.
const valueSize = 32

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

func (h *heldRows) Columns() []string { return h.columns }

func (h *heldRows) Next(dest []driver.Value) error {
	if len(h.rows) == 0 {
		return io.EOF
	}
	copy(dest, h.rows[0])
	h.rows = h.rows[1:]
	return nil
}

func (h *heldRows) Close() error { return nil }
