// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardid/shardid/internal/testwait"
)

// RedisCluster is a Redis Cluster of private servers.
type RedisCluster struct {
	Nodes    []*Redis // the initial masters
	Replicas []*Redis // of the nodes, in their order; see Replicate

	settings []string
}

// nodeTimeout, in milliseconds, is the silence after which a node regards another one as
// failed. It is so long that a busy machine does not reach it. See [RedisCluster.FailOver].
const nodeTimeout = "600000"

// RunRedisCluster runs n servers as masters of one cluster, without
// replicas, and returns when the cluster accepts commands.
func RunRedisCluster(tb testing.TB, size int, settings ...string) *RedisCluster {
	tb.Helper()
	c := &RedisCluster{settings: append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", nodeTimeout, "--repl-diskless-sync-delay", "0"}, settings...)}
	for range size {
		c.Nodes = append(c.Nodes, RunRedis(tb, c.settings...))
	}
	ctx := testwait.Context(tb)
	if err := c.form(ctx, tb); err != nil {
		tb.Fatalf("form a Redis Cluster: %v", err)
	}
	return c
}

// Replicate runs a replica of each node, with the same settings, and returns
// when the replicas have all data of the nodes.
func (c *RedisCluster) Replicate(tb testing.TB) {
	tb.Helper()
	ctx := testwait.Context(tb)
	for _, node := range c.Nodes {
		replica := RunRedis(tb, c.settings...)
		if err := c.replicate(ctx, tb, node, replica); err != nil {
			tb.Fatalf("make a replica of %s: %v", node.Addr(), err)
		}
		c.Replicas = append(c.Replicas, replica)
	}
	if err := c.Ready(ctx, tb); err != nil {
		tb.Fatalf("replicate a Redis Cluster: %v", err)
	}
}

// replicate retries until the replica knows the node that it is to replicate.
func (c *RedisCluster) replicate(ctx context.Context, tb testing.TB, node, replica *Redis) error {
	tb.Helper()
	if err := c.meet(ctx, tb, replica); err != nil {
		return err
	}
	id, err := node.Open(tb).Do(ctx, "CLUSTER", "MYID").Text()
	if err != nil {
		return err
	}
	client := replica.Open(tb)
	return again(ctx, func() error { return client.ClusterReplicate(ctx, id).Err() })
}

// slots is the number of slots of a Redis Cluster.
const slots = 16384

// form introduces the nodes to the first one and gives each its slots.
func (c *RedisCluster) form(ctx context.Context, tb testing.TB) error {
	tb.Helper()
	for n, node := range c.Nodes {
		client := node.Open(tb)
		first, last := n*slots/len(c.Nodes), (n+1)*slots/len(c.Nodes)-1
		if err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", n+1).Err(); err != nil {
			return err
		}
		if err := client.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
			return err
		}
		if err := c.meet(ctx, tb, node); err != nil {
			return err
		}
	}
	return c.Ready(ctx, tb)
}

// meet introduces a server to the first node.
func (c *RedisCluster) meet(ctx context.Context, tb testing.TB, server *Redis) error {
	tb.Helper()
	to := c.Nodes[0]
	return server.Open(tb).Do(ctx, "CLUSTER", "MEET", loopback, to.port, to.busPort()).Err()
}

// Ready waits until all servers know all slots and each other, and
// replicas have all data of their masters.
func (c *RedisCluster) Ready(ctx context.Context, tb testing.TB) error {
	tb.Helper()
	all := slices.Concat(c.Nodes, c.Replicas)
	for _, node := range all {
		client := node.Open(tb)
		err := again(ctx, func() error {
			cluster, err := client.ClusterInfo(ctx).Result()
			link, err2 := client.Info(ctx, "replication").Result()
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			if !clusterOK(cluster, len(all)) || strings.Contains(link, "master_link_status:down") {
				return fmt.Errorf("it says %q and %q", cluster, link)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("the node on port %d: %w", node.port, err)
		}
	}
	return nil
}

// FailOver kills a node and makes its replica the master. Without this, the cluster would elect
// the replica only after nodeTimeout.
func (c *RedisCluster) FailOver(tb testing.TB, n int) {
	tb.Helper()
	c.Nodes[n].Kill()
	replica := c.Replicas[n].Open(tb)
	ctx := testwait.Context(tb)
	err := again(ctx, func() error {
		role, err := replica.Do(ctx, "ROLE").Slice()
		if err == nil && role[0] == "master" {
			return nil
		}
		return errors.Join(err, fmt.Errorf("its role is %v", role), replica.Do(ctx, "CLUSTER", "FAILOVER", "TAKEOVER").Err())
	})
	if err != nil {
		tb.Fatalf("the replica of node %d: %v", n, err)
	}
}

// again repeats try until it succeeds or ctx ends.
func again(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(tryEvery):
		}
	}
}

// Open returns a client of the cluster, which is closed when the test ends.
func (c *RedisCluster) Open(tb testing.TB) *redis.ClusterClient {
	tb.Helper()
	addresses := make([]string, 0, len(c.Nodes))
	for _, node := range c.Nodes {
		addresses = append(addresses, node.Addr())
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses})
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// clusterOK reports whether CLUSTER INFO of a node says that the cluster is complete.
func clusterOK(info string, size int) bool {
	return strings.Contains(info, "cluster_state:ok") &&
		strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r\n", size)) &&
		strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d\r\n", slots))
}
