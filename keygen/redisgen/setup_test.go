// SPDX-License-Identifier: Apache-2.0

package redisgen_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/redisgen"
	"github.com/shardid/shardid/keygen/segment"
)

// refusing is a Redis that answers every script with an error.
type refusing string

func (r refusing) Eval(context.Context, string, []string, ...any) refusing { return r }
func (r refusing) Int64() (int64, error)                                   { return 0, errors.New(string(r)) }

func TestWhatIsWrongInRedisFailsAtOnceAndSaysWhatToDo(t *testing.T) {
	for answer, cure := range map[string]string{
		"ERR value is not an integer or out of range script: 5e36, on @user_script:1.":                  "Seed",
		"WRONGTYPE Operation against a key holding the wrong kind of value script: d3c2":                "key of its own",
		"NOAUTH Authentication required.":                                                               "password",
		"WRONGPASS invalid username-password pair or user is disabled.":                                 "password",
		"NOPERM this user has no permissions to run the 'eval' command":                                 "EVAL",
		"ERR The user executing the script can't run this command or subcommand script: 59c4, on @user": "INCRBY",
		"ERR Error running script (call to f_1): @user_script:3: ERR value is not an integer or out of": "Seed",
	} {
		counter, err := redisgen.New(refusing(answer), redisgen.Config{Key: "ids"})
		if err != nil {
			t.Fatal(err)
		}
		tries := 0
		g, err := segment.New(t.Context(), segment.Config{Source: counter, Observer: segment.Observer{
			Refill: func(keygen.Span, time.Duration, error) { tries++ },
		}})
		if err == nil {
			t.Error(answer, "was no error", g.Close())
			continue
		}
		var setup *keygen.SetupError
		if !errors.As(err, &setup) || !strings.Contains(err.Error(), answer) || !strings.Contains(setup.Cure, cure) || tries != 1 {
			t.Errorf("%d tries: %v", tries, err)
		}
	}
}

func TestAnOutageOfRedisIsNoFaultOfTheSetup(t *testing.T) {
	for _, answer := range []string{"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica.", "dial tcp: connection refused", "OOM command not allowed when used memory > 'maxmemory'."} {
		counter, err := redisgen.New(refusing(answer), redisgen.Config{Key: "ids"})
		if err != nil {
			t.Fatal(err)
		}
		var setup *keygen.SetupError
		if _, err := counter.Reserve(t.Context(), 1); err == nil || errors.As(err, &setup) {
			t.Errorf("%s: %v", answer, err)
		}
	}
}
