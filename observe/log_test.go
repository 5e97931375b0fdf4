// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// lines is a logger whose lines a test reads.
func lines() (*slog.Logger, func() []string) {
	var text bytes.Buffer
	return slog.New(slog.NewTextHandler(&text, nil)), func() []string {
		all := strings.Split(strings.TrimSpace(text.String()), "\n")
		text.Reset()
		return all
	}
}

func TestARefusedStatementIsLoggedOnceAMinuteWithHowOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger, read := lines()
		log := observe.NewLog(logger)
		refused := shardsql.Statement{Kind: shardsql.Refused, Table: "orders", Fingerprint: "DELETE FROM orders WHERE id < ?", Err: &sharding.RouteError{Op: "delete", Table: "orders", Err: sharding.ErrMissingKey}}
		for range 5 {
			log.Statement(t.Context(), refused)
		}
		log.Statement(t.Context(), shardsql.Statement{Kind: shardsql.One, Fingerprint: "SELECT ?", Err: errors.New("gone")})
		got := read()
		if len(got) != 2 || !strings.Contains(got[0], "refused") || !strings.Contains(got[0], "missing_key") || !strings.Contains(got[1], "failed") {
			t.Errorf("%q", got)
		}
		time.Sleep(time.Minute)
		log.Statement(t.Context(), refused)
		if got := read(); len(got) != 1 || !strings.Contains(got[0], "repeated=4") {
			t.Errorf("%q", got)
		}
	})
}

func TestEventsThatNeedNoActionAreNotLogged(t *testing.T) {
	logger, read := lines()
	log := observe.NewLog(logger)
	log.Statement(t.Context(), shardsql.Statement{Kind: shardsql.One})
	log.Statement(t.Context(), shardsql.Statement{Kind: shardsql.One, Err: context.Canceled})
	if got := read(); got[0] != "" {
		t.Errorf("%q", got)
	}
}

func TestManyTextsNeedNoMoreMemory(t *testing.T) {
	logger, read := lines()
	log := observe.NewLog(logger)
	const texts = 5000
	for i := range texts {
		log.Statement(t.Context(), shardsql.Statement{Fingerprint: strconv.Itoa(i), Err: errors.New("gone")})
	}
	if n := len(read()); n != texts {
		t.Errorf("%d lines of %d", n, texts)
	}
}

// A program logs the events on which its operators act.
func ExampleLog() {
	log := observe.NewLog(slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	source := segment.Observer{Outage: log.Outage("order"), Recovery: log.Recovery("order")} // of segment.Config
	statements := shardsql.Observer{Statement: log.Statement, ReplicaDown: log.ReplicaDown}  // of shardsql.Config

	source.Outage(errors.New("connection refused"))
	source.Recovery(3 * time.Second)
	statements.Statement(context.Background(), shardsql.Statement{Kind: shardsql.Refused, Table: "orders", Fingerprint: "DELETE FROM orders WHERE id < ?", Err: sharding.ErrMissingKey})
	for range 2 {
		statements.ReplicaDown(context.Background(), "shop_0", 1, errors.New("connection refused"))
	}
	// Output:
	// level=WARN msg="the source of a generator fails; the generator continues with the keys in its memory" generator=order error="connection refused"
	// level=INFO msg="the source of a generator answers again" generator=order lasted=3s
	// level=WARN msg="a statement was refused" outcome=missing_key table=orders statement="DELETE FROM orders WHERE id < ?" error="no sharding key"
	// level=WARN msg="a replica cannot be reached; reads go to the others, or to the database" database=shop_0 replica=1 error="connection refused"
}
