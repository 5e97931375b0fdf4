// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"database/sql"
	"testing"
	"testing/synctest"
	"time"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
)

func TestRatesAreThoseOfTheLastMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPulse(&openjob.Job{}, &term{}, nil)
		for _, part := range []struct {
			lasts            time.Duration
			copied, followed int64 // in a second
			wantCopied       int64
			wantFollowed     int64
		}{
			{10 * time.Second, 100, 7, 100, 7}, // of a runner that leads for less
			{3 * time.Minute, 500, 0, 500, 0},
			{30 * time.Second, 0, 20, 250, 10},
			{31 * time.Second, 0, 20, 0, 20},
		} {
			var copied, followed int64
			for range part.lasts / PulseEvery {
				time.Sleep(PulseEvery)
				p.job.Copied.Add(part.copied * int64(PulseEvery.Seconds()))
				p.job.Followed.Add(part.followed * int64(PulseEvery.Seconds()))
				copied, followed = p.rates()
			}
			// A sample more or less lies within the minute.
			if near := func(is, want int64) bool { return is >= want-want/20 && is <= want+want/20+1 }; !near(copied, part.wantCopied) || !near(followed, part.wantFollowed) {
				t.Errorf("%+v: %d rows and %d changes a second", part, copied, followed)
			}
			if len(p.samples) > int(rateOver/PulseEvery)+2 {
				t.Errorf("%d samples are kept", len(p.samples))
			}
		}
	})
}

func TestTheReportedAgeOfALogIsNeverTooLow(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	defer func() { _ = db.Close() }()
	side, err := backend.Open(t.Context(), "source", backend.FenceTable, db)
	if err != nil {
		t.Fatal(err)
	}
	defer side.Close()
	var a, late logAge
	for _, step := range []struct {
		now        int64
		do         string
		want       int64 // of a runner that has looked from the start
		wantOfLate int64 // of one that looks from now=104 on
	}{
		{90, "", 0, 0}, // there is no log yet
		{100, "CREATE TABLE log (seq INTEGER PRIMARY KEY)", 100, 0},
		{102, "INSERT INTO log VALUES (1), (2)", 100, 0},
		{104, "", 100, 0},
		{106, "INSERT INTO log VALUES (3)", 100, 0},
		{108, "DELETE FROM log WHERE seq = 2", 100, 0}, // the oldest is there still
		{110, "DELETE FROM log WHERE seq = 1", 104, 104},
		{112, "INSERT INTO log VALUES (4)", 104, 104},
		{114, "DELETE FROM log WHERE seq = 3", 110, 110},
		{116, "DELETE FROM log", 116, 116},
	} {
		err := side.Do(t.Context(), func(s *backend.Session) error {
			if step.do != "" {
				if err := s.Exec(t.Context(), step.do); err != nil {
					return err
				}
			}
			if err := a.look(t.Context(), s, "log", step.now); err != nil || step.now < 104 {
				return err
			}
			return late.look(t.Context(), s, "log", step.now)
		})
		if err != nil || a.caught != step.want || late.caught != step.wantOfLate {
			t.Errorf("at %d: %d and %d, want %d and %d (%v)", step.now, a.caught, late.caught, step.want, step.wantOfLate, err)
		}
	}
}
