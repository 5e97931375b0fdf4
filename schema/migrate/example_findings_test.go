// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/shardid/shardid/schema/migrate"
)

// A warning is for information; a blocking finding has to be fixed first.
func ExampleBlocked() {
	findings := []migrate.Finding{{Severity: migrate.Warn, Table: "orders", Message: "something to know"}}
	fmt.Println(migrate.Blocked(findings))
	findings = append(findings, migrate.Finding{Severity: migrate.Block, Table: "items", Message: "something to mend"})
	fmt.Println(migrate.Blocked(findings))
	// Output:
	// false
	// true
}

// A program that runs a job repeats the call after a temporary error.
func ExampleTransient() {
	fmt.Println(migrate.Transient(fmt.Errorf("run: %w", driver.ErrBadConn)))
	fmt.Println(migrate.Transient(context.Canceled))
	// Output:
	// true
	// false
}
