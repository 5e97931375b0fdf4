package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

// seam is what differs between the databases; one family of files for each.
type seam interface {
	dialect.Dialect
	conduct
	catalog
	recognition
	capture
	exclusion
	expression
	writing
}

// writing is how many rows are written.
type writing interface {
	// makeRoom prepares the session for many rows.
	makeRoom(ctx context.Context, s *session) error
	// batch is how many of the rows the next INSERT takes, at least one.
	batch(rows []record) int
	// insert inserts the rows, which are a batch, in one statement.
	insert(ctx context.Context, s *session, t *table, name string, rows []record) error
	// deletion deletes the rows with these keys, if they fulfil the condition; "" is
	// none. It looks each of them up by its key and at no other row: one that
	// somebody has written and not committed would keep it waiting.
	deletion(table, key string, keys []int64, condition string) string
}

// expression is how columns are read.
type expression interface {
	// value is the SQL expression of a column as it is read for a copy.
	value(qualifier string, c column) string
	// refused is the SQL expression of the number, from 1 on, of the first of the
	// columns whose value would not come out of a copy as it is; 0 when all would.
	refused(qualifier string, columns []column) string
	// keyText is the SQL expression of a sharding key from the column, as text, just
	// as rules are given it by an application.
	keyText(expression string, c column) string
	// bytesOf makes a column's texts ones that are equal only when all their bytes
	// are, so that none hides behind another that its collation takes for the same.
	bytesOf(expression string, c column) string
}

// conduct is how connections and transactions are had.
type conduct interface {
	// pin makes the settings of a connection what every one of a migration has,
	// and reads them back.
	pin(ctx context.Context, c *sql.Conn) error
	// begin is the statement that begins a transaction that will write.
	begin() string
	// lockRead ends a SELECT whose rows must not change until the transaction
	// ends.
	lockRead() string
	// duplicate: a unique key of any kind refused a row.
	duplicate(err error) bool
	// transient: the same transaction may be tried again on a new connection.
	transient(err error) bool
}

// catalog is what a database says about its tables, and how they are made.
type catalog interface {
	// ownTables are the definitions of the tables of this package on the source,
	// shardTables those on a database with shards; each with a log.
	ownTables(log string) []string
	shardTables(log string) []string
	// describe reads what a table is.
	describe(ctx context.Context, s *session, name string) (shape, error)
	// exists reports whether there is a table of this name.
	exists(ctx context.Context, s *session, name string) (bool, error)
	// mapDefinition is that of a table of old and new ids.
	mapDefinition(name string) string
	// counter is the last id that a table's counter may have given, 0 without one;
	// setCounter has it go on above an id.
	counter(ctx context.Context, s *session, name string) (int64, error)
	setCounter(ctx context.Context, s *session, name string, id int64) error
	// targetDefinition is how to make a table for rows of the one described.
	targetDefinition(ctx context.Context, s *session, of shape, name string) ([]string, error)
	// dropKeys drops foreign keys of a table, and perhaps others of it.
	dropKeys(ctx context.Context, s *session, table string, keys []foreignKey) error
	// blockers says what else in the database depends on the tables.
	blockers(ctx context.Context, s *session, tables []string) ([]string, error)
}

// recognition is how it is seen that something is not what it was.
type recognition interface {
	// identity changes when a table's rows were replaced by other means than
	// statements on rows: TRUNCATE, a restored file.
	identity(ctx context.Context, s *session, name string) (string, error)
	// numbers are the parts of identities that an ALTER which leaves the rows where
	// they are does not change, by the tables' names; "" is that of no table.
	numbers(ctx context.Context, s *session, names []string) (map[string]string, error)
	// server changes when a database is served by another server: a replica that
	// took over, and may lack what was committed last.
	server(ctx context.Context, s *session) (string, error)
}

// capture is the triggers.
type capture interface {
	// capture are the triggers that note changes of a table; name makes their names
	// from an event.
	capture(c capturing) []trigger
	// barrier are the triggers that refuse writers of a retired table.
	barrier(c capturing) []trigger
	// triggers are the names of all those in the database that begin like this.
	triggers(ctx context.Context, s *session, prefix string) ([]string, error)
	// hasTrigger reports whether the trigger is there, on its table and as it is to
	// be.
	hasTrigger(ctx context.Context, s *session, t trigger) (bool, error)
	// aside runs f, which makes triggers on the table, while no statement that
	// somebody has prepared before can run without them.
	aside(ctx context.Context, s *session, table string, f func() error) error
	// briefly runs f, which changes definitions of tables that others use, so that
	// these are kept waiting for a second at a time at most.
	briefly(ctx context.Context, s *session, f func() error) error
	// passBarrier has the session write to retired tables, or no longer.
	passBarrier(ctx context.Context, s *session, pass bool) error
}

// exclusion is how others are kept out.
type exclusion interface {
	// lead makes the session the only leader of the job; false: another one is.
	lead(ctx context.Context, s *session, job string) (bool, error)
	// lock has all other writers of the tables wait. The session must not begin a
	// transaction after it. It gives up after most.
	lock(ctx context.Context, s *session, tables []string, most time.Duration) error
	// unlock makes the work under the lock last, or not where that is possible.
	unlock(ctx context.Context, s *session, keep bool) error
	// rename gives a table another name; the lock may be held.
	rename(from, to string) string
	// renameAll gives several tables other names; no lock is held.
	renameAll(all []renaming) []string
	// persist makes what was written under the lock last at once, if need be by
	// letting others in for a moment: what they write is in the log.
	persist(ctx context.Context, s *session) error
	// abandoned fails when changes may still come that no lock keeps out.
	abandoned(ctx context.Context, s *session) error
	// elsewhere finds how rows may change that no trigger notes or no lock holds.
	elsewhere(ctx context.Context, s *session) ([]Finding, error)
	// watch runs f, and has the session's statements fail when the time is over that a
	// switch has before its first rename. The time begins in f.
	watch(ctx context.Context, s *session, t *timing, f func() error) error
}

// capturing is what triggers on one table need to know.
type capturing struct {
	table   string
	log     string
	tbl     int
	key     string
	uniques [][]string
	name    func(event string) string
	below   []descent // rows that have to be looked at along with the table's
}

// descent is a table whose rows foreign keys change, or move, when a column of
// watch does: path leads from it up to the table with the trigger.
type descent struct {
	tbl    int
	key    string
	path   []link
	watch  []string
	routed bool // the rows move by themselves
}

// link is what refers to the next table up.
type link struct {
	child           string
	columns, refers []string // each to one
}

type trigger struct{ name, table, body, create string }

// kind is what a column holds, as hashes see it.
type kind int

const (
	number    kind = iota
	quoted         // text
	binary         // bytes
	readyMade      // the database writes a literal
)

type column struct {
	name, typ string
	charset   string // of texts on servers
	kind      kind
	nullable  bool
	cast      bool // read as text, as drivers read it as something else
}

// isFloat: the column holds binary floating-point numbers.
func (c column) isFloat() bool { return c.typ == "float" || c.typ == "double" }

// renaming is a table that gets another name.
type renaming struct{ from, to string }

// foreignKey is one of a table described, or one that points to it.
type foreignKey struct {
	name      string   // in SQLite its number, which is its child's alone
	table     string   // the other one, as it was called when the table was described
	columns   []string // of the child
	refers    []string // of the parent, for each column; "" is its primary key
	cascading bool     // changes rows of the child by itself
	other     *table   // of the job, whatever it is called by now; nil: it is none of the job's
}

// shape is what a table is.
type shape struct {
	name     string
	key      string   // the single integer primary key
	columns  []column // without generated ones
	uniques  [][]string
	parents  []foreignKey
	children []foreignKey
	triggers []string
	widened  []string // columns for which the shards have wide ones: the key and references; nil: the key
}

// wide are the columns that hold ids.
func (s shape) wide() []string {
	if len(s.widened) == 0 {
		return []string{s.key}
	}
	return s.widened
}

// joined are the tables of a path, from the row that changes by itself up to the
// one just below the table with the trigger.
func joined(d dialect.Dialect, path []link) string {
	tables := []string{d.Quote(path[0].child)}
	for i, l := range path[:len(path)-1] {
		above := path[i+1].child
		tables = append(tables, d.Quote(above)+" ON "+l.where(d, func(refers string) string { return "= " + columnOf(d, above, refers) }))
	}
	return strings.Join(tables, " JOIN ")
}

// where says of each of the link's columns what it is compared with, which may be
// made of the one that it refers to.
func (l link) where(d dialect.Dialect, compared func(refers string) string) string {
	all := make([]string, len(l.columns))
	for i, column := range l.columns {
		all[i] = columnOf(d, l.child, column) + " " + compared(l.refers[i])
	}
	return strings.Join(all, " AND ")
}

func (l link) is(other link) bool {
	return l.child == other.child && slices.Equal(l.columns, other.columns) && slices.Equal(l.refers, other.refers)
}

// top is what refers to the table with the trigger.
func (d descent) top() link { return d.path[len(d.path)-1] }

// notedBelow is the statement that notes rows of a descent for which the columns
// that refer to the table with the trigger fulfil a condition.
func notedBelow(d dialect.Dialect, log string, of descent, compared func(refers string) string) string {
	return fmt.Sprintf("INSERT INTO %s (tbl, id) SELECT %d, %s FROM %s WHERE %s", d.Quote(log), of.tbl,
		columnOf(d, of.path[0].child, of.key), joined(d, of.path), of.top().where(d, compared))
}

func (s shape) column(name string) (column, bool) {
	for _, c := range s.columns {
		if strings.EqualFold(c.name, name) {
			return c, true
		}
	}
	return column{}, false
}

func newSeam(server dialect.Server) (seam, error) {
	switch {
	case server.Proxy != "":
		return nil, fmt.Errorf("%w: a connection through %s; a migration keeps locks for as long as a connection lives, so connect to the server itself", ErrUnsupported, server.Proxy)
	case server.Kind == dialect.KindMySQL || server.Kind == dialect.KindMariaDB:
		return mysqlSeam{dialect.MySQL{}, server}, nil
	case server.Kind == dialect.KindSQLite:
		return sqliteSeam{dialect.SQLite{}}, nil
	}
	return nil, fmt.Errorf("%w: %s; only MariaDB, MySQL and SQLite are", ErrUnsupported, server.Kind)
}

// keyColumn is one column of a foreign key, as a database lists it.
type keyColumn struct{ child, parent, name, column, refers, onDelete, onUpdate string }

// addKey takes a column of a foreign key of the table or to it; those of one key
// come one after the other.
func (s *shape) addKey(k keyColumn) {
	if strings.EqualFold(k.child, s.name) {
		s.parents = k.addTo(s.parents, k.parent)
	}
	if strings.EqualFold(k.parent, s.name) {
		s.children = k.addTo(s.children, k.child)
	}
}

func (k keyColumn) addTo(keys []foreignKey, other string) []foreignKey {
	last := len(keys) - 1
	if last < 0 || keys[last].name != k.name || keys[last].table != other {
		keys = append(keys, foreignKey{name: k.name, table: other, cascading: cascades(k.onDelete) || cascades(k.onUpdate)})
		last++
	}
	keys[last].columns = append(keys[last].columns, k.column)
	keys[last].refers = append(keys[last].refers, k.refers)
	return keys
}
