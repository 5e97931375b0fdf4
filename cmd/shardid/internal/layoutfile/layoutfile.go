// SPDX-License-Identifier: Apache-2.0

package layoutfile

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/database"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
)

// Help describes the file of --config.
const Help = `The file says in JSON where rows lie. It holds no password: a database is named by
an environment variable or a file that has its DSN, or by a SQLite file.

  {
    "databases": {
      "east": {"env": "SHOP_EAST"},
      "west": {"file": "/run/secrets/shop-west"},
      "test": {"sqlite": "test.db"}
    },
    "tables": [
      {"name": "orders", "key": "user_id", "rule": "low(10)", "group": "orders",
       "also": [{"column": "id", "rule": "low(10)", "from": 1000000}],
       "lookups": [{"column": "number", "table": "orders_by_number", "unique": true}],
       "spread": {"databases": ["east", "west"], "tables": 8, "pattern": "orders_%02d"}},
      {"name": "events", "key": "id", "rule": "offset_step(1, 2)",
       "targets": ["east/events_a", "west/events_b"]}
    ],
    "broadcast": ["regions"],
    "home": "east",
    "slots": {"name": "shop", "shards": {"orders": ["east/orders_00", "west/orders_01"]}},
    "vitess": {"keyspace": "shop", "sequences": {"orders": {"column": "id", "next": 5000}}}
  }

Rules: low(bits), bits(shift, width), mod(n), hash(n), hash_text(n), ranges(bound,
bound, …), list(de = 0, fr = 1), with the slot of each value, compat(n), which is
go-gorm/sharding's own, compat_text(n), the same for texts, offset_step(offset, step),
epochs(0 = 0, 1000000 = 0 1), which says from which id on the servers of which slots
give ids in turn, and interval(2025-01-01, 2027-01-01, 24h, precision = 1ms, zone =
Asia/Shanghai), whose precision and zone are those of the column, by default a second
and UTC. "targets" are those of slot 0, 1, 2, …; "spread" numbers tables from 0 and
assigns them to the databases in turn; with one table in a database the pattern may be
the logical name. Paths are relative to the file. "home" is the database of all tables
that are not listed, lookup tables among them; "building" marks one of "lookups" that
is being filled. A table whose rows are in the slots of the rows to which a column
refers can say so: "parents": [{"column": "order_id", "table": "orders"}]; "id" names
another column of the parent than "id". "slots" names the map of slots that rebalance keeps in the home
database, and the shards of each of its tables; append new ones; its "term": "10s" is
the time after which a program that has vanished holds up no move. Where the map is
stored, the slots are placed by it and not by "targets"; only route and audit use
"targets".

"vitess" is for export: the keyspace, and if Vitess is to number rows, the columns and their
next numbers; "unsharded" names the keyspace of these sequences (default shop_global).
"buckets": {"events": "slot"} names the column of a table that stores each row's slot,
for rules that Vitess cannot compute. "lookups": true has columns of "also" found by
lookup tables of Vitess.

Only for migrate, a table can also have

  "via": "order_id"        the column of a child that refers to its parent, where its
                           rows go; "key" is a column of the parent then. Unless
                           the parent's id carries the slot, applications can add
                           no such rows after the switch; inspect warns of it
  "ids": "affine(10, 3)"   new ids: kept, which is the default;
                           affine(m, s), id·m + s; keyed(VARIABLE), ids that hide
                           their order, by a key of 32 hexadecimal digits in that
                           environment variable; map(tag), ids of the tag in
                           leaf_alloc, stored in a table of the source
  "references": [{"column": "last_order", "table": "orders"}]
                           columns with ids of tables of the job, without a foreign key

and the file can list which of "databases" are replicas of the
source, whose lag throttles the copy: "replicas": ["replica1", "replica2"]`

// File is the JSON form of a sharding configuration.
type File struct {
	Databases map[string]databaseEntry `json:"databases"`
	Tables    []Table                  `json:"tables"`
	Broadcast []string                 `json:"broadcast"`
	Home      string                   `json:"home"`
	Replicas  []string                 `json:"replicas"` // replicas of migrate's source
	Vitess    vitessEntry              `json:"vitess"`
	Slots     slotsEntry               `json:"slots"`

	Dir string // directory of the file
}

// databaseEntry names a database in one of three ways, none of which shows a password.
type databaseEntry struct {
	Env    string `json:"env"`
	File   string `json:"file"`
	SQLite string `json:"sqlite"`
}

// Table is a table of the file.
type Table struct {
	Name    string        `json:"name"`
	Key     string        `json:"key"`
	Rule    ruleText      `json:"rule"`
	Also    []alsoEntry   `json:"also"`
	Parents []parentEntry `json:"parents"`
	Lookups []lookupEntry `json:"lookups"`
	Group   string        `json:"group"`
	Spread  *spreadEntry  `json:"spread"`
	Targets []string      `json:"targets"`

	// The fields below are only for migrate.
	IDs        idsText          `json:"ids"`
	Via        string           `json:"via"`
	References []referenceEntry `json:"references"`
}

type referenceEntry struct {
	Column string `json:"column"`
	Table  string `json:"table"`
}

type alsoEntry struct {
	Column string   `json:"column"`
	Rule   ruleText `json:"rule"`
	From   int64    `json:"from"`
}

type parentEntry struct {
	Column string `json:"column"`
	Table  string `json:"table"`
	ID     string `json:"id"`
}

type lookupEntry struct {
	Column   string `json:"column"`
	Table    string `json:"table"`
	Unique   bool   `json:"unique"`
	Building bool   `json:"building"`
}

type spreadEntry struct {
	Databases []string `json:"databases"`
	Tables    int      `json:"tables"`
	Pattern   string   `json:"pattern"`
}

type vitessEntry struct {
	Keyspace  string                     `json:"keyspace"`
	Unsharded string                     `json:"unsharded"`
	Buckets   map[string]string          `json:"buckets"`
	Sequences map[string]export.Sequence `json:"sequences"`
	Lookups   bool                       `json:"lookups"`
}

// Flag registers the flag that names the file.
func Flag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "config", "", "the file that says where rows lie")
}

// Read reads the file. Its errors are mistakes of the user.
func Read(path string) (File, error) {
	var l File
	if path == "" {
		return l, input.Errorf("which tables and databases? give --config FILE, as in shardid export --help")
	}
	text, err := os.ReadFile(path) //nolint:gosec // the user names the file
	if err != nil {
		return l, input.Unread("--config", path, err, "name the file that says where rows lie, as in shardid export --help")
	}
	if err := input.JSON(text, &l); err != nil {
		return l, input.Errorf("--config %s: %w; see shardid export --help for its form", path, err)
	}
	l.Dir = filepath.Dir(path)
	return l, nil
}

// Router returns the router of the file over these databases.
func (l File) Router(dbs sharding.DBs) (*sharding.Router, error) {
	if len(l.Tables)+len(l.Broadcast) == 0 {
		return nil, input.Errorf(`--config: the file has no tables; list them in "tables", as in shardid export --help`)
	}
	if _, known := l.Databases[l.Home]; l.Home != "" && !known {
		return nil, input.Errorf(`--config: "home" is %q, which is not one of "databases"; name one of them`, l.Home)
	}
	options := []sharding.Option{sharding.Broadcast(l.Broadcast...)}
	for _, entry := range l.Tables {
		t, err := entry.table()
		if err != nil {
			return nil, input.Errorf("--config: table %q: %w", entry.Name, err)
		}
		options = append(options, t)
	}
	r, err := sharding.New(dbs, options...)
	if err != nil {
		return nil, input.Errorf("--config: %w", err)
	}
	return r, nil
}

// Unopened are the file's databases for callers that send them nothing.
func (l File) Unopened() sharding.DBs {
	dbs := sharding.DBs{}
	for name := range l.Databases {
		dbs[name] = new(sql.DB)
	}
	return dbs
}

func (t Table) table() (sharding.Table, error) {
	if t.Name == "" {
		return sharding.Table{}, errors.New(`give "name", the name of the table in statements`)
	}
	if t.Key == "" {
		return sharding.Table{}, errors.New(`give "key", the column whose value leads to the shard`)
	}
	rule, err := t.Rule.rule()
	if err != nil {
		return sharding.Table{}, err
	}
	layout, err := t.layout()
	if err != nil {
		return sharding.Table{}, err
	}
	out := sharding.Table{Name: t.Name, Key: t.Key, Rule: rule, Map: layout, Group: t.Group}
	for _, also := range t.Also {
		rule, err := also.Rule.rule()
		if err != nil {
			return sharding.Table{}, err
		}
		out.Also = append(out.Also, sharding.Alt{Column: also.Column, Rule: rule, From: also.From})
	}
	for _, p := range t.Parents {
		out.Parents = append(out.Parents, sharding.Parent(p))
	}
	for _, l := range t.Lookups {
		out.Lookups = append(out.Lookups, sharding.Lookup(l))
	}
	return out, nil
}

// Moving returns the table in the form of a migration's configuration; new ids that cannot
// be computed come from these counters.
func (t Table) Moving(c *Counters) (migrate.Table, error) {
	table, err := t.table()
	if err != nil {
		return migrate.Table{}, err
	}
	ids, err := t.IDs.ids(c)
	out := migrate.Table{Table: table, IDs: ids, Via: t.Via}
	for _, r := range t.References {
		out.References = append(out.References, migrate.Reference{Column: r.Column, Table: r.Table})
	}
	return out, err
}

func (t Table) layout() (sharding.Map, error) {
	switch {
	case t.Spread != nil && t.Targets == nil:
		return sharding.Spread(t.Spread.Databases, t.Spread.Tables, t.Spread.Pattern)
	case t.Spread != nil || t.Targets == nil:
		return sharding.Map{}, errors.New(`give either "spread" or "targets"`)
	}
	targets, err := TargetsOf(t.Targets)
	if err != nil {
		return sharding.Map{}, fmt.Errorf(`"targets": %w`, err)
	}
	return sharding.MapOf(targets...)
}

// DSN returns the name of the database, including its password.
func (e databaseEntry) DSN(dir string) (string, error) {
	switch {
	case e.Env != "" && e.File+e.SQLite == "":
		if dsn := os.Getenv(e.Env); dsn != "" {
			return dsn, nil
		}
		return "", input.Errorf("the environment variable %s is empty; set it to %s", e.Env, database.Forms)
	case e.File != "" && e.Env+e.SQLite == "":
		text, err := os.ReadFile(inside(dir, e.File))
		if err != nil {
			return "", input.Errorf("the file %s cannot be read; put the DSN into it, %s", e.File, database.Forms)
		}
		return strings.TrimSpace(string(input.Text(text))), nil
	case e.SQLite != "" && e.Env+e.File == "":
		return inside(dir, e.SQLite), nil
	}
	return "", input.Errorf(`name it by one of "env", "file" and "sqlite"`)
}

func inside(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// Opened are the opened databases of a file.
type Opened struct {
	DBs  sharding.DBs
	Mask Mask // hides their passwords
}

// Open opens every database. One that does not answer returns its error when it is used; a
// name that is missing is a mistake of the user.
func (l File) Open(ctx context.Context) (Opened, error) {
	return l.OpenBy(func(dsn string) (*sql.DB, error) { return database.Open(ctx, dsn) })
}

// OpenToWrite opens existing databases for writing.
func (l File) OpenToWrite(ctx context.Context) (Opened, error) {
	return l.OpenBy(func(dsn string) (*sql.DB, error) { return database.OpenForWriting(ctx, dsn, database.Refused) })
}

// OpenBy opens the databases by a function.
func (l File) OpenBy(open func(dsn string) (*sql.DB, error)) (Opened, error) {
	s := Opened{DBs: sharding.DBs{}}
	var dsns []string
	for _, name := range slices.Sorted(maps.Keys(l.Databases)) {
		dsn, err := l.Databases[name].DSN(l.Dir)
		if err != nil {
			return s, errors.Join(input.Errorf("--config: database %q: %w", name, err), s.Close())
		}
		db, err := open(dsn)
		if err != nil {
			db = sql.OpenDB(unreachable{err})
		}
		s.DBs[name] = db
		dsns = append(dsns, dsn)
	}
	s.Mask = NewMask(dsns)
	return s, nil
}

// Close closes the databases.
func (s Opened) Close() error {
	var errs []error
	for _, db := range s.DBs {
		errs = append(errs, db.Close())
	}
	return errors.Join(errs...)
}

// unreachable is a database that could not be opened, and why.
type unreachable struct{ err error }

// Connect returns the error of opening it.
func (u unreachable) Connect(context.Context) (driver.Conn, error) { return nil, u.err }

// Driver returns the database itself; nobody calls it.
func (u unreachable) Driver() driver.Driver { return u }

// Open returns the error of opening it.
func (u unreachable) Open(string) (driver.Conn, error) { return nil, u.err }
