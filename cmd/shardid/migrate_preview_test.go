// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/schema/preview"
	"github.com/shardid/shardid/sharding"
)

// records has the application record statements that the shards will refuse.
func (m *movable) records(t *testing.T, texts ...string) {
	t.Helper()
	var found sharding.Preview
	for _, text := range texts {
		found.Add(text, sharding.WillBeRefused, &sharding.RouteError{Op: "update", Table: "orders", Err: sharding.ErrMissingKey, Hint: "add a condition on user_id"})
	}
	r, err := preview.Start(t.Context(), preview.Config{Source: m.source, Preview: &found})
	check(err)
	check(r.Close(t.Context()))
}

func TestACutoverWarnsUntilSomebodyHasLookedAtThePreview(t *testing.T) {
	m := newMovable(t, 20)
	m.must(t, 0, "run", "--once")
	switches := func(want string) {
		t.Helper()
		o := m.must(t, 0, "cutover", "--max-pause", "10m")
		if got := strings.Contains(o.stderr, "warning"); got != (want != "") || !strings.Contains(o.stderr, want) {
			t.Errorf("want %q: %s", want, o.stderr)
		}
		m.must(t, 0, "rollback", "--max-pause", "10m")
	}
	switches("nobody has checked which statements the shards will refuse; run: shardid migrate preview --config ")
	m.records(t) // nothing that will be refused
	switches("")
	m.records(t, "UPDATE orders SET note = ?", "DELETE FROM orders")
	switches("nobody has checked the 2 statements of the application that the shards will refuse; run")
	m.must(t, 0, "preview")
	switches("")
	m.records(t, "UPDATE orders SET note = ?", "UPDATE orders SET user_id = ?")
	switches("1 refused statement was found since the last check")
	m.must(t, 0, "cutover", "--max-pause", "10m")
	for range 2 { // switched, finalized
		if o := m.must(t, 0, "cutover"); !strings.Contains(o.stdout, "nothing left to switch") || strings.Contains(o.stderr, "warning") {
			t.Errorf("%s%s", o.stdout, o.stderr)
		}
		m.must(t, 0, "finalize", "--yes")
	}
}

func TestAPreviewSaysWhatWillBeRefusedAndWhy(t *testing.T) {
	m := newMovable(t, 20)
	m.records(t, "UPDATE orders SET note = ?")
	seen := m.seenAt(t)
	want := "1 times, last at " + seen + ": refused\n    UPDATE orders SET note = ?\n    sharding: update orders refused: no sharding key; add a condition on user_id\n"
	if o := m.must(t, 6, "preview", "--check"); !strings.Contains(o.stdout, ": 1 will be refused, 0 will be executed differently\n") || !strings.HasSuffix(o.stdout, want) {
		t.Errorf("%s%s", o.stdout, o.stderr)
	}
	var said struct {
		Job        string `json:"job"`
		Statements []struct {
			Statement, Becomes, Reason string
			Times                      int
		}
		Recorded, Looked string
		Unseen           int
	}
	if err := json.Unmarshal([]byte(m.must(t, 0, "preview", "--json").stdout), &said); err != nil {
		t.Fatal(err)
	}
	if said.Job != "orders" || len(said.Statements) != 1 || said.Statements[0].Becomes != "refused" || said.Recorded == "" || said.Looked == "" || said.Unseen != 0 {
		t.Errorf("%+v", said)
	}
}

// seenAt is when the recorded statement was last sent.
func (m *movable) seenAt(t *testing.T) string {
	t.Helper()
	found, err := preview.Read(t.Context(), m.source, "orders")
	check(err)
	return found.Statements[0].Seen.Format(time.DateTime + " MST")
}

// A statement that the program no longer sends stays in the table. Without --since the check would never succeed again.
func TestAPreviewLeavesOutStatementsThatAreNoLongerSent(t *testing.T) {
	m := newMovable(t, 20)
	m.records(t, "UPDATE orders SET note = ?")
	m.exec(t, "UPDATE shardid_preview SET seen = seen - 7200, found = found - 7200 WHERE id <> ''") // sent two hours ago
	o := m.must(t, 6, "preview", "--check")
	if !strings.Contains(o.stderr, "the shards will refuse 1 of the statements; if programs have been changed since, --since 1h leaves out what was last sent earlier") {
		t.Error(o.stderr)
	}
	if o := m.must(t, 0, "preview", "--check", "--since", "1h"); !strings.Contains(o.stdout, ": 0 will be refused") || strings.Contains(o.stdout, "UPDATE") {
		t.Error(o.stdout)
	}
	m.must(t, 6, "preview", "--check", "--since", "3h")
	m.exec(t, "UPDATE shardid_preview SET seen = seen - 7200 WHERE id = ''") // no recorder has run since
	if o := m.must(t, 6, "preview", "--check", "--since", "1h"); !strings.Contains(o.stderr, "nothing is known of the application's statements") ||
		!strings.Contains(o.stdout, "no process has recorded its statements in the last 1h0m0s") {
		t.Errorf("%s%s", o.stdout, o.stderr)
	}
	if o := m.must(t, 2, "preview", "--since", "-1h"); !strings.Contains(o.stderr, "--since") {
		t.Error(o.stderr)
	}
}

func TestAPreviewPlansTheStatementsOfALog(t *testing.T) {
	m := newMovable(t, 20)
	log := m.file("general.log")
	const statements = "SELECT * FROM orders WHERE user_id = 5\nUPDATE orders SET note = 'a'\nUPDATE orders SET note = 'b'\n"
	if err := os.WriteFile(log, []byte(statements), 0o600); err != nil {
		t.Fatal(err)
	}
	o := m.must(t, 6, "preview", "--check", "--log", log)
	for _, want := range []string{"no process has recorded its statements", "in the log: 3 statements", "66.7 %  refused", "2  sharding: update orders refused: no sharding key"} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("%q is missing in\n%s", want, o.stdout)
		}
	}
	m.must(t, 0, "run", "--once")
	if o := m.must(t, 0, "cutover", "--max-pause", "10m"); strings.Contains(o.stderr, "warning") {
		t.Errorf("somebody has looked: %s", o.stderr)
	}
	if o := execute(t, m.args("preview", "--log", m.file("nothing.log"))...); o.code != 2 || !strings.Contains(o.stderr, "does not exist; name a file with statements") {
		t.Errorf("%+v", o)
	}
}

func TestAPreviewWithoutStatementsIsNotStoredAsRead(t *testing.T) {
	m := newMovable(t, 20)
	m.must(t, 6, "preview", "--check")
	m.must(t, 0, "preview")
	m.must(t, 0, "run", "--once")
	if o := m.must(t, 0, "cutover", "--max-pause", "10m"); !strings.Contains(o.stderr, "nobody has checked") {
		t.Error(o.stderr)
	}
}
