package shardsql

import (
	"context"
	"fmt"
	"strconv"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// server is how the databases read SQL.
type server struct {
	dialect.Server
	reads sqlparse.Dialect
	// more is div_precision_increment of MySQL and MariaDB: by how many digits the
	// quotient of decimals is longer than the dividend.
	more int
}

func (s *server) parse(text string) *sqlparse.Statement { return sqlparse.Parse(text, s.reads) }

// arithmetic is that of the server's sums and quotients.
func (s *server) arithmetic() merge.Dialect {
	switch {
	case s.Name() == "sqlite":
		return merge.Dialect{Engine: merge.SQLite}
	case s.Name() == "postgres":
		return merge.Dialect{Engine: merge.PostgreSQL}
	case s.Kind == dialect.KindMariaDB:
		return merge.Dialect{Engine: merge.MySQL, Division: merge.Division{More: s.more, Most: 38}}
	}
	return merge.Dialect{Engine: merge.MySQL, Division: merge.Division{More: s.more, Most: 30, Rounds: true}}
}

// ask returns how the databases read SQL. The home database is asked once; after
// an error, again.
func (d *database) ask(ctx context.Context) (*server, error) {
	if err := d.asking.take(ctx); err != nil {
		return nil, err
	}
	defer d.asking.end()
	if d.server != nil {
		return d.server, nil
	}
	found, err := dialect.Detect(ctx, d.home)
	if err != nil {
		return nil, fmt.Errorf("shardsql: the home database: %w", err)
	}
	s := &server{Server: found}
	if err := s.settings(ctx, d); err != nil {
		return nil, fmt.Errorf("shardsql: settings of the home database: %w", err)
	}
	d.server = s
	return s, nil
}

// settings reads what decides how the databases read SQL and divide.
func (s *server) settings(ctx context.Context, d *database) error {
	switch s.Name() {
	case "postgres":
		s.reads = sqlparse.Dialect{Family: sqlparse.PostgreSQL}
		return nil
	case "sqlite":
		s.reads = sqlparse.Dialect{Family: sqlparse.SQLite}
		return nil
	}
	home, err := readSession(ctx, d.home)
	if err != nil {
		return err
	}
	d.settled.home = home
	if s.more, err = strconv.Atoi(home[divPrecision]); err != nil {
		return err
	}
	mode := dialect.ParseMode(home[sqlMode])
	s.reads = sqlparse.Dialect{Family: sqlparse.MySQL, Flavor: sqltext.MySQL, PipesAsConcat: mode.PipesAsConcat}
	if s.Kind == dialect.KindMariaDB {
		s.reads.Family = sqlparse.MariaDB
	}
	if mode.ANSIQuotes {
		s.reads.Flavor &^= sqltext.DoubleQuoteStrings
	}
	if mode.NoBackslashEscapes {
		s.reads.Flavor &^= sqltext.BackslashEscapes
	}
	return nil
}
