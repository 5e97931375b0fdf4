// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql/driver"
	"fmt"
	"maps"
	"slices"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/effects"
)

// savepoint is a savepoint that the caller has set in a transaction, or a setting of the transaction, which has no
// name.
type savepoint struct {
	name, text string
	inserted   int                        // how many entries the transaction had inserted before, of lookupChanges.got
	locked     map[slotOf]sharding.Target // transaction.locked before
}

// isSetting reports whether a statement sets something for its transaction. PostgreSQL undoes that at ROLLBACK TO a savepoint.
func (c *conn) isSetting(ctx context.Context, text string) bool {
	if !effects.SetsLocal(text) {
		return false
	}
	server, err := c.database.detect(ctx)
	return err == nil && server.Name() == "postgres"
}

// savepoint executes a statement on a savepoint in a transaction. It returns false for others.
func (c *conn) savepoint(ctx context.Context, r request) (bool, driver.Result, error) {
	if c.tx == nil || len(r.args) > 0 {
		return false, nil, nil
	}
	verb, name := effects.SavepointOf(r.text)
	if verb == effects.NoSavepoint && effects.MayBeSavepoint(r.text) && c.isSetting(ctx, r.text) {
		verb, c.tx.planned = effects.SetLocal, true
	}
	if verb == effects.NoSavepoint {
		return false, nil, nil
	}
	r.observed.atHome()
	result, err := c.tx.execSavepoint(ctx, verb, name, r.text)
	if verb == effects.RollbackTo && c.tx.failed != nil && !isLost(c.tx.failed) && isLost(err) { // the program has dealt with the error before
		c.tx.failed = lost(err)
	}
	c.tx.RecordError(err)
	return true, result, err
}

// execSavepoint executes a statement on a savepoint, or a setting, in every database where the transaction has begun.
// When the transaction begins on another database later, begin sets the savepoint there: nothing has
// happened there before.
func (t *transaction) execSavepoint(ctx context.Context, verb effects.Savepoint, name, text string) (driver.Result, error) {
	at := lastNamed(t.savepoints, name)
	if (verb == effects.RollbackTo || verb == effects.Release) && at < 0 && len(t.parts) == 0 {
		if _, err := t.session.database.detect(ctx); err != nil {
			return nil, err
		}
		t.planned = true
		in, err := t.session.inner(ctx, t.session.database.home) // which reports that there is no savepoint
		if err != nil {
			return nil, err
		}
		return in.Exec(ctx, nil, text, nil)
	}
	if err := t.ended(); err != nil && (t.broken != nil || verb != effects.RollbackTo) {
		return nil, err
	}
	for i, b := range t.parts {
		if err := b.inner.Run(ctx, text); err != nil {
			if i > 0 && (verb != effects.SetLocal || dialect.SQLState(err) == "") { // after an error PostgreSQL accepts ROLLBACK TO
				t.broken = fmt.Errorf("shardsql: %s succeeded on some databases only: %w", text, err)
			}
			return nil, err
		}
	}
	switch {
	case verb == effects.Set, verb == effects.SetLocal:
		if server, err := t.session.database.detect(ctx); at >= 0 && verb == effects.Set && err == nil && server.Name() == "mysql" {
			t.savepoints = slices.Delete(t.savepoints, at, at+1) // the new one replaces it there
		}
		t.savepoints = append(t.savepoints, savepoint{name, text, len(t.owners.got), maps.Clone(t.locked)})
	case at < 0:
	case verb == effects.RollbackTo:
		t.failed = nil
		t.savepoints = t.savepoints[:at+1]
		t.owners.undo(t.savepoints[at].inserted)
		maps.Copy(t.locked, t.savepoints[at].locked) // writes since then keep none of these slots any more
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
