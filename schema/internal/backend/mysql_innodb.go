// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// InnoDB spells names of databases and tables as file names: it escapes letters outside of
// ASCII in a way that no server shows, and adds an ending to the names of some systems'
// devices. So tables are found by a pattern.

// Numbers returns InnoDB's table ids; a partitioned table has one for each partition.
func (m mysqlRecognition) Numbers(ctx context.Context, s *Session, names []string) (map[string]string, error) {
	view, err := m.innodbTables(ctx, s)
	if err != nil {
		return nil, err
	}
	var database string
	if err := s.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&database); err != nil {
		return nil, err
	}
	found := innodbNumbers{}
	err = s.Each(ctx, func(rows *sql.Rows) error {
		var path, id string
		err := rows.Scan(&path, &id)
		found.add(path, id)
		return err
	}, "SELECT NAME, TABLE_ID FROM information_schema."+view+" WHERE NAME REGEXP ? ORDER BY TABLE_ID", innodbPath(database, names))
	if err != nil {
		return nil, fmt.Errorf("read the tables' numbers, which show a TRUNCATE (it needs the privilege PROCESS): %w", err)
	}
	tables, err := found.of(database)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, name := range names {
		if ids := like(tables, innodbPattern(name)); len(ids) > 0 {
			all[name] = ids[0]
			if len(ids) > 1 {
				all[name] = Digest(strings.Join(ids, " "))
			}
		}
	}
	return all, nil
}

// innodbNumbers are table ids by database and table, as InnoDB spells them.
type innodbNumbers map[string]map[string][]string

func (n innodbNumbers) add(path, id string) {
	database, table, _ := strings.Cut(path, "/")
	table, _, _ = strings.Cut(table, "#") // of a partition
	table = strings.TrimSuffix(table, innodbDevice)
	if n[database] == nil {
		n[database] = map[string][]string{}
	}
	n[database][table] = append(n[database][table], id)
}

// of returns the ids of a database's tables.
func (n innodbNumbers) of(database string) (map[string][]string, error) {
	if tables := n[innodbPattern(database)]; tables != nil || len(n) == 0 {
		return tables, nil
	}
	spelled := slices.Sorted(maps.Keys(n))
	if len(spelled) > 1 {
		return nil, fmt.Errorf("%w: the databases that InnoDB calls %s cannot be distinguished; give one of them a name that differs in ASCII letters",
			ErrUnsupported, strings.Join(spelled, " and "))
	}
	return n[spelled[0]], nil
}

// like prefers an exact match, which exists for names in ASCII: a server may distinguish
// names that differ in case, or store all in lower case.
func like(tables map[string][]string, name string) []string {
	if ids := tables[name]; ids != nil {
		return ids
	}
	for spelled, ids := range tables {
		if strings.EqualFold(spelled, name) {
			return ids
		}
	}
	return nil
}

func (mysqlRecognition) innodbTables(ctx context.Context, s *Session) (string, error) {
	names, err := s.List(ctx, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'information_schema'"+
		" AND TABLE_NAME IN ('INNODB_TABLES', 'INNODB_SYS_TABLES')")
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%w: the server shows no table of InnoDB's tables", ErrUnsupported)
	}
	if err != nil {
		return "", err
	}
	return names[0], nil
}

// innodbDevice ends names like con and aux.
const innodbDevice = "@@@"

// innodbPath matches what InnoDB calls the tables and their partitions.
func innodbPath(database string, tables []string) string {
	patterns := make([]string, len(tables))
	for i, name := range tables {
		patterns[i] = innodbPattern(name)
	}
	return "(?i)^" + innodbPattern(database) + "/(" + strings.Join(patterns, "|") + ")(" + innodbDevice + ")?(#.*)?$"
}

// innodbPattern matches a name as InnoDB spells it; a name in ASCII matches itself.
func innodbPattern(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 0x80:
			b.WriteString("@([0-9a-f]{4}|[0-9a-z@]{2})")
		case r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z':
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "@%04x", r)
		}
	}
	return b.String()
}
