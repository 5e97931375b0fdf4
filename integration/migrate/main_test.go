// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"os"
	"testing"

	"github.com/shardid/shardid/integration/server"
)

func TestMain(m *testing.M) { os.Exit(server.Reuse(m)) }
