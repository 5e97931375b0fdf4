// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql/driver"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// savepoint is a savepoint that the caller has set in a transaction, or a setting of the transaction, which has no
// name.
type savepoint struct{ name, text string }

// savepointVerb is the operation of a statement on a savepoint, or setting.
type savepointVerb uint8

const (
	noSavepoint savepointVerb = iota
	set
	rollbackTo
	release
	setLocal // SET of something that ends with a transaction of PostgreSQL
)

// Parts of statements on savepoints: what may stand between words, which are spaces and comments, and names.
const (
	spaceOrComment = `(?:\s|/\*(?:[^*]|\*+[^*/])*\*+/|(?:--|#)[^\n]*(?:\n|$))`
	savepointName  = "([^\\s;\"'`\\[/#-]+|\"[^\"]+\"|'[^']+'|`[^`]+`|\\[[^\\]]+\\])"
)

var aboutSavepoint = regexp.MustCompile(strings.NewReplacer("_", spaceOrComment, "NAME", savepointName).Replace(
	`(?i)^_*(?:(savepoint)|(release)(?:_+savepoint)?|rollback(?:_+(?:work|transaction))?_+to(?:_+savepoint)?)_+NAME(?:;|_)*$`))

// savepointOf returns the operation of a statement, and the name of its savepoint.
func savepointOf(text string) (savepointVerb, string) {
	if !mayBeSavepoint(text) {
		return noSavepoint, ""
	}
	m := aboutSavepoint.FindStringSubmatch(text)
	if m == nil {
		return noSavepoint, ""
	}
	verb := rollbackTo
	switch {
	case m[1] != "":
		verb = set
	case m[2] != "":
		verb = release
	}
	return verb, strings.ToLower(strings.Trim(m[3], "`\"[]'"))
}

// setsLocal matches the beginning of a SET that ends with a transaction of PostgreSQL.
var setsLocal = regexp.MustCompile(strings.ReplaceAll(`(?i)^_*set_+(?:local|constraints|transaction)_`, "_", spaceOrComment))

// isSetting reports whether a statement sets something for its transaction. PostgreSQL undoes that at ROLLBACK TO a savepoint.
func (c *conn) isSetting(ctx context.Context, text string) bool {
	text = strings.TrimRight(text, "; \t\r\n")
	if !setsLocal.MatchString(text) || strings.Contains(text, ";") || parsesOtherwise.MatchString(text) {
		return false
	}
	server, err := c.database.ask(ctx)
	return err == nil && server.Name() == "postgres"
}

// mayBeSavepoint is a fast check, which nearly all other statements do not pass.
func mayBeSavepoint(text string) bool {
	const least, most = len("RELEASE a"), 1000
	if len(text) < least || len(text) > most {
		return false
	}
	switch text[0] {
	case 's', 'S':
		return text[1] == 'a' || text[1] == 'A' || text[2] == 't' || text[2] == 'T'
	case 'r', 'R':
		return true
	}
	return strings.IndexByte("/-#\t\n\v\f\r ", text[0]) >= 0
}

// savepoint executes a statement on a savepoint in a transaction. It returns false for others.
func (c *conn) savepoint(ctx context.Context, o *observation, query string, args []driver.NamedValue) (bool, driver.Result, error) {
	if c.tx == nil || len(args) > 0 {
		return false, nil, nil
	}
	verb, name := savepointOf(query)
	if verb == noSavepoint && mayBeSavepoint(query) && c.isSetting(ctx, query) {
		verb, c.tx.planned = setLocal, true
	}
	if verb == noSavepoint {
		return false, nil, nil
	}
	o.atHome()
	result, err := c.tx.execSavepoint(ctx, verb, name, query)
	c.tx.recordError(err)
	return true, result, err
}

// execSavepoint executes a statement on a savepoint, or a setting, in every database where the transaction has begun.
// When the transaction begins on another database later, begin sets the savepoint there: nothing has
// happened there before.
func (t *transaction) execSavepoint(ctx context.Context, verb savepointVerb, name, text string) (driver.Result, error) {
	at := lastNamed(t.savepoints, name)
	if (verb == rollbackTo || verb == release) && at < 0 && len(t.begun) == 0 {
		if _, err := t.session.database.ask(ctx); err != nil {
			return nil, err
		}
		t.planned = true
		in, err := t.session.inner(ctx, t.session.database.home) // which reports that there is no savepoint
		if err != nil {
			return nil, err
		}
		return in.exec(ctx, nil, text, nil)
	}
	if err := t.ended(); err != nil && (t.broken != nil || verb != rollbackTo) {
		return nil, err
	}
	for i, b := range t.begun {
		if err := b.inner.run(ctx, text); err != nil {
			if i > 0 && (verb != setLocal || dialect.SQLState(err) == "") { // after an error PostgreSQL accepts ROLLBACK TO
				t.broken = fmt.Errorf("shardsql: %s succeeded on some databases only: %w", text, err)
			}
			return nil, err
		}
	}
	switch {
	case verb == set, verb == setLocal:
		if server, err := t.session.database.ask(ctx); at >= 0 && verb == set && err == nil && server.Name() == "mysql" {
			t.savepoints = slices.Delete(t.savepoints, at, at+1) // the new one replaces it there
		}
		t.savepoints = append(t.savepoints, savepoint{name, text})
	case at < 0:
	case verb == rollbackTo:
		t.failed = nil
		t.savepoints = t.savepoints[:at+1]
	default: // settings remain
		after := slices.DeleteFunc(t.savepoints[at:], func(s savepoint) bool { return s.name != "" })
		t.savepoints = t.savepoints[:at+len(after)]
	}
	return driver.RowsAffected(0), nil
}

// lastNamed returns the index of the last savepoint with this name, -1 if there is none.
func lastNamed(all []savepoint, name string) int {
	for i, s := range slices.Backward(all) {
		if s.name == name {
			return i
		}
	}
	return -1
}
