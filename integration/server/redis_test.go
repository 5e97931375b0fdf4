// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestRedisKeepsOrForgetsItsDataWhenKilledAsItIsTold(t *testing.T) {
	for name, settings := range map[string][]string{"kept": Persistent(), "": nil} {
		r := RunRedis(t, settings...)
		before, client := r.Addr(), r.Open(t)
		if err := client.Set(t.Context(), "key", "kept", 0).Err(); err != nil {
			t.Fatal(err)
		}
		r.Kill()
		if err := client.Ping(t.Context()).Err(); err == nil {
			t.Error("a killed server answered")
		}
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := r.Open(t).Get(t.Context(), "key").Result()
		if got != name || (err != nil && !errors.Is(err, redis.Nil)) || r.Addr() != before {
			t.Errorf("with %q the value is %q (%v); the address was %s and is %s", settings, got, err, before, r.Addr())
		}
	}
}

func TestRedisThatDoesNotStartSaysWhy(t *testing.T) {
	_, err := StartRedis(t.Context(), "--appendfsync", "sometimes")
	if err == nil || !strings.Contains(err.Error(), "appendfsync") {
		t.Errorf("StartRedis says %v", err)
	}
}

func TestARedisClusterSharesItsKeysAmongItsNodes(t *testing.T) {
	c := RunRedisCluster(t, 3)
	client := c.Open(t)
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		if err := client.Set(t.Context(), key, "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range c.Nodes {
		if n := node.Open(t).DBSize(t.Context()).Val(); n == 0 || n == 8 {
			t.Errorf("%s has %d of 8 keys", node.Addr(), n)
		}
	}
}
