// SPDX-License-Identifier: Apache-2.0

package workerid_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

// A worker id that does not fit, and a record that cannot be read, make the start of a
// generator fail.
func Example_errors() {
	ctx := context.Background()
	_, err := snowflake.New(ctx, snowflake.Config{Worker: workerid.Static(1024)})
	fmt.Println(errors.Is(err, keygen.ErrNoWorker), err)

	dir, err := os.MkdirTemp("", "worker")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "worker.json")
	if err := os.WriteFile(file, []byte("damaged"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	_, err = snowflake.New(ctx, snowflake.Config{Worker: workerid.Recorded(file, workerid.Static(1))})
	fmt.Println(errors.Is(err, workerid.ErrRecord), strings.ReplaceAll(err.Error(), dir, "/var/lib/shop"))
	// Output:
	// true snowflake: acquire a worker id: workerid: keygen: no worker id: 1024 is not between 0 and 1023, the highest worker id of the layout
	// true snowflake: acquire a worker id: workerid: unusable record /var/lib/shop/worker.json: the file is damaged; when no process has used the worker id for a few seconds and the clock is right, delete it
}
