// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/shardid/shardid/schema/migrate"
)

func TestAJobIsNotBegunByAnAttemptThatCameTooEarly(t *testing.T) {
	for err, want := range map[error]bool{
		migrate.ErrLocked: false,
		fmt.Errorf("source: %w", syscall.ECONNREFUSED): false,
		driver.ErrBadConn:       false,
		migrate.ErrFenced:       true,
		context.Canceled:        true,
		errors.New("a mistake"): true,
		nil:                     true,
	} {
		if got := hasBegun(err); got != want {
			t.Errorf("%v: %t, want %t", err, got, want)
		}
	}
}
