// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/jmoiron/sqlx/reflectx"
)

// insertColumns returns the columns that Insert writes.
func insertColumns(m *reflectx.Mapper, t reflect.Type, r *rows) ([]string, error) {
	var columns []string
	if isMap(t) {
		var err error
		if columns, err = mapColumns(r); err != nil {
			return nil, err
		}
	} else {
		for _, fi := range columnsOf(m, t) {
			columns = append(columns, fi.Path)
		}
	}
	if len(columns) == 0 {
		return nil, fmt.Errorf("%s has no columns: %w", t, ErrArgument)
	}
	return columns, nil
}

// mapColumns returns the sorted keys of the maps. All maps must have the same keys.
func mapColumns(r *rows) ([]string, error) {
	var first []string
	for i := range r.n {
		var columns []string
		for _, k := range r.at(i).MapKeys() {
			columns = append(columns, k.String())
		}
		slices.Sort(columns)
		switch {
		case i == 0:
			first = columns
		case !slices.Equal(first, columns):
			return nil, &RowError{Row: i, Err: fmt.Errorf("%w: its keys %v differ from row 0's %v", ErrArgument, columns, first)}
		}
	}
	return first, nil
}
