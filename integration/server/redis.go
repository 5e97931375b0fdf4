// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Redis is one private server, reached at [Redis.Addr] without a password. Addr
// may be called at any time, by any goroutine; Kill, Start and Stop not at the
// same time as each other.
type Redis struct{ *instance }

// Persistent are the settings with which a server loses no confirmed write.
// Without them it loses all data when it is killed.
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

// Open returns a client, which is closed when the test ends. The client does not retry,
// so that a test sees each failure.
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

// redisArgs turn persistence off; a test's settings may turn it on.
func redisArgs(i *instance) []string {
	args := []string{
		"--dir", i.dataDir(),
		"--bind", loopback,
		"--port", strconv.Itoa(i.port),
		"--cluster-port", strconv.Itoa(i.busPort()), // used if the server is a node of a cluster
		"--logfile", i.logFile(),
		"--save", "",
		"--appendonly", "no",
	}
	return append(args, i.settings...)
}

// busPort is the port on which a node listens for other nodes. It is below the range
// of the ports for clients.
func (i *instance) busPort() int { return i.port - serverPorts.count }

func byConfig(port int) (asker, error) {
	return redisAsker{redis.NewClient(&redis.Options{Addr: address(port), MaxRetries: -1})}, nil
}

type redisAsker struct{ *redis.Client }

// dataDir sends PING first, because a server that is still loading its data
// answers CONFIG but refuses the commands of a test.
func (a redisAsker) dataDir(ctx context.Context) (string, error) {
	if err := a.Ping(ctx).Err(); err != nil {
		return "", err
	}
	config, err := a.ConfigGet(ctx, "dir").Result()
	return config["dir"], err
}
