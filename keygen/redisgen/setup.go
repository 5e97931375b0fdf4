// SPDX-License-Identifier: Apache-2.0

package redisgen

import (
	"fmt"
	"strings"

	"github.com/shardid/shardid/keygen"
)

// rights is the cure for a missing right to counters.
const rights = "give the user the right to EVAL, and to GET, SET, INCRBY, INCR, EXPIREAT and TIME on the keys of its counters"

// cures says what to do about errors of Redis that a retry cannot cure.
var cures = []cure{
	{"not an integer", "the key does not hold a counter; choose another key, or delete it and Seed the counter above the keys in use"},
	{"WRONGTYPE", "the key does not hold a counter; give the counter a key of its own"},
	{"NOAUTH", "give the client user and password"},
	{"WRONGPASS", "check the client's user and password"},
	{"NOPERM", rights},
	{"The user executing the script can't", rights}, // NOPERM of a command within, on Redis 7.0
}

// leaseCures is the same for the scripts of leases.
var leaseCures = []cure{
	{"WRONGTYPE", "the key does not hold leases; give the ledger a prefix of its own"},
	{"NOAUTH", "give the client user and password"},
	{"WRONGPASS", "check the client's user and password"},
	{"NOPERM", leaseRights},
	{"The user executing the script can't", leaseRights},
}

// leaseRights is the cure for a missing right to leases.
const leaseRights = "give the user the right to EVAL, and to TIME, INFO, and HGETALL and HSET on the keys of its leases"

// explained adds to an error of Redis what to do, if a retry cannot cure it. It compares the
// error's text, because Redis has no error codes.
func explained(err error) error { return explainedBy(err, cures) }

// cure is what to do about an error of Redis.
type cure struct{ answer, cure string }

func explainedBy(err error, cures []cure) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if strings.Contains(text, "would overflow") {
		return fmt.Errorf("%w: %w", keygen.ErrExhausted, err)
	}
	for _, c := range cures {
		if strings.Contains(text, c.answer) {
			return &keygen.SetupError{Err: err, Cure: c.cure}
		}
	}
	return err
}
