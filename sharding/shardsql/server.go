package shardsql

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/sqlparse"
)

// server is how the databases read SQL.
type server struct {
	dialect.Server
	reads sqlparse.Dialect
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
		return merge.Dialect{Engine: merge.MySQL, Division: merge.Division{More: 4, Most: 38}}
	}
	return merge.Dialect{Engine: merge.MySQL, Division: merge.Division{More: 4, Most: 30, Rounds: true}}
}

// ask returns how the databases read SQL. The home database is asked once; after
// an error, again.
func (d *database) ask(ctx context.Context) (*server, error) {
	d.once.Lock()
	defer d.once.Unlock()
	if d.server != nil {
		return d.server, nil
	}
	found, err := dialect.Detect(ctx, d.home)
	if err != nil {
		return nil, fmt.Errorf("shardsql: the home database: %w", err)
	}
	s := &server{Server: found}
	if s.reads, err = readsAs(ctx, d, found); err != nil {
		return nil, fmt.Errorf("shardsql: sql_mode of the home database: %w", err)
	}
	d.server = s
	return s, nil
}

func readsAs(ctx context.Context, d *database, found dialect.Server) (sqlparse.Dialect, error) {
	switch found.Name() {
	case "postgres":
		return sqlparse.Dialect{Family: sqlparse.PostgreSQL}, nil
	case "sqlite":
		return sqlparse.Dialect{Family: sqlparse.SQLite}, nil
	}
	var text string
	if err := d.home.QueryRowContext(ctx, "SELECT @@SESSION.sql_mode").Scan(&text); err != nil {
		return sqlparse.Dialect{}, err
	}
	mode := dialect.ParseMode(text)
	reads := sqlparse.Dialect{Family: sqlparse.MySQL, Flavor: sqltext.MySQL, PipesAsConcat: mode.PipesAsConcat}
	if found.Kind == dialect.KindMariaDB {
		reads.Family = sqlparse.MariaDB
	}
	if mode.ANSIQuotes {
		reads.Flavor &^= sqltext.DoubleQuoteStrings
	}
	if mode.NoBackslashEscapes {
		reads.Flavor &^= sqltext.BackslashEscapes
	}
	return reads, nil
}
