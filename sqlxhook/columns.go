// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/jmoiron/sqlx/reflectx"
)

// insertColumns returns the columns that Insert writes.
func insertColumns(m *reflectx.Mapper, t reflect.Type, r *rows) (columns []string, err error) {
	if isMap(t) {
		return mapColumns(r)
	}
	for _, fi := range columnsOf(m, t) {
		columns = append(columns, fi.Path)
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
			return nil, &RowError{Row: i, Err: fmt.Errorf("its keys %v differ from row 0's %v: %w", columns, first, ErrArgument)}
		}
	}
	return first, nil
}
