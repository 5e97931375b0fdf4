// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// numbers is a way to let ZooKeeper assign numbers from 1 up, at a znode.
type numbers interface {
	name() string
	next(ctx context.Context, c *client, path string) (int64, error)
}

// versions are the versions of the znode's data; the first one is 0.
type versions struct{}

func (versions) name() string { return "versions" }

func (versions) next(ctx context.Context, c *client, path string) (int64, error) {
	stat, err := c.set(ctx, path, nil, anyVersion)
	return int64(stat.Version), err
}

// zxids are the transaction ids of the writes to the znode.
type zxids struct{}

func (zxids) name() string { return "zxids" }

func (zxids) next(ctx context.Context, c *client, path string) (int64, error) {
	stat, err := c.set(ctx, path, nil, anyVersion)
	return stat.Mzxid, err
}

// sequence is the numbers in the names of sequential znodes below the znode.
type sequence struct{}

func (sequence) name() string { return "sequence" }

// next deletes the znode that it created. If the deletion fails, the znode ends with its
// session. A missing right to delete is an error, because then all znodes would stay.
func (s sequence) next(ctx context.Context, c *client, path string) (int64, error) {
	prefix := path + "/n"
	for {
		made, err := c.create(ctx, prefix, nil, ephemeral|sequential)
		if err != nil {
			return 0, err
		}
		digits, _ := strings.CutPrefix(made, prefix)
		number, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("ZooKeeper named a sequential znode %q: %w", made, err)
		}
		if err := c.remove(ctx, made, anyVersion); isSetup(err) {
			return 0, fmt.Errorf("delete %s: %w", made, err)
		}
		if number != 0 { // 0 is not a key
			return number, nil
		}
	}
}
