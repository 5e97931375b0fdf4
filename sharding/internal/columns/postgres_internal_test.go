// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"testing"

	"github.com/shardid/shardid/internal/dialect"
)

func TestATableWithoutColumnsInTheCatalogIsMissing(t *testing.T) {
	if err := error(&absentError{"orders"}); dialect.FaultOf(err) != dialect.NoTable {
		t.Errorf("%v is %v", err, dialect.FaultOf(err))
	}
}
