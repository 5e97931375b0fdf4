package gormplugin

import (
	"database/sql"
	"fmt"
	"sync/atomic"

	"gorm.io/gorm"
)

// replicas are the read-only copies of the shards' databases. It is safe for
// concurrent use.
type replicas map[string]*turns

// turns hands out databases in turn.
type turns struct {
	dbs  []*sql.DB
	next atomic.Uint64
}

func newReplicas(c *Config) (replicas, error) {
	r := replicas{}
	for name, dbs := range c.Replicas {
		if c.Router.DB(name) == nil {
			return nil, fmt.Errorf("Config.Replicas: the router has no database %q", name)
		}
		for i, db := range dbs {
			if db == nil {
				return nil, fmt.Errorf("Config.Replicas: replica %d of %q is nil", i, name)
			}
		}
		if len(dbs) > 0 {
			r[name] = &turns{dbs: dbs}
		}
	}
	return r, nil
}

// pick returns a copy of the database to read from, nil if there is none.
func (r replicas) pick(name string) *sql.DB {
	t := r[name]
	if t == nil {
		return nil
	}
	return t.dbs[(t.next.Add(1)-1)%uint64(len(t.dbs))]
}

// wantsSource reports whether a read must not see a copy: it locks rows, or
// dbresolver was told so. The name is that of dbresolver's own setting.
func wantsSource(stmt *gorm.Statement) bool {
	if stmt == nil {
		return false
	}
	if _, locks := stmt.Clauses["FOR"]; locks {
		return true
	}
	_, write := stmt.Settings.Load("gorm:db_resolver:write")
	return write
}
