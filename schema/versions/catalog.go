// SPDX-License-Identifier: Apache-2.0

package versions

import "fmt"

// catalog has the names that the files give to indexes and constraints.
type catalog struct {
	indexes     map[string]string // by name: the table
	constraints map[string]bool   // by table and name: whether the name must be unique in a database
}

func newCatalog() *catalog {
	return &catalog{indexes: map[string]string{}, constraints: map[string]bool{}}
}

// index records a name that a statement gives.
func (c *catalog) index(index, table string) {
	if other, known := c.indexes[fold(index)]; known && fold(other) != fold(table) {
		c.indexes[fold(index)] = "" // two tables have the name: it is unknown which of them a DROP means
		return
	}
	c.indexes[fold(index)] = table
}

// constraint records a name that a statement gives; own says that the name ends with the
// physical table's.
func (c *catalog) constraint(table, constraint string, own bool) {
	c.constraints[fold(table)+"."+fold(constraint)] = own
}

// settle completes statements with the names from all files.
func (c *catalog) settle(s *statement, dialectName string) error {
	if s.drops != "" {
		table := c.indexes[fold(s.drops)]
		if table == "" {
			return fmt.Errorf("%w: no CREATE INDEX of the files, or more than one, creates the index %s, so its table is unknown: %s", ErrStatement, s.drops, shortened(s.sql))
		}
		s.tables, s.own = []string{table}, 1
	}
	kept := s.names[:0]
	for _, n := range s.names {
		if n.kind != tableName && n.table == "" {
			n.table = s.tables[0]
		}
		if n.kind == constraintName {
			own, known := c.constraints[fold(n.table)+"."+fold(n.text)]
			if !known {
				return fmt.Errorf("%w: no statement of the files creates the constraint %s of %s: %s", ErrStatement, n.text, n.table, shortened(s.sql))
			}
			if !own && dialectName == "mysql" {
				continue
			}
		}
		kept = append(kept, n)
	}
	s.names = kept
	return nil
}
