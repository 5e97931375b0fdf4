// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/shardid/shardid/schema/migrate"
)

// A warning is something to know; what blocks has to be mended first.
func ExampleBlocked() {
	findings := []migrate.Finding{{Severity: migrate.Warn, Table: "orders", Message: "something to know"}}
	fmt.Println(migrate.Blocked(findings))
	findings = append(findings, migrate.Finding{Severity: migrate.Block, Table: "items", Message: "something to mend"})
	fmt.Println(migrate.Blocked(findings))
	// Output:
	// false
	// true
}

// A program that runs a job calls it again after an error that passes.
func ExampleTransient() {
	fmt.Println(migrate.Transient(fmt.Errorf("run: %w", driver.ErrBadConn)))
	fmt.Println(migrate.Transient(context.Canceled))
	// Output:
	// true
	// false
}
