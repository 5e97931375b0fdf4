package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis is one private server, reached at [Redis.Addr] without a password. Addr
// may be called at any time, by any goroutine; Kill, Start and Stop not at the
// same time as each other.
type Redis struct{ *instance }

// Persistent are the settings of a server that loses nothing it has answered.
// Without them it forgets everything when it is killed.
func Persistent() []string { return []string{"--appendonly", "yes", "--appendfsync", "always"} }

// StartRedis makes an empty server and returns once it answers. The settings are
// passed to redis-server after the usual ones, and so override them. The caller
// must Stop it.
//
// ctx bounds the start, not the server's life.
func StartRedis(ctx context.Context, settings ...string) (*Redis, error) {
	i, err := redisKind.start(ctx, settings)
	if err != nil {
		return nil, err
	}
	return &Redis{i}, nil
}

// RunRedis is [StartRedis] for a test or benchmark: a server that does not start
// fails it, and the server is stopped when it ends. A test that fails is shown
// the end of the server's log.
func RunRedis(tb testing.TB, settings ...string) *Redis {
	tb.Helper()
	return &Redis{redisKind.run(tb, settings)}
}

// Addr is the server's host and port. It stays the same when the server is
// killed and started again.
func (r *Redis) Addr() string { return address(r.port) }

// Open returns a client, which is closed when the test ends. It does not try
// again by itself, so that a test sees each failure.
func (r *Redis) Open(tb testing.TB) *redis.Client {
	tb.Helper()
	c := redis.NewClient(&redis.Options{Addr: r.Addr(), MaxRetries: -1})
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

var redisKind = kind{
	name:    "redis",
	program: program{"redis-server", []string{"/usr/local/bin"}, "redis-server"},
	args:    redisArgs,
	asker:   byConfig,

	portTaken: "Address already in use",
}

// redisArgs keep nothing on disk unless a test says so.
func redisArgs(i *instance) []string {
	args := []string{
		"--dir", i.dataDir(),
		"--bind", loopback,
		"--port", strconv.Itoa(i.port),
		"--cluster-port", strconv.Itoa(i.busPort()), // its own when it is one of a cluster
		"--logfile", i.logFile(),
		"--save", "",
		"--appendonly", "no",
	}
	return append(args, i.settings...)
}

// busPort is where the nodes of a cluster talk to each other: below the range
// that ports for clients are picked from.
func (i *instance) busPort() int { return i.port - ports }

func byConfig(port int) (asker, error) {
	return redisAsker{redis.NewClient(&redis.Options{Addr: address(port), MaxRetries: -1})}, nil
}

type redisAsker struct{ *redis.Client }

// dataDir asks with PING first: a server that is still reading its data back
// answers CONFIG already and refuses the commands a test would send next.
func (a redisAsker) dataDir(ctx context.Context) (string, error) {
	if err := a.Ping(ctx).Err(); err != nil {
		return "", err
	}
	config, err := a.ConfigGet(ctx, "dir").Result()
	return config["dir"], err
}

// RedisCluster is several servers that share the slots among them.
type RedisCluster struct{ Nodes []*Redis }

// RunRedisCluster runs as many servers as masters of one cluster, without
// replicas, and returns once it takes commands.
func RunRedisCluster(tb testing.TB, size int, settings ...string) *RedisCluster {
	tb.Helper()
	c := &RedisCluster{}
	for range size {
		c.Nodes = append(c.Nodes, RunRedis(tb, append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "1000"}, settings...)...))
	}
	ctx, cancel := context.WithTimeout(tb.Context(), startLimit)
	defer cancel()
	if err := c.form(ctx, tb); err != nil {
		tb.Fatalf("form a Redis Cluster: %v", err)
	}
	return c
}

// slots is how many a Redis Cluster has.
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
		to := c.Nodes[0]
		if err := client.Do(ctx, "CLUSTER", "MEET", loopback, to.port, to.busPort()).Err(); err != nil {
			return err
		}
	}
	return c.Ready(ctx, tb)
}

// Ready waits until all nodes know of all slots.
func (c *RedisCluster) Ready(ctx context.Context, tb testing.TB) error {
	tb.Helper()
	for _, node := range c.Nodes {
		client := node.Open(tb)
		for {
			info, err := client.ClusterInfo(ctx).Result()
			if err == nil && clusterOK(info, len(c.Nodes)) {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%w; the node on port %d says %q (%w)", ctx.Err(), node.port, info, err)
			case <-time.After(tryEvery):
			}
		}
	}
	return nil
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

// clusterOK tells whether a node's CLUSTER INFO is that of a whole cluster.
func clusterOK(info string, size int) bool {
	return strings.Contains(info, "cluster_state:ok") &&
		strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r\n", size)) &&
		strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d\r\n", slots))
}
