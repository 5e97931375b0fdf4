// SPDX-License-Identifier: Apache-2.0

package route

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// Planner plans statements.
type Planner struct {
	dialect   string
	statement func(text string, args ...any) (shardsql.Explanation, error)
	absent    func() []string // tables whose columns were not found
}

// Offline plans statements without a database.
func Offline(r *sharding.Router, dialectName string) Planner {
	plan := func(text string, args ...any) (shardsql.Explanation, error) {
		e, err := shardsql.Plan(r, dialectName, text, args...)
		if err != nil {
			return e, input.Wrap(err)
		}
		return e, nil
	}
	return Planner{dialectName, plan, func() []string { return nil }}
}

// By plans statements by the columns of a database.
func By(ctx context.Context, r *sharding.Router, db *sql.DB) (Planner, error) {
	server, err := dialect.Detect(ctx, db)
	if err != nil {
		return Planner{}, err
	}
	p, err := shardsql.NewPlanner(ctx, r, db)
	if err != nil {
		return Planner{}, err
	}
	plan := func(text string, args ...any) (shardsql.Explanation, error) { return p.Plan(ctx, text, args...) }
	return Planner{server.Name(), plan, p.Absent}, nil
}

// sampled plans a statement whose parameters have no values again with values of several kinds. It returns false if these lead to
// different kinds of execution.
func (p Planner) sampled(text string, e *shardsql.Explanation) bool {
	if e.Parameters == 0 {
		return true
	}
	for i, sample := range []func(n int) any{
		func(int) any { return int64(1) }, func(n int) any { return int64(n + 1) },
		func(int) any { return "1" }, func(n int) any { return strconv.Itoa(n + 1) },
	} {
		args := make([]any, e.Parameters)
		for n := range args {
			args[n] = sample(n)
		}
		as, err := p.statement(text, args...)
		if err != nil || i > 0 && as.Kind != e.Kind {
			return false
		}
		*e = as
	}
	return true
}

func absentText(tables []string) string {
	return "not found in the database of the columns: " + strings.Join(tables, ", ")
}

// firstWord matches the first word of a statement, behind comments and parentheses.
var firstWord = regexp.MustCompile(`^(?:\s|/\*[^!](?s:.*?)\*/|(?:--|#)[^\n]*\n|\()*([A-Za-z_]+)`)

// read are the first words of statements that package shardsql parses, and known those of others.
var (
	read  = wordsOf("select insert update delete replace with values table")
	known = wordsOf(`abort alter analyse analyze attach backup begin binlog cache call change check checkpoint checksum clone close
		cluster comment commit copy create deallocate declare desc describe detach discard do drop end execute explain fetch flush get
		grant handler help import install kill listen load lock merge move notify optimize pragma prepare purge reassign refresh
		reindex release rename repair reset restart resignal revoke rollback savepoint security set show shutdown signal start stop
		truncate uninstall unlisten unlock use vacuum xa`)
)

func wordsOf(text string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		all[word] = true
	}
	return all
}

// unknown says of a statement for the home database that shardid does not know what it is, "" if it does.
func unknown(statement string, e shardsql.Explanation) string {
	m := firstWord.FindStringSubmatch(statement)
	switch {
	case e.Kind != shardsql.Home || !e.Unparsed || m == nil:
		return ""
	case read[strings.ToLower(m[1])]:
		return fmt.Sprintf("shardid cannot read this %s, and leaves it to the home database; is its syntax right?", strings.ToUpper(m[1]))
	case !known[strings.ToLower(m[1])]:
		return m[1] + " begins no statement that shardid knows; the home database decides what it is"
	}
	return ""
}
